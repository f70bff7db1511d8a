package plan_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A crew is a team of four with two slots. Tests apply facts to it in a few words.
type crew struct {
	*plan.Team
	t   *testing.T
	seq int64
	now time.Time
}

func newCrew(t *testing.T, change func(*swarm.Plan)) *crew {
	p := &swarm.Plan{MaxParallel: 2, Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute}}
	for _, name := range []string{"lead", "coder", "tester", "judge"} {
		p.Agents = append(p.Agents, swarm.Agent{Name: name})
	}
	if change != nil {
		change(p)
	}
	c := &crew{Team: plan.NewTeam(), t: t, now: time.Unix(0, 0)}
	c.Apply(plan.Fact{Kind: swarm.PlanAdded, Key: "plan:1", Body: p})
	return c
}

// happens applies facts, separated by semicolons.
func (c *crew) happens(all string) {
	c.t.Helper()
	for _, what := range strings.Split(all, "; ") {
		w := strings.Fields(what)
		if len(w) < 2 {
			continue
		}
		c.seq++
		c.now = c.now.Add(time.Millisecond)
		f := plan.Fact{Seq: c.seq, Time: c.now, Agent: w[0]}
		if m := c.Member(w[0]); m != nil {
			f.Turn = m.Turn
		}
		c.fill(&f, w)
		c.Apply(f)
	}
}

func (c *crew) fill(f *plan.Fact, w []string) {
	rest := strings.Join(w[2:], " ")
	switch w[1] {
	case "begins":
		f.Kind, f.Turn = swarm.TurnStarted, swarm.TurnID(rest)
		if rest == "" {
			f.Turn = swarm.NewTurnID(w[0], c.Member(w[0]).Turns+1, 1)
		}
	case "ends":
		f.Kind, f.Body = swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallOK, Output: "x", Inputs: swarm.Inputs{Upto: c.seq}, Done: rest == "done"}
	case "finishes": // it had no mail in its prompt and read none
		f.Kind, f.Body = swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallOK, Output: "x"}
	case "fails":
		f.Kind, f.Body = swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.Exited, Reason: "exit status 1"}
	case "cut":
		f.Kind, f.Body = swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallCut, Kind: swarm.ErrorKind(rest)}
	case "retries":
		after, _ := time.ParseDuration(rest)
		f.Kind, f.Body = swarm.TaskRetrying, swarm.Retry{After: after}
	case "writes", "asks", "signals":
		m := plan.Mail{Ref: "m-" + w[0] + w[2], ID: "m-" + w[0] + w[2], From: w[0], To: w[2], ReplyTo: w[0], Wakes: w[1] != "signals", Required: w[1] == "asks"}
		if len(w) > 4 && w[3] == "naming" {
			m.Answers = w[4]
		}
		f.Kind, f.Body = swarm.HandoffStored, m
	case "read": // "coder read 5 writes lead": it had read its mail up to 5
		read, _ := strconv.ParseInt(w[2], 10, 64)
		f.Kind, f.Body = swarm.HandoffStored, plan.Mail{Ref: "m-" + w[0] + w[4], From: w[0], To: w[4], ReplyTo: w[0], Wakes: true, Read: read}
	case "waits":
		f.Kind, f.Body = swarm.WaitBegan, swarm.AgentWait{For: w[2:]}
	case "goes":
		f.Kind, f.Body = swarm.WaitEnded, swarm.AgentWait{}
	case "wants":
		f.Kind, f.Body = swarm.ApprovalAsked, swarm.Approval{ID: "a1"}
	case "wishes":
		f.Kind, f.Body = swarm.ApprovalAsked, swarm.Approval{ID: rest, Growth: &swarm.GrowthRequest{}}
	case "answered":
		f.Kind, f.Body = swarm.ApprovalAnswered, swarm.ApprovalAnswer{ID: rest}
	case "paused":
		f.Kind = swarm.AgentPaused
	case "resumed":
		f.Kind = swarm.AgentResumed
	case "cancelled":
		f.Kind, f.Body = swarm.AgentEnded, swarm.AgentEnd{Kind: swarm.CutByCancel}
	case "failed":
		f.Kind, f.Body = swarm.AgentEnded, swarm.AgentEnd{Kind: swarm.Exited}
	case "started":
		f.Kind = swarm.AgentRestarted
	case "reminded", "over":
		f.Kind, f.Body = swarm.ReplyOverdue, swarm.Overdue{ID: rest, Over: w[1] == "over"}
	case "told":
		word, target, _ := strings.Cut(rest, " ")
		f.Kind, f.Body = swarm.Control, swarm.ControlCommand{Command: swarm.Command(word), Target: target}
	case "pauses":
		f.Kind = swarm.RunPausing
	case "unpauses":
		f.Kind = swarm.RunUnpaused
	case "taken":
		f.Kind = swarm.RunOwned
	case "spent":
		f.Kind = swarm.BudgetSpent
	case "crowded": // the budget has no room for its turn
		f.Kind, f.Body = swarm.TurnEnded, swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.OverBudget, Unbegun: true, Crowded: true}
	case "limited": // the subject is a provider
		f.Kind, f.Body = swarm.LimitReached, swarm.Limit{Provider: w[0], Until: c.now.Add(time.Hour)}
	case "unlimited":
		f.Kind, f.Body = swarm.LimitEnded, swarm.Limit{Provider: w[0]}
	case "later":
		by, _ := time.ParseDuration(rest)
		c.now = c.now.Add(by)
		f.Kind, f.Time = swarm.Tick, c.now
	default:
		c.t.Fatal(w)
	}
}

// standing returns a member's state and what it waits for.
func (c *crew) standing(name string) string {
	i, _ := c.Find(name)
	st, waits := c.Standing(i)
	text := fmt.Sprint(c.Members[i].State, ", ", st)
	for _, w := range waits {
		text += ", " + w.String()
	}
	return text
}

// steps returns all steps until there are none. Only steps that need no fact are offered once.
func (c *crew) steps() (all []string) {
	for range 10 {
		steps := c.Next()
		for _, s := range steps {
			switch text := strings.TrimSpace(s.Agent + " " + string(s.Turn) + s.Owed.Ref + s.Request.ID); s.Kind {
			case plan.GiveTurn:
				all = append(all, "turn "+string(s.Turn))
			case plan.EndAgent:
				c.happens(s.Agent + " cancelled")
				all = append(all, "end "+text)
			case plan.Restart:
				c.happens(s.Agent + " started")
				all = append(all, "start "+text)
			case plan.RemindOf:
				c.happens(s.Agent + " reminded " + s.Owed.Ref)
				all = append(all, "remind "+text)
			case plan.GiveUpOn:
				c.happens(s.Agent + " over " + s.Owed.Ref)
				all = append(all, "give up "+text)
			case plan.DealWith:
				all = append(all, "deal with "+text)
			}
		}
		if len(steps) == 0 {
			break
		}
	}
	return all
}

func TestTeamStanding(t *testing.T) {
	for _, c := range []struct{ happens, who, want string }{
		{"", "lead", "idle, waiting, mail"},
		{"user writes lead", "lead", "due, pending"},
		{"user signals lead", "lead", "idle, waiting, mail"},
		{"user writes lead; lead begins", "lead", "running, running"},
		{"user writes lead; lead begins; lead ends", "lead", "idle, waiting, mail"},
		{"user writes lead; lead begins; lead fails", "lead", "due, pending"},
		{"user writes lead; lead begins; lead fails; lead retries 1s", "lead", "due, waiting, its next attempt"},
		{"user writes lead; lead begins; lead fails; lead retries 1s; user later 1s", "lead", "due, pending"},
		{"user writes lead; lead begins; lead fails; lead retries 1s; user later 500ms; run pauses; run later 1h; run unpauses", "lead", "due, waiting, its next attempt"},
		{"user writes lead; lead begins; user writes lead; lead ends", "lead", "idle, waiting, mail"},
		{"lead begins; lead writes coder; lead waits coder", "lead", "waiting, waiting, @coder (it has mail to read)"},
		{"lead begins; lead writes coder; lead waits coder; coder begins", "lead", "waiting, waiting, @coder (its turn coder/1/1 runs)"},
		{"lead begins; lead waits coder; coder begins; coder wants", "lead", "waiting, waiting, @coder (in its turn coder/1/1 it waits for a person)"},
		{"lead begins; lead waits coder; coder begins; coder wants; coder answered a1; coder waits tester judge", "lead",
			"waiting, waiting, @coder (in its turn coder/1/1 it waits for tester, judge)"},
		{"lead begins; lead waits coder", "lead", "waiting, waiting, @coder (it has no output yet; nobody has sent it work)"},
		{"lead begins; lead waits coder; coder begins; coder fails; lead writes coder; coder paused", "lead",
			"waiting, waiting, @coder (it is paused, and it has mail to read; its last turn failed: exit status 1)"},
		{"lead begins; lead waits coder; coder begins; coder ends", "lead", "waiting, running"}, // it goes on in a moment
		{"lead begins; lead waits coder; coder cancelled", "lead", "waiting, running"},
		{"lead begins; lead waits coder; lead goes", "lead", "running, running"},
		{"run taken; lead begins; lead waits coder; run taken", "lead", "cut, running"},
		{"lead begins; lead waits coder; lead ends", "lead", "idle, waiting, mail"},
		{"lead begins; coder begins; user writes tester", "tester", "due, waiting, a free slot"},
		{"lead begins; coder begins; lead waits coder; user writes tester", "tester", "due, pending"}, // a turn that waits needs no slot
		{"user writes tester; run pauses", "tester", "due, waiting, the run to be resumed"},
		{"run pauses", "tester", "idle, waiting, mail"},
		{"tester begins; tester paused", "tester", "running, running"}, // its turn finishes
		{"tester begins; tester paused; tester ends", "tester", "paused, waiting, @tester to be resumed"},
		{"tester paused; user writes tester; tester resumed", "tester", "due, pending"},
		{"user writes coder; coder cancelled", "coder", "ended, cancelled"},
		{"coder failed", "coder", "ended, failed"},
		{"user writes coder; coder cancelled; coder started", "coder", "idle, waiting, mail"}, // its mail was returned
		{"lead begins; lead asks coder; lead ends", "lead", "idle, waiting, @coder to answer m-leadcoder"},
		{"lead begins; lead asks user; lead ends", "lead", "idle, waiting, a person to answer m-leaduser"},
		{"lead begins; lead asks coder; lead ends; coder cancelled", "lead", "idle, waiting, mail"},
		{"lead begins; lead asks coder; lead ends; coder over m-leadcoder", "lead", "idle, waiting, mail"},
	} {
		t.Run(c.who+" after "+c.happens, func(t *testing.T) {
			crew := newCrew(t, nil)
			crew.happens(c.happens)
			if got := crew.standing(c.who); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// Owed replies. An answer names the question, or goes from the asked agent to the asker and was
// sent after the question was read.
func TestReplies(t *testing.T) {
	for _, c := range []struct{ happens, want string }{
		{"lead asks coder", "coder"},
		{"lead asks coder; coder begins; coder writes lead", ""},
		{"coder begins; lead asks coder; coder writes lead", "coder"},   // sent before it had read the question
		{"coder begins; lead asks coder; coder read 2 writes lead", ""}, // sent after it had read the question, in the same turn
		{"coder begins; lead asks coder; coder read 1 writes lead", "coder"},
		{"coder begins; lead asks coder; coder writes lead naming m-leadcoder", ""},
		{"lead asks coder; coder begins; coder writes tester", "coder"},
		{"lead asks coder; coder begins; coder ends; coder begins; coder writes lead", ""},
		{"lead asks user; user writes lead", "user"}, // a person's answer must name the question
		{"lead asks user; user writes lead naming m-leaduser", ""},
		{"lead asks coder; coder cancelled", ""},
		{"lead asks coder; tester asks coder; coder over m-leadcoder", "coder"},
	} {
		t.Run(c.happens, func(t *testing.T) {
			crew := newCrew(t, nil)
			crew.happens(c.happens)
			var owe []string
			for _, o := range crew.Owed {
				owe = append(owe, o.To)
			}
			if got := strings.Join(owe, " "); got != c.want {
				t.Errorf("a reply is owed by %q, want %q", got, c.want)
			}
		})
	}
}

func TestTeamSteps(t *testing.T) {
	for _, c := range []struct {
		happens string
		want    string
		over    bool
	}{
		{"user writes lead; run taken", "turn lead/1/1", false},
		{"run taken", "", true},
		{"user writes lead; run taken; lead begins; lead ends", "", true},
		{"run taken; lead begins lead/1/1; user writes lead; lead begins lead/1/1; lead finishes", "turn lead/2/1", false}, // a crash between; the mail is still unread
		{"user writes lead; user writes coder; user writes tester", "turn lead/1/1; turn coder/1/1", false},
		{"lead begins; lead waits coder; user writes coder; user writes tester", "turn coder/1/1; turn tester/1/1", false},
		{"user writes lead; lead begins lead/1/1; lead fails; lead retries 1s", "", false},
		{"user writes lead; lead begins lead/1/1; lead fails; lead retries 1s; user later 1s", "turn lead/1/2", false},
		{"user writes lead; lead begins lead/1/1; lead cut interrupted", "turn lead/1/2", false},
		{"user writes lead; run pauses; run taken", "", false},
		{"user writes lead; run pauses; run taken; run unpauses", "turn lead/1/1", false},
		{"user writes lead; lead paused; run taken", "", false},
		{"user writes lead; run spent; run taken", "", true},
		{"user writes lead; user told close; run taken", "", true},
		{"user writes lead; lead begins; user told cancel; run taken; lead cut cancelled", "end lead", true},
		// A team whose process died has three turns for two slots.
		{"run taken; lead begins; lead waits coder; coder begins; tester begins; run taken", "turn lead/1/1; turn coder/1/1", false},
		{"run taken; lead begins; coder begins; user writes tester; run pauses; run taken", "turn lead/1/1; turn coder/1/1", false},
		{"run taken; lead begins; lead waits coder; coder begins; tester begins; run taken; lead begins; lead waits coder; tester ends", "turn coder/1/1", false},
		{"run taken; lead begins; user told cancel coder", "end coder", false},
		{"run taken; lead begins; coder begins; user told cancel coder", "", false},
		{"run taken; lead begins; coder begins; user told cancel coder; coder ends", "end coder", false},
		{"run taken; lead begins; coder begins; user told cancel coder; user told start coder; coder ends", "end coder; start coder", false},
		{"run taken; lead begins; coder cancelled; user told start coder", "start coder", false},
		{"run taken; lead begins; user told start coder", "", false},
		{"user writes lead; run taken; lead begins; lead ends done; user writes coder", "", true},
		{"user writes coder; run taken; coder begins; coder ends done; user writes coder", "turn coder/2/1", false},
		{"run taken; lead begins; lead cancelled", "", true}, // without its lead a team is lost
		{"run taken; lead asks coder; coder begins; coder ends; lead begins; lead ends", "remind coder m-leadcoder; give up coder m-leadcoder", true},
		{"run taken; lead begins; lead asks coder; coder begins; coder ends", "", false}, // the agents may still send mail
		{"run taken; lead begins; lead asks coder; coder begins; coder ends; run later 5m", "remind coder m-leadcoder", false},
		{"run taken; lead begins; lead asks coder; coder begins; coder ends; coder reminded m-leadcoder; run later 10m", "give up coder m-leadcoder", false},
		{"run taken; lead begins; lead asks coder; coder begins; coder ends; coder paused; run later 10m", "", false},
		{"run taken; judge begins; lead asks coder; coder begins; coder crowded; run later 10m", "", false}, // it waits for room in the budget
		{"run taken; judge begins; lead asks coder; coder begins; coder crowded; run later 10m; coder begins coder/1/2; run later 4m", "", false},
		{"run taken; judge begins; lead asks coder; coder begins; coder crowded; run later 10m; coder begins coder/1/2; run later 5m", "remind coder m-leadcoder", false},
		{"run taken; lead begins; lead asks user; lead ends", "", false}, // a person may take any time
		{"run taken; lead begins; lead wishes w; lead ends", "", false},
		{"run taken; lead begins; lead wishes w; lead ends; user answered w", "deal with lead w", true},
	} {
		t.Run(c.happens, func(t *testing.T) {
			crew := newCrew(t, nil)
			crew.happens(c.happens)
			if got := strings.Join(crew.steps(), "; "); got != c.want {
				t.Errorf("to do: %q, want %q", got, c.want)
			}
			if crew.Over() != c.over {
				t.Errorf("it is over: %v", !c.over)
			}
		})
	}
}

// A member that waits for room in the budget comes before others, but not while the limit of its
// provider, p, holds it back. The turn of the judge goes on all the time.
func TestOneThatALimitHoldsBackKeepsNobodyFromTheRoom(t *testing.T) {
	const begin = "run taken; judge begins; user writes lead; lead begins; "
	for _, c := range []struct{ happens, want string }{
		{"lead crowded; user writes coder", ""},
		{"lead crowded; p limited; user writes coder", "turn coder/1/1"},
		{"lead crowded; p limited; user writes coder; p unlimited", ""},
		{"coder begins; lead crowded; p limited; coder finishes; user writes coder", "turn coder/2/1"}, // the lead is called
		{"coder begins; lead crowded; p limited; coder finishes; user writes coder; p unlimited", "turn lead/1/2"},
		{"coder begins; user writes tester; tester begins; lead crowded; tester crowded; coder finishes", "turn lead/1/2"},
		{"coder begins; user writes tester; tester begins; lead crowded; tester crowded; p limited; coder finishes", "turn tester/1/2"},
	} {
		crew := newCrew(t, func(p *swarm.Plan) {
			p.MaxParallel = 0
			p.Agents[0].Provider = "p"
		})
		crew.happens(begin + c.happens)
		if got := strings.Join(crew.steps(), "; "); got != c.want {
			t.Errorf("%s: to do: %q, want %q", c.happens, got, c.want)
		}
	}
}

func TestInteractiveTeamStaysOpen(t *testing.T) {
	crew := newCrew(t, func(p *swarm.Plan) { p.Team.Mode = swarm.InteractiveMode })
	crew.happens("user writes lead; run taken; lead begins; lead ends")
	if crew.Over() {
		t.Error("nobody has ended it")
	}
	if crew.happens("user told close"); !crew.Over() {
		t.Error("it was closed")
	}
}

// The times at which timers fire, and their delay by a pause.
func TestTeamDue(t *testing.T) {
	crew := newCrew(t, nil)
	if due := crew.Due(); !due.IsZero() {
		t.Error(due)
	}
	crew.happens("run taken; lead begins; lead asks coder; coder begins; coder fails; coder retries 2s")
	if got := crew.Due().Sub(crew.now); got != 2*time.Second {
		t.Errorf("the next attempt is due in %s", got)
	}
	crew.happens("run pauses; run later 1h; run unpauses; coder begins coder/1/2")
	if got := crew.Due().Sub(crew.now); got < 4*time.Minute || got > 5*time.Minute {
		t.Errorf("a reminder is due in %s", got)
	}
}

// A cycle of waits is named, whichever agent would close it.
func TestWaitPath(t *testing.T) {
	crew := newCrew(t, nil)
	crew.happens("lead begins; coder begins; tester begins; lead waits coder; coder waits judge tester")
	if got := crew.WaitPath("lead", "tester", 100).String(); got != "lead → coder → tester" {
		t.Error(got)
	}
	if got := crew.WaitPath("lead", "tester", crew.seq); got != nil { // coder began to wait later
		t.Error(got)
	}
	if got := crew.WaitPath("tester", "lead", 100); got != nil {
		t.Error(got)
	}
}

func TestStuckTeam(t *testing.T) {
	crew := newCrew(t, nil)
	crew.happens("user writes lead; run taken; coder paused; lead begins; lead writes coder")
	if got := crew.Stuck(); got != nil {
		t.Errorf("lead works, and the run waits for %v", got)
	}
	if crew.happens("lead waits coder"); !slices.Equal(crew.Stuck(), []string{"coder"}) {
		t.Errorf("the run waits for %v", crew.Stuck())
	}
	if crew.happens("coder resumed"); crew.Stuck() != nil {
		t.Errorf("the run waits for %v", crew.Stuck())
	}
}
