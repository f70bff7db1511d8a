package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/mail"
	"swarm/internal/view"
)

// person is a person who does what comes to mind, and in the end tidies up, so that the run can end.
func (w *world) person() {
	w.disk.delay(0, time.Second, "person")
	r := dice(w.seed, "person")
	n, rounds := 0, 0
	for life := 0; ; life++ {
		ctx, h, leave := w.process(w.fateOfAnyone)
		for ctx.Err() == nil {
			most := 90 * time.Second
			if time.Since(w.began) > 30*time.Minute {
				most = 10 * time.Minute
			}
			t := time.NewTimer(w.length(0, most, "person", n))
			select {
			case <-t.C:
			case <-w.ended:
				leave()
				return
			}
			n++
			var err error
			if time.Since(w.began) < 10*time.Minute && n < 40 {
				err = w.dabble(ctx, h, r, n)
			} else {
				rounds++
				err = w.tidy(ctx, h, rounds)
			}
			var known *swarm.Error
			if err != nil && !errors.Is(err, errCrash) && !errors.As(err, &known) {
				w.fail("the person: %v", err)
			}
		}
		leave()
	}
}

func (w *world) length(least, most time.Duration, what ...any) time.Duration {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	return w.disk.length(least, most, what...)
}

// command writes a command, and expects to find it in the log.
func (w *world) command(ctx context.Context, h *handle, c swarm.Command, target string) error {
	e := swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: c, Target: target})
	e.To = swarm.ToControl
	seqs, err := h.Append(ctx, swarm.Batch{Events: []swarm.Event{e}})
	w.note("person: %s %s %v", c, target, err)
	if err == nil {
		w.acked(seqs[0], "person", func(got swarm.Event) error {
			if string(got.Data) != string(e.Data) || got.Kind != e.Kind {
				return fmt.Errorf("it is %s %s, not %s", got.Kind, got.Data, e.Data)
			}
			return nil
		})
	}
	return err
}

func (w *world) acked(seq int64, who string, want func(swarm.Event) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks = append(w.acks, ack{seq, who, want})
}

// dabble does something at random.
func (w *world) dabble(ctx context.Context, h *handle, r *rand.Rand, n int) error {
	agent := w.plan.Agents[r.IntN(len(w.plan.Agents))].Name
	target := agent
	if len(w.plan.Tasks) > 0 && chance(r, 50) {
		target = w.plan.Tasks[r.IntN(len(w.plan.Tasks))].Name
	}
	switch k := r.IntN(100); {
	case k < 8:
		return w.command(ctx, h, swarm.CommandPause, one(r, "", target))
	case k < 20:
		return w.command(ctx, h, swarm.CommandResume, one(r, "", target))
	case k < 25:
		return w.command(ctx, h, swarm.CommandInterrupt, target)
	case k < 28:
		return w.command(ctx, h, swarm.CommandCancel, target)
	case k < 29:
		return w.command(ctx, h, swarm.CommandCancel, "")
	case k < 34:
		return w.command(ctx, h, swarm.CommandStart, agent)
	case k < 38:
		return w.command(ctx, h, swarm.CommandReset, agent)
	case k < 45:
		return w.command(ctx, h, swarm.CommandRetry, one(r, "", target))
	case k < 70:
		return w.decide(ctx, h, r)
	}
	return w.write(ctx, h, r, agent, n)
}

// write sends a message to an agent.
func (w *world) write(ctx context.Context, h *handle, r *rand.Rand, agent string, n int) error {
	text := fmt.Sprintf("(user/%d/0.0)", n)
	s := &agentapi.Service{Run: runID, Log: h}
	sent, err := s.FromUser(ctx, mail.Draft{To: agent, Message: "person says " + text, Interrupt: chance(r, 15), Priority: one(r, "", "", mail.High)})
	w.note("person: %s to %s: %v %v", text, agent, sent, err)
	if err == nil {
		w.acked(sent.Seq, "person", func(e swarm.Event) error {
			if marks.FindString(string(e.Data)) != text {
				return fmt.Errorf("%s is not the message %s", e.Data, text)
			}
			return nil
		})
	}
	return err
}

// decide answers the oldest question.
func (w *world) decide(ctx context.Context, h *handle, r *rand.Rand) error {
	v, err := w.look(h)
	if err != nil || len(v.Approvals) == 0 {
		return err
	}
	id := v.Approvals[0].ID
	ok := r == nil || chance(r, 70)
	err = (&agentapi.Service{Run: runID, Log: h}).Decide(ctx, id, agentapi.Decision{OK: ok, Actor: swarm.Actor{By: swarm.ByPerson}})
	w.note("person: %s %v: %v", id, ok, err)
	if errors.Is(err, agentapi.ErrAnswered) {
		return nil
	}
	return err
}

func (w *world) look(h *handle) (view.Picture, error) {
	v := view.New(runID)
	for e, err := range swarm.Events(h, 0) {
		if err == nil {
			err = v.Apply(e)
		}
		if err != nil {
			return view.Picture{}, err
		}
	}
	return v.Picture(), nil
}

// tidy answers what is open, resumes what is paused and gives up what is blocked. In the end it
// cancels the run.
func (w *world) tidy(ctx context.Context, h *handle, round int) error {
	p, err := w.look(h)
	if err != nil {
		return err
	}
	err = w.command(ctx, h, swarm.CommandResume, "")
	for _, a := range p.Agents {
		err = errors.Join(err, w.command(ctx, h, swarm.CommandResume, a.Name))
	}
	for range p.Approvals {
		err = errors.Join(err, w.decide(ctx, h, nil))
	}
	for _, t := range p.Tasks {
		if t.Status == swarm.Blocked {
			err = errors.Join(err, w.command(ctx, h, swarm.CommandRetry, t.Name))
		}
	}
	switch {
	case round == 10:
		err = errors.Join(err, w.command(ctx, h, swarm.CommandClose, ""))
	case round == 20:
		err = errors.Join(err, w.command(ctx, h, swarm.CommandCancel, ""))
	case round == 40:
		w.fail("the run was cancelled and does not end: %s %s", p.Status, p.Reason)
		w.end()
	}
	return err
}
