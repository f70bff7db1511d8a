package run

import (
	"cmp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/plan"
)

// firstCarriedOver is the number of the first carried over event in the log of the new run. The
// run's start and its plan come before it.
const firstCarriedOver = 3

// A carriedOver collects what a retried run takes over from the old one: the ends of the turns that
// are not done again, and their effects.
type carriedOver struct {
	ends   []swarm.Event
	turns  map[swarm.TurnID]bool // the turns that are carried over
	latest map[swarm.TurnID]int  // by first attempt: the last attempt that is carried over
	silent []swarm.Event         // ends without an output: of turns that were cut, or refused before they began
	stored []swarm.Event         // mail, artifacts, topic entries, and how the team has grown
	used   []swarm.Event         // which mail was consumed
	// collected is what workers delivered at desks, by turn: those that depend on them get it again.
	collected map[swarm.TurnID]swarm.Event
	actions   map[swarm.TurnID][]swarm.Event // of a swarm, by turn: the ends of its action
	wants     map[swarm.TurnID]string        // of a swarm: what turns were for
	shown     map[swarm.TurnID]int64         // the last event whose mail a turn's prompt had
	bad       map[string]bool                // agents whose last turn was cut or failed
	restarted string                         // an agent that was started again after such a turn
	asking    map[swarm.TurnID]bool          // of a swarm: turns whose request for help has no answer yet

	out    []swarm.Event                 // the events in the order of the new log
	inputs map[swarm.TurnID]swarm.Inputs // by turn: the mail that it had consumed, by its new numbers
	mail   map[string][]renumbered       // by receiver, in the order of the new numbers
}

// renumbered is an envelope's number in the old log and in the new one.
type renumbered struct{ old, new int64 }

// collectCarriedOver reads the log of the run that is retried or forked, up to an event. keeps says of
// the end of a turn whether it is carried over.
//
// A turn that was carried over into this run counts where that is recorded. Those records have the order
// of the run in which the turns ran; a loop comes by such turns in any order.
func collectCarriedOver(log swarm.RunLog, keeps func(end *swarm.Event) bool, before int64) (*carriedOver, error) {
	k := &carriedOver{turns: map[swarm.TurnID]bool{}, latest: map[swarm.TurnID]int{}, inputs: map[swarm.TurnID]swarm.Inputs{}, collected: map[swarm.TurnID]swarm.Event{},
		actions: map[swarm.TurnID][]swarm.Event{}, wants: map[swarm.TurnID]string{}, shown: map[swarm.TurnID]int64{}, bad: map[string]bool{}, mail: map[string][]renumbered{}}
	grown := growthEvents{turns: map[string]swarm.TurnID{}, dealt: map[string]bool{}, agents: map[string]string{}}
	for e, err := range swarm.Events(log, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= before {
			break
		}
		switch e.Kind {
		case swarm.HandoffStored, swarm.ArtifactStored, swarm.TopicPublished:
			k.stored = append(k.stored, *e)
		case swarm.DeskCollected:
			k.collected[e.Turn] = *e
		case swarm.HandoffConsumed:
			k.used = append(k.used, *e)
		case swarm.PlanAdded, swarm.ApprovalAsked, swarm.ApprovalAnswered:
			if grown.isGrowth(e) {
				k.stored = append(k.stored, *e)
			}
		case swarm.TurnStarted:
			err = k.noteStart(e)
		case swarm.AgentRestarted:
			if k.bad[e.Agent] {
				k.restarted = e.Agent
			}
		case swarm.TurnCarriedOver, swarm.TurnEnded, swarm.ActionEnded:
			err = k.noteEnd(e, keeps)
		}
		if err == nil {
			err = grown.note(e)
		}
		if err != nil {
			return nil, err
		}
	}
	k.keepSilent()
	k.used = slices.DeleteFunc(k.used, func(e swarm.Event) bool { return !k.turns[e.Turn] && (e.Turn != "" || e.Agent != swarm.User) })
	if err := grown.dropLater(log, before); err != nil {
		return nil, err
	}
	k.asking = grown.unanswered()
	readers, err := k.readers()
	if err != nil {
		return nil, err
	}
	k.stored = slices.DeleteFunc(k.stored, func(e swarm.Event) bool {
		switch e.Kind {
		case swarm.ArtifactStored: // any carried over text may name it
			return false
		case swarm.PlanAdded, swarm.ApprovalAsked, swarm.ApprovalAnswered:
			return !grown.stays(&e, k.turns)
		case swarm.HandoffStored:
			if e.Turn == "" && e.Agent != swarm.User { // the run itself wrote it, or its sender had asked for the receiver
				return !grown.stays(&e, k.turns) && readers.of(e) < 0
			}
		}
		return !k.turns[e.Turn] && (e.Turn != "" || e.Agent != swarm.User)
	})
	return k, nil
}

// noteStart notes the mail that the prompt of a turn has, and in a swarm what the turn is for. A turn that
// starts again has the same prompt.
func (c *carriedOver) noteStart(e *swarm.Event) error {
	start, err := swarm.Body[swarm.TurnStart](e)
	c.wants[e.Turn] = start.Want
	if _, again := c.shown[e.Turn]; !again || e.Key == swarm.StartKey(e.Turn, 1) {
		c.shown[e.Turn] = start.Inputs.Upto
	}
	return err
}

// noteEnd notes the end of a turn, or of an action, as it was in this run or in the one before.
func (c *carriedOver) noteEnd(e *swarm.Event, keeps func(end *swarm.Event) bool) error {
	end, err := swarm.Body[swarm.CallEnd](e)
	switch {
	case err != nil || e.Kind != swarm.TurnCarriedOver && end.CarriedOver: // it was noted where that is recorded
		return err
	case end.ID != string(e.Turn): // an action
		c.actions[e.Turn] = append(c.actions[e.Turn], *e)
		return nil
	}
	c.bad[e.Agent] = end.Status != swarm.CallOK
	if end.Want != "" {
		c.wants[e.Turn] = end.Want
	}
	if end.Shown > 0 {
		c.shown[e.Turn] = end.Shown
	}
	switch {
	case !keeps(e):
		return nil
	case end.Output == "":
		c.silent = append(c.silent, *e)
		return nil
	}
	if c.turns[e.Turn] { // it was done again all the same
		c.ends = slices.DeleteFunc(c.ends, func(old swarm.Event) bool { return old.Turn == e.Turn })
	}
	c.ends, c.turns[e.Turn] = append(c.ends, *e), true
	_, _, attempt := plan.SplitTurn(e.Turn)
	c.latest[swarm.FirstAttempt(e.Turn)] = max(attempt, c.latest[swarm.FirstAttempt(e.Turn)])
	return nil
}

// keepSilent carries over a turn without an output if a later attempt of it is carried over. The loop comes
// by the attempts in order, and would do it again otherwise.
func (c *carriedOver) keepSilent() {
	for _, e := range c.silent {
		if !c.turns[e.Turn] && c.hasLater(e.Turn) {
			task, iteration, _ := plan.SplitTurn(e.Turn)
			last := swarm.NewTurnID(task, iteration, c.latest[swarm.FirstAttempt(e.Turn)])
			c.ends, c.turns[e.Turn] = append(c.ends, e), true
			c.wants[e.Turn] = cmp.Or(c.wants[e.Turn], c.wants[last]) // a turn that was refused has no start that says it
		}
	}
	slices.SortFunc(c.ends, func(a, b swarm.Event) int { return cmp.Compare(a.Seq, b.Seq) })
}

// hasLater reports whether a later attempt of a turn is carried over.
func (c *carriedOver) hasLater(turn swarm.TurnID) bool {
	_, _, attempt := plan.SplitTurn(turn)
	return attempt < c.latest[swarm.FirstAttempt(turn)]
}

// growthEvents say which requests for agents and edges a run has, and which were dealt with. The agents of a
// swarm come with its divisions, which the loop makes again. So its requests are those for help that were
// denied: one that was granted cannot be carried over.
type growthEvents struct {
	swarm  bool
	turns  map[string]swarm.TurnID // by request: the turn that made it
	dealt  map[string]bool         // requests whose answer was carried out
	agents map[string]string       // by agent that joined: the request
}

// isGrowth reports whether an event is about a request for an agent or an edge, and notes the request.
func (g *growthEvents) isGrowth(e *swarm.Event) bool {
	id, about := g.request(e)
	if e.Kind == swarm.ApprovalAsked && about {
		g.turns[id] = e.Turn
	}
	_, known := g.turns[id]
	return about && known
}

// request returns the id of the request that an event is about.
func (g *growthEvents) request(e *swarm.Event) (id string, ok bool) {
	switch e.Kind {
	case swarm.ApprovalAsked:
		asked, err := swarm.Body[swarm.Approval](e)
		return asked.ID, err == nil && asked.Growth != nil
	case swarm.ApprovalAnswered:
		return strings.CutPrefix(e.Key, swarm.AnsweredKey(""))
	case swarm.PlanAdded:
		return strings.CutPrefix(e.Key, swarm.GrantedKey(""))
	}
	id, ok, err := agentapi.AnswerTo(e)
	return id, ok && err == nil
}

// note notes the rules of the run, and the requests that were dealt with.
func (g *growthEvents) note(e *swarm.Event) error {
	switch e.Kind {
	case swarm.PlanAdded:
		p, err := swarm.PlanOf(e)
		if err != nil {
			return err
		}
		if e.Key == planKey {
			g.swarm = p.Swarm != nil
			return nil
		}
		id, _ := g.request(e)
		for i := range p.Agents {
			g.agents[p.Agents[i].Name] = id
		}
	case swarm.HandoffStored:
		if id, ok := g.request(e); ok {
			g.dealt[id] = true
		}
	}
	return nil
}

// dropLater drops requests of turns that were carried over into this run, and whose record is not before an
// event: the log has what they asked for ahead of all such records.
func (g *growthEvents) dropLater(log swarm.RunLog, before int64) error {
	for id, turn := range g.turns {
		e, ok, err := log.Find(swarm.CarriedOverKey(turn))
		if err != nil {
			return err
		}
		if ok && e.Seq >= before {
			delete(g.dealt, id)
		}
	}
	return nil
}

// unanswered returns the turns that made requests which were not dealt with.
func (g *growthEvents) unanswered() map[swarm.TurnID]bool {
	turns := map[swarm.TurnID]bool{}
	for id, turn := range g.turns {
		if !g.dealt[id] {
			turns[turn] = true
		}
	}
	return turns
}

// stays reports whether an event about a request is carried over. Its agent may ask again, and gets the same
// answer. A request of a turn that is done again, which was not dealt with, is dropped. In a swarm each open
// request is dropped: the action that made it is taken again.
func (g *growthEvents) stays(e *swarm.Event, turns map[swarm.TurnID]bool) bool {
	if e.Kind == swarm.HandoffStored && e.Agent != swarm.Orchestrator && e.Agent != swarm.Supervisor {
		id, ok := g.agents[strings.TrimPrefix(e.To, swarm.ToAgents)] // the instructions of an agent that has joined
		return !g.swarm && (!ok || g.dealt[id] || turns[g.turns[id]])
	}
	id, ok := g.request(e)
	return ok && (g.dealt[id] || !g.swarm && turns[g.turns[id]])
}

// arrange puts the events into the order of the new log.
//
// An inbox is read from its beginning in the new run, too. Mail that carried over turns have read
// therefore comes before unread mail, even if that was older: its reader is done again.
func (c *carriedOver) arrange() error {
	readers, err := c.readers()
	if err != nil {
		return err
	}
	upto := make([]int64, len(c.used))
	var unread []swarm.Event
	for _, e := range c.stored {
		if e.Kind == swarm.HandoffStored {
			reader := readers.of(e)
			if reader < 0 {
				unread = append(unread, e)
				continue
			}
			if err := c.addMail(e); err != nil {
				return err
			}
			upto[reader] = c.last()
			continue
		}
		c.add(e)
	}
	cursor := map[string]int64{}
	for i, e := range c.used {
		if upto[i] == 0 {
			continue
		}
		in := swarm.Inputs{From: cursor[e.Agent], Upto: upto[i]}
		cursor[e.Agent], c.inputs[e.Turn] = in.Upto, in
		e.Key, e.Data = swarm.UsedKey(e.Agent, in.From), swarm.Encode(in)
		c.add(e)
	}
	for _, e := range unread {
		if err := c.addMail(e); err != nil {
			return err
		}
	}
	for _, e := range c.ends {
		end, err := swarm.Body[swarm.CallEnd](&e)
		if err != nil {
			return err
		}
		end.Inputs, end.Want = c.inputs[e.Turn], c.wants[e.Turn]
		if end.Shown = c.shown[e.Turn]; end.Shown > 0 {
			end.Shown = c.number(e.Agent, end.Shown)
		}
		if end.Crowded && c.hasLater(e.Turn) { // it waited for room; in the new run nobody takes it, and the turn has not failed
			end.Status, end.Kind, end.Crowded, end.Unbegun = swarm.CallCut, swarm.CutToSpeak, false, false
		}
		c.add(swarm.Event{Kind: swarm.TurnCarriedOver, Key: swarm.CarriedOverKey(e.Turn), Task: e.Task, Agent: e.Agent, Turn: e.Turn, Data: swarm.Encode(end)})
		if delivered, ok := c.collected[e.Turn]; ok {
			c.add(delivered)
		}
		if a := end.Action; a != nil && a.Kind == swarm.ActRequestHelp && c.asking[e.Turn] { // it is asked for again, and answered then
			continue
		}
		for _, e := range c.actions[e.Turn] {
			end, err := swarm.Body[swarm.CallEnd](&e)
			if err != nil {
				return err
			}
			e.Kind, e.Key, e.To = swarm.TurnCarriedOver, swarm.CarriedOverKey(swarm.TurnID(end.ID)), ""
			c.add(e)
		}
	}
	return nil
}

// add appends an event.
func (c *carriedOver) add(e swarm.Event) {
	c.out = append(c.out, swarm.Event{Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, To: e.To, Key: e.Key, Data: e.Data})
}

// addMail appends an envelope. The number of the mail that its sender had read becomes a new one.
func (c *carriedOver) addMail(e swarm.Event) error {
	stored, err := swarm.Body[swarm.StoredEnvelope](&e)
	if err != nil {
		return err
	}
	if stored.Read > 0 {
		stored.Read = c.number(stored.FromNodeID, stored.Read)
		e.Data = swarm.Encode(stored)
	}
	c.add(e)
	c.mail[e.To] = append(c.mail[e.To], renumbered{e.Seq, c.last()})
	return nil
}

// last is the number of the last event in the new log.
func (c *carriedOver) last() int64 { return firstCarriedOver + int64(len(c.out)) - 1 }

// number returns the new number of the last envelope for an agent up to an old number. If there is none, it
// is a number before all mail.
func (c *carriedOver) number(agent string, old int64) int64 {
	for _, m := range slices.Backward(c.mail[swarm.ToAgent(agent)]) {
		if m.old <= old {
			return m.new
		}
	}
	return firstCarriedOver - 1
}

// readers say which turn has read which mail, by receiver and in order.
type readers map[string][]reading

type reading struct {
	swarm.Inputs
	used int // index into carriedOver.used
}

func (c *carriedOver) readers() (readers, error) {
	all := readers{}
	for i, e := range c.used {
		in, err := swarm.Body[swarm.Inputs](&e)
		if err != nil {
			return nil, err
		}
		to := swarm.ToAgent(e.Agent)
		all[to] = append(all[to], reading{in, i})
	}
	return all, nil
}

// of returns the index in carriedOver.used of the turn that has read an envelope; -1 = none.
func (r readers) of(e swarm.Event) int {
	box := r[e.To]
	i, _ := slices.BinarySearchFunc(box, e.Seq, func(r reading, seq int64) int { return cmp.Compare(r.Upto, seq) })
	if i == len(box) || e.Seq <= box[i].From {
		return -1
	}
	return box[i].used
}
