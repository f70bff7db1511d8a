package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine/local"
	"swarm/internal/httpd"
	"swarm/internal/plan"
	"swarm/internal/provider"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// TestRandomSessions enters random lines while agents work, fail and are cancelled. It compares the
// run's log and the agents' prompts with the model in model_test.go. SWARM_TEST_SEED repeats a run.
func TestRandomSessions(t *testing.T) {
	sessions := 50
	switch {
	case os.Getenv("SWARM_TEST_LONG") != "":
		sessions = 1000
	case testing.Short():
		sessions = 10
	}
	seed, err := strconv.ParseUint(os.Getenv("SWARM_TEST_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("SWARM_TEST_SEED=%d", seed)
	var all tally
	t.Run("session", func(t *testing.T) {
		for i := range sessions {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				newTrial(t, rand.New(rand.NewPCG(seed, uint64(i)))).run(20, &all)
			})
		}
	})
	t.Logf("%d sessions: %d lines taken, %d refused, %d tasks, %d turns, %d outputs injected", sessions, all.lines, all.refused, all.tasks, all.turns, all.injected)
	if all.injected == 0 || all.refused == 0 || all.lines == 0 {
		t.Error("the lines were too tame to show anything")
	}
}

// A tally counts what all sessions together have done.
type tally struct {
	mu                                     sync.Mutex
	lines, refused, tasks, turns, injected int
}

// A trial is one random session.
type trial struct {
	*testing.T
	random *rand.Rand
	s      *Session
	staff  *staff
	model  model
}

var crew = []string{"pm", "ba", "builder-1", "builder-2", "reviewer"}

func newTrial(t *testing.T, random *rand.Rand) *trial {
	x := &trial{T: t, random: random, staff: &staff{random: rand.New(rand.NewPCG(random.Uint64(), 1)), prompts: map[string][]string{}, busy: map[string]bool{}}}
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	x.must(err)
	team := Team{Plan: swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "staff", Kind: "command", Command: []string{"true"}}}}, WaitTimeout: time.Hour}
	for _, n := range crew {
		team.Agents = append(team.Agents, swarm.Agent{Name: n, Provider: "staff"})
	}
	x.s, err = Start(t.Context(), h, swarm.RunStart{Dir: t.TempDir(), Time: time.Now()}, team)
	x.must(err)
	return x
}

func (x *trial) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// run runs the session from its first line to its end. If it is stuck, it is stopped, and the error
// says who waits for whom.
func (x *trial) run(lines int, all *tally) {
	ctx, stop := context.WithTimeoutCause(x.Context(), time.Minute, swarm.Errorf(swarm.Stopped, "the session is stuck"))
	defer stop()
	x.s.Drive(ctx, run.Options{Engine: local.Run, Serve: httpd.Serve, Provider: x.staff})
	for n := range lines {
		if x.random.IntN(6) == 0 {
			x.cancelSomething(ctx)
			continue
		}
		x.enter(ctx, n)
	}
	x.must(x.s.run.Say(ctx, swarm.ControlCommand{Command: swarm.CommandClose}))
	<-x.s.over
	if ctx.Err() != nil {
		status, _ := x.s.status()
		x.Fatalf("the session is stuck:\n%s%s", x.model.text(), status)
	}
	x.must(x.s.failed)
	for e, err := range swarm.Events(x.s.run.Log(), 0) {
		x.must(err)
		x.model.happened(e)
	}
	x.must(x.s.run.Close())
	injected := x.model.check(x.T, x.staff.prompts)
	if x.Failed() {
		x.Logf("the lines were\n%s", x.model.text())
	}
	for _, mistake := range x.staff.mistakes {
		x.Error(mistake)
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.lines += len(x.model.lines)
	all.refused += len(x.model.refused)
	all.tasks += len(x.model.tasks)
	all.turns += len(x.staff.prompts)
	all.injected += injected
}

// seq is the number of the last event.
func (x *trial) seq() int64 {
	_, err := x.s.Picture()
	x.must(err)
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	return x.s.view.Seq
}

// enter enters a random line, and waits for it if it runs in the foreground.
func (x *trial) enter(ctx context.Context, n int) {
	l := x.compose(n)
	l.from = x.seq()
	e, err := x.s.Enter(ctx, l.text)
	l.to = x.seq()
	if err != nil {
		l.refusal = err.Error()
		x.model.refused = append(x.model.refused, l)
		return
	}
	x.model.take(x.T, l, e.Tasks)
	if !e.Background && !x.awaits() { // else it may be the next line that ends the wait
		_, err := x.s.Wait(ctx, e.Tasks)
		if err != nil && ctx.Err() == nil {
			x.Fatal(err)
		}
	}
}

// awaits reports whether a task waits for an agent without output and without tasks.
func (x *trial) awaits() bool {
	p, err := x.s.Picture()
	x.must(err)
	return slices.ContainsFunc(p.Tasks, func(t view.Task) bool {
		return slices.ContainsFunc(t.Waits, func(w view.Wait) bool { return w.For == plan.ForOutput })
	})
}

// compose writes a line of up to three stages.
func (x *trial) compose(n int) *entry {
	l := &entry{background: x.random.IntN(3) > 0}
	var stages []string
	for i := range 1 + x.random.IntN(3) {
		st := stage{agents: x.some(1 + x.random.IntN(5)/4), text: fmt.Sprintf("work %d.%d", n, i)}
		if x.random.IntN(8) == 0 {
			st.text += " " + failing
		}
		for range x.random.IntN(3) {
			st.refs = append(st.refs, crew[x.random.IntN(len(crew))])
		}
		l.stages = append(l.stages, st)
		text := "@" + strings.Join(st.agents, ",") + " " + st.text
		for _, r := range st.refs {
			text += " then $" + r
		}
		stages = append(stages, text)
	}
	l.text = strings.Join(stages, " -> ")
	if l.background {
		l.text += " &"
	}
	return l
}

func (x *trial) some(n int) []string {
	all := slices.Clone(crew)
	x.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// cancelSomething cancels a task, or all tasks of an agent.
func (x *trial) cancelSomething(ctx context.Context) {
	if len(x.model.tasks) == 0 {
		return
	}
	what := x.model.tasks[x.random.IntN(len(x.model.tasks))]
	word := what.name
	if x.random.IntN(4) == 0 {
		word = "@" + what.agent
	}
	_, err := x.s.Enter(ctx, "/cancel "+word)
	x.must(err)
	seq := x.seq()
	for _, t := range x.model.tasks {
		if (t.name == word || "@"+t.agent == word) && t.asked == 0 {
			t.asked = seq
		}
	}
}

// failing in its own task makes an agent fail.
const failing = "FAIL"

// The staff is a provider that answers every turn after a moment and records the prompts.
type staff struct {
	mu       sync.Mutex
	random   *rand.Rand
	prompts  map[string][]string // by task
	busy     map[string]bool     // by agent
	mistakes []string
}

func (s *staff) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	s.mu.Lock()
	s.prompts[r.Task] = append(s.prompts[r.Task], r.Prompt)
	if s.busy[r.Agent] {
		s.mistakes = append(s.mistakes, r.Agent+" was given "+r.Task+" while it did something else")
	}
	s.busy[r.Agent] = true
	work := time.Duration(s.random.IntN(4000)) * time.Microsecond
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.busy[r.Agent] = false
		s.mu.Unlock()
	}()
	out := outputOf(r.Task)
	live(swarm.Delta{Kind: swarm.DeltaText, Text: out})
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return provider.Reply{}, context.Cause(ctx)
	}
	if strings.Contains(r.Prompt, failing) {
		return provider.Reply{Output: []byte(out + " and broke")}, swarm.Errorf(swarm.Exited, "broken")
	}
	return provider.Reply{Output: []byte(out), Bytes: int64(len(out))}, nil
}

// outputOf is the output of a task's turn. It names its turn and its end, and looks like a line.
func outputOf(task string) string {
	return "«" + task + "» $ba -> @pm {{output:pm_1}} \\$pm\n@reviewer $pm & «end of " + task + "»"
}
