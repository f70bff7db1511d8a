package flow

import (
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// What is taken for going round in circles. The agents are told first; when it goes on for as long again the run pauses,
// and a person decides.
const (
	sameOutputs = 3  // an agent said the same so often in a row
	sameTwo     = 12 // so many envelopes in a row went between the same two agents, to and fro
	sameDeeds   = 3  // an agent did the same and nothing else, or wrote the same to the same, in so many turns in a row
)

// stallKey begins the key of a notice that says why a team made no progress.
const stallKey = "stall:"

// A repetition is something that has come again and again.
type repetition struct {
	what  string // the output's hash, or the two agents
	times int
}

// again counts what has come, and says how often in a row that was.
func (c *repetition) again(what string) int {
	if c.what != what {
		*c = repetition{what: what}
	}
	c.times++
	return c.times
}

// An agentHistory is what the loop remembers of an agent, to see whether it repeats itself.
type agentHistory struct {
	outputs repetition   // what it said last
	deeds   repetition   // what it did last
	wrote   repetition   // what it wrote last,
	turn    swarm.TurnID // and in which turn
	claims  int          // in how many turns in a row it said that it had written, and had not
}

func (t *team) historyOf(agent string) *agentHistory {
	h := t.histories[agent]
	if h == nil {
		h = &agentHistory{}
		t.histories[agent] = h
	}
	return h
}

// weighTurn looks whether an agent says or does the same again and again, and at what is suspicious about its turn.
func (t *team) weighTurn(agent string, r Result) error {
	if err := t.weighOutput(agent, r); err != nil || t.Closing != "" {
		return err
	}
	var unsent, same []swarm.Finding
	for _, f := range r.Findings {
		switch f.Kind {
		case swarm.Unsent:
			unsent = append(unsent, f)
		case swarm.SameAction:
			same = append(same, f)
		}
	}
	if err := t.weighClaims(agent, r, unsent); err != nil {
		return err
	}
	return t.weighDeeds(agent, r, same)
}

// weighOutput looks whether an agent says the same again and again.
func (t *team) weighOutput(agent string, r Result) error {
	h := t.historyOf(agent)
	if r.Output == "" || r.Output == swarm.NoText {
		h.outputs = repetition{}
		return nil
	}
	switch h.outputs.again(string(r.Output)) {
	case sameOutputs:
		return t.note(r.ID, agent, swarm.NewMessage(swarm.ToldSameOutput, strconv.Itoa(sameOutputs)))
	case 2 * sameOutputs:
		h.outputs = repetition{}
		return t.halt(r.ID, swarm.NewMessage(swarm.StallSameOutput, agent, strconv.Itoa(2*sameOutputs)))
	}
	return nil
}

// weighShared has a person decide about files that the phase forbids and that one of several has changed: no agent is failed for
// what another may have done.
func (t *team) weighShared(agent string, r Result) error {
	for _, f := range r.Findings {
		if f.Kind != swarm.Shared {
			continue
		}
		why := swarm.NewMessage(swarm.StallShared, f.Evidence, string(t.Rules.Phase), r.ID, agent, f.About)
		if t.Closing == "" && t.pausing.IsZero() {
			return t.halt(r.ID+"/shared", why)
		}
		return t.tell(Fact{Kind: swarm.Notice, Key: stallKey + r.ID + "/shared", Body: swarm.Reason{Message: why}})
	}
	return nil
}

// weighClaims has an agent told that what it says it has sent was never sent. It is given a turn for it, since nobody else will be;
// when it says so again, a person decides.
func (t *team) weighClaims(agent string, r Result, claims []swarm.Finding) error {
	h := t.historyOf(agent)
	if len(claims) == 0 {
		h.claims = 0
		return nil
	}
	if h.claims++; h.claims > 1 {
		h.claims = 0
		f := claims[0]
		return t.halt(r.ID+"/unsent", swarm.NewMessage(swarm.StallUnsent, agent, f.About, f.Evidence))
	}
	told := swarm.NewMessage(swarm.ToldUnsent)
	for _, f := range claims {
		told.Args = append(told.Args, f.Evidence, f.About)
	}
	_, err := t.write(Call{ID: "urge/" + r.ID, Kind: KindUrge, Agent: agent, Note: told})
	return err
}

// weighDeeds looks whether an agent does the same again and again, over its turns. Within one turn it was told so while it did it.
func (t *team) weighDeeds(agent string, r Result, same []swarm.Finding) error {
	h := t.historyOf(agent)
	if len(same) == 0 {
		h.deeds = repetition{}
		return nil
	}
	f := same[0]
	switch h.deeds.again(f.About) {
	case sameDeeds:
		return t.note(r.ID+"/same", agent, swarm.NewMessage(swarm.ToldSameAction, strconv.Itoa(sameDeeds), f.Evidence))
	case 2 * sameDeeds:
		h.deeds = repetition{}
		return t.halt(r.ID+"/same", swarm.NewMessage(swarm.StallSameAction, agent, strconv.Itoa(2*sameDeeds), f.Evidence))
	}
	return nil
}

// weighMail looks whether two agents do nothing but write to each other, or one writes the same to the same.
func (t *team) weighMail(m plan.Mail) error {
	if t.Member(m.From) == nil || t.Member(m.To) == nil || !m.Wakes {
		return nil
	}
	if err := t.weighMessage(m); err != nil {
		return err
	}
	a, b := min(m.From, m.To), max(m.From, m.To)
	switch n := t.between.again(a + " " + b); {
	case n == sameTwo:
		told := swarm.NewMessage(swarm.ToldOnlyTwo, strconv.Itoa(sameTwo), a, b)
		if err := t.note(m.Ref+"-1", a, told); err != nil {
			return err
		}
		return t.note(m.Ref+"-2", b, told)
	case n == 2*sameTwo:
		t.between = repetition{}
		return t.halt(m.Ref, swarm.NewMessage(swarm.StallOnlyTwo, strconv.Itoa(2*sameTwo), a, b))
	}
	return nil
}

// weighMessage looks whether an agent writes the same to the same, turn after turn.
func (t *team) weighMessage(m plan.Mail) error {
	h, what := t.historyOf(m.From), m.To+" "+m.Says
	if m.Turn == "" || m.Turn == h.turn && what == h.wrote.what {
		return nil
	}
	h.turn = m.Turn
	switch h.wrote.again(what) {
	case sameDeeds:
		return t.note(m.Ref+"-same", m.From, swarm.NewMessage(swarm.ToldSameMail, strconv.Itoa(sameDeeds), m.To))
	case 2 * sameDeeds:
		h.wrote, h.turn = repetition{}, ""
		return t.halt(m.Ref+"/same", swarm.NewMessage(swarm.StallSameMail, m.From, m.To, m.Ref, strconv.Itoa(2*sameDeeds)))
	}
	return nil
}

// note tells an agent something in the name of the run. It waits in the inbox: who goes in a circle will have a turn.
func (t *team) note(id, agent string, m swarm.Message) error {
	_, err := t.fx.Do(Call{ID: "note/" + id, Kind: KindNote, Agent: agent, Note: m})
	return err
}

// halt pauses the run, or ends it where nobody is there to decide, and says why.
func (t *team) halt(id string, why swarm.Message) error {
	if !t.pausing.IsZero() {
		return nil
	}
	pauses := t.Rules.OnStall != swarm.StallFails
	if err := t.tell(Fact{Kind: swarm.Notice, Key: stallKey + id, Body: swarm.Reason{Message: why, Paused: pauses, Ended: !pauses}}); err != nil {
		return err
	}
	if pauses {
		return t.pause(true)
	}
	t.stalled = &why
	t.stopFor(swarm.Stalled)
	return nil
}
