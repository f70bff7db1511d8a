package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/engine"
	"swarm/internal/engine/local"
	"swarm/internal/engine/replay"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/recording"
	"swarm/internal/sqlite"
	"swarm/internal/storetest"
	"swarm/internal/turn"
)

// A world has runs in a store. Its agents behave at random, and the same for the same seed.
type world struct {
	*testing.T
	seed   uint64
	store  swarm.Store
	plan   swarm.Plan
	bodies [][]byte
	runs   int
	fails  string // these turns fail, and agents do nothing else; "" = at random
}

const planKey = "plan:1"

func newWorld(t *testing.T, seed uint64) *world {
	return &world{T: t, seed: seed, store: sqlite.NewStore(t.TempDir())}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("seed %d: %v", w.seed, err)
	}
}

// chance returns the random source of one place in a world. It does not depend on the order of
// goroutines.
func (w *world) chance(place string) *rand.Rand {
	h := fnv.New64()
	h.Write([]byte(place))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// pipeline returns a plan of some tasks. Their prompts read outputs of other tasks, also of tasks
// that they do not depend on.
func (w *world) pipeline() {
	r := w.chance("plan")
	n := 2 + r.IntN(5)
	w.plan = swarm.Plan{Kind: swarm.PipelineRun, MaxParallel: r.IntN(4), Groups: []swarm.Group{{Iterations: 1 + r.IntN(2)}}, Providers: []swarm.ProviderSpec{{Name: "p", Kind: providerkind.ACP}}}
	for i := range n {
		name := string(rune('a' + i))
		t := swarm.Task{Name: name, Agent: name, Retries: r.IntN(2), OnFailure: []swarm.OnFailure{swarm.FailContinue, swarm.FailSkip, swarm.FailStop, swarm.FailEscalate}[r.IntN(4)]}
		text := "do " + name
		for j := range i {
			if r.IntN(2) == 0 {
				t.DependsOn = append(t.DependsOn, swarm.Dependency{Task: string(rune('a' + j)), Condition: []swarm.Condition{swarm.OnAny, swarm.OnSuccess}[r.IntN(2)]})
			}
			if r.IntN(2) == 0 {
				text += "\n{{output:" + string(rune('a'+j)) + "}}"
			}
		}
		t.Prompt = w.prompt(text)
		w.plan.Tasks = append(w.plan.Tasks, t)
		w.plan.Agents = append(w.plan.Agents, swarm.Agent{Name: name, Provider: "p"})
		if i > 0 {
			w.plan.Edges = append(w.plan.Edges, swarm.Edge{From: string(rune('a' + i - 1)), To: name, Both: true})
		}
	}
}

// prompt is a stored prompt.
func (w *world) prompt(text string) swarm.Hash {
	tpl, _, err := prompt.Parse(prompt.Source{File: "p", Text: []byte(text)}, nil)
	w.check(err)
	body := tpl.Marshal()
	w.bodies = append(w.bodies, body)
	return swarm.HashOf(body)
}

// team returns a plan of some agents with all edges between them.
func (w *world) team() {
	r := w.chance("plan")
	n := 2 + r.IntN(3)
	w.plan = swarm.Plan{Kind: swarm.TeamRun, MaxParallel: r.IntN(3), Team: &swarm.Team{Lead: "a", Mode: swarm.AutoMode, MaxAgents: 6, OnStall: swarm.StallFails}, Providers: []swarm.ProviderSpec{{Name: "p", Kind: providerkind.ACP}},
		Approvals: swarm.Approvals{Spawn: []string{"auto", ""}[r.IntN(2)]}}
	if r.IntN(3) == 0 {
		w.plan.Team.ReplyTimeout = 5 * time.Millisecond
	}
	for i := range n {
		w.plan.Agents = append(w.plan.Agents, swarm.Agent{Name: string(rune('a' + i)), Provider: "p", Permissions: swarm.Permissions{Spawn: true}})
		for j := range i {
			w.plan.Edges = append(w.plan.Edges, swarm.Edge{From: string(rune('a' + j)), To: string(rune('a' + i)), Both: true})
		}
	}
}

// begin creates a run of the plan.
func (w *world) begin() (id swarm.RunID) {
	w.Helper()
	w.runs++
	id = swarm.RunID(fmt.Sprint("run", w.runs))
	log, err := w.store.Create(w.Context(), id)
	w.check(err)
	defer log.Close()
	events := []swarm.Event{swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: id, Kind: w.plan.Kind, Dir: "/somewhere", Loops: flow.Version}), swarm.NewEvent(swarm.PlanAdded, w.plan)}
	events[0].Key, events[1].Key = string(swarm.RunStarted), planKey
	if w.plan.Team != nil {
		goal := swarm.NewEvent(swarm.HandoffStored, swarm.Envelope{Kind: swarm.Handoff, ID: "goal", FromNodeID: swarm.User, ToNodeID: "a", Payload: swarm.Payload{Message: "go"}, CreatedAt: time.Unix(int64(w.runs), 0).UTC()})
		goal.Key, goal.To, goal.Agent = swarm.MailKey("user/goal"), swarm.ToAgent("a"), swarm.User
		events = append(events, goal)
	}
	_, err = log.Append(w.Context(), swarm.Batch{Events: events, Bodies: w.bodies})
	w.check(err)
	return id
}

// open opens the log of a run, and closes it when the test ends.
func (w *world) open(id swarm.RunID) swarm.RunLog {
	w.Helper()
	log, err := w.store.Open(w.Context(), id, swarm.ReadWrite)
	w.check(err)
	w.Cleanup(func() { log.Close() })
	return log
}

// drive drives a run as a process of its own would. If an append is given, the process crashes
// there.
func (w *world) drive(id swarm.RunID, run engine.Engine, at int, committed bool) (flow.Result, error) {
	w.Helper()
	log, err := w.store.Open(w.Context(), id, swarm.ReadWrite)
	w.check(err)
	defer log.Close()
	owner, err := log.Own(w.Context(), flow.Version, time.Minute)
	w.check(err)
	owned := swarm.NewEvent(swarm.RunOwned, swarm.Ownership{PID: w.runs, Fence: owner.Fence, Lived: owner.Lived})
	owned.To = swarm.ToLoop(swarm.RootLoop)
	// A driver writes it lazily. So what reads the log next may see it, or not.
	_, err = log.Append(w.Context(), swarm.Batch{Fence: owner.Fence, Lazy: w.runs%2 == 0, Events: []swarm.Event{owned}})
	w.check(err)
	dying := storetest.Crash(log, at, committed)
	api := &agentapi.Service{Run: id, Log: dying, Loop: swarm.RootLoop, Fence: owner.Fence}
	r := &turn.Runner{Run: id, Log: dying, Dir: w.TempDir(), AgentAPI: api, Provider: func(swarm.ProviderSpec) (provider.Provider, error) { return agent{w, log, api}, nil }}
	defer func() { w.check(r.Close()) }()
	kind := "pipeline"
	if w.plan.Team != nil {
		kind = "team"
	}
	return run(w.Context(), &engine.Adapters{Log: dying, Turn: r, Mailer: api}, flow.Call{ID: swarm.RootLoop, Kind: kind, Ref: planKey, Fence: owner.Fence})
}

// live drives a run with agents, while a person answers their approvals.
func (w *world) live(id swarm.RunID) flow.Result {
	w.Helper()
	r, err := w.liveUntil(id, 0)
	w.check(err)
	return r
}

// liveUntil is live, with a crash at an append.
func (w *world) liveUntil(id swarm.RunID, at int) (flow.Result, error) {
	w.Helper()
	log := w.open(id)
	ctx, stop := context.WithCancel(w.Context())
	var person sync.WaitGroup
	person.Go(func() { w.answer(ctx, id, log) })
	r, err := w.drive(id, local.Run, at, true)
	stop()
	person.Wait()
	return r, err
}

// answer plays the person who answers approvals.
func (w *world) answer(ctx context.Context, id swarm.RunID, log swarm.Log) {
	wake, off := log.Watch()
	defer off()
	for after := int64(0); ; {
		events, err := log.Read(after, 1000)
		if err != nil {
			return
		}
		for _, e := range events {
			after = e.Seq
			if e.Kind != swarm.ApprovalAsked {
				continue
			}
			a, _ := swarm.Body[swarm.Approval](&e)
			// A rule, or the end of the run, may have answered it already.
			_ = (&agentapi.Service{Run: id, Log: log}).Decide(ctx, a.ID, agentapi.Decision{OK: w.chance("answer "+a.ID).IntN(3) > 0, Reason: "so", Actor: swarm.Actor{By: "test"}})
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// An agent behaves at random, by the seed of the world and its turn.
type agent struct {
	*world
	log swarm.Log
	api *agentapi.Service
}

func (a agent) Turn(ctx context.Context, req provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	r := a.chance("turn " + string(req.Turn))
	call := func(tool, format string, args ...any) {
		_, _ = req.Call(ctx, tool, json.RawMessage(fmt.Sprintf(format, args...))) // what is refused is a part of it
	}
	say := func(command swarm.Command, target string) {
		e := swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: command, Target: target})
		e.To = swarm.ToControl
		_, _ = a.log.Append(context.WithoutCancel(ctx), swarm.Batch{Events: []swarm.Event{e}}) // a person outlives the process
	}
	other := func() string { return a.plan.Agents[r.IntN(len(a.plan.Agents))].Name }
	for n := r.IntN(4); n > 0 && req.Iteration < 4 && a.fails == ""; n-- {
		switch r.IntN(12) {
		case 0, 1, 2:
			call("send_handoff", `{"to":%q,"message":"from %s, %d"}`, other(), req.Turn, n)
		case 3:
			call("send_handoff", `{"to":%q,"message":"answer me, %s","response":{"expectation":"required"}}`, other(), req.Turn)
		case 4:
			call("publish_data", `{"topic":"t%d","data":"known by %s"}`, r.IntN(2), req.Turn)
		case 5:
			call("put_artifact", `{"kind":"log","name":"n","content":"%s %s"}`, req.Turn, strings.Repeat("x", r.IntN(100)))
		case 6:
			call("read_inbox", `{}`)
		case 7:
			_, _ = a.api.Publish(ctx, "person", json.RawMessage(fmt.Sprintf("%q", "a person saw "+string(req.Turn))))
		case 8:
			_, _ = a.api.FromUser(ctx, mail.Draft{To: other(), Message: "a person says: " + string(req.Turn)})
		case 9:
			say(swarm.CommandPause, "")
			say(swarm.CommandResume, "")
		case 10:
			if who := other(); who != "a" && r.IntN(2) == 0 {
				say(swarm.CommandCancel, who)
				say(swarm.CommandStart, who)
			} else {
				say(swarm.CommandPause, who)
				say(swarm.CommandResume, who)
			}
		case 11:
			call("spawn_node", `{"name":"new%d","instructions":"help with %s"}`, r.IntN(2), req.Turn)
		}
		live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: fmt.Sprint(n), Name: "tool", Output: "done"}})
		_, _ = req.Aside(ctx, "tool")
	}
	if a.plan.Team != nil && req.Agent == "a" && req.Iteration > 4 {
		call("report_done", `{"response":"enough"}`)
	}
	out := fmt.Sprintf("out of %s in %d\xff", req.Turn, a.seed)
	reply := provider.Reply{Output: []byte(out), Bytes: int64(len(out)), Session: "session of " + req.Agent}
	if fails := r.IntN(5) == 0; a.fails == "" && fails || strings.Contains(a.fails, string(req.Turn)) {
		return reply, swarm.Errorf(swarm.Unexpected, "%s is not good enough", req.Turn)
	}
	return reply, nil
}

// record returns the recording of a run.
func (w *world) record(id swarm.RunID) *recording.Recording {
	w.Helper()
	var b bytes.Buffer
	w.check(recording.Write(&b, recording.Header{Run: id}, w.open(id)))
	rec, err := recording.Read(&b, string(id)+".cassette")
	w.check(err)
	return rec
}

// events returns the events of a run's log, without those that depend on which process drove it.
func (w *world) events(id swarm.RunID) (events []swarm.Event) {
	w.Helper()
	all, err := w.open(id).Read(0, 1<<20)
	w.check(err)
	owned := false
	for _, e := range all {
		if e.Kind == swarm.RunOwned && owned || e.Kind == swarm.RunInterrupted {
			continue
		}
		owned = owned || e.Kind == swarm.RunOwned
		events = append(events, e)
	}
	return events
}

var number = regexp.MustCompile(`"(from|upto|topics|rules|outputs|wrote|read)":(\d+)`)

// tell returns the content of a log without times, owners and the run's id. Numbers of events
// become their places.
func tell(events []swarm.Event) (lines []string) {
	place := func(seq string) string {
		var n int64
		fmt.Sscan(seq, &n)
		at := 0
		for i, e := range events {
			if e.Seq <= n && e.Kind != swarm.RunOwned { // a replay has no number for an owner
				at = i + 1
			}
		}
		return fmt.Sprint("#", at)
	}
	digits := regexp.MustCompile(`:(\d+)`)
	for _, e := range events {
		data := string(e.Data)
		switch e.Kind {
		case swarm.RunStarted, swarm.RunOwned, swarm.PlanAdded:
			data = ""
		case swarm.HandoffStored:
			if e.Agent == swarm.User && strings.Contains(e.Key, "goal") {
				data = ""
			}
		case swarm.TurnStarted:
			data = regexp.MustCompile(`"owner":\d+`).ReplaceAllString(data, "")
		}
		data = number.ReplaceAllStringFunc(data, func(s string) string {
			m := number.FindStringSubmatch(s)
			return m[1] + ":" + place(m[2])
		})
		key := e.Key
		switch e.Kind {
		case swarm.HandoffConsumed, swarm.HandoffInjected, swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.AgentPaused, swarm.AgentResumed, swarm.Notice:
			key = digits.ReplaceAllStringFunc(key, func(s string) string { return place(s[1:]) })
		}
		lines = append(lines, fmt.Sprintln(e.Kind, e.Agent, e.Task, e.Turn, e.To, key, data))
	}
	return lines
}

// same checks that two runs have the same content.
func (w *world) same(one, other swarm.RunID) {
	w.Helper()
	a, b := tell(w.events(one)), tell(w.events(other))
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			from := max(0, i-4)
			w.Fatalf("seed %d: event %d of %d and %d differs:\n%s\nand\n%s", w.seed, i+1, len(a), len(b), strings.Join(a[from:min(len(a), i+2)], ""), strings.Join(b[from:min(len(b), i+2)], ""))
		}
	}
}

// replay replays a recording as a new run.
func (w *world) replay(rec *recording.Recording) (id swarm.RunID, r flow.Result) {
	w.Helper()
	id = w.begin()
	r, err := w.drive(id, replay.Engine(rec), 0, false)
	w.check(err)
	return id, r
}
