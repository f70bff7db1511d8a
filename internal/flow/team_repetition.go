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

// Habits are what an agent repeats.
type habits struct {
	outputs repetition // what it said last
	deeds   repetition // what it did last
	wrote   repetition // what it wrote last,
	turn    string     // and in which turn
	claims  int        // in how many turns in a row it said that it had written, and had not
}

func (t *team) habitsOf(agent string) *habits {
	h := t.habits[agent]
	if h == nil {
		h = &habits{}
		t.habits[agent] = h
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
	h := t.habitsOf(agent)
	if r.Output == "" || r.Output == swarm.NoText {
		h.outputs = repetition{}
		return nil
	}
	n := strconv.Itoa(sameOutputs)
	switch h.outputs.again(string(r.Output)) {
	case sameOutputs:
		return t.note(r.ID, agent, "Your last "+n+" outputs are the same to the letter. Do something else, or say what keeps you from it.")
	case 2 * sameOutputs:
		h.outputs = repetition{}
		return t.halt(r.ID, "@"+agent+" has said the same "+strconv.Itoa(2*sameOutputs)+" times in a row, and was told so")
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
		why := f.Evidence + " changed against the phase " + string(t.Rules.Phase) + " in the turn " + r.ID + " of @" + agent + ", and nobody can tell by whom: at the same time worked " + f.About
		if t.Closing == "" && t.pausing.IsZero() {
			return t.halt(r.ID+"/shared", why)
		}
		return t.tell(Fact{Kind: swarm.Notice, Key: swarm.CircleKey + r.ID + "/shared", Body: swarm.Reason{Reason: why, Hint: "swarm artifact ls has what each turn changed"}})
	}
	return nil
}

// weighClaims has an agent told that what it says it has sent was never sent. It is given a turn for it, since nobody else will be;
// when it says so again, a person decides.
func (t *team) weighClaims(agent string, r Result, claims []swarm.Finding) error {
	h := t.habitsOf(agent)
	if len(claims) == 0 {
		h.claims = 0
		return nil
	}
	if h.claims++; h.claims > 1 {
		h.claims = 0
		f := claims[0]
		return t.halt(r.ID+"/unsent", "@"+agent+" says again that it has written to @"+f.About+", and has not: \""+f.Evidence+"\"")
	}
	text := ""
	for _, f := range claims {
		text += "You said: \"" + f.Evidence + "\". No message of yours went to " + f.About + " in that turn.\n"
	}
	_, err := t.write(Call{ID: "urge/" + r.ID, Kind: KindUrge, Agent: agent, Ref: text + "If a message is to go there, send it now with send_handoff: what you merely say, nobody is given."})
	return err
}

// weighDeeds looks whether an agent does the same again and again, over its turns. Within one turn it was told so while it did it.
func (t *team) weighDeeds(agent string, r Result, same []swarm.Finding) error {
	h := t.habitsOf(agent)
	if len(same) == 0 {
		h.deeds = repetition{}
		return nil
	}
	f := same[0]
	switch h.deeds.again(f.About) {
	case sameDeeds:
		return t.note(r.ID+"/same", agent, "In your last "+strconv.Itoa(sameDeeds)+" turns you have done the same with the same result: "+f.Evidence+". Do something else, or say what keeps you from it.")
	case 2 * sameDeeds:
		n := strconv.Itoa(2 * sameDeeds)
		h.deeds = repetition{}
		return t.halt(r.ID+"/same", "@"+agent+" has done the same in "+n+" turns in a row, with the same result, and was told so: "+f.Evidence)
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
		text := "The last " + strconv.Itoa(sameTwo) + " messages of the team went between " + a + " and " + b + ". If you are not coming nearer to the goal, decide, or ask somebody else."
		if err := t.note(m.Ref+"-1", a, text); err != nil {
			return err
		}
		return t.note(m.Ref+"-2", b, text)
	case n == 2*sameTwo:
		t.between = repetition{}
		return t.halt(m.Ref, "the last "+strconv.Itoa(2*sameTwo)+" messages went between @"+a+" and @"+b+", who were told so")
	}
	return nil
}

// weighMessage looks whether an agent writes the same to the same, turn after turn.
func (t *team) weighMessage(m plan.Mail) error {
	h, what := t.habitsOf(m.From), m.To+" "+m.Says
	if m.Turn == "" || m.Turn == h.turn && what == h.wrote.what {
		return nil
	}
	h.turn = m.Turn
	switch h.wrote.again(what) {
	case sameDeeds:
		return t.note(m.Ref+"-same", m.From, "In your last "+strconv.Itoa(sameDeeds)+" turns you have sent "+m.To+" the same message. It has it. Do something else, or say what keeps you from it.")
	case 2 * sameDeeds:
		n := strconv.Itoa(2 * sameDeeds)
		h.wrote, h.turn = repetition{}, ""
		return t.halt(m.Ref+"/same", "@"+m.From+" has sent @"+m.To+" the same message "+m.Ref+" in "+n+" turns in a row, and was told so")
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
	t.Halt()
	if !t.pausing.IsZero() || t.replay {
		return nil
	}
	if err := t.tell(Fact{Kind: swarm.Notice, Key: swarm.CircleKey + id, Body: swarm.Reason{Reason: plan.PausedFor(why),
		Hint: "look at it with swarm show, say something with swarm send, and go on with swarm resume"}}); err != nil {
		return err
	}
	return t.pause(true)
}
