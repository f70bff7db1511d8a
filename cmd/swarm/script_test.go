package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/npmtest"
	"swarm/internal/otlptest"
	"swarm/internal/postgrestest"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/temporaltest"
	"swarm/web"
)

func TestMain(m *testing.M) {
	testscript.Main(m, programs)
}

// programs are the programs that this test binary plays, by the name under which it is started.
var programs = map[string]func(){"swarm": main, "letterwriter": writeLetters, "mole": obeyAll, "leaker": leak}

// TestScripts runs the real program, in an empty home folder for each script. The scripts double as
// the manual.
func TestScripts(t *testing.T) { runScripts(t, "script", os.Getenv("PATH")) }

// TestRealScripts runs scripts in which the agents are the real programs, where those are
// installed.
func TestRealScripts(t *testing.T) {
	runScripts(t, "real", pathWith(t, npmtest.Claude, "claude", npmtest.Codex, "codex"))
}

// TestRealMoreScripts are those whose programs take seconds to start.
func TestRealMoreScripts(t *testing.T) {
	runScripts(t, "real-more", pathWith(t, npmtest.Gemini, "gemini", npmtest.OpenCode, "opencode"))
}

// TestRealACPScripts are those whose agents all speak the Agent Client Protocol.
func TestRealACPScripts(t *testing.T) {
	onlyWithAgents(t)
	runScripts(t, "real-acp", pathWith(t, npmtest.Gemini, "gemini", npmtest.OpenCode, "opencode", npmtest.Node, "node",
		npmtest.ClaudeACP, "claude-agent-acp", npmtest.CodexACP, "codex-acp", npmtest.Qwen, "qwen"))
}

// TestRealOldACPScripts are the like with programs of a year ago.
func TestRealOldACPScripts(t *testing.T) {
	onlyWithAgents(t)
	runScripts(t, "real-acp-old", pathWith(t, npmtest.OldClaudeACP, "claude-code-acp", npmtest.OldCodexACP, "codex-acp"))
}

// onlyWithAgents leaves a test to `make test-agents`: its programs take a minute to start.
func onlyWithAgents(t *testing.T) {
	t.Helper()
	if os.Getenv("SWARM_TEST_AGENTS") == "" {
		t.Skip("make test-agents runs it")
	}
}

// TestA2AScripts runs scripts in which the client of our agents is the JavaScript SDK of A2A, where
// that is installed.
func TestA2AScripts(t *testing.T) {
	t.Setenv("A2A_SDK", npmtest.Package(t, npmtest.A2A))
	runScripts(t, "a2a", os.Getenv("PATH"))
}

// TestOpenAPIScripts runs scripts that lint the document of our server and generate a TypeScript
// client from it, where those programs are installed.
func TestOpenAPIScripts(t *testing.T) {
	t.Setenv("OPENAPI_FETCH", npmtest.Package(t, npmtest.OpenAPIFetch))
	runScripts(t, "openapi", pathWith(t, npmtest.Redocly, "redocly", npmtest.OpenAPITypeScript, "openapi-typescript"))
}

// TestRealCollector runs scripts in which runs are told to a real OpenTelemetry Collector, where that
// was built.
func TestRealCollector(t *testing.T) {
	program := npmtest.Collector(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLLECTOR_PORT", strconv.Itoa(free.Addr().(*net.TCPAddr).Port))
	free.Close()
	runScripts(t, "real-collector", filepath.Dir(program)+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// TestMCPScripts runs scripts whose agents use a tool server from npm, where that is installed.
func TestMCPScripts(t *testing.T) {
	runScripts(t, "mcp", pathWith(t, npmtest.Filesystem, "mcp-server-filesystem"))
}

// TestPostgresScripts runs scripts over a store that two state folders share, where PostgreSQL is
// installed.
func TestPostgresScripts(t *testing.T) {
	t.Setenv("SWARM_STORE", postgrestest.Address(t))
	runScripts(t, "postgres", os.Getenv("PATH"))
}

// TestTemporalScripts runs scripts in which workers drive the runs, with a real Temporal server, where
// that and PostgreSQL are installed.
func TestTemporalScripts(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", temporaltest.Address(t))
	postgrestest.Address(t) // each script has a cluster of its own, whose runs no other worker sees
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", folder, "swarm/cmd/swarm-worker").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runScripts(t, "temporal", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// pathWith is PATH with the programs of npm's packages in it.
func pathWith(t *testing.T, specsAndPrograms ...string) string {
	path := []string{os.Getenv("PATH")}
	for i := 0; i < len(specsAndPrograms); i += 2 {
		path = append([]string{filepath.Dir(npmtest.Path(t, specsAndPrograms[i], specsAndPrograms[i+1]))}, path...)
	}
	return strings.Join(path, string(filepath.ListSeparator))
}

func runScripts(t *testing.T, folder, path string) {
	old, err := filepath.Abs(filepath.Join("testdata", "old"))
	if err != nil {
		t.Fatal(err)
	}
	deadline, _ := t.Deadline()
	testscript.Run(t, testscript.Params{
		Dir:      filepath.Join("testdata", folder),
		Deadline: deadline, // a script that hangs is ended and says where, instead of a panic that does not
		Setup: func(env *testscript.Env) error {
			own, _, _ := strings.Cut(env.Getenv("PATH"), string(filepath.ListSeparator))
			env.Setenv("SWARMPATH", own) // for scripts that want to see that nothing else is started
			env.Setenv("PATH", own+string(filepath.ListSeparator)+path)
			env.Setenv("SWARM_HOME", filepath.Join(env.WorkDir, ".swarm-home"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_COLOR", "1")
			for _, variable := range []string{"A2A_SDK", "OPENAPI_FETCH", "COLLECTOR_PORT", "SWARM_STORE", "TEMPORAL_ADDRESS"} {
				env.Setenv(variable, os.Getenv(variable))
			}
			env.Setenv("OLD_RUNS", old)               // which older versions of the program have made
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each of hundreds of processes
			env.Values[collectorKey{}] = new(*otlptest.Server)
			env.Values[clusterKey{}] = new(*postgrestest.Cluster)
			env.Defer(func() { endDriven(env.WorkDir) })
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "page":
				_, err := fs.Stat(web.Files(), "index.html") // whether the page was built
				return err == nil, nil
			case "namespaces": // whether a process can have a host name and process numbers of its own
				return exec.Command("unshare", "-r", "-u", "-p", "-f", "--kill-child", "--mount-proc", "hostname", "other").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":        exitCode,
			"leaks":       leaks,
			"waits":       waitForLine,
			"modelserver": modelServer,
			"served":      served,
			"login":       login,
			"stitch":      stitch,
			"http":        request,
			"collector":   collector,
			"told":        collected,
			"cluster":     cluster,
			"sql":         statement,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// cluster starts a PostgreSQL of the script's own and sets $SWARM_STORE, or crashes it, or starts it
// again: cluster [crash|start].
func cluster(ts *testscript.TestScript, neg bool, args []string) {
	running := ts.Value(clusterKey{}).(**postgrestest.Cluster)
	switch {
	case neg || len(args) > 1:
		ts.Fatalf("usage: cluster [crash|start]")
	case len(args) == 0:
		c, err := postgrestest.Run()
		ts.Check(err)
		ts.Defer(c.Close)
		*running = c
		ts.Setenv("SWARM_STORE", c.Address)
	case args[0] == "crash":
		ts.Check((*running).Crash())
	case args[0] == "start":
		ts.Check((*running).Start())
	default:
		ts.Fatalf("unknown: cluster %s", args[0])
	}
}

type clusterKey struct{}

// statement executes a statement in the database of $SWARM_STORE: sql 'UPDATE …' args….
func statement(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sql statement args…")
	}
	c, err := pgx.Connect(context.Background(), ts.Getenv("SWARM_STORE"))
	ts.Check(err)
	defer c.Close(context.Background())
	values := make([]any, len(args)-1)
	for i, arg := range args[1:] {
		values[i] = arg
	}
	done, err := c.Exec(context.Background(), args[0], values...)
	ts.Check(err)
	if done.RowsAffected() == 0 {
		ts.Fatalf("%s has changed nothing", args[0])
	}
}

// endDriven ends the processes that still drive a run of a script, in any home folder that it made.
// Those of `swarm up -d` outlive a script that fails before it waits for them.
func endDriven(folder string) {
	homes, _ := filepath.Glob(filepath.Join(folder, "*", "runs"))
	more, _ := filepath.Glob(filepath.Join(folder, ".*", "runs"))
	for _, runs := range append(homes, more...) {
		h, err := statedir.At(filepath.Dir(runs), sqlite.NewStore)
		if err != nil {
			continue // a script has broken it
		}
		for _, m := range h.Marks() { // of runs in another store
			if id := process.IDOf(m.PID); !h.Exists(m.Run) && h.Alive(m) && m.Started != 0 && id.Started == m.Started { // else it is of another namespace
				_ = syscall.Kill(m.PID, syscall.SIGKILL)
			}
		}
		for entry, err := range h.Store.Runs(context.Background(), swarm.RunQuery{}) {
			if err == nil {
				endDriver(h, entry.ID)
			}
		}
		_ = h.Store.Close()
	}
}

// endDriver has the process that drives a run end it, and ends the process if it does not.
func endDriver(h *statedir.Home, id swarm.RunID) {
	l, err := run.OpenReader(h, id)
	if err != nil {
		return
	}
	defer l.Close()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		owner, driven := l.Driver()
		if !driven || owner.PID == os.Getpid() {
			return
		}
		_ = syscall.Kill(owner.PID, signal)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, _ = l.Wait(ctx)
		cancel()
	}
}

// exitCode runs the program and holds its exit code against the first argument: code 2 swarm up.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		m := regexp.MustCompile(`exit status (\d+)`).FindStringSubmatch(err.Error())
		if m == nil {
			ts.Fatalf("%v", err)
		}
		got = m[1]
	}
	if got != args[0] {
		ts.Fatalf("%s exited with %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// waitForLine waits until a program prints a line that matches: waits 'a.*running' swarm ls.
func waitForLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waits pattern program args…")
	}
	re := regexp.MustCompile("(?m)" + args[0])
	for range 2000 {
		ts.Exec(args[1], args[2:]...)
		if re.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s never printed a line that matches %s", strings.Join(args[1:], " "), args[0])
}

// modelServer starts a fake model server, and sets $MODELSERVER to its URL: modelserver
// answers.json. The file is a list of answers in order, or of cues, so that each agent of a team
// gets its own: [{"when": "SWARM_AGENT_ID is planner", "answers": [{"text": "done"}]}].
func modelServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: modelserver answers.json")
	}
	cues, err := modeltest.ReadCues([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	server := modeltest.StartCues(cues...)
	ts.Defer(server.Close)
	ts.Setenv("MODELSERVER", server.URL)
}
