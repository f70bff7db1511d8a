package flow

import (
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// Limits of repetition. At the limit the runtime tells the agents. At twice the limit the run
// pauses, and a person decides. A swarm never pauses itself: there the agent ends.
const (
	sameOutputs = 3  // identical outputs of an agent in a row
	sameTwo     = 12 // turns in a row whose envelopes went between the same two agents
	sameDeeds   = 3  // turns in a row in which an agent did only the same thing, or sent the same message to the same agent
)

// stallKey is the prefix of the key of a notice that a team makes no progress.
const stallKey = "stall:"

// A repetition counts how often in a row the same thing came.
type repetition struct {
	what  string // the output's hash, or the two agents
	times int
}

// count counts one occurrence and returns how many came in a row.
func (c *repetition) count(what string) int {
	if c.what != what {
		*c = repetition{what: what}
	}
	c.times++
	return c.times
}

// An agentHistory is what the loop remembers of an agent to detect repetitions.
type agentHistory struct {
	outputs repetition   // its last outputs
	deeds   repetition   // its last tool calls
	wrote   repetition   // its last messages
	turn    swarm.TurnID // the turn that sent the last message
	claims  int          // turns in a row that claim a message which was not sent
	paired  swarm.TurnID // the last turn whose messages to one agent were counted
}

func (t *team) historyOf(agent string) *agentHistory {
	h := t.histories[agent]
	if h == nil {
		h = &agentHistory{}
		t.histories[agent] = h
	}
	return h
}

// weighTurn checks a turn for repetitions and handles the findings that the turn runner reported.
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

// weighOutput detects an agent that gives the same output again and again.
func (t *team) weighOutput(agent string, r Result) error {
	h := t.historyOf(agent)
	if r.Output == "" || r.Output == swarm.NoText {
		h.outputs = repetition{}
		return nil
	}
	switch h.outputs.count(string(r.Output)) {
	case sameOutputs:
		return t.note(r.ID, agent, swarm.NewMessage(swarm.ToldSameOutput, strconv.Itoa(sameOutputs)))
	case 2 * sameOutputs:
		h.outputs = repetition{}
		return t.stall(r.ID, agent, swarm.NewMessage(swarm.StallSameOutput, agent, strconv.Itoa(2*sameOutputs)))
	}
	return nil
}

// weighShared asks a person to decide about forbidden changes that several agents may have made. No
// agent fails for another's changes.
func (t *team) weighShared(agent string, r Result) error {
	for _, f := range r.Findings {
		if f.Kind != swarm.Shared {
			continue
		}
		why := swarm.NewMessage(swarm.StallShared, f.Evidence, string(t.Rules.Phase), r.ID, agent, f.About)
		if t.Closing == "" && t.pausing.IsZero() && t.Swarm == nil {
			return t.halt(r.ID+"/shared", why)
		}
		return t.tell(Fact{Kind: swarm.Notice, Key: stallKey + r.ID + "/shared", Body: swarm.Reason{Message: why}})
	}
	return nil
}

// weighClaims tells an agent that a message it claims was never sent. The agent gets a turn to send
// it, since otherwise no agent would get one. After a second such turn in a row, a person decides.
func (t *team) weighClaims(agent string, r Result, claims []swarm.Finding) error {
	h := t.historyOf(agent)
	if len(claims) == 0 {
		h.claims = 0
		return nil
	}
	if h.claims++; h.claims > 1 {
		h.claims = 0
		f := claims[0]
		return t.stall(r.ID+"/unsent", agent, swarm.NewMessage(swarm.StallUnsent, agent, f.About, f.Evidence))
	}
	told := swarm.NewMessage(swarm.ToldUnsent)
	for _, f := range claims {
		told.Args = append(told.Args, f.Evidence, f.About)
	}
	_, err := t.write(Call{ID: "urge/" + r.ID, Kind: KindUrge, Agent: agent, Note: told})
	return err
}

// weighDeeds detects an agent that does only the same thing, turn after turn. Within one turn the
// turn runner warns the agent.
func (t *team) weighDeeds(agent string, r Result, same []swarm.Finding) error {
	h := t.historyOf(agent)
	if len(same) == 0 {
		h.deeds = repetition{}
		return nil
	}
	f := same[0]
	switch h.deeds.count(f.About) {
	case sameDeeds:
		return t.note(r.ID+"/same", agent, swarm.NewMessage(swarm.ToldSameAction, strconv.Itoa(sameDeeds), f.Evidence))
	case 2 * sameDeeds:
		h.deeds = repetition{}
		return t.stall(r.ID+"/same", agent, swarm.NewMessage(swarm.StallSameAction, agent, strconv.Itoa(2*sameDeeds), f.Evidence))
	}
	return nil
}

// weighMail detects two agents that only write to each other, and an agent that repeats a message.
func (t *team) weighMail(m plan.Mail) error {
	if t.Member(m.From) == nil || t.Member(m.To) == nil || !m.Wakes {
		return nil
	}
	if err := t.weighMessage(m); err != nil {
		return err
	}
	a, b := min(m.From, m.To), max(m.From, m.To)
	h := t.historyOf(m.From)
	if m.Turn != "" && m.Turn == h.paired && t.between.what == a+" "+b {
		return nil // many messages of one turn are one step of the two
	}
	h.paired = m.Turn
	switch n := t.between.count(a + " " + b); {
	case n == sameTwo:
		told := swarm.NewMessage(swarm.ToldOnlyTwo, strconv.Itoa(sameTwo), a, b)
		if err := t.note(m.Ref+"-1", a, told); err != nil {
			return err
		}
		return t.note(m.Ref+"-2", b, told)
	case n == 2*sameTwo:
		t.between = repetition{}
		return t.stall(m.Ref, m.From, swarm.NewMessage(swarm.StallOnlyTwo, strconv.Itoa(2*sameTwo), a, b))
	}
	return nil
}

// weighMessage detects an agent that sends the same message to the same agent, turn after turn.
func (t *team) weighMessage(m plan.Mail) error {
	h, what := t.historyOf(m.From), m.To+" "+m.Says
	if m.Turn == "" || m.Turn == h.turn && what == h.wrote.what {
		return nil
	}
	h.turn = m.Turn
	switch h.wrote.count(what) {
	case sameDeeds:
		return t.note(m.Ref+"-same", m.From, swarm.NewMessage(swarm.ToldSameMail, strconv.Itoa(sameDeeds), m.To))
	case 2 * sameDeeds:
		h.wrote, h.turn = repetition{}, ""
		return t.stall(m.Ref+"/same", m.From, swarm.NewMessage(swarm.StallSameMail, m.From, m.To, m.Ref, strconv.Itoa(2*sameDeeds)))
	}
	return nil
}

// note sends an agent a message in the name of the run. It gives no turn: an agent that repeats
// itself gets turns anyway.
func (t *team) note(id, agent string, m swarm.Message) error {
	_, err := t.fx.Do(Call{ID: "note/" + id, Kind: KindNote, Agent: agent, Note: m})
	return err
}

// stall acts on an agent that repeats itself although it was told so.
func (t *team) stall(id, agent string, why swarm.Message) error {
	if t.Swarm == nil {
		return t.halt(id, why)
	}
	return t.tell(Fact{Kind: swarm.Notice, Key: stallKey + id, Agent: agent, Body: swarm.Reason{Message: why, Converged: true}})
}

// halt pauses the run and says why. If on_stall is fail, it ends the run.
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
