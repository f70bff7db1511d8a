package flow_test

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
)

// A growth request keeps the run open until it is answered. Other agents go on, and the requester
// is told the outcome.
func TestWishes(t *testing.T) {
	for _, c := range []struct {
		name string
		o    office
		late flow.Signal
		want string
	}{
		{"the run waits for the answer, and its agent has a turn for it", office{world: world{before: map[string]string{"lead/1/1": "asked w by lead"}}}, answered("w"),
			"go lead/1/1; grant w; go lead/2/1; run_ended completed 0"},
		{"meanwhile others go on", office{world: world{before: map[string]string{"lead/1/1": "asked w by lead"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}}, answered("w"),
			"go lead/1/1; go coder/1/1; grant w; go lead/2/1; run_ended completed 0"},
		{"the lead is done: nobody waits any more", office{world: world{before: map[string]string{"lead/1/1": "asked w by lead"}}, done: map[string]bool{"lead/1/1": true}}, answered("w"),
			"go lead/1/1; run_ended completed 0"},
		{"who has ended reads no answer: it goes back", office{world: world{before: map[string]string{"coder/1/1": "asked w by coder"}, after: map[string]string{"coder/1/1": "cancel coder"}},
			sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}}, answered("w"),
			"go lead/1/1; go coder/1/1; agent_ended coder; return coder: it was cancelled; grant w; return coder: it has ended; run_ended completed 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &c.o
			o.now, o.late = time.Unix(0, 0), c.late
			o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}, {Name: "tester"}}}
			o.mail(swarm.User, "lead the goal")
			o.signal(owned)
			if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
				t.Fatal(err, o.told)
			}
			var told []string
			for _, line := range o.told {
				if !strings.HasPrefix(line, "task_") {
					told = append(told, line)
				}
			}
			if got := strings.Join(told, "; "); got != c.want {
				t.Errorf("told\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// A turn is told how many growth requests were handled before it began.
func TestTurnsKnowOfAnswers(t *testing.T) {
	o := &counting{office: office{world: world{before: map[string]string{"lead/1/1": "asked w by lead"}}, sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}}, answered: map[string]int{}}
	o.late = answered("w")
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != nil {
		t.Fatal(err)
	}
	if o.answered["lead/1/1"] != 0 || o.answered["coder/1/1"] != 0 || o.answered["lead/2/1"] != 1 {
		t.Error(o.answered)
	}
}

// counting records that number for each turn.
type counting struct {
	office
	answered map[string]int
}

func (c *counting) Go(call flow.Call) error {
	c.answered[call.ID] = call.Answered
	return c.office.Go(call)
}

// An answer that was returned because its agent had ended is not read by the restarted agent.
func TestAReturnedAnswerIsNotRead(t *testing.T) {
	o := &starting{office: office{world: world{before: map[string]string{"coder/1/1": "asked w by coder"}, after: map[string]string{"coder/1/1": "cancel coder"}},
		sends: map[swarm.TurnID]string{"lead/1/1": "coder do it"}}}
	o.late = answered("w")
	o.plan = swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.InteractiveMode}, Agents: []swarm.Agent{{Name: "lead"}, {Name: "coder"}}}
	o.mail(swarm.User, "lead the goal")
	o.signal(owned)
	if _, err := flow.Team(o, flow.Call{ID: "root", Kind: "team"}); err != errStuck {
		t.Fatal(err)
	}
	told := strings.Join(o.told, "; ")
	if !strings.Contains(told, "return coder: it has ended; agent_restarted coder") || strings.Contains(told, "go coder/2/1") {
		t.Error(told)
	}
}

// starting restarts an agent as soon as its mail was returned.
type starting struct{ office }

func (s *starting) Do(c flow.Call) (flow.Result, error) {
	r, err := s.office.Do(c)
	if c.Kind == flow.KindReturn && c.Note.Code == swarm.BackEnded {
		s.signal(said(swarm.CommandStart, c.Agent))
	}
	return r, err
}
