package run

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/plan"
	"swarm/internal/statedir"
)

// A Fork says where a new run begins, and what a person has changed there.
type Fork struct {
	At      string // the turn; a task alone is its last one
	Edit    []byte // what the person has written; nil = nothing is changed
	Message string // the id of the message whose text it is; "" = it is the prompt of the turn
	Actor   swarm.Actor
}

// replaces reports whether the prompt that a person wrote for a turn in an earlier fork is no longer right: this
// fork has another one, or it changes a message that the turn reads.
func (f Fork) replaces(edited, at swarm.TurnID) bool {
	return f.Edit != nil && (f.Message == "" || swarm.FirstAttempt(edited) == swarm.FirstAttempt(at))
}

// PlanFork reads a run and works out a new run that begins where a turn began. Every turn that ended
// before is carried over, as by a retry, with its mail, topics and artifacts. Everything else is done
// again.
func PlanFork(h *statedir.Home, id swarm.RunID, f Fork) (*RetryPlan, error) {
	reader, err := OpenReader(h, id)
	if err != nil {
		return nil, err
	}
	t, err := reader.Turn(f.At)
	_ = reader.Close()
	if err != nil {
		return nil, err
	}
	log, a, v, err := openRetry(h, id)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	point, err := findPoint(log, t.ID)
	if err != nil {
		return nil, err
	}
	k, err := collectCarriedOver(log, func(*swarm.Event) bool { return true }, point.seq)
	if err == nil {
		err = a.checkRestart(k)
	}
	if err != nil {
		return nil, err
	}
	if a.Plan.Swarm != nil {
		if err := a.nameAgents(log, point.seq); err != nil {
			return nil, err
		}
	}
	var changed *swarm.Event
	if f.Message != "" {
		if changed, err = k.editMessage(log, a, t.ID, f); err != nil {
			return nil, err
		}
	}
	if err := k.arrange(); err != nil {
		return nil, err
	}
	task, iteration, attempt := plan.SplitTurn(t.ID)
	done := map[string]bool{} // tasks that are carried over whole: those that depend on them find their desks
	for i, part := range a.parts {
		done[part.Name] = part.Name != task && k.completed(part.Name, v.At(i).Iterations)
	}
	if err := a.findDesks(h, log, func(name string) bool { return !done[name] }); err != nil {
		return nil, err
	}
	a.keepEdit(k, func(turn swarm.TurnID) bool {
		same := swarm.FirstAttempt(turn) == swarm.FirstAttempt(t.ID)
		return !f.replaces(turn, t.ID) && !k.turns[turn] && (same || point.isBefore(log, turn))
	})
	if err := a.take(log, k); err != nil {
		return nil, err
	}
	if changed != nil {
		a.CarriedOver = append(a.CarriedOver, *changed)
	}
	if f.Edit != nil && f.Message == "" {
		// An attempt of the same iteration that was cut is not carried over. The first one that is done again
		// stands for the turn.
		for attempt > 1 && !k.turns[swarm.NewTurnID(task, iteration, attempt-1)] {
			attempt--
		}
		a.Plan.Edited = &swarm.EditedPrompt{Turn: swarm.NewTurnID(task, iteration, attempt), Text: swarm.HashOf(f.Edit), Want: point.want, Upto: k.number(a.agentOf(t.ID), point.mail)}
		a.Bodies = append(a.Bodies, f.Edit)
	}
	return a, nil
}

// A forkPoint is where a turn began.
type forkPoint struct {
	seq  int64  // the event that says so: everything before it is kept
	mail int64  // the last event whose mail the turn's prompt has
	want string // in a swarm, what the turn is for
}

// findPoint finds where a turn began. One that was carried over has no start, and neither has one that was
// refused before it.
func findPoint(log swarm.RunLog, turn swarm.TurnID) (forkPoint, error) {
	e, ok, err := log.Find(swarm.StartKey(turn, 1))
	if err != nil {
		return forkPoint{}, err
	}
	if ok {
		start, err := swarm.Body[swarm.TurnStart](&e)
		return forkPoint{e.Seq, start.Inputs.Upto, start.Want}, err
	}
	if e, ok, err = log.Find(swarm.CarriedOverKey(turn)); err != nil {
		return forkPoint{}, err
	}
	if ok { // all carried over mail stands before it, also what the turn had not read
		end, err := swarm.Body[swarm.CallEnd](&e)
		return forkPoint{e.Seq, end.Shown, end.Want}, err
	}
	if e, ok, err = log.Find(swarm.EndKey(string(turn))); err != nil || ok {
		return forkPoint{seq: e.Seq, mail: e.Seq}, err
	}
	return forkPoint{}, swarm.Errorf(swarm.BadInput, "the turn %s has not begun", turn).WithHint("wait until it has, or name an earlier turn")
}

// isBefore reports whether a turn had begun before the point. Then its inputs are the same again.
func (p forkPoint) isBefore(log swarm.RunLog, turn swarm.TurnID) bool {
	e, ok, err := log.Find(swarm.StartKey(turn, 1))
	return err == nil && ok && e.Seq < p.seq
}

// completed reports whether the turn of a task's last iteration is carried over, and succeeded.
func (c *carriedOver) completed(task string, iterations int) bool {
	return slices.ContainsFunc(c.ends, func(e swarm.Event) bool {
		of, iteration := plan.OfTurn(e.Turn)
		end, err := swarm.Body[swarm.CallEnd](&e)
		return of == task && iteration == iterations && err == nil && end.Status == swarm.CallOK
	})
}

// nameAgents gives the agents of a swarm the names that they had, so that their turns can be carried over.
// The loop adds them again as the supervisor's turns say. Those that came in another way may come in
// another order, and would have other names.
func (p *RetryPlan) nameAgents(log swarm.RunLog, before int64) error {
	keys, err := log.Keys(swarm.GrantedKey(""))
	if err != nil {
		return err
	}
	for _, key := range keys {
		e, _, err := log.Find(key)
		if err != nil {
			return err
		}
		if e.Seq >= before || key == planKey || strings.HasPrefix(key, swarm.DivisionKey("")) {
			continue
		}
		why := "agents joined the swarm %s before that turn, and not by its supervisor's plan"
		if strings.HasPrefix(key, swarm.PlanEditKey("")) {
			why = "a person changed the plan of the swarm %s before that turn"
		}
		return &StateError{swarm.Errorf(swarm.BadInput, why, p.Start.ID).
			WithHint("fork it at an earlier turn: swarm show %s lists them; or ask again: swarm solve %s", p.Start.ID, swarm.Quote(p.Plan.Name))}
	}
	rules := *p.Plan.Swarm
	if rules.Names == "" {
		rules.Names = p.Start.ID
	}
	p.Plan.Swarm = &rules
	return nil
}

// editMessage replaces the text of a message that the new run has and no turn in it has read. It returns the
// notice that says so.
func (c *carriedOver) editMessage(log swarm.RunLog, a *RetryPlan, at swarm.TurnID, f Fork) (*swarm.Event, error) {
	text := bytes.TrimRight(f.Edit, "\r\n")
	if len(text) > mail.MaxMessage {
		return nil, swarm.Errorf(swarm.BadInput, "the message has %d bytes; %d are allowed", len(text), mail.MaxMessage).WithHint("put the rest into a file, and name the file")
	}
	found := -1
	for i, e := range c.stored {
		if e.Kind != swarm.HandoffStored {
			continue
		}
		env, err := swarm.Body[swarm.StoredEnvelope](&e)
		if err != nil {
			return nil, err
		}
		if env.Ref() == f.Message {
			found = i
			break
		}
		if env.ID == f.Message {
			if found >= 0 {
				return nil, swarm.Errorf(swarm.BadInput, "several messages have the id %s", swarm.Quote(f.Message)).WithHint("name its sender, too: SENDER/%s", f.Message)
			}
			found = i
		}
	}
	if found < 0 {
		if e, there, err := log.Find(swarm.MailKey(f.Message)); err != nil || there && e.Turn != "" {
			return nil, cmp.Or(err, error(swarm.Errorf(swarm.BadInput, "the message %s is written again: its turn %s had not ended when %s began", swarm.Quote(f.Message), e.Turn, at).
				WithHint("fork at a turn that began later, or edit the prompt of %s: leave out --message", at)))
		}
		return nil, swarm.Errorf(swarm.BadInput, "there was no message with the id %s when %s began", swarm.Quote(f.Message), at).
			WithHint("swarm mail %s lists the messages", a.Start.ID)
	}
	e := &c.stored[found]
	readers, err := c.readers()
	if err != nil {
		return nil, err
	}
	if r := readers.of(*e); r >= 0 {
		by := c.used[r]
		if by.Turn == "" {
			return nil, swarm.Errorf(swarm.BadInput, "the message %s is for a person, who has read it", swarm.Quote(f.Message)).WithHint("change a message that an agent reads: swarm mail lists them")
		}
		return nil, swarm.Errorf(swarm.BadInput, "the turn %s has read the message %s, and is kept", by.Turn, swarm.Quote(f.Message)).
			WithHint("fork at that turn: --at %s", by.Turn)
	}
	env, err := swarm.Body[swarm.StoredEnvelope](e)
	if err != nil {
		return nil, err
	}
	env.Payload.Message, env.Payload.Structured, env.Edited = string(Redactor(a.Plan)(text)), nil, &f.Actor
	e.Data = swarm.Encode(env)
	notice := swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "the message " + env.ID + " from " + env.FromNodeID + " to " + env.ToNodeID + " was changed by " + f.Actor.String(),
		Hint: "as it was: swarm mail " + string(a.Start.ID)})
	notice.Agent = env.ToNodeID
	return &notice, nil
}
