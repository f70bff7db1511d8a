package provider

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
	"swarm/internal/process"
)

// shell makes a command provider that runs a line of shell.
func shell(t testing.TB, line string, opts ...func(*swarm.ProviderSpec, *Options)) Provider {
	t.Helper()
	return open(t, []string{"sh", "-c", line}, opts...)
}

func open(t testing.TB, argv []string, opts ...func(*swarm.ProviderSpec, *Options)) Provider {
	t.Helper()
	spec, opt := swarm.ProviderSpec{Name: "sh", Kind: "command", Command: argv}, Options{}
	for _, o := range opts {
		o(&spec, &opt)
	}
	p, err := OpenCommand(spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func grace(d time.Duration) func(*swarm.ProviderSpec, *Options) {
	return func(_ *swarm.ProviderSpec, o *Options) { o.Grace = d }
}

// request makes a turn with a run id of this test's own, so that its processes can be told from all
// others.
func request(t testing.TB, prompt string) Request {
	run := swarm.RunID(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) + "-" + strconv.Itoa(os.Getpid()))
	return Request{Run: run, Turn: "code/2/1", Task: "code", Agent: "coder", Iteration: 2, Attempt: 1, Prompt: prompt, Model: "m-1", Dir: t.TempDir()}
}

func wantKind(t testing.TB, err error, kind swarm.ErrorKind) *swarm.Error {
	t.Helper()
	var e *swarm.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v has the kind %q, want %q", err, swarm.KindOf(err), kind)
	}
	return e
}

// wantNobody fails if a process of the run is left.
func wantNobody(t testing.TB, run swarm.RunID) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("only Linux shows all environments: not checked")
		return
	}
	if left := process.OfRun(run); len(left) > 0 {
		t.Errorf("%d processes are left of the run %s: %v", len(left), run, left)
	}
}

// A recorder keeps the deltas of a turn.
type recorder struct {
	mu     sync.Mutex
	deltas []swarm.Delta
	heard  chan string // gets each piece, when set
}

func (r *recorder) live(d swarm.Delta) {
	r.mu.Lock()
	r.deltas = append(r.deltas, d)
	r.mu.Unlock()
	if r.heard != nil {
		r.heard <- d.Text
	}
}

func (r *recorder) said(kind swarm.DeltaKind) string {
	var b strings.Builder
	for _, d := range r.deltas {
		if d.Kind == kind {
			b.WriteString(d.Text)
		}
	}
	return b.String()
}

func TestPromptReachesTheProgram(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 200<<10/16)
	for _, c := range []struct {
		name   string
		argv   []string
		prompt string
		want   string
	}{
		{"standard input", []string{"cat"}, "Write it.\n", "Write it.\n"},
		{"200 KB on standard input", []string{"cat"}, long, long[len(long)-MaxOutput:]},
		{"argument", []string{"printf", "%s|%s", "{prompt}", "{model}"}, "Write it.", "Write it.|m-1"},
		{"inside an argument", []string{"printf", "%s", "-p={prompt}."}, "a b", "-p=a b."},
		{"a prompt that looks like a placeholder", []string{"printf", "%s", "{prompt}"}, "{model} {prompt}", "{model} {prompt}"},
		{"no shell", []string{"printf", "%s", "{prompt}"}, "$(id); `id` > x", "$(id); `id` > x"},
		{"nothing on standard input with an argument", []string{"sh", "-c", "cat; echo end", "{prompt}"}, "x", "end\n"},
		{"the longest argument", []string{"printf", "%s", "{prompt}"}, long[:131_071], long[131_071-MaxOutput : 131_071]},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := open(t, c.argv).Turn(t.Context(), request(t, c.prompt), nil)
			if err != nil {
				t.Fatal(err)
			}
			if string(reply.Output) != c.want {
				t.Errorf("output is %.80q (%d bytes), want %.80q (%d)", reply.Output, len(reply.Output), c.want, len(c.want))
			}
		})
	}
}

func TestPromptThatNoArgumentHolds(t *testing.T) {
	p := open(t, []string{"true", "{prompt}"})
	for name, prompt := range map[string]string{"too long": strings.Repeat("x", 131_072), "NUL": "a\x00b"} {
		_, err := p.Turn(t.Context(), request(t, prompt), nil)
		e := wantKind(t, err, swarm.BadPrompt)
		if !strings.Contains(e.Hint, "standard input") {
			t.Errorf("%s: the hint %q does not say what to do", name, e.Hint)
		}
	}
}

func TestProgramThatDoesNotReadHasNotFailed(t *testing.T) {
	for name, prompt := range map[string]string{"short": "x", "longer than a pipe": strings.Repeat("x", 1<<20)} {
		reply, err := shell(t, "exec <&-; echo done").Turn(t.Context(), request(t, prompt), nil)
		if err != nil || string(reply.Output) != "done\n" {
			t.Errorf("%s: output %q, error %v", name, reply.Output, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	p := open(t, []string{"env"}, func(s *swarm.ProviderSpec, o *Options) {
		o.Environ = []string{
			"PATH=" + os.Getenv("PATH"), "KEPT=1", "PWD=/elsewhere", "REPLACED=no", "SWARM_TOKEN=secret", "SWARM_AGENT_TOKEN=outer", "SWARM_URL=outer",
			"SWARM_RUN_ID=outer", "SWARM_TASK=outer", "SWARM_AGENT_ID=outer", "SWARM_JOB=outer", "ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=mine", "GEMINI_API_KEY=named", "GOOGLE_API_KEY=secret",
			"CLAUDE_CODE_OAUTH_TOKEN=secret", "HF_TOKEN=secret", "GITHUB_TOKEN=not-a-model's",
		}
		s.Env = map[string]string{"OPENAI_API_KEY": "", "OTHER": "$GEMINI_API_KEY", "REPLACED": "by the provider", "NONE": "${NOT_SET}", "LEAK": "$SWARM_TOKEN", "COST": "$5"}
	})
	r := request(t, "")
	r.Env = map[string]string{"REPLACED": "by the task", "TASK_ENV": "a=b"}
	r.Door = swarm.ToolEndpoint{URL: "http://127.0.0.1:7777", Token: "inner"}
	reply, err := p.Turn(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(reply.Output)), "\n")
	numbered := func(kv string) bool { return strings.HasPrefix(kv, "SWARM_JOB=") && kv != "SWARM_JOB=outer" }
	if !slices.ContainsFunc(got, numbered) {
		t.Error("the program has no number of its own")
	}
	got = slices.DeleteFunc(got, numbered)
	want := []string{
		"PATH=" + os.Getenv("PATH"), "KEPT=1", "PWD=" + r.Dir, "GITHUB_TOKEN=not-a-model's", "OPENAI_API_KEY=mine", "OTHER=named", "REPLACED=by the task", "TASK_ENV=a=b", "COST=$5",
		"SWARM_URL=http://127.0.0.1:7777", "SWARM_AGENT_TOKEN=inner", "SWARM_RUN_ID=" + string(r.Run), "SWARM_TASK=code", "SWARM_TASK_ID=code", "SWARM_AGENT=coder", "SWARM_AGENT_ID=coder", "SWARM_ITERATION=2", "SWARM_ATTEMPT=1", "SWARM_DEPTH=1", "SWARM_TURN_ID=code/2/1", "SWARM_DRIVER=" + strconv.Itoa(os.Getpid()),
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the program was given\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEnvironmentThatCannotBe(t *testing.T) {
	for _, env := range []map[string]string{{"SWARM_RUN_ID": "x"}, {"SWARM_TOKEN": "x"}, {"SWARM_AGENT_TOKEN": "x"}, {"A=B": "x"}, {"": "x"}, {"A": "x\x00y"}} {
		_, err := OpenCommand(swarm.ProviderSpec{Name: "sh", Kind: "command", Command: []string{"true"}, Env: env}, Options{})
		wantKind(t, err, swarm.BadInput)
		r := request(t, "")
		r.Env = env
		_, err = open(t, []string{"true"}).Turn(t.Context(), r, nil)
		wantKind(t, err, swarm.BadInput)
	}
}

func TestItRunsInItsFolder(t *testing.T) {
	r := request(t, "")
	if err := os.WriteFile(filepath.Join(r.Dir, "agent"), []byte("#!/bin/sh\npwd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	reply, err := open(t, []string{"./agent"}).Turn(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := filepath.EvalSymlinks(r.Dir)
	if got := strings.TrimSpace(string(reply.Output)); got != want {
		t.Errorf("it ran in %s, want %s", got, want)
	}
}

func TestStandardErrorIsNotOutput(t *testing.T) {
	var rec recorder
	reply, err := shell(t, "echo out; echo err >&2").Turn(t.Context(), request(t, ""), rec.live)
	if err != nil {
		t.Fatal(err)
	}
	if string(reply.Output) != "out\n" || string(reply.Stderr) != "err\n" || rec.said(swarm.DeltaText) != "out\n" || rec.said(swarm.DeltaStderr) != "err\n" {
		t.Errorf("output %q, standard error %q, streamed %v", reply.Output, reply.Stderr, rec.deltas)
	}
	if reply.Usage != (swarm.Usage{}) {
		t.Errorf("a program reports no usage, got %v", reply.Usage)
	}
}

func TestItStreamsWhileItRuns(t *testing.T) {
	rec := recorder{heard: make(chan string)}
	r := request(t, "")
	gate := filepath.Join(r.Dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan Reply)
	go func() {
		reply, err := shell(t, "printf first; read line <gate; printf ' second'").Turn(t.Context(), r, rec.live)
		if err != nil {
			t.Error(err)
		}
		done <- reply
	}()
	if got := <-rec.heard; got != "first" {
		t.Errorf("heard %q before it went on", got)
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := <-rec.heard; got != " second" {
		t.Errorf("heard %q after it went on", got)
	}
	if reply := <-done; string(reply.Output) != "first second" {
		t.Errorf("output is %q", reply.Output)
	}
}

func TestPiecesDoNotCutRunes(t *testing.T) {
	var rec recorder
	// After the first two bytes hardly any piece ends where a rune does, and half a rune stands at
	// the very end.
	said := "aa" + strings.Repeat("€", 200_000) + "\xe2\x82"
	reply, err := open(t, []string{"cat"}).Turn(t.Context(), request(t, said), rec.live)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range rec.deltas[:len(rec.deltas)-1] {
		if d.Text != strings.ToValidUTF8(d.Text, "") {
			t.Fatalf("piece %d of %d cuts a rune", i, len(rec.deltas))
		}
	}
	if rec.said(swarm.DeltaText) != said {
		t.Error("what was streamed is not what was said")
	}
	if reply.Bytes != int64(len(said)) || len(reply.Output) > MaxOutput || !strings.HasPrefix(string(reply.Output), "€") {
		t.Errorf("%d bytes, of which %d are kept from %.3q on", reply.Bytes, len(reply.Output), reply.Output)
	}
}

func TestHowProgramsEnd(t *testing.T) {
	for _, c := range []struct {
		line string
		kind swarm.ErrorKind
		msg  string
		exit int
		hint string
	}{
		{"echo so; exit 3", swarm.Exited, "exit status 3", 3, "swarm logs"},
		{"echo so; exit 137", swarm.Exited, "exit status 137", 137, "no memory"},
		{"echo so; no-such-program 2>/dev/null", swarm.Exited, "exit status 127", 127, "not there"},
		{"echo so; echo one >&2; echo >&2; echo two >&2; exit 1", swarm.Exited, "exit status 1: one | two", 1, "swarm logs"},
		{"echo so; for i in 1 2 3 4; do echo $i >&2; done; exit 1", swarm.Exited, "exit status 1: 2 | 3 | 4", 1, "swarm logs"},
		{"echo so; kill -SEGV $$", swarm.Crashed, "ended by signal 11 (segmentation fault)", 139, "the program crashed"},
		{"echo so; echo oh >&2; kill -KILL $$", swarm.Crashed, "ended by signal 9 (killed): oh", 137, "no memory"},
	} {
		reply, err := shell(t, c.line).Turn(t.Context(), request(t, ""), nil)
		if e := wantKind(t, err, c.kind); e.Msg != c.msg || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %q (%s), want %q (%s)", c.line, e.Msg, e.Hint, c.msg, c.hint)
		}
		if reply.Exit != c.exit || string(reply.Output) != "so\n" {
			t.Errorf("%s: exit %d, output %q", c.line, reply.Exit, reply.Output)
		}
	}
}

func TestProgramsThatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "no-first-line": 0o755, "no-interpreter": 0o755} {
		text := map[string]string{"no-interpreter": "#!/no/such/shell\n"}[name]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"echo\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		program, dir string
		kind         swarm.ErrorKind
		msg          string
		checked      bool // Check tells beforehand
	}{
		{"no-such-program", dir, swarm.NotFound, `"no-such-program" of the provider "sh" is not there`, true},
		{"./no-such-program", dir, swarm.NotFound, `"./no-such-program" of the provider "sh" is not there`, true},
		{"./plain", dir, swarm.NotFound, "may not be executed", true},
		{"./no-first-line", dir, swarm.BadInput, "is not a program", false},
		{"./no-interpreter", dir, swarm.NotFound, "first line", false},
		{"true", filepath.Join(dir, "gone"), swarm.NotFound, "the folder", false},
	} {
		p := open(t, []string{c.program}, func(_ *swarm.ProviderSpec, o *Options) { o.Dir = c.dir })
		r := request(t, "")
		r.Dir = ""
		_, err := p.Turn(t.Context(), r, nil)
		if e := wantKind(t, err, c.kind); !strings.Contains(e.Msg, c.msg) || e.Hint == "" {
			t.Errorf("%s: %q with the hint %q, want %q", c.program, e.Msg, e.Hint, c.msg)
		}
		h := p.(Checker).Check(t.Context())
		if h.Found == c.checked || c.checked && (h.Problem == "" || h.Hint == "") {
			t.Errorf("%s: Check says %+v", c.program, h)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, spec := range map[string]swarm.ProviderSpec{
		"no command": {Name: "x"}, "the prompt as program": {Name: "x", Command: []string{"{prompt}"}}, "NUL": {Name: "x", Command: []string{"a", "\x00"}},
	} {
		_, err := OpenCommand(spec, Options{})
		if e := wantKind(t, err, swarm.BadInput); e.Hint == "" {
			t.Errorf("%s: %v has no hint", name, e)
		}
	}
	_, err := OpenScript(swarm.ProviderSpec{Name: "x"}, Options{})
	if e := wantKind(t, err, swarm.BadInput); e.Hint == "" {
		t.Errorf("no script: %v has no hint", e)
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := request(t, "")
	_, err := shell(t, "echo >ran").Turn(ctx, r, nil)
	wantKind(t, err, swarm.CutByCancel)
	if _, err := os.Stat(filepath.Join(r.Dir, "ran")); err == nil {
		t.Error("the program was started")
	}
}
