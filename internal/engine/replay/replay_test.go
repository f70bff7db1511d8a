package replay_test

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/engine"
	"swarm/internal/engine/replay"
	"swarm/internal/mail"
	"swarm/internal/storetest"
)

// seeds returns how many random runs a test makes.
func seeds(t *testing.T, n uint64) uint64 {
	if many, err := strconv.ParseUint(os.Getenv("SWARM_TEST_SEEDS"), 10, 64); err == nil {
		return many
	}
	if testing.Short() {
		return 3
	}
	return n
}

// The replay of any random run has the same events in the same order.
func TestAReplayIsTheRecordedRun(t *testing.T) {
	for seed := range seeds(t, 20) {
		for name, plan := range map[string]func(*world){"pipeline": (*world).pipeline, "team": (*world).team} {
			t.Run(name+strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed)
				plan(w)
				first := w.begin()
				was := w.live(first)
				rec := w.record(first)
				second, r := w.replay(rec)
				if r.Status != was.Status || r.Reason != was.Reason {
					t.Fatalf("seed %d: it ended with %+v, and then with %+v", seed, was, r)
				}
				w.same(first, second)
			})
		}
	}
}

// A run that several processes drove, because each one crashed, is replayed by one process.
func TestAReplayOfARunThatCrashed(t *testing.T) {
	for seed := range seeds(t, 8) {
		for name, plan := range map[string]func(*world){"pipeline": (*world).pipeline, "team": (*world).team} {
			t.Run(name+strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed+200)
				plan(w)
				first := w.begin()
				for at := 5; at < 40; at += 9 {
					if _, err := w.liveUntil(first, at); err == nil {
						break
					} else if !errors.Is(err, storetest.ErrCrash) {
						t.Fatal(err)
					}
				}
				w.live(first)
				second, _ := w.replay(w.record(first))
				w.same(first, second)
			})
		}
	}
}

// A replay that crashes at any append continues as if it had not.
func TestAReplayThatCrashes(t *testing.T) {
	for seed := range seeds(t, 3) {
		for name, plan := range map[string]func(*world){"pipeline": (*world).pipeline, "team": (*world).team} {
			t.Run(name+strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed+100)
				plan(w)
				first := w.begin()
				w.live(first)
				rec := w.record(first)
				step := 1
				if testing.Short() {
					step = 5
				}
				for _, committed := range []bool{false, true} {
					for at := 1; ; at += step {
						id := w.begin()
						_, err := w.drive(id, replay.Engine(rec), at, committed)
						if err == nil {
							if at == 1 {
								t.Error("nothing was written")
							}
							break
						}
						if !errors.Is(err, storetest.ErrCrash) {
							t.Fatal(err)
						}
						_, err = w.drive(id, replay.Engine(rec), 0, false)
						w.check(err)
						w.same(first, id)
					}
				}
			})
		}
	}
}

// The replay of a run that had not ended stops where the recording ends.
func TestAReplayOfAnUnfinishedRun(t *testing.T) {
	w := newWorld(t, 1)
	w.team()
	first := w.begin()
	w.live(first)
	rec := w.record(first)
	end := slices.IndexFunc(rec.Events, func(e swarm.Event) bool { return e.Kind == swarm.TurnEnded })
	for n := 4; n <= end+1; n++ {
		part := *rec
		part.Events = rec.Events[:n]
		id := w.begin()
		_, err := w.drive(id, replay.Engine(&part), 0, false)
		if swarm.KindOf(err) != swarm.Stopped || !strings.Contains(err.Error(), "the recording ends here") {
			t.Fatalf("after %d events: %v", n, err)
		}
		got, want := tell(w.events(id)), tell(w.events(first))
		if !slices.Equal(got[:n], want[:n]) {
			t.Errorf("after %d events: %s", n, strings.Join(got, ""))
		}
	}
}

// A replay that a person cancels stops, and starts to copy nothing more.
func TestAReplayThatIsCancelled(t *testing.T) {
	w := linear(t)
	first := w.begin()
	w.live(first)
	rec := w.record(first)
	id := w.begin()
	cancel := swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: swarm.CommandCancel})
	cancel.To, cancel.Key = swarm.ToControl, swarm.CancelReplayKey
	_, err := w.open(id).Append(t.Context(), swarm.Batch{Events: []swarm.Event{cancel}})
	w.check(err)
	if _, err := w.drive(id, replay.Engine(rec), 0, false); !errors.Is(err, engine.ErrCancelled) {
		t.Error(err)
	}
}

// linear returns a world with a pipeline of three tasks, each of which depends on the one before.
func linear(t *testing.T) *world {
	w := newWorld(t, 5)
	w.plan = swarm.Plan{Kind: swarm.PipelineRun, Groups: []swarm.Group{{Iterations: 1}}, Providers: []swarm.ProviderSpec{{Name: "p", Kind: "acp"}}}
	for i, name := range []string{"x", "y", "z"} {
		task := swarm.Task{Name: name, Agent: name, Prompt: w.prompt("do " + name)}
		if i > 0 {
			before := w.plan.Tasks[i-1].Name
			task.DependsOn = []swarm.Dependency{{Task: before, Condition: swarm.OnAlways}}
			task.Prompt = w.prompt("do " + name + "\n{{output:" + before + "}}")
		}
		w.plan.Tasks, w.plan.Agents = append(w.plan.Tasks, task), append(w.plan.Agents, swarm.Agent{Name: name, Provider: "p"})
	}
	return w
}

// A changed plan ends the replay at the first difference, and the error shows it.
func TestAReplayThatLeavesItsRecording(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		turn   string
		why    string
	}{
		"another prompt":    {func(w *world) { w.plan.Tasks[1].Prompt = w.prompt("do more\n{{output:x}}") }, "y/1/1", "-do y\n+do more\n"},
		"a task more":       {func(w *world) { w.plan.Tasks[1].Name = "other"; w.plan.Tasks[2].DependsOn = nil }, "other/1/1", "the turn other/1/1 is not in the recording"},
		"another agent":     {func(w *world) { w.plan.Tasks[1].Agent = "x" }, "y/1/1", "under y/1/1 the recording has the task y of @y, and the plan asks for the task y of @x now"},
		"another iteration": {func(w *world) { w.plan.Groups[0].Iterations = 2 }, "x/1/1", "-You are on iteration 1 of 1.\n+You are on iteration 1 of 2.\n"},
		"the last prompt":   {func(w *world) { w.plan.Tasks[2].Prompt = w.prompt("") }, "z/1/1", "-do z"},
	} {
		t.Run(name, func(t *testing.T) {
			w := linear(t)
			first := w.begin()
			w.live(first)
			rec := w.record(first)
			w.plan.Tasks, w.plan.Groups = slices.Clone(w.plan.Tasks), slices.Clone(w.plan.Groups)
			c.change(w)
			id, r := w.replay(rec)
			if r.Status != swarm.CallFailed || r.Kind != swarm.Mismatch {
				t.Errorf("it ended with %+v", r)
			}
			log := w.open(id)
			e, ok, err := log.Find(swarm.EndKey(c.turn))
			w.check(err)
			if !ok {
				t.Fatalf("%s has no end:\n%s", c.turn, strings.Join(tell(w.events(id)), ""))
			}
			end, err := swarm.Body[swarm.CallEnd](&e)
			w.check(err)
			if end.Kind != swarm.Mismatch || !strings.Contains(end.Reason, c.why) || !strings.HasPrefix(end.Reason, string(first)+".cassette: ") || !end.Unbegun {
				t.Errorf("it ended with %+v", end)
			}
			ended, ok, err := log.Find(string(swarm.RunEnded))
			if w.check(err); !ok || !strings.Contains(string(ended.Data), `"exit":1`) {
				t.Errorf("the run ended with %s", ended.Data)
			}
		})
	}
}

// A changed plan whose prompts are the recorded ones ends the replay where its loop decides
// otherwise, and the error names the key that has changed.
func TestAReplayThatDecidesOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		fails  string // the recorded turns that fail
		set    func(*swarm.Plan)
		change func(*swarm.Plan)
		why    string
	}{
		"stop":            {"x/1/1", nil, func(p *swarm.Plan) { p.Tasks[0].OnFailure = swarm.FailStop }, "tasks.x.on_failure (was not set, now stop)"},
		"no stop":         {"x/1/1", func(p *swarm.Plan) { p.Tasks[0].OnFailure = swarm.FailStop }, func(p *swarm.Plan) { p.Tasks[0].OnFailure = "" }, "tasks.x.on_failure (was stop, now not set)"},
		"skip":            {"x/1/1", nil, func(p *swarm.Plan) { p.Tasks[0].OnFailure = swarm.FailSkip }, "the recording has task_failed of x, and with the plan of now it is task_skipped of x; changed since: tasks.x.on_failure"},
		"a person":        {"y/1/1", nil, func(p *swarm.Plan) { p.Tasks[1].OnFailure = swarm.FailEscalate }, "tasks.y.on_failure"},
		"a retry more":    {"z/1/1", nil, func(p *swarm.Plan) { p.Tasks[2].Retries = 1 }, "tasks.z.retries (was 0, now 1)"},
		"a retry less":    {"x/1/1", func(p *swarm.Plan) { p.Tasks[0].Retries = 1 }, func(p *swarm.Plan) { p.Tasks[0].Retries = 0 }, "tasks.x.retries (was 1, now 0)"},
		"no retry":        {"x/1/1 x/1/2", func(p *swarm.Plan) { p.Tasks[0].Retries = 1 }, func(p *swarm.Plan) { p.Tasks[0].Retries = 0 }, "tasks.x.retries (was 1, now 0)"},
		"another outcome": {"x/1/1", nil, func(p *swarm.Plan) { p.Tasks[1].DependsOn[0].Condition = swarm.OnSuccess }, "tasks.y.depends_on"},
		"no dependency":   {"none", nil, func(p *swarm.Plan) { p.Tasks[2].DependsOn = p.Tasks[1].DependsOn }, "tasks.z.depends_on"},
		"another check":   {"none", nil, func(p *swarm.Plan) { p.Tasks[1].Expect = &swarm.Expect{Matches: "ok"} }, "tasks.y.expect was another"},
	} {
		t.Run(name, func(t *testing.T) {
			w := linear(t)
			w.fails = c.fails
			if c.set != nil {
				c.set(&w.plan)
			}
			first := w.begin()
			w.live(first)
			rec := w.record(first)
			w.plan.Tasks = slices.Clone(w.plan.Tasks)
			for i := range w.plan.Tasks {
				w.plan.Tasks[i].DependsOn = slices.Clone(w.plan.Tasks[i].DependsOn)
			}
			c.change(&w.plan)
			id, r := w.replay(rec)
			if r.Status != swarm.CallFailed || r.Kind != swarm.Mismatch {
				t.Errorf("it ended with %+v", r)
			}
			all := strings.Join(tell(w.events(id)), "")
			if !strings.Contains(all, c.why) {
				t.Errorf("nothing says %q:\n%s", c.why, all)
			}
			for _, name := range []string{"x", "y", "z"} {
				if !slices.ContainsFunc(w.events(id), func(e swarm.Event) bool {
					return e.Task == name && (e.Kind == swarm.TaskCompleted || e.Kind == swarm.TaskFailed || e.Kind == swarm.TaskSkipped || e.Kind == swarm.TaskCancelled)
				}) {
					t.Errorf("%s has no end:\n%s", name, all)
				}
			}
		})
	}
}

// Limits are those of the recording: a replay starts nothing that they could hold back.
func TestAReplayHasTheRecordedLimits(t *testing.T) {
	w := linear(t)
	w.plan.Budget = swarm.Budget{Calls: 2, Tokens: 1 << 40}
	first := w.begin()
	if r := w.live(first); r.Kind != swarm.OverBudget {
		t.Fatalf("it ended with %+v", r)
	}
	rec := w.record(first)
	for _, budget := range []swarm.Budget{{}, {Calls: 1}, {Calls: 100, Tokens: 1, Wall: 1}} {
		w.plan.Budget = budget
		id, r := w.replay(rec)
		if r.Kind != swarm.OverBudget {
			t.Errorf("with %+v it ended with %+v", budget, r)
		}
		w.same(first, id)
	}
}

// A part of a plan can be replayed: turns that it does not ask for are left out. Its present limits
// hold no turn back.
func TestAReplayOfAPart(t *testing.T) {
	w := linear(t)
	w.plan.Tasks[2].DependsOn = w.plan.Tasks[1].DependsOn
	w.plan.Tasks[2].Prompt = w.prompt("do z\n{{output:x}}")
	first := w.begin()
	w.live(first)
	rec := w.record(first)
	w.plan.MaxParallel = 1
	id, r := w.replay(rec)
	if r.Kind == swarm.Mismatch {
		t.Errorf("one at a time it ended with %+v", r)
	}
	w.same(first, id)
	w.plan.Tasks = []swarm.Task{w.plan.Tasks[0], w.plan.Tasks[2]}
	id, r = w.replay(rec)
	if r.Kind == swarm.Mismatch || slices.ContainsFunc(w.events(id), func(e swarm.Event) bool { return e.Task == "y" }) {
		t.Errorf("without y it ended with %+v:\n%s", r, strings.Join(tell(w.events(id)), ""))
	}
}

// A part waits for less than the whole, so it decides earlier. Its turns keep the recorded order.
func TestAPartThatWaitsForLess(t *testing.T) {
	w := linear(t)
	w.plan.Tasks[2].Prompt = w.prompt("do z")
	other := w.plan.Tasks[0]
	other.Name, other.Agent, other.Prompt, other.DependsOn = "w", "x", w.prompt("do w"), w.plan.Tasks[1].DependsOn
	w.plan.Tasks = append(w.plan.Tasks, other) // x comes before w, and y before z: z starts after w has
	w.plan.Tasks[1].DependsOn = []swarm.Dependency{{Task: "w", Condition: swarm.OnAlways}}
	w.fails = "none"
	first := w.begin()
	w.live(first)
	rec := w.record(first)
	whole := w.plan.Tasks
	z := whole[2]
	z.DependsOn = nil // what `swarm up` does with tasks that are left out
	w.plan.Tasks = []swarm.Task{whole[0], z, whole[3]}
	if id, r := w.replay(rec); r.Status != swarm.CallOK {
		t.Errorf("it ended with %+v:\n%s", r, strings.Join(tell(w.events(id)), ""))
	}
	z.Retries, z.OnFailure = 0, swarm.FailStop
	whole[0].Expect = &swarm.Expect{Matches: "x"}
	w.plan.Tasks = []swarm.Task{whole[0], z}
	if _, r := w.replay(rec); r.Kind != swarm.Mismatch {
		t.Errorf("with another check it ended with %+v", r)
	}
}

// A killed replay cannot continue with another recording.
func TestAReplayGoesOnWithItsOwnRecording(t *testing.T) {
	w := linear(t)
	first := w.begin()
	w.live(first)
	w.seed++
	other := w.begin()
	w.live(other)
	id := w.begin()
	if _, err := w.drive(id, replay.Engine(w.record(first)), 3, true); !errors.Is(err, storetest.ErrCrash) {
		t.Fatal(err)
	}
	rec := w.record(other)
	if _, err := w.drive(id, replay.Engine(rec), 0, false); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), "something else in its log than this recording") {
		t.Error(err)
	}
}

// Findings, commands and messages that a person sent before the first turn are part of a recording.
func TestAReplayHasWhatCameBeforeTheFirstTurn(t *testing.T) {
	w := newWorld(t, 3)
	w.team()
	first := w.begin()
	log := w.open(first)
	api := &agentapi.Service{Run: first, Log: log}
	_, err := api.Publish(t.Context(), "facts", []byte(`"known before"`))
	w.check(err)
	_, err = api.FromUser(t.Context(), mail.Draft{To: "b", Message: "and you"})
	w.check(err)
	w.live(first)
	start, ok, err := log.Find(swarm.StartKey("a/1/1", 1))
	if w.check(err); !ok {
		t.Fatal("the lead had no turn")
	}
	body, err := swarm.Body[swarm.TurnStart](&start)
	w.check(err)
	if text, err := log.Body(body.Prompt); err != nil || !strings.Contains(string(text), "known before") {
		t.Fatalf("the lead was asked\n%s\n%v", text, err)
	}
	id, r := w.replay(w.record(first))
	if r.Kind == swarm.Mismatch {
		t.Errorf("it ended with %+v", r)
	}
	// The new run's owner comes before them.
	was, is := tell(w.events(first)), tell(w.events(id))
	slices.Sort(was[:6])
	slices.Sort(is[:6])
	if len(was) != len(is) || was[0] != is[0] {
		t.Errorf("it was\n%s\nand is\n%s", strings.Join(was, ""), strings.Join(is, ""))
	}
}
