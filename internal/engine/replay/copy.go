package replay

import "swarm"

// copyTo moves the copied cursor up to a place: it copies, or leaves out, each recorded event
// before it. If a turn's prompt differs from the recorded one, the replay leaves the recording, and
// the cursor stops at that turn's start.
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

// copy copies one recorded event, or leaves it out. Events are left out that the new run writes
// itself, and events of turns that the loop did not ask for, because its plan is only a part of the
// recorded one.
func (p *player) copy(i int) error {
	e := p.rec.Events[i]
	if i < p.opening {
		return p.copyOpening(i)
	}
	turn := p.open[string(e.Turn)]
	if said := p.compareUndecided(i); said != nil {
		return p.leave("", said, nil)
	}
	if p.isOwn(&e) || e.Turn != "" && !p.asked[e.Turn] {
		p.left[i] = true
		return nil
	}
	if e.Kind == swarm.TurnStarted && turn != nil {
		if err := p.comparePrompt(turn, &e); err != nil || p.hasLeft() {
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
	old := e.Seq
	if e.Kind == swarm.RunOwned { // Each process has one of its own, and may take it for the recorded one.
		old = 0
	}
	before, err := p.new.put(old, now, p.rec.Texts(&e)...)
	if turn != nil && before {
		turn.matched = true
	}
	return err
}

// isOwn reports whether the new run writes this event itself, so that the recorded one is not
// copied:
//   - a fact that the loop decided (addressed to the loop, but no signal for it);
//   - how a process left the run;
//   - the end of the loop.
func (p *player) isOwn(e *swarm.Event) bool {
	switch e.Kind {
	case swarm.RunInterrupted, swarm.TurnCarriedOver:
		return true
	case swarm.LoopEnded:
		return e.Key == swarm.EndKey(p.loop.ID)
	}
	return e.Kind != swarm.CallEnded && p.isDecision(e)
}

// copyOpening handles an event of the opening: all events up to the recorded run's first owner.
// The new run wrote its own opening before the replay began: the plan, a goal, an owner.
// Such an event is paired with the new run's event of the same key, and not copied.
// Messages and commands that were sent by then are copied.
func (p *player) copyOpening(i int) error {
	e := p.rec.Events[i]
	if i == 0 { // The copied events come after the owner, so the search for them starts there.
		if _, err := p.new.find(&swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop(p.loop.ID)}); err != nil {
			return err
		}
	}
	if e.Kind == swarm.RunOwned {
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

// comparePrompt compares the prompt of a turn that starts with the recorded one. Only the first
// start is compared: a turn that starts again after a crash reuses the prompt of its first start.
func (p *player) comparePrompt(a *ask, e *swarm.Event) error {
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
			return p.leave(a.call.ID, p.mismatch("the prompt of the turn %s cannot be made: %v", a.call.ID, err), nil)
		case now != was:
			differs := p.mismatch("the prompt of the turn %s is not the recorded one (- recorded, + now):\n%s",
				a.call.ID, lineDiff(was, now))
			return p.leave(a.call.ID, differs.WithHint("undo the change, or record the run again with --record"), nil)
		}
	}
	a.started = true
	return nil
}

// prompts returns the recorded prompt of a turn, and the prompt that this run makes for it.
// The prompt is made from the new log, so the pending batch is flushed first.
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
	if e := p.prompt.edited; e != nil && p.was.Edited.Upto > 0 {
		e.Upto = max(1, p.new.number(p.was.Edited.Upto))
	}
	if err := p.new.flush(); err != nil {
		return "", "", err
	}
	now, err = p.prompt.at(&start).Prompt(a.call, start)
	return string(text), now, err
}

// stops reports whether an error stops the replay itself, such as a disk error.
// The other errors are about the prompt, and are reported as a mismatch of the turn.
func stops(err error) bool {
	kind := swarm.KindOf(err)
	return err != nil && kind != swarm.BadPrompt && kind != swarm.Mismatch
}

// show sends what the recorded turn said and did to the turn's observers, as a live turn does.
// A turn that an earlier, killed replay copied was shown by that process, and is not shown twice.
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
			p.new.then(func() { w.Output(a.call, text) }) // An output is announced only when it is durable.
		}
	}
}
