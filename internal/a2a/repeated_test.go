package a2a

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
	"swarm/internal/storetest"
)

// atOnce are the parameters of a message that is answered at once.
func atOnce(params string) string {
	return strings.TrimSuffix(params, "}") + `,"configuration":{"returnImmediately":true}}`
}

// ask has an agent ask for something, as its turn would.
func (h *house) ask(task wire.TaskID, id string) {
	h.t.Helper()
	body, _ := json.Marshal(swarm.Approval{ID: id, What: "use " + id, Tool: "rm"})
	h.append(task, swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey(id), Task: "sh", Agent: "sh", Turn: "sh/1/1", Data: body})
}

// words are what the run was told, in short.
func (h *house) words(task wire.TaskID) string {
	h.t.Helper()
	var all []string
	for _, e := range h.events(task, swarm.ApprovalAnswered) {
		a, err := swarm.Body[swarm.ApprovalAnswer](&e)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, run.Decision{OK: a.OK}.Verb()+" "+a.ID)
	}
	return strings.Join(all, ", ")
}

// TestAYesIsForTheQuestionThatWasTold: a yes answers only the question that the client was shown.
// It answers no later one, even if it is sent again, here or at another server.
func TestAYesIsForTheQuestionThatWasTold(t *testing.T) {
	h := open(t)
	h.project("")
	task := h.good("sh", "SendMessage", atOnce(message("m", "Say it")))
	h.began()
	told := func(at *house, want string) {
		t.Helper()
		got := at.good("sh", "GetTask", named(task.ID)).Status
		if text := got.Message.Parts[0].Text(); got.State != wire.TaskStateInputRequired || !strings.Contains(text, want) || strings.Count(text, "Answer yes or no") != 1 {
			t.Errorf("the client is told %s %q, want %s alone", got.State, text, want)
		}
	}
	granted := func(want string) {
		t.Helper()
		if got := h.words(task.ID); got != want {
			t.Fatalf("the run was told %q, want %q", got, want)
		}
	}
	h.ask(task.ID, "first")
	h.ask(task.ID, "second")
	told(h, "use first")
	yes := atOnce(message("yes-1", "yes", inTask(task.ID)))
	other := serve(t, h.home, h.dir)
	for _, at := range []*house{h, h, other} {
		at.good("sh", "SendMessage", yes)
		granted("approve first")
		told(at, "use second")
	}
	h.bad("sh", "SendMessage", atOnce(message("yes-1", "no", inTask(task.ID))), -32602)

	// Another client answers first, and the agent asks for more.
	h.append(task.ID, swarm.Event{Kind: swarm.ApprovalAnswered, Key: swarm.AnsweredKey("second"), To: swarm.ToControl, Turn: "sh/1/1", Data: []byte(`{"id":"second","ok":false}`)})
	h.ask(task.ID, "third")
	late := atOnce(message("yes-2", "yes", inTask(task.ID)))
	for range 2 {
		if why := h.bad("sh", "SendMessage", late, -32602); !strings.Contains(why, "use third") {
			t.Errorf("who says yes too late is told %q", why)
		}
		granted("approve first, deny second")
	}
	h.good("sh", "SendMessage", atOnce(message("yes-3", "yes", inTask(task.ID))))
	granted("approve first, deny second, approve third")

	// A restarted server has shown the question to no client.
	h.ask(task.ID, "fourth")
	again := serve(t, h.home, h.dir)
	if why := again.bad("sh", "SendMessage", atOnce(message("yes-4", "yes", inTask(task.ID))), -32602); !strings.Contains(why, "use fourth") {
		t.Errorf("after a restart the client is told %q", why)
	}
	again.good("sh", "SendMessage", atOnce(message("yes-5", "yes", inTask(task.ID))))
	granted("approve first, deny second, approve third, approve fourth")

	// An answer to a closed question is refused, and is not stored as mail.
	h.ask(task.ID, "fifth")
	told(h, "use fifth")
	h.append(task.ID, swarm.Event{Kind: swarm.ApprovalAnswered, Key: swarm.AnsweredKey("fifth"), Turn: "sh/1/1", Data: []byte(`{"id":"fifth","ok":false}`)})
	h.bad("sh", "SendMessage", atOnce(message("yes-6", "yes", inTask(task.ID))), -32602)
	if stored := h.events(task.ID, swarm.HandoffStored); len(stored) != 1 {
		t.Errorf("%d messages are stored", len(stored))
	}
}

// TestOneMessageAtTwoServersBeginsOneRun.
func TestOneMessageAtTwoServersBeginsOneRun(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: x}\n")
	servers := []*house{h, serve(t, h.home, h.dir)}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		got := make([]wire.TaskID, 4)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = servers[i%2].good("chief", "SendMessage", message(id, "Do "+id)).ID })
		}
		all.Wait()
		for _, one := range got {
			if one != got[0] {
				t.Errorf("the message %s began %s", id, got)
			}
		}
	}
	if all, err := h.home.List(h.dir, true); err != nil || len(all) != 5 {
		t.Errorf("there are %d runs (%v)", len(all), err)
	}
}

// TestEveryMessageThatWasTakenCounts: a message that continued a conversation is recognized when it
// is sent again, even after its task has ended.
func TestEveryMessageThatWasTakenCounts(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: which, call: [{tool: request_help, args: {help_description: Which?}}]}\n- {agent: chief, say: done}\n")
	begin, answer := message("m-1", "Choose", inContext("talk")), message("m-2", "This", inContext("talk"))
	task := h.good("chief", "SendMessage", begin)
	for _, again := range []string{answer, answer, begin, message("m-2", "This", inTask(task.ID)), message("m-1", "Choose", inTask(task.ID))} {
		if got := h.good("chief", "SendMessage", again); got.ID != task.ID || got.Status.State != wire.TaskStateCompleted {
			t.Errorf("%s is answered with %s, %s", again, got.ID, got.Status.State)
		}
	}
	for _, other := range []string{message("m-1", "Paint", inContext("talk")), message("m-2", "That", inContext("talk")), message("m-2", "That", inTask(task.ID)),
		strings.Replace(begin, `{"text":"Choose"}`, `{"text":"Choose"},{"data":{"n":1}}`, 1)} {
		h.bad("chief", "SendMessage", other, -32602)
	}
	if all, err := h.home.List(h.dir, true); err != nil || len(all) != 1 {
		t.Errorf("there are %d runs (%v)", len(all), err)
	}
}

// TestWhatIsComparedIsWhatIsStored: repeats are recognized although secrets are redacted and long
// texts are stored elsewhere.
func TestWhatIsComparedIsWhatIsStored(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "canary-0123456789")
	h := open(t)
	h.project("")
	task := h.good("sh", "SendMessage", atOnce(message("m", "Say it")))
	h.began()
	for _, text := range []string{"the key is canary-0123456789", strings.Repeat("long ", 4000)} {
		more := strings.Replace(atOnce(message("m-"+text[:3], text, inTask(task.ID))), `"parts":[`, `"parts":[{"data":{"n":[1.50,"canary-0123456789"]}},`, 1)
		h.good("sh", "SendMessage", more)
		h.good("sh", "SendMessage", more)
		h.bad("sh", "SendMessage", strings.Replace(more, "1.50", "2", 1), -32602)
	}
	stored := h.events(task.ID, swarm.HandoffStored)
	if len(stored) != 3 {
		t.Errorf("%d messages are stored", len(stored))
	}
	for _, e := range stored {
		if strings.Contains(string(e.Data), "canary") {
			t.Errorf("a key is stored: %.200s", e.Data)
		}
	}
}

// A run that a shared store cannot show at the moment may have the message, so none is begun.
func TestARunThatCannotBeReadMayHaveTheMessage(t *testing.T) {
	home, err := statedir.At(t.TempDir(), func(string) swarm.Store {
		return storetest.Away{Shared: storetest.Shared{Store: sqlite.NewStore(t.TempDir())}}
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := home.Store.Create(t.Context(), "begun")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := home.Store.Save(t.Context(), swarm.RunSummary{ID: "begun", Kind: swarm.TeamRun, Status: swarm.Running, Origin: &swarm.Origin{Agent: "chief", Message: "m-1"}}); err != nil {
		t.Fatal(err)
	}
	h := &handler{Server: &Server{Options: Options{Control: &control.Control{Home: home, Anywhere: true}}}, agent: "chief"}
	if runs, err := h.begun(""); swarm.KindOf(err) != swarm.Storage {
		t.Errorf("%+v, %v", runs, err)
	}
}

// TestAStreamTellsAllOfARun, also of one that is over before the stream begins.
func TestAStreamTellsAllOfARun(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: done}\n")
	h.quick = true
	if got, want := h.listen("chief", "SendStreamingMessage", message("m", "Do it")).rest(), "submitted working output:done completed"; got != want {
		t.Errorf("the stream tells %q, want %q", got, want)
	}
}
