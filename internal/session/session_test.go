package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine/local"
	"swarm/internal/httpd"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// agent is a program that echoes the last line of its prompt after it has read a word from its
// pipe.
const agent = `
task=$(tail -n +5)
case $task in
HOLD*) read word < "$PIPES/$SWARM_AGENT";;
esac
case $task in
*FAIL*) echo broken >&2; exit 1;;
esac
echo "$SWARM_AGENT did: $task"
`

// A table is a session with a team of programs.
type table struct {
	*Session
	t     *testing.T
	home  *statedir.Home
	pipes string
	stop  context.CancelCauseFunc
}

var names = []string{"pm", "ba", "builder-1", "reviewer"}

func teamOf(pipes string) Team {
	team := Team{Plan: swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "sh", Kind: "command", Command: []string{"sh", "-c", agent}, Env: map[string]string{"PIPES": pipes}}}}, WaitTimeout: time.Minute}
	for _, n := range names {
		team.Agents = append(team.Agents, swarm.Agent{Name: n, Provider: "sh"})
	}
	return team
}

func newTable(t *testing.T) *table {
	t.Helper()
	x := &table{t: t, pipes: t.TempDir()}
	for _, n := range names {
		x.must(mkfifo(filepath.Join(x.pipes, n)))
	}
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	x.must(err)
	x.home = h
	ctx, stop := context.WithCancelCause(t.Context())
	x.stop = stop
	x.Session, err = Start(ctx, h, swarm.RunStart{Dir: t.TempDir(), Time: time.Now()}, teamOf(x.pipes))
	x.must(err)
	x.Drive(ctx, run.Options{Engine: local.Run, Serve: httpd.Serve})
	return x
}

func (x *table) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// say enters a line, and waits for its end unless it is a background line.
func (x *table) say(text string) []string {
	x.t.Helper()
	e, err := x.Enter(x.t.Context(), text)
	x.must(err)
	if !e.Background {
		_, err := x.Wait(x.t.Context(), e.Tasks)
		x.must(err)
	}
	return e.Tasks
}

// release lets a waiting agent continue.
func (x *table) release(agent string) {
	x.t.Helper()
	f, err := os.OpenFile(filepath.Join(x.pipes, agent), os.O_WRONLY, 0)
	x.must(err)
	_, err = f.WriteString("go\n")
	x.must(err)
	x.must(f.Close())
}

func (x *table) task(name string) view.Task {
	x.t.Helper()
	t, err := x.find(name)
	x.must(err)
	return t
}

func (x *table) outputOf(agent string) string {
	x.t.Helper()
	text, err := x.out(agent)
	x.must(err)
	return text
}

// until waits for a status line.
func (x *table) until(want string) {
	x.t.Helper()
	wake, off := x.run.Log().Watch()
	defer off()
	for {
		got, err := x.status()
		x.must(err)
		if strings.Contains(got, want+"\n") {
			return
		}
		select {
		case <-wake:
		case <-time.After(20 * time.Second):
			x.t.Fatalf("never saw %q; the last status was\n%s", want, got)
		}
	}
}

func (x *table) close() view.Picture {
	x.t.Helper()
	p, err := x.Close(x.t.Context())
	x.must(err)
	return p
}

func TestReferenceWaits(t *testing.T) {
	x := newTable(t)
	x.say("@pm HOLD Create a detailed plan &")
	x.until("@pm: executing")
	tasks := x.say("@builder-1 Implement $pm &")
	x.until("@builder-1: waiting for @pm")
	x.release("pm")
	_, err := x.Wait(t.Context(), tasks)
	x.must(err)
	if got, want := x.outputOf("builder-1"), "builder-1 did: Implement [Output from @pm]: pm did: HOLD Create a detailed plan\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	x.close()
}

func TestChain(t *testing.T) {
	x := newTable(t)
	x.say("@ba Write requirements")
	x.say("@pm Create plan for $ba -> @builder-1 Implement")
	want := "builder-1 did: [Output from @pm]: pm did: Create plan for [Output from @ba]: ba did: Write requirements\n\nImplement\n"
	if got := x.outputOf("builder-1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	x.close()
}

func TestFailureReachesWhoWaits(t *testing.T) {
	x := newTable(t)
	x.say("@pm Good plan")
	x.say("@pm HOLD FAIL &")
	x.until("@pm: executing")
	tasks := x.say("@ba Use $pm &")
	x.until("@ba: waiting for @pm")
	x.release("pm")
	_, err := x.Wait(t.Context(), tasks)
	x.must(err)
	if got := x.task(tasks[0]); got.Status != swarm.Failed || !strings.HasPrefix(got.Reason, "Referenced agent @pm failed: ") {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	e, err := x.Enter(t.Context(), "@ba Use $pm")
	x.must(err)
	if len(e.Notices) != 1 {
		t.Errorf("a later line gets the last good output with a notice, got %v", e.Notices)
	}
	_, err = x.Wait(t.Context(), e.Tasks)
	x.must(err)
	if got := x.outputOf("ba"); !strings.Contains(got, "pm did: Good plan") {
		t.Errorf("got %q", got)
	}
	if p := x.close(); p.Exit != swarm.ExitFailed {
		t.Errorf("the session exits with %d", p.Exit)
	}
}

func TestCycleIsRefused(t *testing.T) {
	x := newTable(t)
	x.say("@pm Create plan based on $builder-1 &")
	x.until("@pm: waiting for @builder-1 (no output yet)")
	_, err := x.Enter(t.Context(), "@builder-1 Implement $pm")
	if want := "Circular dependency detected: @builder-1 → @pm → @builder-1"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// After Close nothing could end the wait.
	if p := x.close(); p.Tasks[0].Status != swarm.Failed || p.Exit != swarm.ExitFailed {
		t.Errorf("%+v", p.Tasks[0])
	}
}

func TestResume(t *testing.T) {
	x := newTable(t)
	x.say("@pm Plan")
	x.stop(swarm.Errorf(swarm.Stopped, "the terminal was closed"))
	_, err := x.Leave(t.Context())
	x.must(err)
	s, err := Resume(t.Context(), x.home, x.ID(), teamOf(x.pipes))
	x.must(err)
	s.Drive(t.Context(), run.Options{Engine: local.Run, Serve: httpd.Serve})
	x.Session = s
	x.say("@ba Use $pm")
	if got := x.outputOf("ba"); !strings.Contains(got, "pm did: Plan") {
		t.Errorf("got %q", got)
	}
	if got, err := x.history(""); err != nil || got != "  1  @pm Plan\n  2  @ba Use $pm\n" {
		t.Errorf("history: %q, %v", got, err)
	}
	x.close()
}

func TestSave(t *testing.T) {
	x := newTable(t)
	x.say("@pm Plan {{it}}")
	x.say("@ba Read $pm -> @builder-1 Build")
	text, err := x.compose(x.run.Began().Dir)
	x.must(err)
	for _, want := range []string{
		"  pm_1:\n    agent: pm\n    prompt-string: \"Plan \\\\{{it}}\"\n",
		"  ba_1:\n    agent: ba\n    depends_on: [{task: pm_1, condition: success}]\n    prompt-string: \"Read {{output:pm_1}}\"\n",
		"  builder-1_1:\n    agent: builder-1\n    depends_on: [{task: ba_1, condition: success}]\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the file\n%s\nlacks\n%s", text, want)
		}
	}
	x.close()
}

func TestCancel(t *testing.T) {
	x := newTable(t)
	x.say("@pm HOLD forever &")
	tasks := x.say("@ba Use $pm &")
	x.until("@pm: executing")
	answer, err := x.cancel(t.Context(), "@pm")
	x.must(err)
	if answer != "cancelling pm_1\n" {
		t.Error(answer)
	}
	_, err = x.Wait(t.Context(), append(tasks, "pm_1"))
	x.must(err)
	if got := x.task("pm_1").Status; got != swarm.Cancelled {
		t.Errorf("pm_1 is %s", got)
	}
	x.close()
}

// A line that a person cancels does not make the session fail. A session of cancelled lines only is
// cancelled.
func TestCancelledLineIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		other  string
		status swarm.Status
		exit   int
	}{{"@ba Read", swarm.Completed, swarm.ExitDone}, {"", swarm.Cancelled, swarm.ExitFailed}, {"@ba FAIL", swarm.Failed, swarm.ExitFailed}} {
		x := newTable(t)
		held := x.say("@pm HOLD forever &")
		x.until("@pm: executing")
		if c.other != "" {
			held = append(held, x.say(c.other+" &")...)
		}
		_, err := x.cancel(t.Context(), "@pm")
		x.must(err)
		_, err = x.Wait(t.Context(), held)
		x.must(err)
		if p := x.close(); p.Status != c.status || p.Exit != c.exit {
			t.Errorf("with %q the session is %s, exit %d", c.other, p.Status, p.Exit)
		}
	}
}
