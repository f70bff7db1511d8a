package a2a

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/agenttoken"
)

// TestAMessageIsARun: a message starts a run, and both bindings return the state of that run.
func TestAMessageIsARun(t *testing.T) {
	h := open(t)
	h.project(`
- {agent: chief, say: asking, call: [{tool: send_handoff, args: {to: coder, message: write it}}]}
- {agent: chief, say: it is written, call: [{tool: put_artifact, args: {kind: report, name: r, content: all good}}]}
- {agent: coder, say: written, call: [{tool: send_handoff, args: {to: chief, message: done}}]}
`)
	got := h.good("chief", "SendMessage", message("m-1", "Write it"))
	if got.Status.State != wire.TaskStateCompleted || got.ContextID != string(got.ID) || len(got.Artifacts) != 2 || len(got.History) != 1 {
		t.Fatalf("the task is %+v", got)
	}
	if output, report := got.Artifacts[0], got.Artifacts[1]; output.Parts[0].Text() != "it is written" || report.Parts[0].Text() != "all good" || !strings.HasPrefix(string(report.ID), "artifact://report/") {
		t.Errorf("its artifacts are %+v and %+v", output, report)
	}
	if said := got.History[0]; said.ID != "m-1" || said.Role != wire.MessageRoleUser || said.Parts[0].Text() != "Write it" {
		t.Errorf("its history is %+v", said)
	}
	again, _ := json.Marshal(h.good("chief", "GetTask", named(got.ID)))
	if first, _ := json.Marshal(got); string(again) != string(first) {
		t.Errorf("asked again it is\n%s\nand was\n%s", again, first)
	}
	_, text := h.text(h.request("GET", "/a2a/chief/v1/tasks/"+string(got.ID), ""))
	var plain wire.Task
	if err := json.Unmarshal([]byte(text), &plain); err != nil || plain.ID != got.ID || plain.Status.State != wire.TaskStateCompleted {
		t.Errorf("over HTTP+JSON it is %+v (%v)", plain, err)
	}
	// Sent again, it is the same message.
	if same := h.good("chief", "SendMessage", message("m-1", "Write it")); same.ID != got.ID {
		t.Errorf("sent again, it began %s beside %s", same.ID, got.ID)
	}
	// Another agent, and other runs, are not its.
	h.bad("coder", "GetTask", named(got.ID), -32001)
	h.bad("chief", "GetTask", named(got.ID[:10]), -32001)
	h.bad("chief", "GetTask", `{"id":"../x"}`, -32001)
	h.bad("chief", "CancelTask", named(got.ID), -32002)
	h.bad("chief", "SendMessage", message("m-2", "More", inTask(got.ID)), -32004)
}

// TestAStreamTellsAsItHappens: updates arrive as they happen, also for a client that subscribes in
// the middle at another server.
func TestAStreamTellsAsItHappens(t *testing.T) {
	h := open(t)
	h.project("")
	first := h.listen("sh", "SendStreamingMessage", message("m", "Say it"))
	task := first.next().(*wire.Task)
	h.began()
	other := serve(t, h.home, h.dir)
	h.say("one")
	first.until("output:one|")
	second := other.listen("sh", "SubscribeToTask", named(task.ID))
	for _, want := range []string{"working", "output:one|"} {
		if got := short(second.next()); got != want {
			t.Errorf("who comes in the middle is told %q, want %q", got, want)
		}
	}
	h.say("two")
	const want = "output:+two| completed"
	if got := first.rest(); got != want {
		t.Errorf("the first was told %q, want %q", got, want)
	}
	if got := second.rest(); got != want {
		t.Errorf("the second was told %q, want %q", got, want)
	}
	for _, server := range []*house{h, other} {
		if got := server.good("sh", "GetTask", named(task.ID)); got.Artifacts[0].Parts[0].Text() != "one\ntwo\n" {
			t.Errorf("in the end it is %+v", got.Artifacts[0])
		}
	}
	h.bad("sh", "GetTask", `{"id":"`+string(task.ID)+`","historyLength":-1}`, -32602)
}

// TestAQuestionIsAnsweredInItsTask: a waiting client gets the agent's question. Its answer is mail,
// and is stored once even if it is sent twice.
func TestAQuestionIsAnsweredInItsTask(t *testing.T) {
	h := open(t)
	h.project(`
- {agent: chief, say: which colour, call: [{tool: request_help, args: {help_description: Which colour?}}]}
- {agent: chief, say: painted}
`)
	asked := h.good("chief", "SendMessage", message("m-1", "Paint it"))
	if asked.Status.State != wire.TaskStateInputRequired || asked.Status.Message == nil || asked.Status.Message.Parts[0].Text() != "Which colour?" {
		t.Fatalf("the task is %+v", asked.Status)
	}
	h.bad("chief", "SendMessage", message("m-2", "Red", inTask(asked.ID), inContext("another")), -32602)
	answer := message("m-2", "Red", inContext(asked.ContextID))
	if got := h.listen("chief", "SendStreamingMessage", answer).rest(); !strings.HasSuffix(got, "completed") {
		t.Errorf("the answer was followed by %q", got)
	}
	// In the same context it is not a new question: it is what was said already.
	stored := 0
	for _, e := range h.events(asked.ID, swarm.HandoffStored) {
		if strings.Contains(string(e.Data), `"Red"`) {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("the answer is stored %d times", stored)
	}
	if got := h.good("chief", "GetTask", named(asked.ID)); len(got.History) != 3 || got.History[1].Role != wire.MessageRoleAgent || got.Artifacts[0].Parts[0].Text() != "painted" {
		t.Errorf("in the end it is %+v", got)
	}
}

// TestWhatIsSentAgainIsStoredOnce: a message that is repeated in an unfinished task is stored once.
func TestWhatIsSentAgainIsStoredOnce(t *testing.T) {
	h := open(t)
	h.project("")
	task := h.good("sh", "SendMessage", strings.TrimSuffix(message("m", "Say it"), "}")+`,"configuration":{"returnImmediately":true}}`)
	h.began()
	more := strings.TrimSuffix(message("more", "And this", inTask(task.ID)), "}") + `,"configuration":{"returnImmediately":true}}`
	for range 2 {
		if got := h.good("sh", "SendMessage", more); got.ID != task.ID || got.Status.State != wire.TaskStateWorking {
			t.Errorf("it is answered with %s, %s", got.ID, got.Status.State)
		}
	}
	if stored := h.events(task.ID, swarm.HandoffStored); len(stored) != 2 {
		t.Errorf("%d messages are stored", len(stored))
	}
	h.bad("sh", "SendMessage", message("more", "And that", inTask(task.ID)), -32602)
}

// TestATeamThatStaysWaitsForTheClient: in INTERACTIVE mode a task needs the client as soon as all
// agents are idle.
func TestATeamThatStaysWaitsForTheClient(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: first}\n- {agent: chief, say: second}\n")
	task := h.good("chief", "SendMessage", strings.TrimSuffix(message("m-1", "Stay"), "}")+`,"metadata":{"mode":"INTERACTIVE"}}`)
	if task.Status.State != wire.TaskStateInputRequired || task.Artifacts[0].Parts[0].Text() != "first" {
		t.Fatalf("it is %+v", task)
	}
	more := h.good("chief", "SendMessage", message("m-2", "More", inContext(task.ContextID)))
	if more.ID != task.ID || more.Status.State != wire.TaskStateInputRequired || more.Artifacts[0].Parts[0].Text() != "second" {
		t.Errorf("after another message it is %+v", more)
	}
	if got := h.good("chief", "CancelTask", named(task.ID)); got.Status.State != wire.TaskStateCanceled {
		t.Errorf("cancelled it is %s", got.Status.State)
	}
	h.bad("chief", "SendMessage", strings.TrimSuffix(message("m-3", "x"), "}")+`,"metadata":{"mode":7}}`, -32602)
}

// TestAConversationGoesOnInAnotherRun: the next run gets the earlier messages.
func TestAConversationGoesOnInAnotherRun(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: It is 42.}\n")
	first := h.good("chief", "SendMessage", message("m-1", "What is it?", inContext("talk-7")))
	second := h.good("chief", "SendMessage", message("m-2", "Are you sure?", inContext("talk-7")))
	if first.ContextID != "talk-7" || second.ContextID != "talk-7" || first.ID == second.ID {
		t.Fatalf("%+v and %+v", first, second)
	}
	goal := h.events(second.ID, swarm.HandoffStored)[0]
	if want := `"structured":{"history":[{"from":"user","text":"What is it?"},{"from":"chief","text":"It is 42."}]}`; !strings.Contains(string(goal.Data), want) {
		t.Errorf("the second run begins with %s", goal.Data)
	}
	var list wire.ListTasksResponse
	if err := json.Unmarshal(h.call("chief", "ListTasks", `{"contextId":"talk-7","pageSize":1}`).Result, &list); err != nil {
		t.Fatal(err)
	}
	if list.TotalSize != 2 || len(list.Tasks) != 1 || list.Tasks[0].ID != second.ID || list.NextPageToken != string(second.ID) {
		t.Errorf("the list is %+v", list)
	}
	h.bad("chief", "ListTasks", `{"pageSize":101}`, -32602)
}

// TestAnApprovalIsAnsweredYesOrNo.
func TestAnApprovalIsAnsweredYesOrNo(t *testing.T) {
	h := open(t)
	h.project("")
	task := h.good("sh", "SendMessage", strings.TrimSuffix(message("m", "Say it"), "}")+`,"configuration":{"returnImmediately":true}}`)
	h.began()
	body, _ := json.Marshal(swarm.Approval{ID: "sh/1/1-x", What: "delete everything", Tool: "rm"})
	h.append(task.ID, swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("sh/1/1-x"), Task: "sh", Agent: "sh", Turn: "sh/1/1", Data: body})
	if got := h.good("sh", "GetTask", named(task.ID)); got.Status.State != wire.TaskStateInputRequired || !strings.Contains(got.Status.Message.Parts[0].Text(), "Answer yes or no") {
		t.Errorf("it is %+v", got.Status)
	}
	h.bad("sh", "SendMessage", message("m-2", "Perhaps", inTask(task.ID)), -32602)
	h.good("sh", "SendMessage", strings.TrimSuffix(message("m-3", "No.", inTask(task.ID)), "}")+`,"configuration":{"returnImmediately":true}}`)
	if said := h.events(task.ID, swarm.ApprovalAnswered); len(said) != 1 || !strings.HasPrefix(string(said[0].Data), `{"id":"sh/1/1-x","ok":false,"by":"person","how":"a2a","message":"a2a-`) {
		t.Errorf("the run was told %v", said)
	}
}

// TestATaskGoesOnAtAnotherServer: the status says that no process drives the task, and a message to
// it resumes it.
func TestATaskGoesOnAtAnotherServer(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: a question, call: [{tool: request_help, args: {help_description: Which?}}]}\n- {agent: chief, say: done}\n")
	asked := h.good("chief", "SendMessage", message("m-1", "Choose"))
	h.stop(swarm.Errorf(swarm.Stopped, "the server ends"))
	h.drivers.Wait()
	other := serve(t, h.home, h.dir)
	if got := other.good("chief", "GetTask", named(asked.ID)); got.Status.State != wire.TaskStateInputRequired {
		t.Errorf("at the other server it is %+v", got.Status)
	}
	if got := other.good("chief", "SendMessage", message("m-2", "This", inTask(asked.ID))); got.Status.State != wire.TaskStateCompleted {
		t.Errorf("after the answer it is %+v", got.Status)
	}
}

// TestACancelledTaskIsGone: the message that started a cancelled task can be sent again.
func TestACancelledTaskIsGone(t *testing.T) {
	h := open(t)
	h.project("")
	ear := h.listen("sh", "SendStreamingMessage", message("m", "Say it"))
	task := ear.next().(*wire.Task)
	h.began()
	if got := h.good("sh", "CancelTask", named(task.ID)); got.Status.State != wire.TaskStateCanceled {
		t.Errorf("it is %+v", got.Status)
	}
	if got := ear.rest(); !strings.HasSuffix(got, "canceled") {
		t.Errorf("who listens is told %q", got)
	}
	h.bad("sh", "SubscribeToTask", named("20260101-000000-aaaaaaa"), -32001)
	again := h.listen("sh", "SendStreamingMessage", message("m", "Say it")).next().(*wire.Task)
	if again.ID == task.ID {
		t.Error("what was cancelled is given again")
	}
	h.began()
}

func TestBadInputIsRefusedInTheProtocolsOwnWords(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: x}\n")
	part := func(part string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + part + `]}}`
	}
	for _, c := range []struct {
		method, params string
		code           int
	}{
		{"Nonsense", `{}`, -32601},
		{"SendMessage", `[]`, -32602},
		{"SendMessage", `{}`, -32602},
		{"SendMessage", `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`, -32602},
		{"SendMessage", `{"message":{"messageId":"","role":"ROLE_USER","parts":[{"text":"x"}]}}`, -32602},
		{"SendMessage", `{"message":{"messageId":"` + strings.Repeat("m", 300) + `","role":"ROLE_USER","parts":[{"text":"x"}]}}`, -32602},
		{"SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`, -32602},
		{"SendMessage", part(`{"text":" \n"}`), -32602},
		{"SendMessage", part(`null`), -32602},
		{"SendMessage", part(`{"raw":"AP8=","mediaType":"image/png"}`), -32005},
		{"SendMessage", part(`{"text":"` + strings.Repeat("x", maxText+1) + `"}`), -32602},
		{"SendMessage", message("m", "x", inTask("nosuch")), -32001},
		{"SendMessage", strings.TrimSuffix(message("m", "x"), "}") + `,"configuration":{"acceptedOutputModes":["image/png"]}}`, -32005},
		{"SendMessage", strings.TrimSuffix(message("m", "x"), "}") + `,"configuration":{"taskPushNotificationConfig":{"url":"http://127.0.0.1:1/"}}}`, -32003},
		{"GetTask", `{}`, -32001},
		{"GetTaskPushNotificationConfig", `{"taskId":"x","id":"y"}`, -32003},
		{"GetExtendedAgentCard", `{}`, -32007},
	} {
		h.bad("chief", c.method, c.params, c.code)
	}
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"SendMessage","params":` + message("m", "x") + `}`:                            `the key \"method\" stands there twice`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + part(`{"text":"x","text":"y"}`) + `}`:                                 `the key \"text\" stands there twice`,
		`{"jsonrpc":"2.0","id":1,"METHOD":"SendMessage","params":` + message("m", "x") + `}`:                                               `the key \"METHOD\" is not spelled so`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + strings.Replace(message("m", "x"), "messageId", "MESSAGEID", 1) + `}`: `the key \"MESSAGEID\" is not spelled so`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + part(`{"text":"x\ud800"}`) + `}`:                                      `half of a surrogate pair: \\ud800`,
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + message("m", "x") + `} {}`:                                            "after top-level value",
		`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`:             "nested deeper than 100 levels",
	} {
		if _, text := h.text(h.request("POST", "/a2a/chief", body)); !strings.Contains(text, "-32700") || !strings.Contains(text, want) {
			t.Errorf("%.60s is answered with %s, want %s", body, text, want)
		}
	}
	if status, text := h.text(h.request("POST", "/a2a/chief/v1/message:send", `{"message":{},"message":{}}`)); status != http.StatusBadRequest || !strings.Contains(text, "PARSE_ERROR") {
		t.Errorf("a key twice is answered with %d %s", status, text)
	}
	if status, text := h.text(h.request("POST", "/a2a/chief/v1/message:send", strings.Replace(message("m", "x"), "parts", "Parts", 1))); status != http.StatusBadRequest || !strings.Contains(text, "PARSE_ERROR") {
		t.Errorf("a key in another case is answered with %d %s", status, text)
	}
	deep := part(`{"text":"x"},{"data":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)
	if status, text := h.text(h.request("POST", "/a2a/chief/v1/message:send", deep)); status != http.StatusBadRequest || !strings.Contains(text, "PARSE_ERROR") {
		t.Errorf("JSON that is nested 5,000 deep is answered with %d %s", status, text)
	}
	r := h.request("POST", "/a2a/chief", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}`)
	r.Header.Set("A2A-Version", "0.3")
	if _, text := h.text(r); !strings.Contains(text, "-32009") {
		t.Errorf("another version is answered with %s", text)
	}
	if all, _ := h.home.List(h.dir, true); len(all) > 0 {
		t.Errorf("runs were begun: %+v", all)
	}
	// A long message and one in parts reach the agent whole.
	long := h.good("chief", "SendMessage", part(`{"text":"`+strings.Repeat("y", 20_000)+`"},{"data":{"n":1}},{"raw":"aGkK","filename":"a.txt"}`))
	if got := long.History[0].Parts[0].Text(); !strings.HasPrefix(got, "yyy") || len(got) != 20_000+len("\n\na.txt:\nhi\n") {
		t.Errorf("the history has %d bytes", len(got))
	}
}

// TestNobodyGetsIn: every route × method × credential × Host × Origin. The guard answers before any
// route is looked up.
func TestNobodyGetsIn(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: x}\n")
	task := h.good("chief", "SendMessage", message("m", "x"))
	h.finish(string(task.ID)) // what it writes at its end is written
	address := strings.TrimPrefix(h.server.URL(), "http://")
	_, port, _ := strings.Cut(address, ":")
	hosts := []string{address, "localhost:" + port, "evil.example:" + port, "127.0.0.1"}
	origins := []string{"", "http://" + address, "null", "http://evil.example:" + port}
	tokens := []string{"", "Bearer wrong-wrong-wrong-wrong", "Basic " + token, "Bearer " + agenttoken.New(string(task.ID)).For("chief"), "Bearer " + token}
	paths := []string{"/a2a", "/a2a/", "/.well-known/agent-card.json", "/a2a/chief", "/a2a/chief/.well-known/agent-card.json", "/a2a/chief/v1/message:send", "/a2a/chief/v1/message:stream",
		"/a2a/chief/v1/tasks", "/a2a/chief/v1/tasks/" + string(task.ID), "/a2a/chief/v1/tasks/" + string(task.ID) + ":cancel", "/a2a/nosuch"}
	before, tried := h.snapshot(task.ID), 0
	for _, path := range paths {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			for _, host := range hosts {
				for _, origin := range origins {
					for _, auth := range tokens {
						friend := slices.Contains(hosts[:2], host) && slices.Contains(origins[:2], origin)
						if friend && auth == tokens[len(tokens)-1] {
							continue
						}
						tried++
						want := http.StatusForbidden
						if friend {
							want = http.StatusUnauthorized
						}
						r := h.request(method, path, `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":`+message("evil", "x")+`}`)
						r.Host = host
						r.Header = http.Header{"Content-Type": {"application/json"}, "Origin": {origin}, "Authorization": {auth}}
						if origin == "" {
							r.Header.Del("Origin")
						}
						status, text := h.text(r)
						if status != want || !strings.Contains(text, `"hint"`) || strings.Contains(text, token) {
							t.Fatalf("%s %s, host %s, origin %q, %q: %d %s, want %d", method, path, host, origin, auth, status, text, want)
						}
					}
				}
			}
		}
	}
	for _, path := range paths {
		r := h.request("POST", path, message("evil", "x"))
		r.Header.Set("Content-Type", "text/plain")
		if status, _ := h.text(r); status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", path, status)
		}
	}
	if after := h.snapshot(task.ID); after != before {
		t.Errorf("the state folder was\n%s\nand is\n%s", before, after)
	}
	t.Logf("%d requests", tried)
}

// snapshot is what the state folder holds, and how long the log of a run is. The log's own files
// change when readers leave it.
func (h *house) snapshot(id wire.TaskID) string {
	h.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(h.home.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-wal") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".db") {
			text = fmt.Append(nil, len(h.events(id, "")))
		}
		fmt.Fprintf(&b, "%s %s\n", path, swarm.HashOf(text))
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return b.String()
}

func TestACardSaysWhatThereIs(t *testing.T) {
	h := open(t)
	h.project("")
	for path, name := range map[string]string{"/.well-known/agent-card.json": "chief", "/a2a/coder/.well-known/agent-card.json": "coder"} {
		var card card
		_, text := h.text(h.request("GET", path, ""))
		if err := json.Unmarshal([]byte(text), &card); err != nil {
			t.Fatal(err)
		}
		url := h.server.URL() + "/a2a/" + name
		if card.Name != name || card.Description != "It is "+name+"." || card.Version != "1.2.3" || !card.Capabilities.Streaming || len(card.Skills) != 1 ||
			card.SupportedInterfaces[0].URL != url || card.SupportedInterfaces[1].URL != url+"/v1" || card.SecuritySchemes["bearer"] == nil {
			t.Errorf("%s: %+v", path, card)
		}
	}
	if status, _ := h.text(h.request("GET", "/a2a/nosuch/.well-known/agent-card.json", "")); status != http.StatusNotFound {
		t.Errorf("a card of nobody: %d", status)
	}
}

// FuzzMessages: any message is either valid mail, or refused with an error of the protocol.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{`{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}`, `{"messageId":"m","role":"ROLE_USER","parts":[{"data":[1,{"a":null}]}]}`,
		`{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk=","filename":"\u0000"},{"url":"http://x"},null]}`, `{}`, `null`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m *wire.Message
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		l, err := read(m)
		if err != nil {
			if protocolError(t.Context(), err).Error() == "" {
				t.Errorf("%q is refused without a word", text)
			}
			return
		}
		short, structured, err := l.fit([]spoke{{"user", "x"}})
		if err != nil || strings.TrimSpace(short) == "" || len(short) > 8<<10 || !json.Valid(structured) {
			t.Errorf("%q became %q and %s (%v)", text, short, structured, err)
		}
	})
}

// TestTheFieldsOfRequestsAreComplete: every field that the library reads from a request is in our
// list. Otherwise it would be read in any case.
func TestTheFieldsOfRequestsAreComplete(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(at reflect.Type) {
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(at.Elem())
		case reflect.Struct:
			if seen[at] || at == reflect.TypeFor[time.Time]() {
				return
			}
			seen[at] = true
			for i := range at.NumField() {
				f := at.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if at == reflect.TypeFor[wire.Part]() && f.Name == "Content" {
					continue // it is spread: text, raw, url or data
				}
				if name != "" && name != "-" && !slices.Contains(requestFields, name) {
					t.Errorf("the field %s of %s is missing", name, at)
				}
				walk(f.Type)
			}
		}
	}
	for _, of := range []any{
		wire.SendMessageRequest{}, wire.GetTaskRequest{}, wire.ListTasksRequest{}, wire.CancelTaskRequest{}, wire.SubscribeToTaskRequest{},
		wire.PushConfig{}, wire.GetTaskPushConfigRequest{}, wire.ListTaskPushConfigRequest{}, wire.DeleteTaskPushConfigRequest{}, wire.GetExtendedAgentCardRequest{},
	} {
		walk(reflect.TypeOf(of))
	}
}
