package flow

import (
	"strconv"

	"swarm"
	"swarm/internal/plan"
)

// What is taken for going in a circle. The agents are told first; when it goes on for as long again the run pauses, and a person
// decides.
const (
	sameOutputs = 3  // an agent said the same so often in a row
	sameTwo     = 12 // so many envelopes in a row went between the same two agents, to and fro
	sameDeeds   = 3  // an agent did the same and nothing else, or wrote the same to the same, in so many turns in a row
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

// found weighs what is strange about a turn.
func (t *team) found(m *member, r Result) error {
	if t.done {
		return nil
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
	if err := t.unsent(m, r, unsent); err != nil {
		return err
	}
	return t.acted(m, r, same)
}

// shared has a person decide about files that the phase forbids and that one of several has changed: no agent is failed for what another
// may have done.
func (t *team) shared(m *member, r Result) error {
	for _, f := range r.Findings {
		if f.Kind != swarm.Shared {
			continue
		}
		why := f.Evidence + " changed against the phase " + string(t.rules.Phase) + " in the turn " + r.ID + " of @" + m.name + ", and nobody can tell by whom: at the same time worked " + f.About
		if !t.done && t.pausing.IsZero() {
			return t.halt(r.ID+"/shared", why)
		}
		return t.fx.Tell(Fact{Kind: swarm.Notice, Key: "circle:" + r.ID + "/shared", Body: swarm.Reason{Reason: why, Hint: "swarm artifact ls has what each turn changed"}})
	}
	return nil
}

// unsent has an agent told that what it says it has sent was never sent. It is given a turn for it, since nobody else will be; when it
// says so again, a person decides.
func (t *team) unsent(m *member, r Result, claims []swarm.Finding) error {
	if len(claims) == 0 {
		m.claims = 0
		return nil
	}
	if m.claims++; m.claims > 1 {
		m.claims = 0
		f := claims[0]
		return t.halt(r.ID+"/unsent", "@"+m.name+" says again that it has written to @"+f.About+", and has not: \""+f.Evidence+"\"")
	}
	text := ""
	for _, f := range claims {
		text += "You said: \"" + f.Evidence + "\". No message of yours went to " + f.About + " in that turn.\n"
	}
	_, err := t.write(Call{ID: "urge/" + r.ID, Kind: KindUrge, Agent: m.name, Ref: text + "If a message is to go there, send it now with send_handoff: what you merely say, nobody is given."})
	return err
}

// acted looks whether an agent does the same again and again, over its turns. Within one turn it was told so while it did it.
func (t *team) acted(m *member, r Result, same []swarm.Finding) error {
	if len(same) == 0 {
		m.deeds = circle{}
		return nil
	}
	f := same[0]
	switch m.deeds.again(f.About) {
	case sameDeeds:
		return t.note(r.ID+"/same", m.name, "In your last "+strconv.Itoa(sameDeeds)+" turns you have done the same with the same result: "+f.Evidence+". Do something else, or say what keeps you from it.")
	case 2 * sameDeeds:
		n := strconv.Itoa(2 * sameDeeds)
		m.deeds = circle{}
		return t.halt(r.ID+"/same", "@"+m.name+" has done the same in "+n+" turns in a row, with the same result, and was told so: "+f.Evidence)
	}
	return nil
}

// repeated looks whether an agent writes the same to the same, turn after turn.
func (t *team) repeated(m *member, e Mail) error {
	if e.Turn == "" || e.Turn == m.wrote.turn && e.To+" "+e.Says == m.wrote.what {
		return nil
	}
	m.wrote.turn = e.Turn
	switch m.wrote.again(e.To + " " + e.Says) {
	case sameDeeds:
		return t.note(e.ID+"-same", m.name, "In your last "+strconv.Itoa(sameDeeds)+" turns you have sent "+e.To+" the same message. It has it. Do something else, or say what keeps you from it.")
	case 2 * sameDeeds:
		n := strconv.Itoa(2 * sameDeeds)
		m.wrote = words{}
		return t.halt(e.ID+"/same", "@"+m.name+" has sent @"+e.To+" the same message "+e.ID+" in "+n+" turns in a row, and was told so")
	}
	return nil
}

// Words are what an agent wrote last, and in which turn.
type words struct {
	circle
	turn string
}

// passed looks whether two agents do nothing but write to each other.
func (t *team) passed(m Mail) error {
	i, from := t.at[m.From]
	_, to := t.at[m.To]
	if !from || !to || !m.Wakes {
		return nil
	}
	if err := t.repeated(&t.members[i], m); err != nil {
		return err
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

// halt pauses the run, and says why. A replay does not: whether a person let the run go on, the recording shows.
func (t *team) halt(id, why string) error {
	t.halted = true
	if !t.pausing.IsZero() || t.replay {
		return nil
	}
	if err := t.fx.Tell(Fact{Kind: swarm.Notice, Key: swarm.CircleKey + id, Body: swarm.Reason{Reason: plan.PausedFor(why),
		Hint: "look at it with swarm show, say something with swarm send, and go on with swarm resume"}}); err != nil {
		return err
	}
	_, _, err := t.pause(true, t.seen)
	return err
}

// beyond says of an agent that its next turn comes after all that is recorded, in a replay of a run that was paused for a circle: there a
// person had ended it.
func (t *team) beyond(m *member) bool { return t.replay && t.halted && !t.order.Has(m.nextTurn()) }

// endWithRecording ends a replay where a person had ended the run.
func (t *team) endWithRecording() {
	if t.running > 0 || t.done || t.stop != "" || !t.heard() || t.wishing() {
		return
	}
	left := 0
	for i := range t.members {
		if m := &t.members[i]; t.wants(m) {
			if !t.beyond(m) {
				return
			}
			left++
		}
	}
	if left > 0 {
		t.stop = swarm.CutByCancel
	}
}
