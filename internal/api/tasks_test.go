package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/feed"
	"swarm/internal/pipetest"
)

const chips = `{"query":"Compare chip markets","session_id":"session-123","context":{"force_swarm":true}}`

// swarmProject writes a project whose models follow a script: two subtasks, a finding, a message to
// the supervisor, and an answer.
func (h *house) swarmProject() {
	h.t.Helper()
	h.write("swarm/swarm.yaml", "provider: fake\nproviders: {fake: {kind: script, script: say.yaml}}\n")
	h.write("swarm/say.yaml", `- {agent: supervisor, iteration: 1, say: '{"subtasks": [{"id": "us", "description": "The US market"}, {"id": "jp", "description": "The Japanese market"}]}'}
- {agent: supervisor, say: 'The US leads [us/1]. Japan follows.'}
- {task: us, iteration: 1, say: '{"action": "publish_data", "topic": "findings", "data": "NVIDIA has 80 %"}'}
- {task: us, iteration: 2, say: '{"action": "done", "response": "NVIDIA leads."}'}
- {task: jp, iteration: 1, say: '{"action": "send_message", "to": "supervisor", "message_type": "info", "payload": {"message": "half done"}}'}
- {task: jp, iteration: 2, say: '{"action": "publish_data", "topic": "findings", "data": "edge"}'}
- {task: jp, iteration: 3, say: '{"action": "publish_data", "topic": "findings", "data": "edge"}'}
`)
}

const lake = `{"query":"How deep is the lake?","context":{"force_swarm":true,"strategy":"council","agents":3}}`

// councilProject writes a project whose models are a council. The second member has the best answer.
func (h *house) councilProject() {
	h.t.Helper()
	h.write("swarm/swarm.yaml", "provider: fake\nproviders: {fake: {kind: script, script: say.yaml}}\n")
	h.write("swarm/say.yaml", `- {agent: supervisor, say: 'It is 40 m deep [m2/1].'}
- {task: m1, iteration: 1, say: '{"action": "done", "response": "20 m"}'}
- {task: m2, iteration: 1, say: '{"action": "done", "response": "40 m"}'}
- {task: m3, iteration: 1, say: '{"action": "done", "response": "About 40 m"}'}
- {task: m1, say: '{"ranking": ["A", "B"]}'}
- {task: m2, say: 'I cannot tell.'}
- {task: m3, say: '{"ranking": ["B", "A"]}'}
`)
}

// TestATaskOfACouncil: a task may be answered by a council. Its vote is a part of the result.
func TestATaskOfACouncil(t *testing.T) {
	h := open(t)
	h.councilProject()
	id := string(decode[task](t, h.post("/api/v1/tasks", lake, http.StatusCreated)).TaskID)
	h.settle(id)
	full := get[fullTask](h, "/api/v1/tasks/"+id)
	if full.Status != swarm.Completed || full.Result != "It is 40 m deep [m2/1]." || len(full.Votes) != 3 || full.Tie {
		t.Fatalf("it is shown as %+v", full)
	}
	if v := full.Votes[0]; v.Agent != full.Agents[2].AgentID || v.Points != 2 || v.Of != 2 || v.Silent == "" {
		t.Errorf("the best answer has %+v", v)
	}
	if a := full.Agents[1]; a.Iterations != 1 { // a review is none
		t.Errorf("a member is shown as %+v", a)
	}
	if got := h.post("/api/v1/tasks", strings.Replace(lake, "council", "counsil", 1), http.StatusBadRequest); !strings.Contains(got, "council") {
		t.Errorf("an unknown strategy is answered with %s", got)
	}
}

func decode[T any](t testing.TB, text string) (got T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return got
}

// streamOf reads a whole stream.
func (h *house) streamOf(path string) (all []told) {
	h.t.Helper()
	l := h.listenAt(path, "")
	for got, ok := l.next(); ok; got, ok = l.next() {
		if got.comment == "" && got.event != feed.Delta {
			all = append(all, got)
		}
	}
	return all
}

// listenAt opens the stream at a path.
func (h *house) listenAt(path, lastID string) *listener {
	h.t.Helper()
	r := h.request("GET", path, "")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { answer.Body.Close() })
	return &listener{h.t, answer.StatusCode, answer.Body, bufio.NewReader(answer.Body)}
}

// TestATaskIsASwarm: a task is begun, shown, listed and told in the seed's names.
func TestATaskIsASwarm(t *testing.T) {
	h := open(t)
	h.swarmProject()
	begun := decode[task](t, h.post("/api/v1/tasks", chips, http.StatusCreated))
	id := string(begun.TaskID)
	if begun.WorkflowID != begun.TaskID || begun.SessionID != "session-123" || begun.Query != "Compare chip markets" || begun.CreatedAt.IsZero() {
		t.Errorf("it is begun as %+v", begun)
	}
	all := h.streamOf("/api/v1/tasks/" + id + "/events")
	h.settle(id)
	full := get[fullTask](h, "/api/v1/tasks/"+id)
	if full.Status != swarm.Completed || full.Query != "Compare chip markets" || full.CompletedAt.IsZero() || len(full.Agents) != 3 || full.Agents[0].AgentID != "swarm-supervisor" || full.Error != "" {
		t.Errorf("it is shown as %+v", full)
	}
	if full.Result != "The US leads [us/1]. Japan follows." || len(full.References) != 1 || !full.References[0].Found {
		t.Errorf("its answer is %q with %+v", full.Result, full.References)
	}
	if a := full.Agents[2]; a.Task != "The Japanese market" || a.Reason != swarm.OutcomeConverged || a.Iterations != 3 || a.Message == "" {
		t.Errorf("an agent is shown as %+v", a)
	}
	for query, want := range map[string]int{"": 1, "?session_id=session-123": 1, "?session_id=other": 0, "?status=failed": 0, "?status=completed&limit=1": 1} {
		if got := get[taskList](h, "/api/v1/tasks"+query); len(got.Tasks) != want {
			t.Errorf("%s lists %+v", query, got)
		}
	}
	us, jp := full.Agents[1].AgentID, full.Agents[2].AgentID
	named := map[string]bool{}
	var story []string
	for i, one := range all {
		if one.id != strconv.Itoa(i+1) {
			t.Fatalf("event %d has the id %s", i+1, one.id)
		}
		if !slices.Contains(feed.SeedNames, one.event) {
			continue
		}
		named[one.event] = true
		e := decode[feed.SeedEvent](t, one.data)
		if e.Type != one.event || string(e.WorkflowID) != id || strconv.FormatInt(e.Seq, 10) != one.id || e.Timestamp.IsZero() {
			t.Errorf("%+v is told as %+v", one, e)
		}
		line := e.Type + " " + e.AgentID
		switch e.Type {
		case "progress":
			line += " " + e.Message
		case "agent_completed":
			line += " " + e.Reason
		}
		story = append(story, line)
	}
	for _, name := range feed.SeedNames {
		if !named[name] {
			t.Errorf("%s is never told", name)
		}
	}
	for _, want := range []string{"workflow_started swarm-supervisor", "progress swarm-supervisor planning", "progress swarm-supervisor spawning", "progress swarm-supervisor monitoring",
		"agent_started " + us, "agent_started " + jp, "workspace_updated workspace", "message_sent " + jp, "agent_completed " + us + " done", "agent_completed " + jp + " converged",
		"progress swarm-supervisor synthesizing", "message_received swarm-supervisor", "workflow_completed swarm-supervisor"} {
		n := 0
		for _, line := range story {
			if line == want {
				n++
			}
		}
		if n == 0 || n > 1 && want != "workspace_updated workspace" {
			t.Errorf("%q is told %d times in\n%s", want, n, strings.Join(story, "\n"))
		}
	}
	if story[0] != "workflow_started swarm-supervisor" || story[len(story)-1] != "workflow_completed swarm-supervisor" || all[len(all)-1].event != "workflow_completed" {
		t.Errorf("the story is\n%s", strings.Join(story, "\n"))
	}
}

// TestNamesOfASwarm: both names of an event have the same id on each stream of a swarm, and a
// filter takes either.
func TestNamesOfASwarm(t *testing.T) {
	h := open(t)
	h.swarmProject()
	id := string(decode[task](t, h.post("/api/v1/tasks", chips, http.StatusCreated)).TaskID)
	h.settle(id)
	seed := h.streamOf("/api/v1/stream/sse?workflow_id=" + id)
	ours := h.streamOf("/api/v1/stream/sse?names=ours&workflow_id=" + id)
	events := get[eventList](h, "/api/v1/runs/"+id+"/events?limit=1000").Events
	if len(seed) != len(events)-1 || len(ours) != len(events) || ours[len(seed)].event != string(swarm.LoopEnded) {
		t.Fatalf("%d and %d of %d events are told", len(seed), len(ours), len(events))
	}
	for i, e := range events[:len(seed)] {
		if ours[i].event != string(e.Kind) || ours[i].id != seed[i].id {
			t.Errorf("event %d is %s: %s %s", e.Seq, e.Kind, ours[i].event, seed[i].id)
		}
		if !slices.Contains(feed.SeedNames, seed[i].event) && seed[i] != ours[i] {
			t.Errorf("%+v is told as %+v", ours[i], seed[i])
		}
	}
	for query, want := range map[string]string{"type=workflow_completed": "workflow_completed", "type=run_ended": "workflow_completed", "type=run_ended&names=ours": "run_ended", "type=loop_ended": "loop_ended"} {
		if got := h.streamOf("/api/v1/tasks/" + id + "/events?" + query); len(got) != 1 || got[0].event != want {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if status, text := h.ask("GET", "/api/v1/tasks/"+id+"/events?names=odd", ""); status != 400 || !strings.Contains(text, "choose one of seed, ours") {
		t.Errorf("%d %s", status, text)
	}
}

// TestAStreamOfASwarmContinues: a client that loses its connection after each event, while the swarm
// works and later, gets each event once.
func TestAStreamOfASwarmContinues(t *testing.T) {
	h := open(t)
	h.swarmProject()
	r := h.request("POST", "/api/v1/tasks/stream", chips)
	r.Header.Set("Idempotency-Key", "one")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	id := answer.Header.Get("X-Workflow-ID")
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" || id == "" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	whole := &listener{t, answer.StatusCode, answer.Body, bufio.NewReader(answer.Body)}
	var cut []told
	for last := ""; ; {
		l := h.listenAt("/api/v1/tasks/"+id+"/events", last)
		if l.status == http.StatusNoContent {
			break
		}
		got, ok := l.next()
		for ; ok && got.id == ""; got, ok = l.next() { // a delta has no id
		}
		l.body.Close()
		if !ok {
			continue
		}
		cut, last = append(cut, got), got.id
	}
	n := 0
	for got, ok := whole.next(); ok; got, ok = whole.next() {
		if got.id == "" {
			continue
		}
		if n >= len(cut) || cut[n] != got {
			t.Fatalf("event %s was told as %+v", got.id, cut[min(n, len(cut)-1)])
		}
		n++
	}
	if n != len(cut) {
		t.Errorf("%d of %d events", n, len(cut))
	}
	r = h.request("POST", "/api/v1/tasks/stream", chips) // the same client comes back
	r.Header.Set("Idempotency-Key", "one")
	r.Header.Set("Last-Event-ID", strconv.Itoa(n-1))
	again, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	l := &listener{t, again.StatusCode, again.Body, bufio.NewReader(again.Body)}
	if got, ok := l.next(); !ok || got != cut[n-1] || again.Header.Get("X-Workflow-ID") != id {
		t.Errorf("it continues with %+v of %s", got, again.Header.Get("X-Workflow-ID"))
	}
}

// TestAStreamBeginsNoTaskThatHasNoSuchEvent: a client that says which event it has got last wants to go
// on with a task. If there is none, none begins.
func TestAStreamBeginsNoTaskThatHasNoSuchEvent(t *testing.T) {
	h := open(t)
	h.swarmProject()
	for _, c := range []struct{ query, last, key string }{{"?after=99", "", ""}, {"", "17", ""}, {"", "17", "new"}} {
		r := h.request("POST", "/api/v1/tasks/stream"+c.query, chips)
		if c.last != "" {
			r.Header.Set("Last-Event-ID", c.last)
		}
		if c.key != "" {
			r.Header.Set("Idempotency-Key", c.key)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "has no event") {
			t.Errorf("%+v: %s %s", c, answer.Status, text)
		}
	}
	if _, text := h.ask("GET", "/api/v1/tasks", ""); len(decode[struct{ Tasks []any }](t, text).Tasks) != 0 {
		t.Errorf("begun: %s", text)
	}
}

// TestATaskIsBegunOnce: a request with the idempotency key of an earlier one gets its task.
func TestATaskIsBegunOnce(t *testing.T) {
	h := open(t)
	h.swarmProject()
	send := func(key, body string) (int, string) {
		t.Helper()
		r := h.request("POST", "/api/v1/tasks", body)
		r.Header.Set("Idempotency-Key", key)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var got struct {
			task
			Error string `json:"error"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(got.TaskID) + got.Error
	}
	status, first := send("k", chips)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, first)
	}
	type answered struct {
		status int
		text   string
	}
	all := make(chan answered)
	for range 4 {
		go func() {
			status, text := send("k", chips)
			all <- answered{status, text}
		}()
	}
	for range 4 {
		if got := <-all; got != (answered{http.StatusOK, first}) {
			t.Errorf("the same request gets %+v", got)
		}
	}
	for _, other := range []string{strings.Replace(chips, "Compare", "List", 1), strings.Replace(chips, "123", "124", 1), strings.Replace(chips, "true", `true,"agents":2`, 1)} {
		if status, text := send("k", other); status != http.StatusConflict || !strings.Contains(text, first) {
			t.Errorf("%s: %d %s", other, status, text)
		}
	}
	if status, second := send("l", chips); status != http.StatusCreated || second == first {
		t.Errorf("another key gets %d %s", status, second)
	}
}

func TestARequestForATaskThatCannotBe(t *testing.T) {
	h := open(t)
	h.swarmProject()
	for body, says := range map[string]string{
		`{}`:                                     "has no query",
		`{"query":"x"}`:                          "swarm mode only",
		`{"query":"x","context":null}`:           "swarm mode only",
		`{"query":"x","context":[]}`:             "the context",
		`{"query":"x","context":{"force":true}}`: "force_swarm",
		`{"query":"x","context":{"force_swarm":false}}`:                                                       "POST /api/v1/runs",
		`{"query":"x","context":{"force_swarm":true,"agents":"2"}}`:                                           `the field \"agents\" cannot be a string","hint":"write a whole number"`,
		`{"query":"x","context":{"force_swarm":true,"set":{}}}`:                                               `the field \"set\" cannot be an object","hint":"write a list: […]"`,
		`{"query":"x","context":{"force_swarm":true,"agents":-1}}`:                                            "from 1 to",
		`{"query":"x","context":{"force_swarm":true,"iterations":0}}`:                                         "from 1 to",
		`{"query":"x","context":{"force_swarm":true,"agents":2000000}}`:                                       "from 1 to",
		`{"query":"x","context":{"force_swarm":true,"provider":"nosuch"}}`:                                    "nosuch",
		`{"query":"x","session_id":"a\u0000b","context":{"force_swarm":true}}`:                                "cannot be shown",
		`{"query":"x","mode":"simple","context":{"force_swarm":true}}`:                                        "mode",
		fmt.Sprintf(`{"query":"x","session_id":%q,"context":{"force_swarm":true}}`, strings.Repeat("x", 201)): "201 bytes",
	} {
		for _, path := range []string{"", "/stream"} {
			if status, text := h.ask("POST", "/api/v1/tasks"+path, body); status != http.StatusBadRequest || !strings.Contains(text, says) {
				t.Errorf("%s %s: %d %s, want %s", path, body, status, text, says)
			}
		}
	}
	if got := get[taskList](h, "/api/v1/tasks"); len(got.Tasks) != 0 {
		t.Errorf("%+v were begun", got)
	}
	id, _ := h.bare() // a pipeline
	for _, path := range []string{id, id + "/events", "nosuch", "nosuch/events"} {
		if status, text := h.ask("GET", "/api/v1/tasks/"+path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{"tasks/" + id + "/pause", "tasks/" + id + "/cancel", "swarm/" + id + "/message"} {
		if status, text := h.ask("POST", "/api/v1/"+path, `{}`); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// TestATaskIsSteered: a person pauses, tells, resumes and cancels a swarm whose agent works.
func TestATaskIsSteered(t *testing.T) {
	h := open(t)
	h.project("", "echo begun > out; read line < go; echo found\n")
	pipetest.Make(t, h.dir+"/go")
	out := pipetest.Make(t, h.dir+"/out")
	id := string(decode[task](t, h.post("/api/v1/tasks", chips, http.StatusCreated)).TaskID)
	out.Line()
	path := "/api/v1/tasks/" + id
	for _, action := range []string{"pause", "resume"} {
		if got := decode[taskAction](t, h.post(path+"/"+action, "", http.StatusAccepted)); got.Action != action || string(got.TaskID) != id {
			t.Errorf("%s is answered with %+v", action, got)
		}
	}
	sent := decode[sentToTask](t, h.post("/api/v1/swarm/"+id+"/message", `{"message":"Mind Samsung","id":"m1"}`, http.StatusCreated))
	if again := decode[sentToTask](t, h.post("/api/v1/swarm/"+id+"/message", `{"message":"Mind Samsung","id":"m1"}`, http.StatusCreated)); again != sent || sent.Seq == 0 {
		t.Errorf("the same message is stored as %+v and %+v", sent, again)
	}
	h.post("/api/v1/swarm/"+id+"/message", `{"message":"Mind Intel","id":"m1"}`, http.StatusConflict)
	h.post("/api/v1/swarm/"+id+"/message", `{}`, http.StatusBadRequest)
	h.post(path+"/cancel", "", http.StatusAccepted)
	all := h.streamOf(path + "/events")
	h.settle(id)
	end := slices.IndexFunc(all, func(one told) bool { return one.event == "workflow_completed" })
	if end < 0 || !strings.HasPrefix(decode[feed.SeedEvent](t, all[end].data).Message, "cancelled") {
		t.Errorf("it is told as %+v", all)
	}
	got := get[fullTask](h, path)
	if got.Status != swarm.Cancelled || got.Error == "" || len(got.Agents) == 0 {
		t.Errorf("it is shown as %+v", got)
	}
	for _, a := range got.Agents {
		if a.Reason != "cancelled" {
			t.Errorf("an agent of a cancelled task has ended as %+v", a)
		}
	}
	for _, one := range all {
		if e := decode[feed.SeedEvent](t, one.data); one.event == "agent_completed" && e.Reason != "cancelled" {
			t.Errorf("it is told as %+v", e)
		}
	}
	for _, action := range []string{path + "/pause", path + "/cancel", "/api/v1/swarm/" + id + "/message"} {
		h.post(action, map[bool]string{true: `{"message":"x"}`, false: ""}[strings.HasSuffix(action, "message")], http.StatusConflict)
	}
}

// TestAPlanIsApprovedOverHTTP: the agents of a task with approve_plan work when a person has agreed.
func TestAPlanIsApprovedOverHTTP(t *testing.T) {
	h := open(t)
	h.swarmProject()
	body := strings.Replace(chips, "true", `true,"approve_plan":true`, 1)
	id := string(decode[task](t, h.post("/api/v1/tasks", body, http.StatusCreated)).TaskID)
	l := h.listenAt("/api/v1/tasks/"+id+"/events", "")
	for _, one := range l.until("approval_asked") {
		if one.event == "agent_started" {
			t.Errorf("an agent works before the answer: %+v", one)
		}
	}
	if got := get[fullTask](h, "/api/v1/tasks/"+id); got.Error != "" || !strings.Contains(got.Waiting, "swarm approve supervisor/plan") {
		t.Errorf("a task that waits for an approval is shown as %+v", got)
	}
	edit := `{"run":"` + id + `","ok":true,"edit":{"subtasks":[{"id":"us","description":"The US market"%s}]}}`
	h.post("/api/v1/approvals/supervisor/plan", fmt.Sprintf(edit, `,"depends_on":["kr"]`), http.StatusBadRequest)
	h.post("/api/v1/approvals/supervisor/plan", fmt.Sprintf(edit, ""), http.StatusAccepted)
	l.until("agent_started")
	if got := get[fullTask](h, "/api/v1/tasks/"+id); got.Waiting != "" {
		t.Errorf("a task that works is shown as %+v", got)
	}
	for _, one := range l.until("workflow_completed") {
		if one.event == "agent_started" && decode[feed.SeedEvent](t, one.data).AgentID != swarm.Supervisor {
			t.Errorf("an agent works whose subtask was taken out: %+v", one)
		}
	}
}
