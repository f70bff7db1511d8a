package flow

import (
	"strconv"

	"swarm"
)

// What is taken for going in a circle. The agents are told first; when it goes on for as long again the run pauses, and a person
// decides.
const (
	sameOutputs = 3  // an agent said the same so often in a row
	sameTwo     = 12 // so many envelopes in a row went between the same two agents, to and fro
)

// A circle is something that has come again and again.
type circle struct {
	what  string // the output's hash, or the two agents
	times int
}

// again counts what has come, and says how often in a row that was.
func (c *circle) again(what string) int {
	if c.what != what {
		*c = circle{what: what}
	}
	c.times++
	return c.times
}

// said looks whether an agent says the same again and again.
func (t *team) said(m *member, r Result) error {
	if r.Output == "" || r.Output == swarm.NoText {
		m.outputs = circle{}
		return nil
	}
	n := strconv.Itoa(sameOutputs)
	switch m.outputs.again(string(r.Output)) {
	case sameOutputs:
		return t.note(r.ID, m.name, "Your last "+n+" outputs are the same to the letter. Do something else, or say what keeps you from it.")
	case 2 * sameOutputs:
		m.outputs = circle{}
		return t.halt(r.ID, "@"+m.name+" has said the same "+strconv.Itoa(2*sameOutputs)+" times in a row, and was told so")
	}
	return nil
}

// passed looks whether two agents do nothing but write to each other.
func (t *team) passed(m Mail) error {
	_, from := t.at[m.From]
	_, to := t.at[m.To]
	if !from || !to || !m.Wakes {
		return nil
	}
	a, b := min(m.From, m.To), max(m.From, m.To)
	switch n := t.between.again(a + " " + b); {
	case n == sameTwo:
		text := "The last " + strconv.Itoa(sameTwo) + " messages of the team went between " + a + " and " + b + ". If you are not coming nearer to the goal, decide, or ask somebody else."
		if err := t.note(m.ID+"-1", a, text); err != nil {
			return err
		}
		return t.note(m.ID+"-2", b, text)
	case n == 2*sameTwo:
		t.between = circle{}
		return t.halt(m.ID, "the last "+strconv.Itoa(2*sameTwo)+" messages went between @"+a+" and @"+b+", who were told so")
	}
	return nil
}

// note tells an agent something in the name of the run. It waits in the inbox: who goes in a circle will have a turn.
func (t *team) note(id, agent, text string) error {
	_, err := t.fx.Do(Call{ID: "note/" + id, Kind: KindNote, Agent: agent, Ref: text})
	return err
}

// halt pauses the run, and says why.
func (t *team) halt(id, why string) error {
	if !t.pausing.IsZero() {
		return nil
	}
	if err := t.fx.Tell(Fact{Kind: swarm.Notice, Key: "circle:" + id, Body: swarm.Reason{Reason: "the run is paused: " + why,
		Hint: "look at it with swarm show, say something with swarm send, and go on with swarm resume"}}); err != nil {
		return err
	}
	_, _, err := t.pause(true, t.seen)
	return err
}
