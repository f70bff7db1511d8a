package flow

import (
	"slices"
	"strconv"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// What a person, or an agent's own turn, has to do with one agent alone.

// waits notes that an agent waits for others in its turn, or goes on. Who waits needs no slot, and keeps no run from being paused.
func (t *team) waits(turn string, on bool) error {
	i, ok := t.at[taskOf(turn)]
	if !ok {
		return nil
	}
	m := &t.members[i]
	if !m.busy || m.turn != turn || m.waits == on {
		return nil
	}
	t.rest(m, on)
	if on || !t.paused {
		return t.clock()
	}
	t.paused = false // it was, but for this one
	return t.fx.Tell(Fact{Kind: swarm.RunPausing, Key: "run_pausing:" + strconv.FormatInt(t.seen, 10)})
}

func (t *team) rest(m *member, on bool) {
	switch {
	case m.waits == on:
		return
	case on:
		t.waiting++
	default:
		t.waiting--
	}
	m.waits = on
}

// hold has an agent get no turn, or get turns again. What it still has to answer is not overdue meanwhile.
func (t *team) hold(agent string, on bool, seq int64) error {
	i, ok := t.at[agent]
	if !ok || t.members[i].held.IsZero() != on {
		return nil
	}
	m, at := &t.members[i], single(agent, seq)
	if on {
		m.held, m.told = t.fx.Now(), false
		return t.fx.Tell(Fact{Kind: swarm.AgentPaused, Key: string(swarm.AgentPaused) + at, Agent: m.name, Task: m.name})
	}
	by := t.fx.Now().Sub(m.held)
	m.held = time.Time{}
	for i := range t.asks {
		if t.asks[i].To == m.name {
			t.asks[i].since = t.asks[i].since.Add(by)
		}
	}
	return t.fx.Tell(Fact{Kind: swarm.AgentResumed, Key: string(swarm.AgentResumed) + at, Agent: m.name, Task: m.name})
}

// single ends the key of what is told of one agent because of one record.
func single(agent string, seq int64) string { return ":" + agent + ":" + strconv.FormatInt(seq, 10) }

// holds says whether somebody is an agent that is paused.
func (t *team) holds(agent string) bool {
	i, ok := t.at[agent]
	return ok && !t.members[i].held.IsZero()
}

// tellHeld says, once, that nothing goes on because an agent is paused which has mail, or owes a reply.
func (t *team) tellHeld() error {
	if t.running > t.waiting || !t.begun || t.stop != "" || t.done || !t.pausing.IsZero() {
		return nil
	}
	for i := range t.members {
		if m := &t.members[i]; t.wants(m) && m.held.IsZero() {
			return nil
		}
	}
	for i := range t.members {
		m := &t.members[i]
		if m.told || !t.wants(m) && !t.owes(m) {
			continue
		}
		m.told = true
		if err := t.fx.Tell(waitsForHeld(m.name, t.seen)); err != nil {
			return err
		}
	}
	return nil
}

// owes says of a paused agent whether a reply is wanted of it.
func (t *team) owes(m *member) bool {
	return !m.held.IsZero() && slices.ContainsFunc(t.asks, func(a ask) bool { return a.To == m.name })
}

// waitsForHeld tells a person that a run goes on only if he lets an agent go on.
func waitsForHeld(agent string, seq int64) Fact {
	return Fact{Kind: swarm.Notice, Key: "held" + single(agent, seq), Agent: agent,
		Body: swarm.Reason{Reason: plan.WaitsForPaused(agent), Hint: "let it go on with swarm resume @" + agent}}
}

// start lets an agent that has ended have turns again. One that is about to end has them when it has.
func (t *team) start(agent string) error {
	i, ok := t.at[agent]
	switch {
	case !ok:
		return nil
	case t.members[i].ended:
		return t.startAgain(&t.members[i])
	}
	t.members[i].again = t.members[i].leaving
	return nil
}

// startAgain begins with an empty inbox: what was in it went back.
func (t *team) startAgain(m *member) error {
	m.ended, m.failed, m.why = false, false, swarm.TaskEnd{}
	m.attempt, m.tries, m.due, m.outputs = 0, 0, time.Time{}, circle{}
	m.read = max(m.read, m.gone)
	m.starts++
	return t.fx.Tell(Fact{Kind: swarm.AgentStarted, Key: "agent_started:" + m.name + ":" + strconv.Itoa(m.starts), Agent: m.name, Task: m.name})
}

// reset counts an agent's attempts anew. Its turn is cut, and its session forgotten, by the hand that runs it.
func (t *team) reset(agent string) {
	if i, ok := t.at[agent]; ok {
		t.members[i].tries, t.members[i].due = 0, time.Time{}
	}
}
