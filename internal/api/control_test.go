package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/pipetest"
	"swarm/internal/strictjson"
	"swarm/internal/view"
)

// node finds an agent of a run.
func (h *house) node(id, name string) node {
	h.t.Helper()
	for _, n := range get[nodeList](h, "/api/v1/runs/"+id+"/nodes").Nodes {
		if n.Name == name {
			return n
		}
	}
	h.t.Fatalf("there is no agent %s", name)
	return node{}
}

// TestAnAgentIsSeenAsItLives: before its turn, in it before its first word, when it speaks, and
// when its run has ended.
func TestAnAgentIsSeenAsItLives(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x}\n  b: {prompt-string: y, depends_on: [a]}\n", "echo > out; read line < go; echo word; read line < on\n")
	goOn := pipetest.Make(t, h.dir+"/go")
	pipetest.Make(t, h.dir+"/on")
	out := pipetest.Make(t, h.dir+"/out")
	id := h.start()
	l := h.listen("workflow_id="+id, "")
	out.Line()
	if n := h.node(id, "a"); n.Status != swarm.Running || n.Connection != view.Connected || n.Stream != view.Reading || n.Turn != "a/1/1" || n.Active.IsZero() {
		t.Errorf("it has its prompt: %+v", n)
	}
	if n := h.node(id, "b"); n.Status != swarm.Waiting || n.Connection != view.IdleAgent || n.Stream != "" || n.Turn != "" || len(n.Waits) != 1 || n.Waits[0].Task != "a" {
		t.Errorf("it waits for a: %+v", n)
	}
	began := h.node(id, "a").Active
	goOn.Say("go")
	l.until(feed.Delta)
	if n := h.node(id, "a"); n.Status != swarm.Streaming || n.Connection != view.Connected || n.Stream != view.Writing || !n.Active.After(began) {
		t.Errorf("it speaks: %+v", n)
	}
	if turn := get[shownTurn](h, "/api/v1/runs/"+id+"/turns/a/1/1"); len(turn.Said) != 1 || turn.Said[0].Text != "word\n" || !strings.HasSuffix(turn.PromptText, "\n\nx\n") || turn.OutputText != "" {
		t.Errorf("its turn: %+v", turn)
	}
	h.post("/api/v1/runs/"+id+"/cancel", "", http.StatusAccepted)
	l.until(string(swarm.RunEnded))
	h.settle(id)
	if n := h.node(id, "a"); n.Status != swarm.Idle || n.Connection != view.Disconnected || n.Stream != "" || n.Turn != "" {
		t.Errorf("its run has ended: %+v", n)
	}
}

// TestARunIsHeldAndGoesOn: commands over HTTP take effect, whichever process drives the run.
func TestARunIsHeldAndGoesOn(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x}\n  b: {prompt-string: y, depends_on: [a]}\n", "echo > out; read line < go; echo word\n")
	goOn := pipetest.Make(t, h.dir+"/go")
	out := pipetest.Make(t, h.dir+"/out")
	id := h.start()
	run := "/api/v1/runs/" + id
	l := h.listen("workflow_id="+id, "")
	out.Line()
	h.post(run+"/pause", "", http.StatusAccepted)
	l.until(string(swarm.RunPausing))
	goOn.Say("go")
	l.until(string(swarm.RunPaused))
	if got := get[runList](h, "/api/v1/runs?status=paused").Runs; len(got) != 1 || string(got[0].ID) != id {
		t.Errorf("paused are %+v", got)
	}
	h.post(run+"/resume", "", http.StatusAccepted)
	l.until(string(swarm.RunUnpaused))
	out.Line()

	// A turn is cut and begun again.
	h.post(run+"/nodes/b/resume", "", http.StatusConflict)
	h.post(run+"/nodes/a/pause", "", http.StatusConflict)
	h.post(run+"/nodes/a/reset", "", http.StatusConflict)
	h.post(run+"/nodes/b/start", "", http.StatusConflict)
	h.post(run+"/nodes/b/reset", "", http.StatusAccepted)
	l.until(string(swarm.TurnEnded))
	out.Line()
	if n := h.node(id, "b"); n.Turn != "b/1/2" {
		t.Errorf("after a reset it has the turn %s", n.Turn)
	}

	// A message for its next turn, and one that cuts it.
	h.post(run+"/messages", `{"to":"b","text":"first read this","interrupt":true,"structured":{"n":12345678901234567890.10}}`, http.StatusCreated)
	l.until(string(swarm.TurnEnded))
	out.Line()
	if turn := get[shownTurn](h, run+"/turns/b"); turn.ID != "b/1/3" || !strings.Contains(turn.PromptText, "first read this") || !strings.Contains(turn.PromptText, "12345678901234567890.10") {
		t.Errorf("its next turn is %s: %s", turn.ID, turn.PromptText)
	}
	if mail := get[mailList](h, run+"/mail?pending=true").Mail; len(mail) != 1 || mail[0].FromNodeID != swarm.User || mail[0].ToNodeID != "b" {
		t.Errorf("its mail is %+v", mail)
	}

	// Its driver leaves, and this process resumes it.
	h.stop(swarm.Errorf(swarm.Stopped, "for a moment"))
	h.drivers.Wait()
	if got := get[runList](h, "/api/v1/runs?status=interrupted").Runs; len(got) != 1 {
		t.Errorf("interrupted are %+v", got)
	}
	if n := h.node(id, "b"); n.Connection != view.Disconnected {
		t.Errorf("nobody drives it, and b is %s", n.Connection)
	}
	h.drive()
	h.post(run+"/resume", "", http.StatusAccepted)
	out.Line()
	goOn.Say("go")
	l.until(string(swarm.RunEnded))
	h.settle(id)
	h.post(run+"/pause", "", http.StatusConflict)
}

// TestATaskThatWaitsForAPersonIsStarted: only `on_failure: fix` makes a task wait for a start.
func TestATaskThatWaitsForAPersonIsStarted(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x, on_failure: fix}\n", "test -e mended\n")
	id := h.start()
	l := h.listen("workflow_id="+id, "")
	l.until(string(swarm.TaskBlocked))
	if n := h.node(id, "a"); n.Status != swarm.Blocked {
		t.Errorf("%+v", n)
	}
	h.write("mended", "")
	h.post("/api/v1/runs/"+id+"/nodes/a/start", "", http.StatusAccepted)
	l.until(string(swarm.TaskCompleted))
}

func TestWhatCannotBeStartedIsRefused(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x}\n", "true\n")
	h.write("bad.yaml", "tasks: {a: {promt: x}}")
	for body, want := range map[string]string{
		`{"file":"nosuch.yaml"}`:                 "nosuch.yaml",
		`{"file":"bad.yaml"}`:                    `did you mean \"prompt\"?`,
		`{"tasks":["b"]}`:                        `no task or pipeline \"b\"`,
		`{"tasks":"a"}`:                          `the field \"tasks\" cannot be a string`,
		`{"task":["a"]}`:                         `did you mean \"tasks\"?`,
		`{"pipeline":"p","tasks":["a"]}`:         "not of both",
		`{"goal":"x","tasks":["a"]}`:             "a team has a goal",
		`{"to":"a"}`:                             "need a goal",
		`{"jobs":-1}`:                            "jobs cannot be -1",
		`{"dir":"/"}`:                            "start it with -g",
		`{"dir":"../other"}`:                     "start it with -g",
		`{"Tasks":["a"]}`:                        "there is no field",
		`[]`:                                     "not one JSON object",
		`null`:                                   "not one JSON object",
		`{} {}`:                                  "nothing after it",
		`{"stdin":` + strings.Repeat("[", 20000): "the body is not JSON",
		`{"goal":"x","goal":"y"}`:                `the key \"goal\" stands there twice`,
		`{"goal":"x","g\u006fal":"y"}`:           `the key \"goal\" stands there twice`,
		"{\"goal\":\"\xff\"}":                    "the body is not UTF-8",
	} {
		status, text := h.ask("POST", "/api/v1/runs", body)
		if status != 400 && status != 403 || !strings.Contains(text, want) {
			t.Errorf("%.50s: %d %s, want %s", body, status, text, want)
		}
	}
	if runs := get[runList](h, "/api/v1/runs").Runs; len(runs) != 0 {
		t.Errorf("there are runs: %v", runs)
	}
}

// A replay takes only cancel. That is no fault of the request: with an agent that is reached it would
// be obeyed.
func TestAReplayRefusesWhatItsRecordingDoesNotHave(t *testing.T) {
	h := open(t)
	id, _, _ := h.logOf(swarm.RunStart{Kind: swarm.PipelineRun, Dir: h.dir, Replay: true})
	for path, body := range map[string]string{
		"/pause": "", "/resume": "", "/nodes/a/pause": "", "/nodes/a/reset": "", "/messages": `{"to":"a","text":"hi"}`,
	} {
		if status, text := h.ask("POST", "/api/v1/runs/"+id+path, body); status != 409 || !strings.Contains(text, "replay") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestRunsOfOtherFoldersAreNotThere, unless every folder is served.
func TestRunsOfOtherFoldersAreNotThere(t *testing.T) {
	h := open(t)
	id, _, _ := h.log("/elsewhere")
	paths := []string{"/api/v1/runs/" + id, "/api/v1/runs/" + id + "/events", "/api/v1/stream/sse?type=tick&workflow_id=" + id, "/api/v1/runs/@last"}
	for _, path := range paths {
		if status, text := h.ask("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := h.ask("POST", "/api/v1/runs/"+id+"/cancel", ""); status != http.StatusNotFound {
		t.Errorf("%d %s", status, text)
	}
	if runs := get[runList](h, "/api/v1/runs").Runs; len(runs) != 0 {
		t.Errorf("%v", runs)
	}
	everywhere := open(t, func(a *API) { a.Control.Home, a.Control.Anywhere = h.home, true })
	if runs := get[runList](everywhere, "/api/v1/runs").Runs; len(runs) != 1 || string(runs[0].ID) != id {
		t.Errorf("%v", runs)
	}
}

func TestListsComeInPages(t *testing.T) {
	h := open(t)
	var all []swarm.RunID
	for range 5 {
		id, write := h.bare()
		write(note("x"), note("y"), swarm.Event{Kind: swarm.Tick})
		all = append(all, swarm.RunID(id))
	}
	slices.Sort(all)
	slices.Reverse(all)
	var got []swarm.RunID
	for before := ""; ; {
		page := get[runList](h, "/api/v1/runs?limit=2&before="+before)
		for _, s := range page.Runs {
			got = append(got, s.ID)
		}
		if before = string(page.Next); before == "" {
			break
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	for kind, want := range map[string]string{"": "1 2 3 4 5", "notice": "3 4", "tick,run_started": "1 5", "turn_ended": ""} {
		var seqs []string
		for after := int64(0); ; {
			page := get[eventList](h, fmt.Sprintf("/api/v1/runs/%s/events?limit=1&after=%d&kind=%s", all[0], after, kind))
			for _, e := range page.Events {
				seqs = append(seqs, fmt.Sprint(e.Seq))
			}
			if after = page.Next; after == 0 {
				break
			}
		}
		if strings.Join(seqs, " ") != want {
			t.Errorf("kind=%s: %v, want %s", kind, seqs, want)
		}
	}
}

// TestNobodyGetsInAndNothingChanges tries every route with every method and every kind of invalid
// credential. No answer reveals anything, and the state folder is unchanged afterwards.
func TestNobodyGetsInAndNothingChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	t.Parallel()
	h := open(t)
	id, write := h.bare()
	write(swarm.Event{Kind: swarm.ApprovalAsked, Agent: "a", Task: "a", Turn: "a/1/1", Data: json.RawMessage(`{"id":"a/1/1-x","what":"read"}`)})
	h.project("tasks:\n  a: {prompt-string: x}\n", "true\n")
	mine, others := agenttoken.New(id), agenttoken.New("another")
	leave := h.server.Admit(func(token string) (httpd.Agent, error) {
		if _, ok := mine.Agent(token); ok {
			return nobody{}, nil
		}
		return nil, errors.New("nobody")
	})
	defer leave()
	address := strings.TrimPrefix(h.server.URL(), "http://")
	_, port, _ := strings.Cut(address, ":")
	hosts := []string{address, "localhost:" + port, "evil.example:" + port, "127.0.0.1", "0.0.0.0:" + port}
	origins := []string{"", "http://" + address, "null", "https://" + address, "http://evil.example:" + port}
	tokens := []string{"", "Bearer ", "Bearer wrong-wrong-wrong-wrong", "Basic " + token, "Bearer " + token + "x", "Bearer " + mine.For("a"), "Bearer " + others.For("a"), "Bearer " + token}
	wrong := func(host, origin, auth string) (n int) { // how many of them are
		for _, good := range []bool{slices.Contains(hosts[:2], host), slices.Contains(origins[:2], origin), auth == tokens[len(tokens)-1]} {
			if !good {
				n++
			}
		}
		return n
	}
	most := 3
	if testing.Short() {
		most = 1 // each has to be refused alone
	}
	before := snapshot(t, h.home.Dir())
	tried := 0
	values := strings.NewReplacer("{id}", id, "{turn...}", "a/1/1", "{agent}", "a", "{action}", "stop", "{approval...}", "a/1/1-x", "{kind}", "log", "{name}", "x")
	for _, r := range append(h.api.table(), route{"POST", "/mcp", nil}, route{"GET", "/nosuch", nil}, route{"POST", "/a2a/a", nil}, route{"GET", "/.well-known/agent-card.json", nil}) {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			for _, host := range hosts {
				for _, origin := range origins {
					for _, auth := range tokens {
						if n := wrong(host, origin, auth); n == 0 || n > most || r.path == "/mcp" && auth == tokens[5] {
							continue
						}
						tried++
						want := http.StatusUnauthorized
						if !slices.Contains(hosts[:2], host) || !slices.Contains(origins[:2], origin) {
							want = http.StatusForbidden
						}
						knock(t, h, method, values.Replace(r.path)+"?workflow_id="+id, host, origin, auth, want)
						if t.Failed() {
							return
						}
					}
				}
			}
		}
	}
	// A client with the token is refused too if it sends no JSON, or uses the agents' endpoint.
	for _, r := range h.api.table() {
		if r.method == "POST" {
			req := h.request("POST", values.Replace(r.path), `{"ok":true,"to":"a","text":"x"}`)
			req.Header.Set("Content-Type", "text/plain")
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusUnsupportedMediaType {
				t.Errorf("%s: %s", r.path, answer.Status)
			}
		}
	}
	knock(t, h, "POST", "/mcp", address, "", "Bearer "+token, http.StatusUnauthorized)
	if after := snapshot(t, h.home.Dir()); after != before {
		t.Errorf("the state folder was\n%s\nand is\n%s", before, after)
	}
	t.Logf("%d requests", tried)
}

// nobody is an agent without tools.
type nobody struct{ httpd.Agent }

func knock(t *testing.T, h *house, method, path, host, origin, auth string, want int) {
	t.Helper()
	r := h.request(method, path, `{"ok":true}`)
	r.Host = host
	r.Header = http.Header{"Content-Type": {"application/json"}}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var p struct{ Error, Hint string }
	err = json.NewDecoder(answer.Body).Decode(&p)
	if answer.StatusCode != want || method != "HEAD" && (err != nil || p.Error == "" || p.Hint == "") || strings.Contains(p.Error+p.Hint, token) {
		t.Errorf("%s %s, host %s, origin %q, %q: %s %+v (%v), want %d", method, path, host, origin, auth, answer.Status, p, err, want)
	}
}

// snapshot is what a folder holds.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "-shm") { // readers leave marks there
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s\n", path, swarm.HashOf(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// FuzzBodies: any body is either read as written, or refused with the mistake.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"tasks":["a"],"jobs":3}`, `{"jobs":1e99}`, `{"stdin":"\ud800"}`, `null`, `[]`, `{"tasks":null}`, `{"only":1}`, "\x00", `{"a":1}{`,
		`{"jobs":1,"jobs":2}`, `{"Jobs":1}`, `{"structured":[[1e400,{"a":1,"\u0061":2}]]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r, err := http.NewRequest("POST", "/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var w struct {
			control.Request
			Structured json.RawMessage
		}
		if err := readBody(r, &w, "tasks", "jobs", "stdin", "only", "structured"); err != nil {
			if swarm.KindOf(err) != swarm.BadInput {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if w.Dir != "" || w.Goal != "" || strings.TrimSpace(body) != "" && !json.Valid([]byte(body)) {
			t.Errorf("%q was read as %+v", body, w)
		}
		if again, err := strictjson.ReadValue(w.Structured); w.Structured != nil && (err != nil || !bytes.Equal(again, w.Structured)) {
			t.Errorf("%q has structured %s, which is read as %s, %v", body, w.Structured, again, err)
		}
	})
}

// TestAMessageIsReadAsStrictlyAsAnEnvelope: an ambiguous message is refused, and numbers keep their
// spelling.
func TestAMessageIsReadAsStrictlyAsAnEnvelope(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x, on_failure: fix}\n", "false\n")
	id := h.start()
	h.listen("workflow_id="+id, "").until(string(swarm.TaskBlocked))
	messages := "/api/v1/runs/" + id + "/messages"
	for body, want := range map[string]string{
		`{"to":"b","text":"hi","to":"a"}`:                                                                 `the key \"to\" stands there twice`,
		`{"to":"a","text":"hi","structured":{"n":1,"n":2}}`:                                               `the key \"n\" stands there twice`,
		`{"to":"a","text":"hi","structured":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: "the body is nested deeper than 100 levels",
		`{"to":"a","Text":"hi"}`:                                                                          `there is no field \"Text\"`,
		`{"to":"a","text":"hi"} {}`:                                                                       "nothing after it",
	} {
		if text := h.post(messages, body, http.StatusBadRequest); !strings.Contains(text, want) {
			t.Errorf("%.60s: %s, want %s", body, text, want)
		}
	}
	if text := h.post(messages, `{"to":"a","text":"blue","inReplyTo":"m-1"}`, http.StatusBadRequest); !strings.Contains(text, "m-1") {
		t.Errorf("an answer to no message: %s", text)
	}
	if got := get[mailList](h, "/api/v1/runs/"+id+"/mail").Mail; len(got) != 0 {
		t.Errorf("there is mail: %+v", got)
	}
	h.post(messages, `{"to":"a","text":"hi","structured":{"n":1e400,"m":12345678901234567890.12345}}`, http.StatusCreated)
	h.post(messages, `{"to":"a","text":"nothing more","structured":null}`, http.StatusCreated)
	got := get[mailList](h, "/api/v1/runs/"+id+"/mail").Mail
	if len(got) != 2 || string(got[0].Payload.Structured) != `{"n":1e400,"m":12345678901234567890.12345}` || got[1].Payload.Structured != nil {
		t.Errorf("the mail is %+v", got)
	}
}

// The name that the compose file gives a variable makes it a secret, whatever the variable is
// called.
func TestAMessageIsStoredWithoutTheKeysOfItsRun(t *testing.T) {
	const canary = "plain-canary-0123456789"
	t.Setenv("PLAIN", canary)
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x, on_failure: fix, env: {AGENT_KEY: $PLAIN}}\n", "test -e mended\n")
	id := h.start()
	l := h.listen("workflow_id="+id, "")
	l.until(string(swarm.TaskBlocked))
	h.post("/api/v1/runs/"+id+"/messages", `{"to":"a","text":"use `+canary+`"}`, http.StatusCreated)
	_, mail := h.ask("GET", "/api/v1/runs/"+id+"/mail", "")
	if strings.Contains(mail, canary) || !strings.Contains(mail, "use [secret AGENT_KEY]") {
		t.Errorf("the mail is %s", mail)
	}
}
