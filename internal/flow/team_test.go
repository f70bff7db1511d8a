package flow_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/wording"
)

// An office is a world in which agents write to each other. Each turn sends what the script says,
// and has read all mail that came before it began.
type office struct {
	world
	sends map[swarm.TurnID]string // by turn: "to text", several with commas; "to! text" asks for a reply
	done  map[string]bool         // turns that report their work as done
	says  string                  // the output of every turn; "" = none
	finds map[swarm.TurnID][]swarm.Finding
	// By agent: the senders of mail that it has not read when it ends.
	unread map[string]string

	late flow.Signal   // comes when the loop waits for the clock alone
	by   time.Duration // the delay of late
}

func (o *office) Next(most time.Duration) (flow.Signal, error) {
	if len(o.pending) == 0 && o.late.Kind != "" {
		o.signal(o.late)
		o.late, o.jump = flow.Signal{}, o.by
	}
	return o.world.Next(most)
}

func (o *office) Do(c flow.Call) (flow.Result, error) {
	write := func(told, to, text string) (flow.Result, error) {
		if o.told = append(o.told, told); to == "" {
			return flow.Result{Seq: o.seq}, nil
		}
		o.mail(swarm.Orchestrator, to+" "+text)
		return flow.Result{CallEnd: swarm.CallEnd{Wrote: o.seq}, Seq: o.seq}, nil
	}
	switch c.Kind {
	case flow.KindRemind:
		return write("remind "+c.Agent+" of "+c.Ref, c.Agent, "answer")
	case flow.KindGiveUp:
		return write("tell "+c.Agent+" that nobody answers "+c.Ref, c.Agent, "it never came")
	case flow.KindReturn:
		return write("return "+c.Agent+": "+wording.Text(c.Note), o.unread[c.Agent], "it came back")
	case flow.KindGrant:
		return write("grant "+c.Ref, c.Agent, "answer")
	case flow.KindUrge:
		return write("urge "+c.Agent+": "+wording.Text(c.Note), c.Agent, "urged")
	case flow.KindNote:
		o.told = append(o.told, "note to "+c.Agent)
	}
	return o.world.Do(c)
}

func (o *office) mail(from, text string) {
	to, _, _ := strings.Cut(text, " ")
	name, required := strings.CutSuffix(to, "!")
	o.signal(posted(plan.Mail{Ref: from + ">" + text, From: from, To: name, ReplyTo: from, Wakes: true, Required: required}))
}

// posted makes the signal of a stored envelope.
func posted(m plan.Mail) flow.Signal {
	return flow.Signal{Fact: flow.Fact{Kind: swarm.HandoffStored, Agent: m.From, Body: m}}
}

func (o *office) Go(c flow.Call) error {
	if c.Kind == flow.KindCheck {
		return o.goCheck(c)
	}
	for _, text := range strings.Split(o.sends[swarm.TurnID(c.ID)], ",") {
		if text != "" {
			o.mail(c.Agent, text)
			m := o.pending[len(o.pending)-1].Body.(plan.Mail)
			m.Turn, m.Says, m.Read = swarm.TurnID(c.ID), text, c.Since
			o.pending[len(o.pending)-1].Body = m
		}
	}
	before := len(o.pending)
	if err := o.world.Go(c); err != nil {
		return err
	}
	for i := before; i < len(o.pending); i++ {
		if s := &o.pending[i]; s.Kind == swarm.TurnEnded && s.Result.Status == swarm.CallOK {
			end := s.Result.CallEnd
			end.Inputs, end.Done, end.Output, end.Findings = swarm.Inputs{Upto: c.Since}, o.done[c.ID], swarm.Hash(o.says), o.finds[swarm.TurnID(c.ID)]
			*s = flow.Signal{Fact: s.Fact, Result: flow.Result{CallEnd: end}}
			s.Body = end
		}
	}
	return nil
}

// goCheck ends a check as the script says. It counts the checks of the run.
func (o *office) goCheck(c flow.Call) error {
	before := len(o.pending)
	if err := o.world.Go(c); err != nil {
		return err
	}
	for i := before; i < len(o.pending); i++ {
		if s := &o.pending[i]; s.Kind == swarm.TurnEnded {
			s.Kind, s.Agent, s.Task, s.Turn = swarm.CheckEnded, "", "", ""
		}
	}
	return nil
}

// A team whose goal is checked is completed only after the check has passed.
func TestCheckedTeam(t *testing.T) {
	done := map[string]bool{"lead/1/1": true, "lead/2/1": true, "lead/3/1": true}
	urged := func(n int) string {
		return "urge lead: " + wording.Text(swarm.NewMessage(swarm.ToldCheck, strconv.Itoa(n), "2", "why"))
	}
	for _, c := range []struct {
		name string
		o    office
		want string
	}{
		{"it passes", office{done: done}, "go lead/1/1; check_started; go goal_check/1; run_ended completed 0"},
		{"a team that is idle is checked too", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; check_started; go goal_check/1; run_ended completed 0"},
		{"it fails, and the lead has it fixed", office{done: done, world: world{ends: map[string]string{"goal_check/1": "unexpected"}}, sends: map[swarm.TurnID]string{"lead/2/1": "coder fix it"}},
			"go lead/1/1; check_started; go goal_check/1; " + urged(1) + "; go lead/2/1; go coder/1/1; check_started; go goal_check/2; run_ended completed 0"},
		{"it fails too often", office{done: done, world: world{ends: map[string]string{"goal_check/1": "unexpected", "goal_check/2": "unexpected"}}},
			"go lead/1/1; check_started; go goal_check/1; " + urged(1) + "; go lead/2/1; check_started; go goal_check/2; run_ended failed 1: the goal is not reached (failed checks: 2): why"},
		{"mail that comes meanwhile is read, and the goal checked again", office{world: world{before: map[string]string{"goal_check/1": "mail coder"}}},
			"go lead/1/1; check_started; go goal_check/1; go coder/1/1; check_started; go goal_check/2; run_ended completed 0"},
		{"a person ends the run: its goal is checked once", office{world: world{ends: map[string]string{"goal_check/1": "unexpected"}, before: map[string]string{"lead/1/1": "close"}}},
			"go lead/1/1; check_started; go goal_check/1; run_ended failed 1: the goal is not reached (failed checks: 1): why"},
		{"a person ends it during the check", office{done: done, world: world{ends: map[string]string{"goal_check/1": "unexpected"}, before: map[string]string{"goal_check/1": "close"}}},
			"go lead/1/1; check_started; go goal_check/1; run_ended failed 1: the goal is not reached (failed checks: 1): why"},
		{"the run is cancelled during the check", office{done: done, world: world{ends: map[string]string{"goal_check/1": "cut"}, before: map[string]string{"goal_check/1": "cancel"}}},
			"go lead/1/1; check_started; go goal_check/1; run_ended cancelled 1: the run was cancelled"},
		{"the run is cancelled before the check", office{done: done, world: world{before: map[string]string{"lead/1/1": "cancel"}}},
			"go lead/1/1; run_ended cancelled 1: the run was cancelled"},
		{"the lead is cancelled during the check", office{done: done, world: world{ends: map[string]string{"goal_check/1": "unexpected"}, before: map[string]string{"goal_check/1": "cancel lead"}}},
			"go lead/1/1; check_started; go goal_check/1; agent_ended lead; return lead: it was cancelled; run_ended cancelled 1: the run was cancelled"},
		{"where an agent has failed there is nothing to check", office{
			world: world{ends: map[string]string{"coder/1/1": "exited", "coder/1/2": "exited", "coder/1/3": "exited"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; task_retrying coder after 1s; go coder/1/2; task_retrying coder after 2s; go coder/1/3; agent_ended coder; return coder: it failed: why; run_ended failed 1: @coder failed"},
		{"the run is paused during the check", office{world: world{before: map[string]string{"goal_check/1": "pause"}, after: map[string]string{"goal_check/1": "resume"}}},
			"go lead/1/1; check_started; go goal_check/1; run_pausing; run_paused; run_unpaused; run_ended completed 0"},
		{"another process makes a check again that was cut", office{world: world{ends: map[string]string{"goal_check/1": "never"}}, late: owned},
			"go lead/1/1; check_started; go goal_check/1; go goal_check/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &c.o
			o.now = time.Unix(0, 0)
			o.plan.Team = &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute, Expect: &swarm.Expect{Command: "make test"}, MaxChecks: 2}
			for _, name := range []string{"lead", "coder", "tester"} {
				o.plan.Agents = append(o.plan.Agents, swarm.Agent{Name: name})
			}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team", Ref: "plan:1"}); err != nil && err != errStuck {
				t.Fatal(err)
			}
			var told []string
			for _, line := range o.told {
				if word, _, _ := strings.Cut(line, " "); !strings.HasPrefix(word, "task_") || word == "task_retrying" {
					told = append(told, line)
				}
			}
			got := strings.Join(told, "; ")
			if o.reason != "" {
				got += ": " + o.reason
			}
			if got != c.want {
				t.Errorf("told\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestTeam(t *testing.T) {
	for _, c := range []struct {
		name string
		o    office
		want string // what is told, without how each agent's work ended
	}{
		{"mail goes round until nobody has any", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "tester try it", "tester/1/1": "coder fine", "coder/2/1": "lead done"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; go coder/2/1; go lead/2/1; run_ended completed 0"},
		{"what comes during a turn is the next turn's", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder one,coder two", "coder/1/1": "lead half"}},
			"go lead/1/1; go coder/1/1; go lead/2/1; go coder/2/1; run_ended completed 0"},
		{"the lead is done", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}, done: map[string]bool{"lead/1/1": true}},
			"go lead/1/1; go coder/1/1; run_ended completed 0"},
		{"somebody else's being done ends nothing", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "lead done"}, done: map[string]bool{"coder/1/1": true}},
			"go lead/1/1; go coder/1/1; go lead/2/1; run_ended completed 0"},
		{"a turn that fails is tried again, and its agent given up", office{
			world: world{ends: map[string]string{"coder/1/1": "exited", "coder/1/2": "exited", "coder/1/3": "exited"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; task_retrying coder after 1s; go coder/1/2; task_retrying coder after 2s; go coder/1/3; agent_ended coder; return coder: it failed: why; run_ended failed 1"},
		{"a turn that fails once is none", office{world: world{ends: map[string]string{"coder/1/1": "exited"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; task_retrying coder after 1s; go coder/1/2; run_ended completed 0"},
		{"without its lead the team is lost", office{
			world: world{ends: map[string]string{"lead/1/1": "exited", "lead/1/2": "exited", "lead/1/3": "exited"}}},
			"go lead/1/1; task_retrying lead after 1s; go lead/1/2; task_retrying lead after 2s; go lead/1/3; agent_ended lead; return lead: it failed: why; run_ended failed 1"},
		{"a reply that is wanted is asked for once", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it", "coder/2/1": "lead done"}},
			"go lead/1/1; go coder/1/1; reply_overdue; remind coder of lead>coder! do it; go coder/2/1; go lead/2/1; run_ended completed 0"},
		{"and then not waited for", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it"}},
			"go lead/1/1; go coder/1/1; reply_overdue; remind coder of lead>coder! do it; go coder/2/1; reply_overdue; tell lead that nobody answers lead>coder! do it; go lead/2/1; run_ended completed 0"},
		{"who has ended has nobody told", office{world: world{after: map[string]string{"tester/1/1": "cancel tester"}}, sends: map[swarm.TurnID]string{"lead/1/1": "tester look", "tester/1/1": "coder! do it"}},
			"go lead/1/1; go tester/1/1; go coder/1/1; agent_ended tester; return tester: it was cancelled; reply_overdue; remind coder of tester>coder! do it; go coder/2/1; reply_overdue; run_ended completed 0"},
		{"what one that failed had not read comes back, and its sender has a turn for it", office{unread: map[string]string{"coder": "lead"},
			world: world{ends: map[string]string{"coder/1/1": "exited", "coder/1/2": "exited", "coder/1/3": "exited"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "lead/2/1": "tester do it"}},
			"go lead/1/1; go coder/1/1; task_retrying coder after 1s; go coder/1/2; task_retrying coder after 2s; go coder/1/3; agent_ended coder; return coder: it failed: why; go lead/2/1; go tester/1/1; run_ended failed 1"},
		{"one that is paused and owes a reply keeps the run open", office{world: world{ends: map[string]string{"tester/1/1": "never"}, before: map[string]string{"coder/2/1": "pause coder"},
			after: map[string]string{"coder/2/1": "end tester/1/1,resume coder"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it,tester look"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; reply_overdue; remind coder of lead>coder! do it; go coder/2/1; agent_paused coder; notice; agent_resumed coder; reply_overdue; tell lead that nobody answers lead>coder! do it; go lead/2/1; run_ended completed 0"},
		{"a reply that came is not asked for", office{sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it", "coder/1/1": "lead done"}},
			"go lead/1/1; go coder/1/1; go lead/2/1; run_ended completed 0"},
		{"the budget is spent", office{world: world{ends: map[string]string{"coder/1/1": "over_budget"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it,tester look"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; budget_spent; run_ended failed 3"},
		{"a person interrupts", office{world: world{ends: map[string]string{"lead/1/1": "interrupted"}}}, "go lead/1/1; go lead/1/2; run_ended completed 0"},
		{"the run is cancelled", office{world: world{ends: map[string]string{"lead/1/1": "cut"}, before: map[string]string{"lead/1/1": "cancel"}}},
			"go lead/1/1; agent_ended lead; return lead: it was cancelled; run_ended cancelled 1"},
		{"one agent is cancelled", office{world: world{ends: map[string]string{"coder/1/1": "cut"}, before: map[string]string{"coder/1/1": "cancel coder"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; agent_ended coder; return coder: it was cancelled; run_ended completed 0"},
		{"one that is idle is cancelled", office{world: world{before: map[string]string{"lead/1/1": "cancel tester"}}},
			"go lead/1/1; agent_ended tester; return tester: it was cancelled; run_ended completed 0"},
		{"paused and resumed", office{world: world{before: map[string]string{"lead/1/1": "pause"}, after: map[string]string{"lead/1/1": "resume"}}},
			"go lead/1/1; run_pausing; run_paused; run_unpaused; run_ended completed 0"},
		{"one agent is paused and resumed", office{world: world{before: map[string]string{"lead/1/1": "pause coder,pause coder"}, after: map[string]string{"tester/1/1": "resume coder,resume coder"}},
			sends: map[swarm.TurnID]string{"lead/1/1": "tester look", "tester/1/1": "coder do it"}},
			"go lead/1/1; go tester/1/1; agent_paused coder; notice; agent_resumed coder; go coder/1/1; run_ended completed 0"},
		{"one that is paused finishes its turn", office{world: world{before: map[string]string{"coder/1/1": "pause coder"}, after: map[string]string{"tester/1/1": "resume coder"}},
			sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "tester look", "tester/1/1": "coder fine"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; agent_paused coder; notice; agent_resumed coder; go coder/2/1; run_ended completed 0"},
		{"one is cancelled and started again: its mail has gone back", office{world: world{after: map[string]string{"lead/1/1": "cancel coder,start coder", "tester/1/1": "start nosuch,start tester"}},
			sends: map[swarm.TurnID]string{"lead/1/1": "coder do it,tester look", "tester/1/1": "lead there", "lead/2/1": "coder do it again"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; agent_ended coder; return coder: it was cancelled; agent_restarted coder; go lead/2/1; go coder/2/1; run_ended completed 0"},
		{"one is cancelled in its turn, which ends well, and is started before that", office{world: world{before: map[string]string{"coder/1/1": "cancel coder,start coder"}},
			sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "lead half", "lead/2/1": "coder the rest"}},
			"go lead/1/1; go coder/1/1; go lead/2/1; agent_ended coder; return coder: it was cancelled; agent_restarted coder; run_ended completed 0"},
		{"one that failed is started again, and nothing has failed", office{
			world: world{ends: map[string]string{"coder/1/1": "exited", "coder/1/2": "exited", "coder/1/3": "exited", "tester/1/1": "never"}, after: map[string]string{"coder/1/3": "start coder,end tester/1/1"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it,tester look"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; task_retrying coder after 1s; go coder/1/2; task_retrying coder after 2s; go coder/1/3; agent_ended coder; return coder: it failed: why; agent_restarted coder; run_ended completed 0"},
		{"one is reset: its attempts are counted anew", office{
			world: world{ends: map[string]string{"coder/1/1": "exited", "coder/1/2": "exited", "coder/1/3": "reset", "coder/1/4": "exited", "coder/1/5": "exited"},
				before: map[string]string{"coder/1/3": "reset coder"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; task_retrying coder after 1s; go coder/1/2; task_retrying coder after 2s; go coder/1/3; go coder/1/4; task_retrying coder after 1s; go coder/1/5; task_retrying coder after 2s; go coder/1/6; run_ended completed 0"},
		{"who waits for others needs no slot", office{world: world{plan: swarm.Plan{MaxParallel: 1}, ends: map[string]string{"lead/1/1": "never"},
			before: map[string]string{"lead/1/1": "waits lead/1/1"}, after: map[string]string{"coder/1/1": "goes lead/1/1,end lead/1/1"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; run_ended completed 0"},
		{"a run is paused though somebody waits for others", office{world: world{ends: map[string]string{"lead/1/1": "never"},
			before: map[string]string{"lead/1/1": "waits lead/1/1,pause,resume"}, after: map[string]string{"coder/1/1": "pause,goes lead/1/1,end lead/1/1,resume"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"go lead/1/1; go coder/1/1; run_pausing; run_unpaused; run_pausing; run_paused; run_pausing; run_paused; run_unpaused; run_ended completed 0"},
		{"one turn at a time", office{world: world{plan: swarm.Plan{MaxParallel: 1}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it,tester look"}},
			"go lead/1/1; go coder/1/1; go tester/1/1; run_ended completed 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &c.o
			o.now = time.Unix(0, 0)
			o.plan.Team = &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute}
			for _, name := range []string{"lead", "coder", "tester"} {
				o.plan.Agents = append(o.plan.Agents, swarm.Agent{Name: name})
			}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team", Ref: "plan:1"}); err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, line := range o.told {
				if word, _, _ := strings.Cut(line, " "); !strings.HasPrefix(word, "task_") || word == "task_retrying" {
					told = append(told, line)
				}
			}
			if got := strings.Join(told, "; "); got != c.want {
				t.Errorf("told\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// When another process becomes the owner, a turn that waited starts over in the only slot. The turn
// that had the slot starts again when the first waits again, and no other turn starts before it.
func TestSlotsOfATakenOverTeam(t *testing.T) {
	o := &office{world: world{now: time.Unix(0, 0), ends: map[string]string{"lead/1/1": "never", "coder/1/1": "never"}, before: map[string]string{"lead/1/1": "waits lead/1/1"}}, late: owned,
		sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "tester look"}}
	o.plan = swarm.Plan{MaxParallel: 1, Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}, {Name: "tester"}}}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != errStuck {
		t.Fatal(err)
	}
	if story := strings.Join(o.told, "; "); story != "go lead/1/1; go coder/1/1; go lead/1/1; go coder/1/1" {
		t.Error(story)
	}
}

// A paused agent is not reminded of a reply. Its timeout continues when it is resumed.
func TestRepliesOfAPausedAgent(t *testing.T) {
	o := &office{world: world{now: time.Unix(0, 0), after: map[string]string{"coder/1/1": "pause coder"}}, by: time.Hour, sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it", "coder/2/1": "lead done"}}
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}}
	o.late = said(swarm.CommandResume, "coder")
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
		t.Fatal(err)
	}
	if story, want := strings.Join(o.told, "; "), "go lead/1/1; go coder/1/1; reply_overdue; remind coder of lead>coder! do it; agent_paused coder; notice; agent_resumed coder; go coder/2/1; go lead/2/1; task_completed lead; task_completed coder; run_ended completed 0"; story != want {
		t.Error(story)
	}
}

// A question to a person has no timeout, even if all agents are idle. The answer need not come from
// a turn.
func TestAPersonIsAskedByATeam(t *testing.T) {
	o := &office{world: world{now: time.Unix(0, 0)}, sends: map[swarm.TurnID]string{"lead/1/1": "user! which one?"}}
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute}, Agents: []swarm.Agent{{Name: "lead"}}}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
		t.Fatal(err)
	}
	if story, want := strings.Join(o.told, "; "), "go lead/1/1; reply_overdue; reply_overdue; tell lead that nobody answers lead>user! which one?; go lead/2/1; task_completed lead; run_ended completed 0"; story != want || o.now != time.Unix(600, 0) {
		t.Errorf("%s after %s", story, o.now.Sub(time.Unix(0, 0)))
	}
	answered := &office{world: world{now: time.Unix(0, 0)}, sends: o.sends}
	answered.plan = o.plan
	answered.mail(swarm.User, "lead the goal")
	answered.signal(owned)
	answered.late = posted(plan.Mail{Ref: "a", From: swarm.User, To: "lead", Wakes: true, Answers: "lead>user! which one?"})
	if _, err := flow.Team(answered, flow.Call{ID: "root", Kind: "team"}); err != nil {
		t.Fatal(err)
	}
	if story, want := strings.Join(answered.told, "; "), "go lead/1/1; go lead/2/1; task_completed lead; run_ended completed 0"; story != want {
		t.Error(story)
	}
}

// An interactive team does not end when it has no work.
func TestInteractiveTeamStays(t *testing.T) {
	o := &office{}
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.InteractiveMode}, Agents: []swarm.Agent{{Name: "lead"}}}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != errStuck {
		t.Errorf("it ended with %v", err)
	}
	closed := &office{}
	closed.plan = o.plan
	closed.after = map[string]string{"lead/1/1": "close"}
	closed.mail(swarm.User, "lead the goal")
	closed.signal(owned)
	if r, err := flow.Team(closed, flow.Call{ID: "root", Kind: "team"}); err != nil || r.Status != swarm.CallOK {
		t.Errorf("it was closed, and ended with %+v, %v", r, err)
	}
}

// Agents that repeat themselves are told first. Then the run pauses, and a person decides.
func TestTeamThatGoesInACircle(t *testing.T) {
	for name, c := range map[string]struct {
		says  string
		notes int
		turns int // until the pause
	}{
		"two write to each other and nobody else": {"", 2, 24},
		"one says the same again and again":       {"the same", 4, 12},
	} {
		t.Run(name, func(t *testing.T) {
			o := &office{world: world{now: time.Unix(0, 0)}, says: c.says, sends: map[swarm.TurnID]string{}}
			o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}}
			for n := 1; n < 50; n++ {
				o.sends[swarm.NewTurnID("lead", n, 1)], o.sends[swarm.NewTurnID("coder", n, 1)] = "coder go on "+strconv.Itoa(n), "lead go on "+strconv.Itoa(n)
			}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != errStuck {
				t.Fatalf("it ended with %v: %s", err, strings.Join(o.told, "; "))
			}
			story := strings.Join(o.told, "; ")
			notes, turns := strings.Count(story, "note to "), strings.Count(story, "go ")
			if notes != c.notes || turns != c.turns || !strings.Contains(story, "notice; run_pausing") {
				t.Errorf("%d notes, %d turns: %s", notes, turns, story)
			}
		})
	}
}

// Many messages of one turn to the only other agent are no repetition.
func TestManyMessagesOfOneTurnAreNoCircle(t *testing.T) {
	o := &office{world: world{now: time.Unix(0, 0)}, sends: map[swarm.TurnID]string{}}
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}}
	for n := range 30 {
		o.sends["lead/1/1"] += ",coder part " + strconv.Itoa(n)
		o.sends["coder/1/1"] += ",lead part " + strconv.Itoa(n)
	}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
		t.Fatal(err)
	}
	if story := strings.Join(o.told, "; "); strings.Contains(story, "notice") || strings.Contains(story, "note to") {
		t.Error(story)
	}
}

// A team that makes no progress ends if no person is there to decide. A run that paused itself ends
// with its wall time. The wall time stands still while a person has the run paused.
func TestTeamThatMakesNoProgressWithoutAPerson(t *testing.T) {
	for _, c := range []struct {
		name    string
		onStall swarm.OnStall
		wall    time.Duration
		words   string // a person's commands after the last turn
		want    string // how the run ends
		ends    bool
	}{
		{"it ends", swarm.StallFails, 0, "", "go coder/12/1; notice; task_cancelled lead: the run ended before it had read its mail; task_completed coder; run_ended failed 1", true},
		{"it pauses", swarm.StallPauses, 0, "", "notice; run_pausing; run_paused", false},
		{"it pauses, and its time is over", "", time.Hour, "", "notice; run_pausing; run_paused; budget_spent; task_cancelled lead: budget; task_completed coder; run_ended failed 3", true},
		{"it pauses, and a person has it paused", "", time.Hour, "pause", "notice; run_pausing; run_paused", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &office{world: world{now: time.Unix(0, 0)}, sends: map[swarm.TurnID]string{}}
			o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, OnStall: c.onStall}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}, Budget: swarm.Budget{Wall: c.wall}}
			for n := 1; n < 50; n++ {
				o.sends[swarm.NewTurnID("lead", n, 1)], o.sends[swarm.NewTurnID("coder", n, 1)] = "coder go on "+strconv.Itoa(n), "lead go on "+strconv.Itoa(n)
			}
			o.after = map[string]string{"coder/12/1": c.words}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			_, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"})
			if story := strings.Join(o.told, "; "); (err == nil) != c.ends || !strings.HasSuffix(story, c.want) {
				t.Errorf("%v: %s", err, story)
			}
		})
	}
}

// The team's rules say how often a turn is retried.
func TestRetriesOfATeam(t *testing.T) {
	for retries, want := range map[int]string{
		0: "go lead/1/1; agent_ended lead; return lead: it failed: why; task_failed lead: why; run_ended failed 1",
		3: "go lead/1/1; task_retrying lead after 1s; go lead/1/2; task_retrying lead after 2s; go lead/1/3; task_retrying lead after 4s; go lead/1/4; " +
			"agent_ended lead; return lead: it failed: why; task_failed lead: why; run_ended failed 1",
	} {
		o := &office{world: world{now: time.Unix(0, 0), ends: map[string]string{"lead/1/1": "exited", "lead/1/2": "exited", "lead/1/3": "exited", "lead/1/4": "exited"}}}
		o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, Retries: &retries}, Agents: []swarm.Agent{{Name: "lead"}}}
		o.mail(swarm.User, "lead the goal")
		o.signal(owned)
		if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
			t.Fatal(err)
		}
		if story := strings.Join(o.told, "; "); story != want {
			t.Errorf("with %d retries: %s", retries, story)
		}
	}
}

// An agent that had work left when the run ended has not completed it.
func TestHowTheAgentsOfATeamEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		o    office
		want string
	}{
		{"the budget is spent", office{world: world{ends: map[string]string{"coder/1/1": "over_budget"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}},
			"task_completed lead; task_cancelled coder: budget; task_skipped tester: nobody wrote to it; run_ended failed 3"},
		{"the budget is spent when somebody is to try again", office{world: world{ends: map[string]string{"coder/1/1": "exited", "tester/1/1": "over_budget"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it,tester look"}},
			"task_completed lead; task_cancelled coder: budget; its last attempt failed: why; task_cancelled tester: budget; run_ended failed 3"},
		{"the lead is done before somebody has had a turn", office{world: world{plan: swarm.Plan{MaxParallel: 1}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}, done: map[string]bool{"lead/1/1": true}},
			"task_completed lead; task_skipped coder: the run ended before it had a turn; task_skipped tester: nobody wrote to it; run_ended completed 0"},
		{"the lead is done before somebody has read all", office{world: world{plan: swarm.Plan{MaxParallel: 1}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it", "coder/1/1": "lead half", "lead/2/1": "coder the rest"}, done: map[string]bool{"lead/2/1": true}},
			"task_completed lead; task_cancelled coder: the run ended before it had read its mail; task_skipped tester: nobody wrote to it; run_ended completed 0"},
		{"the lead has failed", office{world: world{plan: swarm.Plan{MaxParallel: 1}, ends: map[string]string{"lead/1/1": "exited", "lead/1/2": "exited", "lead/1/3": "exited", "coder/1/1": "never"}}, sends: map[swarm.TurnID]string{"lead/1/3": "tester look"}},
			"task_failed lead: why; task_skipped coder: nobody wrote to it; task_cancelled tester: the run ended before it had read its mail; run_ended failed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &c.o
			o.now = time.Unix(0, 0)
			o.plan.Team = &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}
			o.plan.Agents = []swarm.Agent{{Name: "lead"}, {Name: "coder"}, {Name: "tester"}}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(o.told[len(o.told)-4:], "; "); got != c.want {
				t.Errorf("told\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A call that tells a message is identified by the message's code. So a run can be resumed by a
// program that words the message differently.
func TestTheSentenceIsNoPartOfACall(t *testing.T) {
	tells := func(args ...string) string {
		return flow.Call{ID: "note/a/1/1", Kind: flow.KindNote, Agent: "a", Note: swarm.NewMessage(swarm.ToldSameOutput, args...)}.Print()
	}
	if tells("3") != tells("4", "more") || strings.Contains(tells("3"), wording.Text(swarm.NewMessage(swarm.ToldSameOutput, "3"))) {
		t.Errorf("%q is not %q", tells("3"), tells("4", "more"))
	}
}

// planless is a world without a plan.
type planless struct{ world }

func (*planless) Do(flow.Call) (flow.Result, error) { return flow.Result{}, nil }

// Every loop fails without a plan, and tells so.
func TestALoopWithoutAPlan(t *testing.T) {
	for name, loop := range flow.Loops {
		w := &planless{world{now: time.Unix(0, 0)}}
		r, err := loop(w, flow.Call{ID: "root", Kind: name, Ref: "plan:1"})
		if err != nil || r.Status != swarm.CallFailed || r.Kind != swarm.BadInput || !strings.Contains(r.Reason, "no plan plan:1") || strings.Join(w.told, "; ") != "run_ended failed 2" {
			t.Errorf("%s: %+v, %v: %v", name, r, err, w.told)
		}
	}
}
