package flow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/fact"
	"swarm/internal/flow"
	"swarm/internal/plan"
)

// A chaos is a whole run in which agents and people act at random. It appends the loop's calls to
// the log as the adapters would, and the loop reads the log as an engine lets it.
type chaos struct {
	t      *testing.T
	rnd    *rand.Rand
	log    []swarm.Event
	read   int // number of events that the loop has read
	now    time.Time
	plan   swarm.Plan
	given  []flow.Call // turns that were asked for and have not started
	begun  []flow.Call // turns that have started
	checks []flow.Call // checks of the goal that have not ended
	cursor map[string]int64
	asked  []string // growth requests without an answer
	left   int      // number of actions left
	sent   int
}

func (c *chaos) append(e swarm.Event, body any) int64 {
	c.now = c.now.Add(time.Duration(c.rnd.IntN(1000)) * time.Millisecond)
	if body != nil {
		e.Data = swarm.Encode(body)
	}
	e.Seq, e.Time = int64(len(c.log)+1), c.now
	c.log = append(c.log, e)
	return e.Seq
}

func (c *chaos) Do(call flow.Call) (flow.Result, error) {
	r := flow.Result{CallEnd: swarm.CallEnd{ID: call.ID, Status: swarm.CallOK}}
	switch call.Kind {
	case flow.KindPlan:
		r.Plan = &c.plan
		return r, nil
	case flow.KindNote:
		c.mail(swarm.Orchestrator, call.Agent, swarm.Signal, "", "", 0)
	case flow.KindReturn:
	default:
		r.Wrote = c.mail(swarm.Orchestrator, call.Agent, swarm.Handoff, "", "", 0)
	}
	r.Seq = c.append(swarm.Event{Kind: swarm.CallEnded, Agent: call.Agent}, r.CallEnd)
	return r, nil
}

func (c *chaos) Go(call flow.Call) error {
	if call.Kind == flow.KindCheck {
		c.checks = append(c.checks, call)
		return nil
	}
	c.given = append(c.given, call)
	return nil
}

func (c *chaos) Tell(f flow.Fact) error {
	c.append(swarm.Event{Kind: f.Kind, Key: f.Key, Agent: f.Agent, Task: f.Task, Turn: f.Turn, To: swarm.ToLoop("root")}, f.Body)
	return nil
}

func (c *chaos) Now() time.Time {
	if c.read == 0 {
		return c.log[0].Time
	}
	return c.log[c.read-1].Time
}

// Next returns the next record, as an engine would, and makes something happen if there is none.
func (c *chaos) Next(most time.Duration) (flow.Signal, error) {
	for {
		for ; c.read < len(c.log); c.read++ {
			e := c.log[c.read]
			if e.Kind == swarm.CallEnded || e.To == swarm.ToLoop("root") && e.Kind != swarm.Tick && e.Kind != swarm.RunOwned && e.Kind != swarm.WaitBegan &&
				e.Kind != swarm.WaitEnded && e.Kind != swarm.ApprovalAsked && e.Kind != swarm.ApprovalAnswered && e.Kind != swarm.TurnEnded && e.Kind != swarm.CheckEnded {
				continue // the loop told it, or got it as an answer
			}
			if s, ok, err := engine.Signal(e); ok || err != nil {
				c.read++
				return s, err
			}
		}
		if c.left--; c.left < -200 {
			return flow.Signal{}, errStuck
		}
		c.happen(most)
	}
}

func (c *chaos) happen(most time.Duration) {
	anybody := func() string { return c.plan.Agents[c.rnd.IntN(len(c.plan.Agents))].Name }
	chance := c.rnd.IntN(100)
	if c.left < 0 { // the run comes to its end
		chance = 40 + c.rnd.IntN(60)
		if c.left%20 == 0 {
			c.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl}, swarm.ControlCommand{Command: swarm.CommandResume})
		}
	}
	word := func(w swarm.Command, target string) {
		c.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl}, swarm.ControlCommand{Command: w, Target: target})
	}
	switch {
	case chance < 3:
		word(swarm.CommandPause, anybody())
	case chance < 8:
		word(swarm.CommandResume, anybody())
	case chance < 9:
		word(swarm.CommandPause, "")
	case chance < 12:
		word(swarm.CommandResume, "")
	case chance < 14:
		word(swarm.CommandCancel, c.plan.Agents[1+c.rnd.IntN(len(c.plan.Agents)-1)].Name)
	case chance < 17:
		word(swarm.CommandStart, anybody())
	case chance < 18:
		word(swarm.CommandReset, anybody())
	case chance < 19:
		word(swarm.CommandRetry, anybody())
	case chance < 20:
		c.append(swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop("root")}, swarm.Ownership{Fence: 2})
		c.given, c.begun, c.checks = nil, nil, nil // the loop asks for them again
	case chance < 26:
		c.mail(swarm.User, anybody(), swarm.Handoff, "", "", 0)
	case chance < 30 && len(c.asked) > 0:
		id := c.asked[0]
		c.asked = c.asked[1:]
		c.append(swarm.Event{Kind: swarm.ApprovalAnswered, To: swarm.ToLoop("root")}, swarm.ApprovalAnswer{ID: id})
	case chance < 40 && len(c.begun) > 0:
		c.act()
	case chance < 65 && len(c.given) > 0:
		c.start()
	case chance < 90 && len(c.begun) > 0:
		c.end()
	case len(c.checks) > 0:
		c.endCheck()
	case most > 0:
		c.now = c.now.Add(most)
		c.append(swarm.Event{Kind: swarm.Tick, To: swarm.ToLoop("root")}, nil)
	}
}

// start starts a turn that was asked for.
func (c *chaos) start() {
	k := c.rnd.IntN(len(c.given))
	call := c.given[k]
	c.given = slices.Delete(c.given, k, k+1)
	c.begun = append(c.begun, call)
	c.append(c.of(call, swarm.TurnStarted), swarm.TurnStart{Iteration: call.Iteration, Attempt: call.Attempt})
}

func (c *chaos) of(call flow.Call, kind swarm.EventKind) swarm.Event {
	return swarm.Event{Kind: kind, Agent: call.Agent, Task: call.Task, Turn: swarm.TurnID(call.ID)}
}

// act makes an agent act in its turn.
func (c *chaos) act() {
	call := c.begun[c.rnd.IntN(len(c.begun))]
	to := c.plan.Agents[c.rnd.IntN(len(c.plan.Agents))].Name
	if c.rnd.IntN(8) == 0 {
		to = swarm.User
	}
	e := c.of(call, swarm.WaitBegan)
	e.To = swarm.ToLoop("root")
	switch c.rnd.IntN(7) {
	case 0:
		c.append(e, swarm.AgentWait{For: []string{to}})
	case 1:
		e.Kind = swarm.WaitEnded
		c.append(e, swarm.AgentWait{})
	case 2:
		c.sent++
		id := fmt.Sprint("w", c.sent)
		e.Kind = swarm.ApprovalAsked
		c.asked = append(c.asked, id)
		c.append(e, swarm.Approval{ID: id, Growth: &swarm.GrowthRequest{}})
	case 3, 4:
		c.mail(call.Agent, to, swarm.Handoff, "required", call.ID, c.cursor[call.Agent])
	default:
		c.mail(call.Agent, to, swarm.Handoff, "", call.ID, c.cursor[call.Agent])
	}
}

func (c *chaos) mail(from, to string, kind swarm.EnvelopeKind, wants, turn string, read int64) int64 {
	if from == to || from != swarm.Orchestrator && c.ended(to) { // mail for one that has ended is refused
		return 0
	}
	c.sent++
	env := swarm.StoredEnvelope{Envelope: swarm.Envelope{Kind: kind, ID: fmt.Sprint("m-", c.sent), FromNodeID: from, ToNodeID: to, Payload: swarm.Payload{Message: fmt.Sprint(c.sent)}}, Read: read}
	if wants != "" {
		env.Payload.Response = &swarm.Response{Expectation: wants}
	}
	return c.append(swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(to), Agent: from, Turn: swarm.TurnID(turn), Key: swarm.MailKey(env.Ref())}, env)
}

// ended says whether the log has the end of an agent.
func (c *chaos) ended(agent string) (ended bool) {
	for _, e := range c.log {
		if e.Agent == agent && (e.Kind == swarm.AgentEnded || e.Kind == swarm.AgentRestarted) {
			ended = e.Kind == swarm.AgentEnded
		}
	}
	return ended
}

// end ends a turn, successfully or not.
func (c *chaos) end() {
	k := c.rnd.IntN(len(c.begun))
	call := c.begun[k]
	c.begun = slices.Delete(c.begun, k, k+1)
	e := c.of(call, swarm.TurnEnded)
	e.To = swarm.ToLoop("root")
	end := swarm.CallEnd{ID: call.ID, Status: swarm.CallOK, Output: swarm.HashOf([]byte(call.ID))}
	switch chance := c.rnd.IntN(20); {
	case chance < 4:
		end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.Exited, "why"
	case chance < 5:
		end.Status, end.Kind = swarm.CallCut, swarm.CutToSpeak
	case chance < 6:
		end.Status, end.Kind = swarm.CallCut, swarm.CutByCancel
	case chance < 8:
		until := c.now.Add(time.Duration(c.rnd.IntN(14*60)) * time.Minute)
		end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.RateLimited, "used up"
		end.Limit = &swarm.Limit{Provider: cmp.Or(call.Provider, "p"), Until: until}
	default:
		if upto := int64(len(c.log)); upto > c.cursor[call.Agent] {
			end.Inputs = swarm.Inputs{From: c.cursor[call.Agent], Upto: upto}
			c.cursor[call.Agent] = upto
			c.append(c.of(call, swarm.HandoffConsumed), swarm.Consumption{Inputs: end.Inputs, Turn: swarm.TurnID(call.ID)})
		}
	}
	c.append(e, end)
}

// endCheck ends a check of the goal, successfully or not.
func (c *chaos) endCheck() {
	end := swarm.CallEnd{ID: c.checks[0].ID, Status: swarm.CallOK}
	if c.rnd.IntN(2) == 0 {
		end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.Unexpected, "why"
	}
	c.checks = c.checks[1:]
	c.append(swarm.Event{Kind: swarm.CheckEnded, To: swarm.ToLoop("root")}, end)
}

// picture is the part of a team's model in which two models must agree. Only the loop knows of a
// turn that was asked for and has not started; given lists those. The mail that a turn has read is
// told right before its end.
func picture(t *plan.Team, given map[string]bool) string {
	var b strings.Builder
	for _, m := range t.Members {
		state := m.State
		if given[m.Name] {
			state = "given"
			m.Turns, m.Attempt, m.For = 0, 0, nil
		}
		fmt.Fprintf(&b, "%s %s turns %d/%d tries %d unread %v paused %v for %v ended %v starts %d leave %q\n", m.Name, state, m.Turns, m.Attempt, m.Tries,
			m.Mail > m.Read && m.End == nil && !m.InTurn() && !given[m.Name], !m.PauseAt.IsZero(), m.For, m.End != nil, m.Starts, m.Leave)
		if m.Want != "" {
			fmt.Fprintf(&b, "  wants %s\n", m.Want)
		}
		if m.Effort != nil {
			e := *m.Effort
			e.Began = time.Time{} // of a turn that is given, the loop has another time
			fmt.Fprintf(&b, "  effort %s\n", swarm.Encode(e))
		}
	}
	for _, l := range t.Limits {
		fmt.Fprintf(&b, "limit of %s until %s\n", l.Provider, l.Until)
	}
	for _, o := range t.Owed {
		fmt.Fprintf(&b, "%s owes %s a reply to %s, reminded %v\n", o.To, o.ReplyTo, o.Ref, o.Reminded)
	}
	fmt.Fprintf(&b, "open %v, paused %v, closing %q", t.Open, !t.PauseAt.IsZero(), t.Closing)
	check := t.Check
	check.Passed = check.Passed && len(given) == 0 // a turn that is given ends it
	fmt.Fprintf(&b, ", check %s", swarm.Encode(check))
	return b.String()
}

// The loop's model of a team agrees with a reader's model from the log, whenever the loop waits.
func TestTheLoopAndTheLogAgree(t *testing.T) {
	for seed := range uint64(300) {
		c := &chaos{t: t, rnd: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(0, 0).UTC(), cursor: map[string]int64{}, left: 150}
		c.plan = swarm.Plan{Kind: swarm.TeamRun, MaxParallel: int(seed % 3), Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: time.Minute}}
		for _, name := range []string{"lead", "a", "b", "c"} {
			rule := map[string]*swarm.OnLimit{"b": {Fail: true}, "c": {Use: "q"}}[name]
			c.plan.Agents = append(c.plan.Agents, swarm.Agent{Name: name, Provider: "p", OnLimit: rule})
		}
		if seed%2 == 1 {
			c.plan.Team.Expect = &swarm.Expect{Command: "make test"}
		}
		c.append(swarm.Event{Kind: swarm.RunStarted}, swarm.RunStart{})
		c.append(swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1"}, c.plan)
		c.mail(swarm.User, "lead", swarm.Handoff, "", "", 0)
		c.append(swarm.Event{Kind: swarm.RunOwned, To: swarm.ToLoop("root")}, swarm.Ownership{Fence: 1})
		c.read = 2
		follower, at := plan.NewTeam(), 0
		_, err := flow.WatchedTeam(c, flow.Call{ID: "root", Kind: "team", Ref: "plan:1"}, func(loop *plan.Team) {
			for _, e := range c.log[c.read:] {
				if s, ok, _ := engine.Signal(e); ok && e.Kind != swarm.CallEnded && s.Kind != "" {
					return // there is more for the loop to read
				}
			}
			for ; at < len(c.log); at++ {
				f, _, err := fact.Of(&c.log[at])
				if err != nil {
					t.Fatal(err)
				}
				follower.Apply(f)
			}
			given := map[string]bool{}
			for _, call := range c.given {
				given[call.Agent] = true
			}
			if got, want := picture(follower, given), picture(loop, given); got != want {
				for _, e := range c.log {
					t.Log(e.Seq, e.Kind, e.Agent, e.Turn, string(e.Data))
				}
				t.Fatalf("seed %d, event %d: the log says\n%s\nand the loop\n%s", seed, len(c.log), got, want)
			}
			restored, err := json.Marshal(follower.TeamState)
			var state plan.TeamState
			if err == nil {
				err = json.Unmarshal(restored, &state)
			}
			if again := plan.RestoreTeam(state); err != nil || picture(again, given) != picture(follower, given) {
				t.Fatalf("seed %d: what was stored is\n%s\n%v", seed, picture(again, given), err)
			}
		})
		if err != nil && err != errStuck {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
