package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/pipetest"
	"swarm/internal/schema"
	"swarm/internal/strictjson"
)

// A described is the document as a test reads it.
type described struct {
	shapes     map[string]*schema.Schema // that were made already
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Responses map[string]json.RawMessage
		Schemas   map[string]any
	}
}

func readDocument(t testing.TB) described {
	t.Helper()
	if _, err := strictjson.ReadValue(document); err != nil { // of two schemas with one name the last would count
		t.Fatal(err)
	}
	d := described{shapes: map[string]*schema.Schema{}}
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// operation is what the document says of a request, with the path it has there.
type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	Responses   map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]struct{ Schema json.RawMessage }
	}
}

func (d described) operation(t testing.TB, method, path string) (op operation, found bool) {
	t.Helper()
	raw, found := d.Paths[path][strings.ToLower(method)]
	if found {
		if err := json.Unmarshal(raw, &op); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return op, found
}

// inDocument is a route's path as the document writes it.
func inDocument(path string) string { return strings.ReplaceAll(path, "...}", "}") }

func TestEveryRouteIsInTheDocumentAndNoOther(t *testing.T) {
	d, h := readDocument(t), open(t)
	seen := map[string]bool{}
	// The server answers the last two itself, because they decide who gets in.
	for _, r := range append(h.api.table(), route{method: "POST", path: "/api/v1/login"}, route{method: "POST", path: "/api/v1/codes"}) {
		path := inDocument(r.path)
		op, ok := d.operation(t, r.method, path)
		if !ok || op.OperationID == "" || seen[op.OperationID] || op.Responses["default"].Ref == "" {
			t.Errorf("%s %s is described as %+v", r.method, path, op)
		}
		seen[op.OperationID] = true
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
			if all := string(d.Paths[path]["parameters"]); !strings.Contains(all, `"name": "`+name[1]+`"`) && !strings.Contains(all, "parameters/"+name[1]) {
				t.Errorf("%s: %s is not described", path, name[1])
			}
		}
	}
	n := 0
	for _, methods := range d.Paths {
		for method := range methods {
			if method != "parameters" {
				n++
			}
		}
	}
	if n != len(seen) {
		t.Errorf("%d operations are described, and %d are there", n, len(seen))
	}
}

// strict is a schema that takes no fields but those that it names.
func (d described) strict(t testing.TB, of json.RawMessage) *schema.Schema {
	t.Helper()
	if s := d.shapes[string(of)]; s != nil {
		return s
	}
	whole := map[string]any{"$defs": d.Components.Schemas}
	var one any
	if err := json.Unmarshal(of, &one); err != nil {
		t.Fatal(err)
	}
	whole["allOf"] = []any{closed(one)}
	for name, s := range d.Components.Schemas {
		d.Components.Schemas[name] = closed(s)
	}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse([]byte(strings.ReplaceAll(string(text), "#/components/schemas/", "#/$defs/")))
	if err != nil {
		t.Fatalf("%s: %v", of, err)
	}
	d.shapes[string(of)] = s
	return s
}

// closed closes the objects of a schema. One that adds to another takes over its properties, for it
// could not be closed otherwise.
func closed(s any) any {
	switch s := s.(type) {
	case []any:
		for i := range s {
			s[i] = closed(s[i])
		}
	case map[string]any:
		for k, v := range s {
			s[k] = closed(v)
		}
		if _, has := s["properties"]; has && s["allOf"] == nil && s["type"] == "object" {
			s["additionalProperties"] = false
		}
	}
	return s
}

// flatten writes a schema that adds to another as one.
func (d described) flatten() {
	for name, s := range d.Components.Schemas {
		s := s.(map[string]any)
		parts, _ := s["allOf"].([]any)
		for _, part := range parts {
			of := d.Components.Schemas[strings.TrimPrefix(part.(map[string]any)["$ref"].(string), "#/components/schemas/")].(map[string]any)
			for k, v := range of["properties"].(map[string]any) {
				s["properties"].(map[string]any)[k] = v
			}
			s["required"] = append(s["required"].([]any), of["required"].([]any)...)
		}
		delete(s, "allOf")
		d.Components.Schemas[name] = s
	}
}

// fits sends a request and checks the answer against the document. The path has values where the
// document has names.
func (h *house) fits(d described, method, path, query, body string, values ...string) (int, string) {
	h.t.Helper()
	op, ok := d.operation(h.t, method, path)
	if !ok {
		h.t.Fatalf("%s %s is not described", method, path)
	}
	real := path
	for i := 0; i < len(values); i += 2 {
		real = strings.ReplaceAll(real, "{"+values[i]+"}", values[i+1])
	}
	answer, err := http.DefaultClient.Do(h.request(method, real+query, body))
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	status := fmt.Sprint(answer.StatusCode)
	said, ok := op.Responses[status]
	if !ok {
		said = op.Responses["default"]
	}
	if said.Ref != "" {
		if err := json.Unmarshal(d.Components.Responses[strings.TrimPrefix(said.Ref, "#/components/responses/")], &said); err != nil {
			h.t.Fatal(err)
		}
	}
	kind := answer.Header.Get("Content-Type")
	shape, ok := said.Content[kind]
	if !ok {
		h.t.Errorf("%s %s: %s is answered as %q: %s", method, real, status, kind, text)
		return answer.StatusCode, string(text)
	}
	if kind == "application/json" {
		value, err := schema.Value(text)
		if err == nil {
			err = d.strict(h.t, shape.Schema).Check(value)
		}
		if err != nil {
			h.t.Errorf("%s %s: %s does not fit: %v\n%.500s", method, real, status, err, text)
		}
	}
	return answer.StatusCode, string(text)
}

// TestEveryAnswerFitsTheDocument calls every operation, on runs in which everything happens. Each
// answer must match its schema, with no missing and no undescribed field.
func TestEveryAnswerFitsTheDocument(t *testing.T) {
	h, d := open(t), readDocument(t)
	d.flatten()
	h.project(`agents: {first: {}, second: {}}
edges: ["first <-> second"]
budget: {calls: 100, wall: 1h}
tasks:
  first:  {agent: first, prompt-string: x}
  second: {agent: second, prompt-string: "{{output:first}}", depends_on: [first], expect: {matches: made}}
  third:  {agent: second, prompt-string: z, depends_on: [second], expect: {matches: never}, retries: 1}
`, "echo made; test $SWARM_TASK = second && { echo ready > out; read line < go; }\ntrue\n")
	pipetest.Make(t, h.dir+"/go")
	out := pipetest.Make(t, h.dir+"/out")
	done := map[string]bool{}
	ask := func(want int, method, path, query, body string, values ...string) string {
		t.Helper()
		status, text := h.fits(d, method, path, query, body, values...)
		if status != want {
			t.Errorf("%s %s%s %v %s: %d %s, want %d", method, path, query, values, body, status, text, want)
		}
		if status < 300 {
			done[method+" "+path] = true
		}
		return text
	}
	var b begun
	if err := json.Unmarshal([]byte(ask(201, "POST", "/api/v1/runs", "", `{"tasks":[]}`)), &b); err != nil {
		t.Fatal(err)
	}
	out.Line()
	const runs = "/api/v1/runs/{id}"
	h.append(swarm.RunID(b.Run), swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("second/1/1-abc"), Agent: "second", Task: "second", Turn: "second/1/1", Data: json.RawMessage(`{"id":"second/1/1-abc","what":"read","tool":"Read","input":{"a":1}}`)},
		swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("first/1/1/e"), Agent: "first", Task: "first", Turn: "first/1/1",
			Data: json.RawMessage(`{"id":"first/1/1/e","what":"let first write to second","wish":{"edge":{"from":"first","to":"second"}}}`)},
		swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("first/1/1/s"), Agent: "first", Task: "first", Turn: "first/1/1",
			Data: json.RawMessage(`{"id":"first/1/1/s","what":"bring in @x","wish":{"spawn":{"name":"x","provider":"sh","instructions":"go","edges":["second"]}}}`)},
		swarm.Event{Kind: swarm.TopicPublished, To: swarm.ToTopics, Agent: "first", Turn: "first/1/1", Data: json.RawMessage(`{"topic":"facts","data":{"paging":false}}`)},
		swarm.Event{Kind: swarm.TopicPublished, To: swarm.ToTopics, Agent: swarm.User, Data: json.RawMessage(`{"topic":"facts","data":"and no sorting"}`)},
		swarm.Event{Kind: swarm.ArtifactStored, Agent: "first", Data: json.RawMessage(`{"ref":"artifact://log/x1","kind":"log","name":"x","hash":"` + string(swarm.NoText) + `","bytes":0}`)})
	for range 2 { // while it runs, and when it has ended
		for _, path := range []string{"", "/events", "/nodes", "/turns", "/turns/{turn}", "/artifacts", "/artifacts/{kind}/{name}", "/mail", "/topics"} {
			ask(200, "GET", runs+path, "", "", "id", b.Run, "turn", "first/1/1", "kind", "log", "name", "x1")
			ask(200, "GET", runs+path, "", "", "id", "@last", "turn", "second", "kind", "log", "name", "x1")
			ask(404, "GET", runs+path, "", "", "id", "nosuch", "turn", "first/1/1")
			ask(400, "GET", runs+path, "?nosuch=1", "", "id", b.Run, "turn", "first/1/1", "kind", "log", "name", "x1")
		}
		ask(404, "GET", runs+"/turns/{turn}", "", "", "id", b.Run, "turn", "nosuch")
		ask(404, "GET", runs+"/artifacts/{kind}/{name}", "", "", "id", b.Run, "kind", "log", "name", "other")
		ask(200, "GET", "/api/v1/runs", "?limit=1", "")
		ask(400, "GET", "/api/v1/runs", "?status=odd", "")
		ask(200, "GET", "/api/v1/approvals", "", "")
		ask(200, "GET", "/openapi.json", "", "")
		if done["POST "+runs+"/messages"] {
			break
		}
		ask(201, "POST", runs+"/messages", "", `{"to":"@first","text":"hello","structured":{"n":1.10},"response":"required"}`, "id", b.Run)
		ask(400, "POST", runs+"/messages", "", `{"to":"nobody","text":"hello"}`, "id", b.Run)
		ask(400, "POST", runs+"/messages", "", `{"to":"first","txt":"hello"}`, "id", b.Run)
		ask(400, "POST", runs+"/messages", "", `[]`, "id", b.Run)
		ask(400, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true,"edit":{"name":"x","instructions":"y"}}`, "approval", "second/1/1-abc")
		ask(202, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true}`, "approval", "second/1/1-abc")
		ask(409, "POST", "/api/v1/approvals/{approval}", "", `{"ok":false}`, "approval", "second/1/1-abc")
		ask(400, "POST", "/api/v1/approvals/{approval}", "", `{"ok":false,"edit":{"name":"y","instructions":"go"}}`, "approval", "first/1/1/s")
		ask(400, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true,"edit":{"name":"first","instructions":"go"}}`, "approval", "first/1/1/s")
		ask(400, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true,"edit":{"name":"y","instructions":"go","more":1}}`, "approval", "first/1/1/s")
		ask(202, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true,"edit":{"name":"y","instructions":"go"}}`, "approval", "first/1/1/s")
		ask(409, "POST", "/api/v1/approvals/{approval}", "", `{"ok":false}`, "approval", "first/1/1/s")
		ask(202, "POST", "/api/v1/approvals/{approval}", "", `{"ok":false,"reason":"there are enough"}`, "approval", "first/1/1/e")
		ask(400, "POST", "/api/v1/approvals/{approval}", "", `{}`, "approval", "second/1/1-abc")
		ask(404, "POST", "/api/v1/approvals/{approval}", "", `{"ok":true}`, "approval", "nosuch")
		ask(409, "POST", runs+"/close", "", "", "id", b.Run) // it is no team
		ask(202, "POST", runs+"/pause", "", "", "id", b.Run)
		ask(202, "POST", runs+"/resume", "", "{}", "id", b.Run)
		ask(409, "POST", runs+"/resume", "", "{}", "id", b.Run)
		ask(404, "POST", runs+"/nodes/{agent}/{action}", "", "", "id", b.Run, "agent", "first", "action", "dance")
		ask(404, "POST", runs+"/nodes/{agent}/{action}", "", "", "id", b.Run, "agent", "nobody", "action", "stop")
		ask(409, "POST", runs+"/nodes/{agent}/{action}", "", "", "id", b.Run, "agent", "first", "action", "stop")
		ask(202, "POST", runs+"/nodes/{agent}/{action}", "", "", "id", b.Run, "agent", "second", "action", "stop")
		h.listen("workflow_id="+b.Run, "").until(string(swarm.RunEnded))
		h.settle(b.Run)
		ask(409, "POST", runs+"/cancel", "", "", "id", b.Run)
		ask(400, "POST", runs+"/retry", "", `{"from":"nosuch"}`, "id", b.Run)
		ask(404, "POST", runs+"/retry", "", "", "id", "nosuch")
		ask(200, "GET", "/api/v1/project", "", "")
		ask(403, "GET", "/api/v1/project", "?dir=..", "")
		ask(201, "POST", "/api/v1/runs", "", `{"line":"@first hello"}`)
		for _, wrong := range []string{`{"line":"@first hello","goal":"x"}`, `{"query":"x","tasks":["first"]}`, `{"agents":3}`, `{"line":"@first hello","jobs":2}`} {
			ask(400, "POST", "/api/v1/runs", "", wrong)
		}
		ask(200, "GET", "/api/v1/runs", "?q=PIPELINE+"+b.Run, "")
		ask(409, "POST", runs+"/messages", "", `{"to":"first","text":"hello"}`, "id", b.Run)
	}
	id, _ := h.bare()                                                                                   // nobody drives it
	ask(202, "POST", runs+"/nodes/{agent}/{action}", "", "", "id", id, "agent", "a", "action", "reset") // and who does obeys
	ask(202, "POST", runs+"/cancel", "", "", "id", id)
	team, _, _ := h.logOf(swarm.RunStart{Kind: swarm.TeamRun, Dir: h.dir})
	ask(202, "POST", runs+"/close", "", "", "id", team)
	h.project("tasks: {a: {prompt-string: x}, b: {prompt-string: y, depends_on: [a]}}\n", "echo made\n")
	first := h.start()
	h.settle(first)
	again := decode[begun](t, ask(201, "POST", runs+"/retry", "", `{"from":"b"}`, "id", first))
	h.settle(again.Run)
	if turns := get[turnList](h, "/api/v1/runs/"+again.Run+"/turns").Turns; len(turns) != 2 || !turns[0].CarriedOver || turns[1].CarriedOver {
		t.Errorf("the retry has the turns %+v", turns)
	}
	ask(200, "GET", runs, "", "", "id", again.Run)
	forked := decode[begun](t, ask(201, "POST", runs+"/fork", "", `{"at":"b/1/1","edit":"Say it again."}`, "id", first))
	h.settle(forked.Run)
	ask(200, "GET", runs, "", "", "id", forked.Run)
	for _, wrong := range []string{`{}`, `{"at":"nosuch"}`, `{"at":"b","edit":" "}`, `{"at":"b","message":"goal"}`, `{"at":"b","edit":"x","message":"nosuch"}`} {
		ask(400, "POST", runs+"/fork", "", wrong, "id", first)
	}
	ask(200, "GET", runs, "?lists=false", "", "id", first)
	ask(200, "GET", runs, "?at=3", "", "id", first)
	ask(200, "GET", runs+"/nodes", "?at=3", "", "id", first)
	ask(400, "GET", runs, "?at=0", "", "id", first)
	ask(400, "GET", runs, "?at=9999", "", "id", first)
	ask(400, "GET", runs, "?at=3&lists=true", "", "id", first)
	ask(400, "GET", runs, "?last=0", "", "id", first)
	whole := decode[shownRun](t, ask(200, "GET", runs, "", "", "id", first))
	newest := decode[shownRun](t, ask(200, "GET", runs, "?last=1", "", "id", first))
	if newest.Older == nil || newest.Older.Turns != 1 || len(newest.Turns) != 1 || newest.Turns[0].ID != whole.Turns[1].ID || whole.Older != nil {
		t.Errorf("of the turns %+v the newest are %+v, and %+v are older", whole.Turns, newest.Turns, newest.Older)
	}
	for _, e := range get[eventList](h, "/api/v1/runs/"+first+"/events").Events {
		if e.Kind != swarm.TurnEnded || e.Turn != whole.Turns[0].ID {
			continue
		}
		before := decode[shownRun](t, ask(200, "GET", runs, fmt.Sprintf("?at=%d&last=5", e.Seq-1), "", "id", first))
		if len(before.Turns) != 1 || before.Turns[0].Status != swarm.Running {
			t.Errorf("before the end of the first turn the turns were %+v", before.Turns)
		}
	}
	ask(200, "GET", runs+"/export", "?format=json", "", "id", first)
	ask(200, "GET", runs+"/diff", "?turn=a", "", "id", first)
	ask(404, "GET", runs+"/diff", "", "", "id", first) // it is no folder of a git repository
	ask(404, "GET", runs+"/diff", "?turn=nosuch", "", "id", first)
	h.swarmProject()
	const tasks = "/api/v1/tasks"
	begunTask := decode[task](t, ask(201, "POST", tasks, "", chips))
	h.settle(string(begunTask.TaskID))
	ask(200, "GET", tasks, "?limit=1", "")
	ask(400, "GET", tasks, "?status=odd", "")
	ask(400, "POST", tasks, "", `{"query":"x"}`)
	ask(200, "GET", tasks+"/{id}", "", "", "id", string(begunTask.TaskID))
	ask(404, "GET", tasks+"/{id}", "", "", "id", b.Run)
	for _, path := range []string{"", "/turns", "/turns/{turn}", "/nodes", "/topics", "/mail"} {
		ask(200, "GET", runs+path, "", "", "id", string(begunTask.TaskID), "turn", get[fullTask](h, tasks+"/@last").Agents[1].AgentID+"/1/1")
	}
	h.councilProject()
	council := string(decode[task](t, ask(201, "POST", tasks, "", lake)).TaskID)
	h.settle(council)
	for _, path := range []string{tasks + "/{id}", runs, runs + "/turns"} {
		ask(200, "GET", path, "", "", "id", council)
	}
	ask(409, "POST", tasks+"/{id}/pause", "", "", "id", string(begunTask.TaskID))
	idle, _, _ := h.logOf(swarm.RunStart{Kind: swarm.SwarmRun, Dir: h.dir}) // nobody drives it
	ask(202, "POST", tasks+"/{id}/pause", "", "", "id", idle)
	ask(202, "POST", tasks+"/{id}/cancel", "", "", "id", idle)
	ask(201, "POST", "/api/v1/codes", "", `{"path":"/r/x"}`)
	ask(401, "POST", "/api/v1/login", "", `{"code":"x"}`)
	done["POST /api/v1/login"] = true // 204 has no body
	for _, streamed := range []string{"GET /api/v1/stream/sse", "GET " + tasks + "/{id}/events", "POST " + tasks + "/stream"} {
		done[streamed] = true // streams have tests of their own
	}
	done["POST "+tasks+"/{id}/resume"], done["POST /api/v1/swarm/{id}/message"] = true, true // of a swarm that works: TestATaskIsSteered
	for path, methods := range d.Paths {
		for method := range methods {
			if method = strings.ToUpper(method); method != "PARAMETERS" && !done[method+" "+path] {
				t.Errorf("%s %s was never answered well", method, path)
			}
		}
	}
	if !slices.Contains(swarm.RunStatuses, get[runList](h, "/api/v1/runs").Runs[0].Status) {
		t.Error("a run has a status that is not described")
	}
}
