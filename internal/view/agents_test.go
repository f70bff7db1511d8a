package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/plan"
)

// A crew is a team of four, of which two have a turn at once.
func crew(t *testing.T) *sim {
	s := &sim{t: t}
	p := swarm.Plan{MaxParallel: 2, Team: &swarm.Team{Lead: "lead"}}
	for _, name := range []string{"lead", "coder", "tester", "judge"} {
		p.Agents = append(p.Agents, swarm.Agent{Name: name})
	}
	s.tell(swarm.Event{Kind: swarm.RunStarted}, swarm.RunStart{ID: "r1", Kind: swarm.TeamRun})
	s.tell(swarm.Event{Kind: swarm.PlanAdded}, p)
	s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{Fence: 1})
	return s
}

// does appends an event of a crew, described in a few words.
func (s *sim) does(what string) {
	w := strings.Fields(what)
	turn := func(kind swarm.EventKind, body any) {
		s.tell(swarm.Event{Kind: kind, Task: w[0], Agent: w[0], Turn: swarm.TurnID(w[0] + "/1/1")}, body)
	}
	switch w[1] {
	case "begins":
		turn(swarm.TurnStarted, swarm.TurnStart{Iteration: 1, Attempt: 1, Start: 1, Inputs: swarm.Inputs{Upto: int64(len(s.events))}})
	case "ends":
		turn(swarm.HandoffConsumed, swarm.Inputs{Upto: int64(len(s.events))})
		turn(swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallOK, Output: swarm.HashOf([]byte("x"))})
	case "fails":
		turn(swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited})
		turn(swarm.TaskRetrying, swarm.Retry{Attempt: 1, After: 1e12})
	case "writes", "asks":
		env := swarm.Envelope{Kind: swarm.Handoff, ID: "m-" + w[0] + w[2], FromNodeID: w[0], ToNodeID: w[2]}
		if w[1] == "asks" {
			env.Payload.Response = &swarm.Response{Expectation: "required"}
		}
		s.tell(swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(w[2]), Agent: w[0]}, env)
	case "signals":
		s.tell(swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(w[2]), Agent: w[0]}, swarm.Envelope{Kind: swarm.Signal, ID: "m-s", FromNodeID: w[0], ToNodeID: w[2]})
	case "waits":
		turn(swarm.WaitBegan, swarm.AgentWait{For: w[2:]})
	case "goes":
		turn(swarm.WaitEnded, swarm.AgentWait{For: w[2:]})
	case "wants":
		turn(swarm.ApprovalAsked, swarm.Approval{ID: "a1", What: "use Bash"})
	case "paused":
		turn(swarm.AgentPaused, nil)
	case "resumed":
		turn(swarm.AgentResumed, nil)
	case "cancelled":
		turn(swarm.AgentEnded, swarm.AgentEnd{Kind: swarm.CutByCancel, Reason: "it was cancelled"})
	case "failed":
		turn(swarm.AgentEnded, swarm.AgentEnd{Kind: swarm.Exited, Reason: "it failed: exit status 1"})
	case "started":
		turn(swarm.AgentRestarted, nil)
	case "over":
		s.tell(swarm.Event{Kind: swarm.ReplyOverdue, Agent: w[0]}, swarm.Overdue{ID: w[2], Over: true})
	case "pauses":
		s.tell(swarm.Event{Kind: swarm.RunPausing}, nil)
	case "taken":
		s.tell(swarm.Event{Kind: swarm.RunOwned}, swarm.Ownership{Fence: 2})
	default:
		s.t.Fatal(what)
	}
}

// The chain of waits covers all kinds of waits. A fold that was stored and restored gives the same
// chain.
func TestWaitsOfATeam(t *testing.T) {
	for _, c := range []struct{ does, who, want string }{
		{"", "lead", "lead waits for mail|waiting idle"},
		{"user writes lead", "lead", "lead is pending|pending idle"},
		{"user signals lead", "lead", "lead waits for mail|waiting idle"},
		{"user writes lead; lead begins; lead writes coder; lead waits coder", "lead",
			"lead waits for @coder (it has mail to read) · coder is pending|waiting waiting"},
		{"user writes lead; lead begins; lead writes coder; lead waits coder; coder begins", "lead",
			"lead waits for @coder (its turn coder/1/1 runs) · coder is running|waiting waiting"},
		{"user writes lead; lead begins; lead writes coder; lead waits coder; coder begins; coder waits tester; tester begins; tester wants", "lead",
			"lead waits for @coder (in its turn coder/1/1 it waits for tester) · coder waits for @tester (in its turn tester/1/1 it waits for a person) · tester waits for a person: may it use Bash? swarm approve a1|waiting waiting"},
		{"lead begins; lead waits coder tester; coder begins; coder ends", "lead", "lead waits for @tester (it has no output yet; nobody has sent it work) · tester waits for mail|waiting waiting"},
		{"lead begins; lead waits coder; coder begins; coder ends", "lead", "lead is running|running running"}, // it goes on in a moment
		{"lead begins; lead waits coder; lead goes", "lead", "lead is running|running running"},
		{"lead begins; lead waits coder; lead ends", "lead", "lead waits for mail|waiting idle"},
		{"lead begins; lead waits coder; user taken", "lead", "lead is running|running running"},
		{"lead begins; lead waits coder; lead begins", "lead", "lead is running|running running"},
		{"lead begins; lead waits coder; lead writes coder; coder paused", "lead",
			"lead waits for @coder (it is paused, and it has mail to read) · coder waits for @coder to be resumed|waiting waiting"},
		{"lead begins; coder begins; user writes tester", "tester", "tester waits for a free slot|waiting waiting"},
		{"lead begins; coder begins; lead waits coder; user writes tester", "tester", "tester is pending|pending idle"}, // a waiting agent needs no slot
		{"user writes tester; tester begins; tester fails", "tester", "tester waits for its next attempt|waiting waiting"},
		{"user writes tester; run pauses", "tester", "tester waits for the run to be resumed|waiting waiting"},
		{"run pauses", "tester", "tester waits for mail|waiting idle"},
		{"tester paused", "tester", "tester waits for @tester to be resumed|waiting waiting"},
		{"tester paused; tester resumed", "tester", "tester waits for mail|waiting idle"},
		{"lead begins; lead asks coder; lead ends; coder begins; coder ends", "lead", "lead waits for @coder to answer m-leadcoder · coder waits for mail|waiting waiting"},
		{"lead begins; lead asks user; lead ends", "lead", "lead waits for a person to answer m-leaduser|waiting waiting"},
		{"lead begins; lead asks coder; lead ends; coder begins; coder writes lead; coder ends", "lead", "lead is pending|pending idle"},
		{"lead begins; lead asks coder; lead ends; coder over m-leadcoder", "lead", "lead waits for mail|waiting idle"},
		{"coder begins; lead begins; lead asks coder; lead ends; coder writes judge; coder writes lead; lead begins; lead ends", "lead", // what it wrote, it wrote before it had read
			"lead waits for @coder to answer m-leadcoder · coder is running|waiting waiting"},
		{"lead begins; lead asks coder; lead ends; coder begins; coder asks judge; coder ends; judge begins; judge asks lead; judge ends; lead begins; lead ends", "lead",
			"lead waits for @coder to answer m-leadcoder · coder waits for @judge to answer m-coderjudge · judge waits for @lead to answer m-judgelead · lead waits for @coder to answer m-leadcoder|waiting waiting"},
		{"lead begins; lead asks coder; lead ends; coder cancelled", "lead", "lead waits for mail|waiting idle"},
		{"user writes coder; coder cancelled", "coder", "coder is cancelled: it was cancelled|cancelled cancelled"},
		{"coder failed", "coder", "coder is failed: it failed: exit status 1|failed failed"},
		{"user writes coder; coder cancelled; coder started", "coder", "coder waits for mail|waiting idle"},
	} {
		t.Run(c.who+" after "+c.does, func(t *testing.T) {
			s := crew(t)
			stored := fold(t, New("r1"), s.events)
			for _, what := range strings.Split(c.does, "; ") {
				if what == "" {
					continue
				}
				before := len(s.events)
				s.does(what)
				again, err := Unmarshal(stored.Marshal())
				if err != nil {
					t.Fatal(err)
				}
				stored = fold(t, again, s.events[before:])
			}
			for name, r := range map[string]*Run{"whole": fold(t, New("r1"), s.events), "stored": stored} {
				chain, err := r.Why("@" + c.who)
				if err != nil {
					t.Fatal(err)
				}
				task, _ := r.Task(c.who)
				agent := Agent{}
				for _, a := range r.Picture().Agents {
					if a.Name == c.who {
						agent = a
					}
				}
				got := strings.ReplaceAll(strings.TrimSpace(chain.String()), "\n", " · ") + fmt.Sprintf("|%s %s", task.Status, agent.Status)
				if got != c.want {
					t.Errorf("%s: %s\nwant %s", name, got, c.want)
				}
				if waits := agent.Waits; (agent.Status == swarm.Waiting || agent.Status == swarm.Blocked) && (len(waits) == 0 || waits[0].For != plan.ForRetry && waits[0].Since.IsZero()) {
					t.Errorf("%s: it is %s, and does not say for what and since when: %+v", name, agent.Status, waits)
				}
			}
		})
	}
}

func TestACircleIsNamed(t *testing.T) {
	s := crew(t)
	for _, what := range strings.Split("tester asks lead; lead begins; lead asks coder; lead ends; coder begins; coder asks judge; coder ends; judge begins; judge asks lead; judge ends; lead begins; lead ends", "; ") {
		s.does(what)
	}
	chain, err := fold(t, New("r1"), s.events).Why("@tester")
	if err != nil || chain.Path().String() != "tester → lead → coder → judge → lead" || chain.Cycle().String() != "lead → coder → judge → lead" {
		t.Errorf("%s, of which goes round: %s (%v)", chain.Path(), chain.Cycle(), err)
	}
	if chain, err := fold(t, New("r1"), s.events[:4]).Why("@tester"); err != nil || chain.Cycle() != nil {
		t.Errorf("%s, %v", chain.Path(), err)
	}
}

// A run says that it is stuck while the only agents with work are paused. In a run without a
// driver no agent waits within a turn.
func TestARunWaitsForAPausedAgent(t *testing.T) {
	s := crew(t)
	reason := func(want string) {
		t.Helper()
		if got := fold(t, New("r1"), s.events).Picture().Reason; got != want {
			t.Errorf("the run says %q, want %q", got, want)
		}
	}
	s.does("coder paused")
	reason("")
	s.does("lead begins")
	s.does("lead writes coder")
	reason("")
	s.does("lead waits coder")
	reason("the run waits for @coder, which is paused")
	s.tell(swarm.Event{Kind: swarm.Notice, Agent: "coder"}, swarm.Reason{Message: swarm.NewMessage(swarm.WaitsForPaused, "coder"), Reason: "in whatever words"})
	p := fold(t, New("r1"), s.events).Picture().Abandoned("gone")
	if lead := p.Agents[0]; lead.Status != swarm.Idle || lead.Turn != "" || len(lead.Waits)+len(p.Tasks[0].Waits) > 0 {
		t.Errorf("nobody drives it, and lead is %+v", lead)
	}
	s.does("coder resumed")
	reason("")
	if notices := fold(t, New("r1"), s.events).Picture().Notices; len(notices) != 0 {
		t.Errorf("it is resumed, and the run still tells %+v", notices)
	}
}

// In a pipeline the tasks of a paused agent wait for it.
func TestAPausedAgentOfAPipeline(t *testing.T) {
	s := script(t)
	s.tell(swarm.Event{Kind: swarm.AgentPaused, Agent: "planner"}, nil)
	for _, r := range []*Run{fold(t, New("r1"), s.events), func() *Run {
		r, err := Unmarshal(fold(t, New("r1"), s.events).Marshal())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}()} {
		chain, err := r.Why("check")
		if want := "check waits for code\ncode waits for plan\nplan waits for @planner to be resumed\n"; err != nil || chain.String() != want {
			t.Errorf("%s, %v", chain, err)
		}
		if p := r.Picture(); p.Reason != "the run waits for @planner, which is paused" {
			t.Errorf("the run says %q", p.Reason)
		}
	}
}

// A run has the edges of all its plans, each once, also after a stored fold.
func TestEdges(t *testing.T) {
	s := crew(t)
	add := func(edges ...swarm.Edge) { s.tell(swarm.Event{Kind: swarm.PlanAdded}, swarm.Plan{Edges: edges}) }
	if got := fold(t, New("r1"), s.events).Picture().Edges; got == nil || len(got) != 0 { // null in JSON is no list
		t.Errorf("%#v", got)
	}
	add(swarm.Edge{From: "lead", To: "coder"}, swarm.Edge{From: "coder", To: "tester", Both: true})
	add(swarm.Edge{From: "lead", To: "coder"}, swarm.Edge{From: "tester", To: "coder"}, swarm.Edge{From: "lead", To: "judge"}, swarm.Edge{From: "judge", To: "lead"})
	want := []Edge{{Edge: swarm.Edge{From: "lead", To: "coder"}}, {Edge: swarm.Edge{From: "coder", To: "tester", Both: true}}, {Edge: swarm.Edge{From: "lead", To: "judge", Both: true}}}
	r := fold(t, New("r1"), s.events)
	again, err := Unmarshal(r.Marshal())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Run{r, again} {
		if got := r.Picture().Edges; !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
	}
}
