package turn_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
	"swarm/internal/snapshot"
	"swarm/internal/sqlite"
	"swarm/internal/turn"
)

// trees takes real snapshots, in a store of the test's.
type trees string

func (s trees) Record(ctx context.Context, dir string, alone bool) (string, error) {
	return snapshot.Folder{Dir: dir, Store: string(s), Alone: alone}.Record(ctx)
}

func (s trees) Compare(ctx context.Context, dir, from, to string) (turn.Changes, error) {
	c, err := snapshot.Folder{Dir: dir, Store: string(s), Alone: true}.Compare(ctx, from, to, 1<<20)
	return turn.Changes(c), err
}

// A shop is a run whose agents, a and b, work on files in one folder.
type shop struct {
	*team
	dir   string
	trees trees
}

func newShop(t *testing.T, kind string, rules *swarm.Team, tools ...string) *shop {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git program here")
	}
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := &shop{&team{&bench{t, log}, kind}, t.TempDir(), trees(t.TempDir())}
	plan := swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "team", Kind: kind}}, Groups: []swarm.Group{{Iterations: 9}}, Team: rules,
		Servers: []swarm.ToolServer{{Name: "search", Command: []string{"search"}}}}
	for _, name := range []string{"a", "b"} {
		plan.Agents = append(plan.Agents, swarm.Agent{Name: name, Provider: "team", Tools: tools})
		plan.Tasks = append(plan.Tasks, swarm.Task{Name: name, Agent: name})
	}
	s.append([]byte("x"), swarm.Event{Kind: swarm.RunStarted})
	s.append([]byte("x"), swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: s.json(plan)})
	s.write("kept.txt", "as it was\n")
	return s
}

func (s *shop) runner(a liveAgent) worker {
	h := s.team.runner(a)
	h.Dir, h.Snapshots, h.Toolbox = s.dir, s.trees, nil
	return h
}

// do runs one turn of an agent, which must succeed.
func (s *shop) do(c flow.Call, a liveAgent) {
	s.Helper()
	r, err := s.runner(a).Do(s.Context(), "root", c)
	s.check(err)
	if r.Status != swarm.CallOK {
		s.Fatalf("%s: %+v", c.ID, r)
	}
}

func (s *shop) write(name, text string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	s.check(os.MkdirAll(filepath.Dir(path), 0o755))
	s.check(os.WriteFile(path, []byte(text), 0o644))
}

// writes is an agent that writes a file and ends as given.
func (s *shop) writes(name, text string, end error) liveAgent {
	return func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		s.write(name, text)
		return provider.Reply{Output: []byte("done")}, end
	}
}

// diffs returns the artifacts of kind diff, by turn.
func (s *shop) diffs() map[swarm.TurnID]string {
	s.Helper()
	found := map[swarm.TurnID]string{}
	for _, e := range s.events(swarm.ArtifactStored) {
		var it swarm.Artifact
		s.check(json.Unmarshal(e.Data, &it))
		text, err := s.log.Body(it.Hash)
		s.check(err)
		found[e.Turn] = string(text)
	}
	return found
}

func TestATurnsChangesAreKept(t *testing.T) {
	for what, end := range map[string]error{"it goes well": nil, "it fails": swarm.Errorf(swarm.Exited, "exit status 1"), "it is cut": swarm.Errorf(swarm.CutToSpeak, "interrupt")} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t, "command", &swarm.Team{})
			h := s.runner(s.writes("kept.txt", "changed, with s3cret-value\n", end))
			h.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "s3cret-value", "[secret KEY]")) }
			r, err := h.Do(t.Context(), "root", ask("a", 1, 1))
			s.check(err)
			const want = "Changes of the turn a/1/1.\n\ndiff --git a/kept.txt b/kept.txt\n"
			got := s.diffs()["a/1/1"]
			if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\n-as it was\n+changed, with [secret KEY]\n") {
				t.Errorf("%v: the diff is\n%s", r.Status, got)
			}
			s.do(ask("a", 2, 1), s.writes("kept.txt", "changed, with s3cret-value\n", nil))
			if _, ok := s.diffs()["a/2/1"]; ok {
				t.Error("a turn that changed nothing has a diff")
			}
		})
	}
}

// A turn that a crash cut is compared with the snapshot before its first start.
func TestARetriedTurnTellsAllItChanged(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{})
	ctx, die := context.WithCancel(t.Context())
	_, err := s.runner(func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		s.write("first.txt", "of the first start\n")
		die()
		return provider.Reply{}, context.Canceled
	}).Do(ctx, "root", ask("a", 1, 1))
	if err == nil || len(s.diffs()) != 0 {
		t.Fatalf("the process did not stop: %v", err)
	}
	s.do(ask("a", 1, 1), s.writes("second.txt", "of the second\n", nil))
	got := s.diffs()["a/1/1"]
	for _, want := range []string{"The turn was begun 2 times.", "+of the first start\n", "+of the second\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestWhoWorkedAtTheSameTime(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{})
	begun, wait, over := make(chan bool), make(chan bool), make(chan error)
	h := s.runner(func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		if r.Agent == "a" {
			begun <- true
			<-wait
			return provider.Reply{}, nil
		}
		s.write("b.txt", "of b\n")
		return provider.Reply{}, nil
	})
	go func() {
		_, err := h.Do(context.Background(), "root", ask("a", 1, 1))
		over <- err
	}()
	<-begun
	_, err := h.Do(t.Context(), "root", ask("b", 1, 1))
	s.check(err)
	close(wait)
	s.check(<-over)
	if got := s.diffs()["b/1/1"]; !strings.Contains(got, "At the same time worked here: @a (a/1/1). Some of it may be theirs.\n") {
		t.Errorf("b's:\n%s", got)
	}
	if got := s.diffs()["a/1/1"]; !strings.Contains(got, "At the same time worked here: @b (b/1/1).") || !strings.Contains(got, "+of b") {
		t.Errorf("a's:\n%s", got)
	}
	_, err = s.runner(s.writes("alone.txt", "alone\n", nil)).Do(t.Context(), "root", ask("b", 2, 1))
	s.check(err)
	if got := s.diffs()["b/2/1"]; strings.Contains(got, "At the same time") {
		t.Errorf("nobody was there:\n%s", got)
	}
}

// An agent that stores the text of its turn's diff beforehand does not keep the turn from ending.
func TestADiffThatIsThereAlready(t *testing.T) {
	first := newShop(t, "command", &swarm.Team{})
	first.do(ask("a", 1, 1), first.writes("new.txt", "new\n", nil))
	text := first.diffs()["a/1/1"]

	s := newShop(t, "command", &swarm.Team{})
	s.do(ask("a", 1, 1), func(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		s.write("new.txt", "new\n")
		args, _ := json.Marshal(map[string]string{"kind": "diff", "name": "mine", "content": text})
		_, err := r.Call(ctx, "put_artifact", args)
		return provider.Reply{}, err
	})
	if stored := s.events(swarm.ArtifactStored); len(stored) != 1 || s.diffs()["a/1/1"] != text {
		t.Errorf("%d artifacts: %q", len(stored), s.diffs())
	}
}

// The changes of programs that work by themselves are recorded, and of models with a tool to write.
// The changes of a pipeline's commands are not: there may be thousands of short tasks.
func TestWhoseChangesAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	for _, c := range []struct {
		kind, tools    string
		pipeline, team bool
	}{
		{"command", "", false, true},
		{"claude-code", "", true, true},
		{"acp", "", true, true},
		{"script", "", false, false},
		{"anthropic", "", false, false},
		{"anthropic", "file_read,swarm,web_fetch(example.org)", false, false},
		{"openai", "file_write", true, true},
		{"openai", "command(go test)", true, true},
		{"openai", "search.find", false, true},
		{"notify", "", false, false},
	} {
		for _, rules := range []*swarm.Team{nil, {}} {
			s := newShop(t, c.kind, rules, strings.FieldsFunc(c.tools, func(c rune) bool { return c == ',' })...)
			init := exec.Command("git", "init", "-q")
			init.Dir = s.dir
			s.check(init.Run())
			s.do(ask("a", 1, 1), s.writes("new.txt", "new\n", nil))
			want := c.pipeline
			if rules != nil {
				want = c.team
			}
			if _, kept := s.diffs()["a/1/1"]; kept != want {
				t.Errorf("%s with %q in a team: %v: kept: %v", c.kind, c.tools, rules != nil, kept)
			}
		}
	}
}

// Outside of a repository only teams take snapshots.
func TestAPipelineInNoRepository(t *testing.T) {
	s := newShop(t, "claude-code", nil)
	s.do(ask("a", 1, 1), s.writes("new.txt", "new\n", nil))
	if len(s.diffs()) != 0 {
		t.Error("its changes were kept")
	}
}

func TestWithoutGitARunGoesOn(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{})
	t.Setenv("PATH", t.TempDir())
	h := s.runner(s.writes("new.txt", "new\n", nil))
	for n := 1; n <= 2; n++ {
		if r, err := h.Do(t.Context(), "root", ask("a", n, 1)); err != nil || r.Status != swarm.CallOK {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	notices := s.events(swarm.Notice)
	if len(notices) != 1 || !strings.Contains(string(notices[0].Data), "there is no git program") {
		t.Errorf("%d notices: %+v", len(notices), notices)
	}
}

// In PLANNING an agent that can write elsewhere does not work without snapshots: the turn does not
// call its provider.
func TestPlanningWithoutGit(t *testing.T) {
	for kind, denied := range map[string]bool{"command": true, "openai": false} {
		t.Run(kind, func(t *testing.T) {
			s := newShop(t, kind, &swarm.Team{Phase: swarm.PlanningPhase}, "file_write")
			t.Setenv("PATH", t.TempDir())
			r, err := s.runner(s.writes("main.go", "text\n", nil)).Do(t.Context(), "root", ask("a", 1, 1))
			s.check(err)
			if (r.Kind == swarm.Denied) != denied || denied && !strings.Contains(r.Reason, "whether the turn did cannot be told: there is no git program") {
				t.Errorf("%s: %+v", kind, r)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "main.go")); (err != nil) != denied {
				t.Errorf("%s: main.go: %v", kind, err)
			}
		})
	}
}

// A turn whose changes are not known fails in PLANNING, and in no other phase.
func TestPlanningAndARepositoryThatIsGone(t *testing.T) {
	for _, phase := range []swarm.Phase{swarm.PlanningPhase, swarm.ImplementationPhase} {
		s := newShop(t, "command", &swarm.Team{Phase: phase})
		init := exec.Command("git", "init", "-q")
		init.Dir = s.dir
		s.check(init.Run())
		r, err := s.runner(func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
			s.write("docs/plan.md", "x")
			return provider.Reply{}, os.Rename(filepath.Join(s.dir, ".git"), filepath.Join(s.dir, "docs", "g"))
		}).Do(t.Context(), "root", ask("a", 1, 1))
		s.check(err)
		if denied := phase == swarm.PlanningPhase; (r.Kind == swarm.Denied) != denied || denied && !strings.Contains(r.Reason, "cannot be told: the git repository in "+s.dir+" is not what it was") {
			t.Errorf("%s: %+v", phase, r)
		}
	}
}

// In PLANNING a program that writes outside of docs/ fails, however it writes.
func TestPlanningIsHeld(t *testing.T) {
	planning := &swarm.Team{Phase: swarm.PlanningPhase}
	for _, c := range []struct {
		kind, file string
		rules      *swarm.Team
		denied     bool
	}{
		{"command", "docs/plan.md", planning, false},
		{"command", "main.go", planning, true},
		{"codex", "src/docs/plan.md", planning, true},
		{"command", "main.go", &swarm.Team{Phase: swarm.ImplementationPhase}, false},
		{"command", "main.go", nil, false},
	} {
		s := newShop(t, c.kind, c.rules)
		r, err := s.runner(s.writes(c.file, "text\n", nil)).Do(t.Context(), "root", ask("a", 1, 1))
		s.check(err)
		if (r.Kind == swarm.Denied) != c.denied {
			t.Errorf("%s of %s with %+v: %+v", c.file, c.kind, c.rules, r)
		}
		if c.denied {
			if want := "the phase PLANNING forbids to write outside of docs/, and the turn changed " + c.file; r.Reason != want {
				t.Errorf("it says %q", r.Reason)
			}
			if !strings.Contains(r.Hint, "swarm artifact ls") || s.diffs()["a/1/1"] == "" {
				t.Errorf("hint %q, diff %q", r.Hint, s.diffs())
			}
		}
		if _, err := os.Stat(filepath.Join(s.dir, "docs")); c.rules == planning && err != nil {
			t.Error("docs/ was not made")
		}
	}
}

// A retry is compared with the snapshot before the first attempt: leaving a forbidden change in
// place does not undo it.
func TestPlanningAndTheNextAttempt(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{Phase: swarm.PlanningPhase})
	write := s.writes("main.go", "text\n", nil)
	undo := func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{}, os.Remove(filepath.Join(s.dir, "main.go"))
	}
	for n, agent := range []liveAgent{write, write, undo} {
		r, err := s.runner(agent).Do(t.Context(), "root", ask("a", 1, n+1))
		s.check(err)
		if denied := n < 2; (r.Kind == swarm.Denied) != denied {
			t.Errorf("attempt %d: %+v", n+1, r)
		}
	}
	if len(s.diffs()) != 2 {
		t.Errorf("the diffs are %q", s.diffs())
	}
}

// Where several agents work at once, none fails for a change that another may have made. The
// finding names the files and the agents. An agent that cannot have made the change does not count
// as another.
func TestPlanningAmongOthers(t *testing.T) {
	for _, c := range []struct {
		kind   string // of both
		tools  []string
		shared bool
	}{{"command", nil, true}, {"openai", []string{"file_write"}, false}} {
		s := newShop(t, c.kind, &swarm.Team{Phase: swarm.PlanningPhase}, c.tools...)
		begun, wait, over := make(chan bool), make(chan bool), make(chan flow.Result)
		h := s.runner(func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
			if r.Agent == "a" {
				begun <- true
				<-wait
			} else {
				s.write("main.go", "of b\n")
			}
			return provider.Reply{}, nil
		})
		go func() {
			r, err := h.Do(context.Background(), "root", ask("a", 1, 1))
			if err != nil {
				t.Error(err)
			}
			over <- r
		}()
		<-begun
		b, err := h.Do(t.Context(), "root", ask("b", 1, 1))
		s.check(err)
		close(wait)
		for concurrent, r := range map[string]flow.Result{"@a (a/1/1)": b, "@b (b/1/1)": <-over} {
			var want []swarm.Finding
			if c.shared {
				want = []swarm.Finding{{Kind: swarm.Shared, About: concurrent, Evidence: "main.go"}}
			}
			if r.Status != swarm.CallOK || !slices.Equal(r.Findings, want) || len(r.Outside) != 0 {
				t.Errorf("%s: beside %s: %+v", c.kind, concurrent, r)
			}
		}
	}
}

// Other agents may work between two attempts. A retry fails only for the files that its own earlier
// attempt failed for.
func TestPlanningBlamesNoAttemptForOthers(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{Phase: swarm.PlanningPhase})
	fails := s.writes("mine.go", "text\n", swarm.Errorf(swarm.Exited, "exit status 1"))
	undoes := func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{}, os.Remove(filepath.Join(s.dir, "mine.go"))
	}
	idles := func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{}, nil
	}
	for n, step := range []struct {
		by   liveAgent
		kind swarm.ErrorKind
	}{{fails, swarm.Exited}, {idles, swarm.Denied}, {undoes, ""}} {
		r, err := s.runner(step.by).Do(t.Context(), "root", ask("a", 1, n+1))
		s.check(err)
		if r.Kind != step.kind || strings.Contains(r.Reason, "another") {
			t.Errorf("attempt %d: %+v", n+1, r)
		}
		s.write("another.go", strings.Repeat("by another in between\n", n+1))
	}
}

// After a crash it is unknown which turns ran before it.
func TestPlanningAfterACrash(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{Phase: swarm.PlanningPhase})
	ctx, die := context.WithCancel(t.Context())
	_, err := s.runner(func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		s.write("main.go", "of somebody\n")
		die()
		return provider.Reply{}, context.Canceled
	}).Do(ctx, "root", ask("a", 1, 1))
	if err == nil {
		t.Fatal("the process did not stop")
	}
	r, err := s.runner(func(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
		return provider.Reply{}, nil
	}).Do(t.Context(), "root", ask("a", 1, 1))
	s.check(err)
	if r.Status != swarm.CallOK || len(r.Findings) != 1 || r.Findings[0].Kind != swarm.Shared || !strings.Contains(r.Findings[0].About, "before the turn was begun again") {
		t.Errorf("%+v", r)
	}
}

// A link named docs is no way out of the folder.
func TestPlanningAndALinkNamedDocs(t *testing.T) {
	s := newShop(t, "command", &swarm.Team{Phase: swarm.PlanningPhase})
	s.check(os.MkdirAll(filepath.Join(s.dir, "src"), 0o755))
	s.check(os.Symlink("src", filepath.Join(s.dir, "docs")))
	r, err := s.runner(s.writes("docs/main.go", "text\n", nil)).Do(t.Context(), "root", ask("a", 1, 1))
	s.check(err)
	if r.Kind != swarm.Denied || !strings.Contains(r.Reason, "src/main.go") {
		t.Errorf("%+v", r)
	}
}

// A model that has only our tools is not blamed for another's changes: those tools enforce the
// phase.
func TestPlanningBlamesNobodyWhoCannotWrite(t *testing.T) {
	s := newShop(t, "openai", &swarm.Team{Phase: swarm.PlanningPhase}, "file_write")
	r, err := s.runner(s.writes("main.go", "another's\n", nil)).Do(t.Context(), "root", ask("a", 1, 1))
	s.check(err)
	if r.Status != swarm.CallOK {
		t.Errorf("%+v", r)
	}
}
