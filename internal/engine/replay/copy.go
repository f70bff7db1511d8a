package replay

import (
	"swarm"
	"swarm/internal/engine"
)

// copyTo copies the recorded events before a place. When it leaves the recording, it stops there.
func (p *player) copyTo(place int) error {
	for p.copied < place && !p.hasLeft() {
		i := p.copied
		if err := p.copy(i); err != nil {
			return err
		}
		if !p.hasLeft() {
			p.copied = i + 1
		}
	}
	return nil
}

// copy copies one recorded event, or leaves it out.
func (p *player) copy(i int) error {
	e := p.rec.Events[i]
	if i < p.opening {
		return p.begin(i)
	}
	turn := p.open[string(e.Turn)]
	if p.isOwn(&e) || e.Turn != "" && !p.asked[e.Turn] {
		p.left[i] = true
		return nil
	}
	if e.Kind == swarm.TurnStarted && turn != nil {
		if err := p.begun(turn, &e); err != nil || p.hasLeft() {
			return err
		}
	}
	if turn != nil {
		p.show(turn, &e)
	}
	now, err := p.renumber(e)
	if err != nil {
		return err
	}
	before, err := p.new.put(e.Seq, now, p.rec.Texts(&e)...)
	if turn != nil && before {
		turn.matched = true
	}
	return err
}

// isOwn says of an event that it is written by this run itself, if at all: what the loop tells, how a process left, and the end.
func (p *player) isOwn(e *swarm.Event) bool {
	switch e.Kind {
	case swarm.RunInterrupted, swarm.TurnCarriedOver:
		return true
	case swarm.LoopEnded:
		return e.Key == swarm.EndKey(p.loop.ID)
	case swarm.ApprovalAsked:
		return e.Key == swarm.AskedKey(swarm.RetryQuestion(string(e.Turn)))
	}
	_, signal, _ := engine.Signal(*e)
	return e.To == swarm.ToLoop(p.loop.ID) && !signal
}

// begin takes an event of the recorded run's opening. The new run has its own: the plan, a goal, an owner. What others had sent by
// then is copied.
func (p *player) begin(i int) error {
	e := p.rec.Events[i]
	if i == 0 { // what is copied comes after the owner
		seq, err := p.new.find(&swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop(p.loop.ID)})
		if err != nil {
			return err
		}
		p.owned = seq
	}
	if e.Kind == swarm.RunOwned {
		p.new.pair(e.Seq, p.owned)
		return nil
	}
	if e.Key != "" {
		own, there, err := p.h.Log.Find(e.Key)
		if err != nil {
			return err
		}
		if there {
			p.new.pair(e.Seq, own.Seq)
			return nil
		}
	}
	if e.To == "" {
		p.left[i] = true
		return nil
	}
	now, err := p.renumber(e)
	if err != nil {
		return err
	}
	_, err = p.new.put(e.Seq, now, p.rec.Texts(&e)...)
	return err
}

// begun compares the prompt of a turn that starts with the recorded one. A turn that starts again, after a crash, goes on with the
// prompt of its first start.
func (p *player) begun(a *ask, e *swarm.Event) error {
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	a.start = start.Start
	if !a.started {
		was, now, err := p.prompts(a, e)
		switch {
		case stops(err):
			return err
		case err != nil:
			return p.stray(a.call.ID, p.mismatch("the prompt of the turn %s cannot be made: %v", a.call.ID, err), nil)
		case now != was:
			differs := p.mismatch("the prompt of the turn %s is not the recorded one (- recorded, + now):\n%s", a.call.ID, lineDiff(was, now))
			return p.stray(a.call.ID, differs.WithHint("undo the change, or record the run again with --record"), nil)
		}
	}
	a.started = true
	return nil
}

// prompts are the recorded prompt of a turn, and the one that is made for it now.
func (p *player) prompts(a *ask, e *swarm.Event) (was, now string, err error) {
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return "", "", err
	}
	text, ok := p.rec.Text(start.Prompt)
	if !ok {
		return "", "", p.missing("its text")
	}
	p.renumberStart(&start)
	if err := p.new.flush(); err != nil {
		return "", "", err
	}
	now, err = p.prompt.at(&start).Prompt(a.call, start)
	return string(text), now, err
}

// stops says of an error of a prompt that it says nothing about the prompt.
func stops(err error) bool {
	kind := swarm.KindOf(err)
	return err != nil && kind != swarm.BadPrompt && kind != swarm.Mismatch
}

// show has those who look at a turn see what it said and did.
func (p *player) show(a *ask, e *swarm.Event) {
	w := p.h.Turn.Watch
	if w == nil || a.matched {
		return
	}
	switch e.Kind {
	case swarm.TurnSession:
		if in, err := swarm.Body[swarm.TurnInSession](e); err == nil {
			w.Delta(a.call, a.start, swarm.Delta{Kind: swarm.DeltaSession, Session: in.Session})
		}
	case swarm.TurnFile:
		if f, err := swarm.Body[swarm.FileChange](e); err == nil {
			w.Delta(a.call, a.start, swarm.Delta{Kind: swarm.DeltaFile, File: f.Path})
		}
	case swarm.TurnTool:
		if use, err := swarm.Body[swarm.ToolUse](e); err == nil {
			call := use
			call.Output, call.Failed = "", false
			w.Delta(a.call, a.start, swarm.Delta{Kind: swarm.DeltaTool, Tool: &call})
			w.Delta(a.call, a.start, swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &use})
		}
	case swarm.TurnEnded:
		end, err := swarm.Body[swarm.CallEnd](e)
		text, ok := p.rec.Text(end.Output)
		if err == nil && len(text) > 0 && a.started {
			w.Delta(a.call, a.start, swarm.Delta{Kind: swarm.DeltaText, Text: string(text)})
		}
		w.Silent(a.call)
		if err == nil && ok {
			p.new.then(func() { w.Output(a.call, text) }) // when the log has it
		}
	}
}
