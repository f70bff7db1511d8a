package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/provider"
)

// notice notes that a replay has left the recording, if that is what err says. Then nobody has to wait any more for what was recorded.
func (r *Runner) notice(err error) {
	if r.Replay == nil || swarm.KindOf(err) != swarm.Mismatch {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.left():
	default:
		close(r.astray)
	}
}

// left is closed when the replay has left the recording. The runner is locked.
func (r *Runner) left() chan struct{} {
	if r.astray == nil {
		r.astray = make(chan struct{})
	}
	return r.astray
}

// patience is how long a replayed turn waits for what the recorded one had found: others are replayed at the same time, and
// mostly in another order.
var patience = 30 * time.Second

// awaitMail waits until the mail is there that the recorded turn had in its prompt, and what was published before it.
func (r *Runner) awaitMail(ctx context.Context, w *work) error {
	if r.Replay == nil {
		return nil
	}
	rec, ok := r.Replay.Turn(w.c.ID)
	if !ok {
		return nil // the provider says so
	}
	w.recorded = &rec
	if err := r.awaitEnvelopes(ctx, w.c.Agent, func(ids []string) bool { return holdsAll(ids, rec.Mail) }); err != nil {
		return err
	}
	return r.awaitEntries(ctx, rec.Topics)
}

// reenact does again what the recorded turn did to its run by our own tools: others read what came of it. Mail comes into each
// inbox in the recorded order. A growth request may have been answered when its turn had long ended; the answer is given as long as the run lasts.
func (r *Runner) reenact(ctx, run context.Context, w *work, call func(context.Context, string, json.RawMessage) (string, error)) error {
	if w.recorded == nil || r.AgentAPI == nil {
		return nil
	}
	for _, act := range w.recorded.Acts {
		if act.To != "" {
			if err := r.awaitEnvelopes(ctx, act.To, func(ids []string) bool { return len(ids) >= act.After }); err != nil {
				return err
			}
		}
		if err := r.awaitEntries(ctx, act.Published); err != nil {
			return err
		}
		if err := r.actAgain(ctx, w, act, call); err != nil {
			return &swarm.Error{Kind: swarm.Mismatch, Msg: "the turn " + w.c.ID + " cannot do again what it did in the recording", Err: err,
				Hint: "the plan has changed since it was recorded; record the run again with --record"}
		}
		if act.Answer != nil {
			r.answers.Go(func() { r.answerAgain(run, w.c.Agent, act) })
		}
	}
	return r.readAgain(ctx, w, call)
}

// answerAgain answers a growth request as it was recorded, when the mail has come that had come before who made it was told. If that does not come,
// the answer is given all the same: then the replay has left the recording, and a prompt will show where.
func (r *Runner) answerAgain(ctx context.Context, agent string, act provider.Act) {
	_ = r.awaitEnvelopes(ctx, agent, func(ids []string) bool { return len(ids) >= act.Told })
	if err := r.AgentAPI.Repeat(ctx, *act.Answer); err != nil {
		r.notice(swarm.Errorf(swarm.Mismatch, "the answer to %s cannot be given again: %w", act.Answer.ID, err))
	}
}

// actAgain does one thing again that the recorded turn did, or that somebody else did because of it or meanwhile.
func (r *Runner) actAgain(ctx context.Context, w *work, act provider.Act, call func(context.Context, string, json.RawMessage) (string, error)) error {
	switch act.Tool {
	case provider.OthersMail:
	case provider.OthersFinding:
		return r.AgentAPI.PublishAgain(ctx, act.Args, act.Published)
	default:
		_, err := call(ctx, act.Tool, act.Args)
		return err
	}
	e, err := mail.ReadEnvelope(act.Args)
	if err != nil {
		return err
	}
	return r.AgentAPI.PostAgain(ctx, e, w.c.Task, w.c.ID)
}

// readAgain reads the mail that the recorded turn had read by a tool, or was given between two.
func (r *Runner) readAgain(ctx context.Context, w *work, call func(context.Context, string, json.RawMessage) (string, error)) error {
	if len(w.recorded.Read) == 0 {
		return nil
	}
	if err := r.awaitEnvelopes(ctx, w.c.Agent, func(ids []string) bool { return holdsAll(ids, w.recorded.Read) }); err != nil {
		return err
	}
	asides := w.recorded.Asides
	for i := 0; i < len(w.recorded.Read); {
		if len(asides) > 0 && len(asides[0].Mail) > 0 && w.recorded.Read[i] == asides[0].Mail[0] {
			if err := r.tellAgain(ctx, w, asides[0]); err != nil {
				return err
			}
			i, asides = i+len(asides[0].Mail), asides[1:]
			continue
		}
		from := i
		for i++; i < len(w.recorded.Read) && (len(asides) == 0 || len(asides[0].Mail) == 0 || w.recorded.Read[i] != asides[0].Mail[0]); i++ {
		}
		if err := r.askAgain(ctx, w, i-from, call); err != nil {
			return err
		}
	}
	return nil
}

// tellAgain gives a turn what it was given between two tools. It is the same to the letter, or the replay has left the recording.
func (r *Runner) tellAgain(ctx context.Context, w *work, aside provider.Aside) error {
	text, err := w.handle.AsideAgain(ctx, aside.Tool, len(aside.Mail))
	if err == nil && text != string(aside.Text) {
		err = provider.Differs("what the turn "+w.c.ID+" was given beside the answer of "+aside.Tool, string(aside.Text), text)
	}
	return err
}

// askAgain reads so many envelopes by our own tool.
func (r *Runner) askAgain(ctx context.Context, w *work, left int, call func(context.Context, string, json.RawMessage) (string, error)) error {
	for left > 0 {
		answer, err := call(ctx, "read_inbox", swarm.Encode(map[string]int{"max": min(left, maxInbox)}))
		if err != nil {
			return err
		}
		var shown struct {
			Envelopes []json.RawMessage `json:"envelopes"`
		}
		if err := json.Unmarshal([]byte(answer), &shown); err != nil || len(shown.Envelopes) == 0 {
			return swarm.Errorf(swarm.Mismatch, "the turn %s had read mail that is not there", w.c.ID)
		}
		left -= len(shown.Envelopes)
	}
	return nil
}

// sortAsRecorded puts mail into the order in which the recorded turn had it. What the loop wrote meanwhile, such as a note, may have
// come earlier or later this time.
func sortAsRecorded(items []mail.Item, recorded []string) {
	slices.SortStableFunc(items, func(a, b mail.Item) int {
		return cmp.Compare(slices.Index(recorded, a.Ref()), slices.Index(recorded, b.Ref()))
	})
}

func holdsAll(ids, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(ids, id) })
}

// awaitEnvelopes waits until enough holds for the envelopes that have ever come into an agent's inbox.
func (r *Runner) awaitEnvelopes(ctx context.Context, agent string, enough func(ids []string) bool) error {
	var ids []string
	return r.await(ctx, swarm.ToAgent(agent), "mail for @"+agent, func(e *swarm.Event) {
		if e.Kind != swarm.HandoffStored {
			return
		}
		if env, err := swarm.Body[swarm.Envelope](e); err == nil {
			ids = append(ids, env.Ref())
		}
	}, func() bool { return enough(ids) })
}

// awaitEntries waits until the topics have so many entries.
func (r *Runner) awaitEntries(ctx context.Context, n int) error {
	return r.await(ctx, swarm.ToTopics, "something published", func(*swarm.Event) { n-- }, func() bool { return n <= 0 })
}

// await reads what is addressed to a receiver until enough holds for it.
func (r *Runner) await(ctx context.Context, to, what string, take func(*swarm.Event), enough func() bool) error {
	if enough() {
		return nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, patience, swarm.Errorf(swarm.Mismatch, "%s that is in the recording has not come again", what).
		WithHint("the plan has changed since it was recorded; record the run again with --record"))
	defer stop()
	wake, off := r.Log.Watch(to)
	defer off()
	r.mu.Lock()
	astray := r.left()
	r.mu.Unlock()
	for after := int64(0); ; {
		events, err := r.Log.Read(after, 1000, to)
		if err != nil {
			return err
		}
		for i := range events {
			after = events[i].Seq
			take(&events[i])
		}
		if enough() {
			return nil
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-astray:
			return swarm.Errorf(swarm.Mismatch, "another turn is not as it was recorded, so %s does not come again", what)
		case <-ctx.Done():
			return swarm.CutError(ctx)
		}
	}
}
