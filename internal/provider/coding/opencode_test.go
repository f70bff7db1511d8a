package coding

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// TestOpencodeRecordings plays recordings of the real opencode.
func TestOpencodeRecordings(t *testing.T) {
	for name, want := range map[string]ending{
		"text":    {output: "Hello, planner."},
		"second":  {output: "Hello, planner."},
		"tool":    {output: "It is handed over."},
		"denied":  {kind: swarm.Denied, msg: "swarm_send_handoff"},
		"limited": {kind: swarm.RateLimited, msg: "exceeded your limit"},
		"broken":  {kind: swarm.NoResult, msg: "Internal server error"},
		"refused": {kind: swarm.NotSignedIn, msg: "invalid key"},
		"keyless": {kind: swarm.NotSignedIn, msg: "no key"},
		"stopped": {kind: swarm.Crashed, msg: "signal 15"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen recorder
			reply, err := stand(t, "opencode", "stream:"+streams("opencode", name)).Turn(t.Context(), request(t, "x"), seen.live)
			want.check(t, reply, err)
			if name != "stopped" && reply.Session != "ses_00000000000000000000000001" {
				t.Errorf("the session is %q", reply.Session)
			}
			if name != "tool" {
				return
			}
			if u := reply.Usage; u != (swarm.Usage{InputTokens: 2500, OutputTokens: 50, CachedTokens: 2000, USD: 0.0012}) {
				t.Errorf("it has cost %+v", u)
			}
			if shown := seen.said(swarm.DeltaText); shown != "I hand it over.\nIt is handed over." {
				t.Errorf("%q was shown", shown)
			}
			calls, done := seen.of(swarm.DeltaTool), seen.of(swarm.DeltaToolDone)
			if len(calls) != 1 || calls[0].Tool.Name != "swarm_send_handoff" || !strings.Contains(string(calls[0].Tool.Input), "the plan") ||
				len(done) != 1 || done[0].Tool.Failed || done[0].Tool.Output != `{"id":"e1","seq":1}` {
				t.Errorf("the tool was told as %+v and %+v", calls, done)
			}
		})
	}
}

func TestOpencodeFiles(t *testing.T) {
	a, err := open(swarm.ProviderSpec{Name: "o", Kind: "opencode"}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	var seen recorder
	turn := a.newTurn(provider.Request{Agent: "coder"}, seen.live, "x", launch{}, false)
	defer turn.modelWait.Stop()
	for _, line := range []string{
		`{"type":"tool_use","sessionID":"s","part":{"tool":"write","callID":"1","state":{"status":"completed","input":{"filePath":"/w/a.go"},"output":"ok"}}}`,
		`{"type":"tool_use","sessionID":"s","part":{"tool":"edit","callID":"2","state":{"status":"error","input":{"filePath":"/w/b.go"},"error":"no such text"}}}`,
		`{"type":"tool_use","sessionID":"s","part":{"tool":"read","callID":"3","state":{"status":"completed","input":{"filePath":"/w/c.go"},"output":"x"}}}`,
		`{"type":"tool_use","sessionID":"s","part":{"tool":"edit","callID":"4","state":{"status":"completed","input":[],"output":"x"}}}`,
		`{"type":"something_new","sessionID":7,"part":[]}`,
		`{"type":"text","sessionID":"s","part":{"text":"Done."}}`,
		`{"type":"step_finish","sessionID":"s","part":{"reason":"length","tokens":{"input":1,"output":2}}}`,
	} {
		turn.hearLine([]byte(line))
	}
	if files := seen.of(swarm.DeltaFile); len(files) != 1 || files[0].File != "/w/a.go" {
		t.Errorf("files: %+v", files)
	}
	if turn.fatal != nil {
		t.Error(turn.fatal)
	}
	wantKind(t, turn.fault, swarm.NoResult)
}

// A tool that a rule refuses is told to the model, and opencode goes on: the turn ends with its last
// step, and has failed. A permission that nobody gives ends it at once.
func TestOpencodeGoesOnAfterARule(t *testing.T) {
	a, err := open(swarm.ProviderSpec{Name: "o", Kind: "opencode"}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, goesOn := range map[string]bool{
		"The user has specified a rule which prevents you from using this specific tool call.": true,
		"The user rejected permission to use this specific tool call.":                         false,
	} {
		turn := a.newTurn(provider.Request{Agent: "coder"}, func(swarm.Delta) {}, "x", launch{}, false)
		defer turn.modelWait.Stop()
		ended := func() bool {
			select {
			case <-turn.ended:
				return true
			default:
				return false
			}
		}
		turn.hearLine([]byte(`{"type":"tool_use","sessionID":"s","part":{"tool":"write","callID":"1","state":{"status":"error","input":{"filePath":"/w/a.go"},"error":"` + text + `"}}}`))
		turn.hearLine([]byte(`{"type":"step_finish","sessionID":"s","part":{"reason":"tool-calls","tokens":{"input":1,"output":2}}}`))
		if ended() == goesOn {
			t.Errorf("%s: the turn has ended: %v", text, ended())
		}
		if goesOn {
			turn.hearLine([]byte(`{"type":"text","sessionID":"s","part":{"text":"I may not."}}`))
			turn.hearLine([]byte(`{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":1,"output":2}}}`))
			if output := turn.reply(0).Output; !ended() || string(output) != "I may not." {
				t.Errorf("it says %q", output)
			}
		}
		wantKind(t, turn.fault, swarm.Denied)
	}
}

func TestOpencodeSettings(t *testing.T) {
	r := provider.Request{Dir: "/work", Root: "/work/part", Model: "local/m", Tools: []string{"webfetch", "bash(go test*)", "bash(go vet*)"}, Door: swarm.ToolEndpoint{URL: "http://127.0.0.1:9", Token: "t"}}
	l := opencode{}.launch(r, "ses_1", nil)
	if want := []string{"run", "--format=json", "--thinking", "--model=local/m", "--session=ses_1"}; !slices.Equal(l.args, want) {
		t.Errorf("arguments %q", l.args)
	}
	b, _ := json.Marshal(l.overlay["OPENCODE_PERMISSION"])
	if want := `{"bash":{"*":"ask","go test*":"allow","go vet*":"allow"},"edit":"allow","external_directory":{"*":"ask","/work/part/*":"allow"},"swarm_*":"allow","webfetch":"allow"}`; string(b) != want {
		t.Errorf("permissions %s", b)
	}
	if b, _ := json.Marshal(l.overlay); strings.Contains(string(b), `"t"`) {
		t.Errorf("the token stands in %s", b)
	}
}

// TestLay: the user's settings in a variable stay, except where ours replace them.
func TestLay(t *testing.T) {
	ours := map[string]object{"X": {"mcp": object{"swarm": object{"url": "u"}}, "a": "ours"}}
	for before, want := range map[string]string{
		`{}`: `{"a":"ours","mcp":{"swarm":{"url":"u"}}}`,
		`{"b":[1,2],"a":{"c":1},"mcp":{"mine":{"url":"v"},"swarm":{"old":true}}}`: `{"a":"ours","b":[1,2],"mcp":{"mine":{"url":"v"},"swarm":{"old":true,"url":"u"}}}`,
		`{"mcp":"none"}`: `{"a":"ours","mcp":{"swarm":{"url":"u"}}}`,
	} {
		env, err := overlayEnv([]string{"PATH=/bin", "X=" + before, "XY=1"}, ours)
		if err != nil || !slices.Equal(env, []string{"PATH=/bin", "XY=1", "X=" + want}) {
			t.Errorf("%s: %q, %v", before, env, err)
		}
	}
	if env, err := overlayEnv([]string{"PATH=/bin"}, ours); err != nil || len(env) != 2 {
		t.Errorf("%q, %v", env, err)
	}
	for _, bad := range []string{"", "{", "[]", "{} // a comment"} {
		if _, err := overlayEnv([]string{"X=" + bad}, ours); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzOpencode(f *testing.F) { fuzzListener(f, "opencode", "opencode", launch{}) }

// TestRealOpencodeKeepsTheUsersRules: the user's settings that forbid more than the default stay in
// force, except for what the agent's `tools` allow.
func TestRealOpencodeKeepsTheUsersRules(t *testing.T) {
	for name, c := range map[string]struct {
		tools []string
		want  swarm.ErrorKind
	}{
		"nothing is allowed": {nil, swarm.Denied},
		"the tool":           {[]string{"bash"}, ""},
		"the command":        {[]string{"bash(touch *)"}, ""},
		"another command":    {[]string{"bash(go test*)"}, swarm.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			touch := modeltest.Answer{Calls: []modeltest.Call{{Name: "bash", Args: `{"command": "touch made.txt", "description": "make a file"}`}}}
			d := newDesk(t, reals[2], touch, modeltest.Answer{Text: "It is made."})
			d.request.Tools = c.tools
			reply, err := d.turn(t.Context())
			_, missing := os.Stat(filepath.Join(d.request.Dir, "made.txt"))
			if swarm.KindOf(err) != c.want || (missing == nil) != (c.want == "") {
				t.Errorf("%q, %v, %v", reply.Output, err, missing)
			}
		})
	}
}

// TestOpencodeThatTriesAgain: only its log says that it retries, and one time limit covers all
// retries together.
func TestOpencodeThatTriesAgain(t *testing.T) {
	a, err := open(swarm.ProviderSpec{Name: "o", Kind: "opencode"}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	a.patience = time.Hour
	turn := a.newTurn(provider.Request{}, func(swarm.Delta) {}, "x", launch{}, false)
	mutter := func(piece string) { turn.writeStderr(piece); turn.sendPending() }
	failed := `timestamp=2026-01-01T00:00:00.000Z level=ERROR message="stream error" error.error="AI_APICallError: slow down"` + "\n"
	mutter("level=ERROR message=\"something else\"\n")
	if turn.modelWait.Stop() {
		t.Error("it is waited for, and it does not wait")
	}
	mutter(failed)
	if !turn.modelWait.Stop() {
		t.Error("it is not waited for")
	}
	mutter(failed)
	if turn.modelWait.Stop() {
		t.Error("the second try begins the wait anew")
	}
	turn.hearLine([]byte(`{"type":"text","sessionID":"s","part":{"text":"there it is"}}`))
	mutter(failed)
	if !turn.modelWait.Stop() {
		t.Error("after it has said something it is not waited for")
	}
}

// TestOpencodeWithoutNetwork: the hint does not say to retry.
func TestOpencodeWithoutNetwork(t *testing.T) {
	a, err := open(swarm.ProviderSpec{Name: "o", Kind: "opencode"}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	turn := a.newTurn(provider.Request{}, func(swarm.Delta) {}, "x", launch{}, false)
	turn.hearLine([]byte(`{"type":"error","error":{"name":"APIError","data":{"message":"Cannot connect to API: getaddrinfo ENOTFOUND models.example.org"}}}`))
	if e := wantKind(t, turn.fault, swarm.NoResult); e.Hint != provider.CheckNetwork {
		t.Errorf("the hint is %q", e.Hint)
	}
}
