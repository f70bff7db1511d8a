package run

import (
	"errors"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/view"
)

// Turn returns the turn that a user names: code/2/1 is a turn, code/2 the last turn of a task's
// iteration, code the last turn of a task. It looks the turn up by its keys, so that one turn of a
// long run does not cost reading the whole log.
func (r *Reader) Turn(name string) (view.Turn, error) {
	driven := r.Driven()
	id, err := r.turnID(name)
	if err != nil {
		return view.Turn{}, err
	}
	c := view.NewCollector()
	begun := int64(0)
	for n := 1; ; n++ {
		e, ok, err := r.log.Find(swarm.StartKey(id, n))
		if err != nil {
			return view.Turn{}, err
		}
		if !ok {
			break
		}
		if err := c.Take(&e); err != nil {
			return view.Turn{}, err
		}
		begun = e.Seq
	}
	end, ended, err := r.log.Find(swarm.EndKey(string(id)))
	switch {
	case err != nil:
		return view.Turn{}, err
	case begun > 0: // its actions are between its last start and its end
		err = r.collect(c, id, begun, end.Seq)
	case ended:
		err = c.Take(&end)
	}
	if err == nil {
		err = r.collectAction(c, id)
	}
	if err != nil {
		return view.Turn{}, err
	}
	return markInterrupted(c.Turns, driven)[0], nil
}

// collectAction collects what the action of a swarm's iteration gave. Of several attempts the last
// one counts.
func (r *Reader) collectAction(c *view.Collector, id swarm.TurnID) error {
	for n := 1; ; n++ {
		action := swarm.ActionID(id, n)
		for start := 1; ; start++ {
			there, err := r.take(c, swarm.StartKey(swarm.TurnID(action), start))
			if err != nil {
				return err
			}
			if !there {
				break
			}
		}
		if there, err := r.take(c, swarm.EndKey(action)); err != nil || !there {
			return err
		}
	}
}

// take collects the event with a key, and reports whether it is there.
func (r *Reader) take(c *view.Collector, key string) (bool, error) {
	e, there, err := r.log.Find(key)
	if err == nil && there {
		err = c.Take(&e)
	}
	return there, err
}

// A FullTurn is a turn with its texts.
type FullTurn struct {
	view.Turn
	PromptText string `json:"prompt_text"`
	SentText   string `json:"sent_text,omitempty"` // what was sent, if it is not the prompt as it is
	// InjectedText is the mail that it got between two tool calls, in the order of injected.
	InjectedText []string `json:"injected_text,omitempty"`
	OutputText   string   `json:"output_text"`
	ResultText   string   `json:"result_text,omitempty"` // what the action of a swarm's iteration gave
	// Messages are what the turn has added to its session after the prompt, if the log keeps it.
	Messages []swarm.ChatMessage `json:"messages,omitempty"`
}

// Full adds the texts to a turn.
func (r *Reader) Full(t view.Turn) (FullTurn, error) {
	full := FullTurn{Turn: t, InjectedText: make([]string, len(t.Injected))}
	texts := map[*string]swarm.Hash{&full.PromptText: t.Prompt, &full.SentText: t.Sent, &full.OutputText: t.Output.Hash}
	if t.Result != nil {
		texts[&full.ResultText] = t.Result.Output.Hash
	}
	for i, in := range t.Injected {
		texts[&full.InjectedText[i]] = in.Text
	}
	for text, hash := range texts {
		b, err := r.Text(hash)
		if err != nil {
			return FullTurn{}, err
		}
		*text = string(b)
	}
	if t.Exchange != nil {
		var err error
		if full.Messages, err = swarm.ReadMessages(r.Text, *t.Exchange, t.Output.Hash); err != nil {
			return FullTurn{}, err
		}
		for _, m := range full.Messages { // the text of a result names its images
			for i := range m.Results {
				m.Results[i].Images = nil
			}
		}
	}
	return full, nil
}

// collect collects a turn's events after a number, up to another; 0 = up to now.
func (r *Reader) collect(c *view.Collector, turn swarm.TurnID, after, upto int64) error {
	through := errors.New("that is all")
	err := r.log.Scan(after, func(e *swarm.Event) error {
		if e.Turn == turn {
			if err := c.Take(e); err != nil {
				return err
			}
		}
		if e.Seq == upto {
			return through
		}
		return nil
	})
	if errors.Is(err, through) {
		return nil
	}
	return err
}

// markInterrupted marks running turns as interrupted if the run has no driver.
func markInterrupted(turns []view.Turn, driven bool) []view.Turn {
	for i := range turns {
		if t := &turns[i]; t.Status == swarm.Running && !driven {
			t.Status, t.Reason = swarm.Interrupted, "it was cut, and runs again when the run is resumed"
		}
	}
	return turns
}

// turnID returns the id of the turn that a user names.
func (r *Reader) turnID(name string) (swarm.TurnID, error) {
	switch task, iteration, found := strings.Cut(name, "/"); {
	case strings.Contains(iteration, "/"):
		if there, err := r.hasTurn(swarm.TurnID(name)); there || err != nil {
			return swarm.TurnID(name), err
		}
	case found:
		n, err := strconv.Atoi(iteration)
		if err == nil {
			last, err := r.lastAttempt(task, n)
			if last > 0 || err != nil {
				return swarm.NewTurnID(task, n, last), err
			}
		}
	default:
		if last, err := r.LastTurn(name); last != "" || err != nil {
			return last, err
		}
	}
	v, err := r.Fold()
	if err != nil {
		return "", err
	}
	if t, ok := v.Task(name); ok && t.Turn != "" {
		return t.Turn, nil
	}
	subtask, rest, _ := strings.Cut(name, "/")
	if agent := v.WorkerOf(subtask); agent != "" && agent != subtask {
		return r.turnID(strings.TrimSuffix(agent+"/"+rest, "/"))
	}
	var ids []string
	for i := range v.Len() {
		if id := v.At(i).Turn; id != "" {
			ids = append(ids, string(id))
		}
	}
	e := swarm.Errorf(swarm.BadInput, "the run has no turn %q", name)
	if len(ids) == 0 {
		return "", e.WithHint("it has had no turn yet")
	}
	return "", e.WithHint("%s", swarm.DidYouMean(name, ids))
}

// hasTurn reports whether a turn was started, or refused before its start.
func (r *Reader) hasTurn(id swarm.TurnID) (bool, error) {
	_, there, err := r.log.Find(swarm.StartKey(id, 1))
	if there || err != nil {
		return there, err
	}
	_, there, err = r.log.Find(swarm.EndKey(string(id)))
	return there, err
}

// lastAttempt returns the last attempt of a task's iteration; 0 = none. Attempts have no gaps.
func (r *Reader) lastAttempt(task string, iteration int) (int, error) {
	for n := 1; ; n++ {
		if there, err := r.hasTurn(swarm.NewTurnID(task, iteration, n)); !there || err != nil {
			return n - 1, err
		}
	}
}

// LastTurn returns the newest turn of a task, from the journal alone: a fold of the run would be as
// large as its plan. It is "" if there is none by that name; the fold tells why.
func (r *Reader) LastTurn(task string) (turn swarm.TurnID, err error) {
	var newest int64
	for _, prefix := range []string{swarm.StartKeys(task + "/"), swarm.EndKey(task + "/")} { // a refused turn has an end only
		keys, err := r.log.Keys(prefix)
		if err != nil {
			return "", err
		}
		if len(keys) == 0 {
			continue
		}
		e, found, err := r.log.Find(keys[0])
		if err != nil {
			return "", err
		}
		if found && e.Task == task && e.Seq > newest {
			turn, newest = e.Turn, e.Seq
		}
	}
	return turn, nil
}

// LastOutput returns the last output of a task, from the journal alone: a fold of the run would be as
// large as its plan. ok is false if there is none by that name; the fold tells why.
func (r *Reader) LastOutput(task string, good bool) (out view.Output, ok bool, err error) {
	keys, err := r.log.Keys(swarm.EndKey(task + "/"))
	for _, key := range keys {
		e, found, err := r.log.Find(key)
		if err != nil || !found || e.Task != task {
			return out, false, err
		}
		end, err := swarm.Body[swarm.CallEnd](&e)
		if err != nil {
			return out, false, err
		}
		if end.Output != "" && (!good || end.Status == swarm.CallOK) {
			return view.Output{Hash: end.Output, Turn: e.Turn, Bytes: end.Bytes}, true, nil
		}
	}
	return out, false, err
}

// Output returns the last output of a task in an iteration. If good is set, it is the last output
// of a turn that succeeded.
func (r *Reader) Output(task string, iteration int, good bool) (view.Output, error) {
	last, err := r.lastAttempt(task, iteration)
	for n := last; n > 0 && err == nil; n-- {
		id := swarm.NewTurnID(task, iteration, n)
		e, ended, wrong := r.log.Find(swarm.EndKey(string(id)))
		if err = wrong; !ended || err != nil {
			continue
		}
		var end swarm.CallEnd
		if end, err = swarm.Body[swarm.CallEnd](&e); err == nil && end.Output != "" && (!good || end.Status == swarm.CallOK) {
			return view.Output{Hash: end.Output, Turn: id, Bytes: end.Bytes}, nil
		}
	}
	return view.Output{}, err
}
