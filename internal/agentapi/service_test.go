package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/sqlite"
)

// team is a plan in which planner and coder write to each other, and coder to tester.
var team = swarm.Plan{Kind: swarm.TeamRun,
	Agents: []swarm.Agent{{Name: "planner"}, {Name: "coder"}, {Name: "tester"}},
	Edges:  []swarm.Edge{{From: "planner", To: "coder", Both: true}, {From: "coder", To: "tester"}}}

// opened makes the log of a run of the team. It also returns a function that opens the log again,
// as another process would.
func opened(t *testing.T) (swarm.Log, func() swarm.Log) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.db")
	log, err := sqlite.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	add(t, log, swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(team)})
	return log, func() swarm.Log {
		again, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { again.Close() })
		return again
	}
}

func add(t *testing.T, log swarm.Log, events ...swarm.Event) {
	t.Helper()
	if _, err := log.Append(t.Context(), swarm.Batch{Events: events}); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, log swarm.Log, kind swarm.EventKind) (n int) {
	t.Helper()
	for _, e := range all(t, log) {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func all(t *testing.T, log swarm.Log) (events []swarm.Event) {
	t.Helper()
	for after := int64(0); ; after = events[len(events)-1].Seq {
		page, err := log.Read(after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return events
		}
		events = append(events, page...)
	}
}

// call calls a tool, which must succeed, and decodes its answer.
func call[T any](t *testing.T, h *TurnHandle, tool, args string) (answer T) {
	t.Helper()
	raw, err := h.Call(t.Context(), tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %.200s: %v", tool, args, err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return answer
}

// commit ends a turn as package turn does: the mail that it saw is consumed in one batch with its
// end.
func commit(t *testing.T, log swarm.Log, h *TurnHandle) swarm.Inputs {
	t.Helper()
	in := h.End()
	if in.Upto > in.From {
		add(t, log, swarm.Event{Kind: swarm.HandoffConsumed, Key: swarm.UsedKey(h.Agent, in.From), Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(in)})
	}
	return in
}

// begin starts a turn as package turn does: its prompt has the unread mail.
func begin(t *testing.T, s *Service, agent string, turn swarm.TurnID) (*TurnHandle, []mail.Item) {
	t.Helper()
	from, err := s.Cursor(agent)
	if err != nil {
		t.Fatal(err)
	}
	items, err := s.Unread(agent, from, 100)
	if err != nil {
		t.Fatal(err)
	}
	in := swarm.Inputs{From: from}
	if len(items) > 0 {
		in.Upto = items[len(items)-1].Seq
	}
	return s.BeginTurn(agent, "task", turn, 1, in), items
}

func messages(items []mail.Item) string {
	var texts []string
	for _, i := range items {
		texts = append(texts, i.Payload.Message)
	}
	return strings.Join(texts, " ")
}

func TestTwoAgentsExchangeMail(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	planner, _ := begin(t, s, "planner", "plan/1/1")
	first := call[SendResult](t, planner, "send_handoff", `{"to":"Coder","message":"one","structured":{"n":12345678901234567890.10},"response":{"expectation":"required"}}`)
	coder, items := begin(t, s, "coder", "code/1/1")
	if messages(items) != "one" || items[0].Seq != first.Seq || items[0].ID != first.ID || items[0].FromNodeID != "planner" {
		t.Fatalf("%+v", items)
	}
	if got := string(items[0].Payload.Structured); got != `{"n":12345678901234567890.10}` {
		t.Errorf("structured is %s", got)
	}
	if got := call[inboxResult](t, coder, "read_inbox", ``); len(got.Envelopes) != 0 {
		t.Errorf("what the prompt had is shown again: %+v", got)
	}
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"two","type":"signal"}`)
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"three","type":"info"}`)
	got := call[inboxResult](t, coder, "read_inbox", `{"max":1}`)
	if messages(got.Envelopes) != "two" || !got.More || got.Envelopes[0].Kind != swarm.Signal {
		t.Errorf("%+v", got)
	}
	got = call[inboxResult](t, coder, "read_inbox", `{}`)
	if messages(got.Envelopes) != "three" || got.More || string(got.Envelopes[0].Meta) != `{"type":"info"}` {
		t.Errorf("%+v", got)
	}
	call[SendResult](t, coder, "send_handoff", `{"to":"planner","message":"done"}`)
	if in := commit(t, log, coder); in.From != 0 || in.Upto != got.Envelopes[0].Seq {
		t.Errorf("consumed %+v", in)
	}
	if _, items := begin(t, s, "coder", "code/1/2"); len(items) != 0 {
		t.Errorf("consumed mail is unread: %v", messages(items))
	}
	if got := call[inboxResult](t, planner, "read_inbox", `{}`); messages(got.Envelopes) != "done" {
		t.Errorf("%+v", got)
	}
}

// A turn that ends without a commit consumes nothing, even if it was shown mail.
func TestCutTurnLeavesItsMail(t *testing.T) {
	log, again := opened(t)
	s := &Service{Log: log}
	planner, _ := begin(t, s, "planner", "plan/1/1")
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"one"}`)
	coder, _ := begin(t, s, "coder", "code/1/1")
	call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"two"}`)
	call[inboxResult](t, coder, "read_inbox", `{}`)
	coder.End()
	for _, s := range []*Service{s, {Log: again()}} { // also after a restart
		if _, items := begin(t, s, "coder", "code/1/1"); messages(items) != "one two" {
			t.Errorf("unread is %q", messages(items))
		}
	}
}

func TestCursorOutlivesTheService(t *testing.T) {
	log, again := opened(t)
	s := &Service{Log: log}
	planner, _ := begin(t, s, "planner", "plan/1/1")
	for i := range 10 {
		call[SendResult](t, planner, "send_handoff", fmt.Sprintf(`{"to":"coder","message":"%d"}`, i))
		coder, _ := begin(t, s, "coder", swarm.NewTurnID("code", i+1, 1))
		if i != 9 {
			commit(t, log, coder)
		}
	}
	want, _ := s.Cursor("coder")
	other := &Service{Log: again()}
	got, err := other.Cursor("coder")
	if err != nil || got != want || got == 0 {
		t.Fatalf("the cursor is %d (%v); it was %d", got, err, want)
	}
	if _, items := begin(t, other, "coder", "code/10/1"); messages(items) != "9" {
		t.Errorf("unread is %q", messages(items))
	}
	if c, err := other.Cursor("tester"); c != 0 || err != nil {
		t.Errorf("who got no mail has the cursor %d, %v", c, err)
	}
}

// With concurrent senders in several processes, each message is stored once, in the order of its
// sender, and consumed once.
func TestManySendersAndProcesses(t *testing.T) {
	log, again := opened(t)
	services := []*Service{{Log: log}, {Log: again()}}
	const senders, each = 8, 40
	crew := swarm.Plan{Edges: []swarm.Edge{}}
	for i := range senders {
		name := fmt.Sprintf("s%d", i)
		crew.Agents = append(crew.Agents, swarm.Agent{Name: name})
		crew.Edges = append(crew.Edges, swarm.Edge{From: name, To: "tester"})
	}
	add(t, log, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: swarm.Encode(crew)})
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			h := services[i%2].BeginTurn(fmt.Sprintf("s%d", i), "t", swarm.TurnID(fmt.Sprintf("t%d/1/1", i)), 1, swarm.Inputs{})
			for n := range each {
				args := json.RawMessage(fmt.Sprintf(`{"to":"tester","message":"%d/%d"}`, i, n))
				a, err := h.Call(t.Context(), "send_handoff", args)
				b, err2 := h.Call(t.Context(), "send_handoff", args)
				if err != nil || err2 != nil || string(a) != string(b) {
					t.Errorf("%s %v; again %s %v", a, err, b, err2)
					return
				}
			}
		})
	}
	next, got := [senders]int{}, 0
	for turn := 1; got < senders*each && !t.Failed(); turn++ {
		h, items := begin(t, services[turn%2], "tester", swarm.NewTurnID("test", turn, 1))
		items = append(items, call[inboxResult](t, h, "read_inbox", `{"max":3}`).Envelopes...)
		for _, item := range items {
			var i, n int
			fmt.Sscanf(item.Payload.Message, "%d/%d", &i, &n)
			if next[i] != n {
				t.Fatalf("of sender %d came %d, want %d", i, n, next[i])
			}
			next[i]++
			got++
		}
		commit(t, log, h)
	}
	wg.Wait()
	if n := count(t, log, swarm.HandoffStored); n != senders*each || got != n {
		t.Errorf("%d were stored and %d read, of %d", n, got, senders*each)
	}
}

// With concurrent uses of one id, the same content is one message, and other content is refused.
func TestOneIDOneMessage(t *testing.T) {
	log, again := opened(t)
	services := []*Service{{Log: log}, {Log: again()}}
	var handles []*TurnHandle
	for _, s := range services {
		handles = append(handles, s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{}))
	}
	for round := range 5 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		answers := map[string]map[string]bool{}
		conflicts := 0
		for i := range 16 {
			wg.Go(func() {
				text := []string{"yes", "no"}[i/2%2]
				got, err := handles[i%2].Call(t.Context(), "send_handoff", json.RawMessage(fmt.Sprintf(`{"to":"coder","message":"%s","id":"q%d"}`, text, round)))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, swarm.ErrConflict) && swarm.KindOf(err) == swarm.BadInput:
					conflicts++
				case err != nil:
					t.Error(err)
				default:
					if answers[text] == nil {
						answers[text] = map[string]bool{}
					}
					answers[text][string(got)] = true
				}
			})
		}
		wg.Wait()
		if len(answers) != 1 || conflicts != 8 {
			t.Fatalf("answers %v, %d conflicts", answers, conflicts)
		}
		for text, numbers := range answers {
			if len(numbers) != 1 {
				t.Errorf("%s is %d messages: %v", text, len(numbers), numbers)
			}
		}
	}
	if n := count(t, log, swarm.HandoffStored); n != 5 {
		t.Errorf("%d messages are stored", n)
	}
	stranger := services[0].BeginTurn("coder", "code", "code/1/1", 1, swarm.Inputs{})
	if _, err := stranger.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"planner","message":"yes","id":"q0"}`)); err != nil {
		t.Errorf("an id that another has chosen, too, is refused: %v", err)
	}
}

// A turn that runs again after a crash does the same actions at another time: they are the same
// events.
func TestRepeatedTurnRepeatsNothing(t *testing.T) {
	log, again := opened(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	do := func(log swarm.Log, start int, now time.Time) string {
		s := &Service{Log: log, Now: func() time.Time { return now }}
		h := s.BeginTurn("planner", "plan", "plan/1/1", start, swarm.Inputs{})
		defer h.End()
		kept := call[putResult](t, h, "put_artifact", `{"kind":"diff","name":"x","content":"+1"}`)
		return fmt.Sprint(kept,
			call[SendResult](t, h, "send_handoff", `{"to":"coder","message":"a <b>","artifacts":[{"ref":"`+kept.Ref+`"}]}`),
			call[publishResult](t, h, "publish_data", `{"topic":"facts","data":{"b":1,"a":[1.0]}}`))
	}
	add(t, log, swarm.Event{Kind: swarm.TurnStarted, Key: swarm.StartKey("plan/1/1", 1), Turn: "plan/1/1", Data: swarm.Encode(swarm.TurnStart{Start: 1})})
	first := do(log, 1, at)
	n := len(all(t, log))
	if second := do(again(), 2, at.Add(time.Hour)); second != first {
		t.Errorf("first %s, then %s", first, second)
	}
	if m := len(all(t, log)); m != n {
		t.Errorf("%d events were written again", m-n)
	}
	lines, err := (&Service{Log: log}).Sent("plan/1/1", "never/1/1")
	if err != nil || len(lines) != 3 || !strings.Contains(lines[0], "artifact://diff/") || !strings.Contains(lines[1], "to coder: a <b>") || !strings.Contains(lines[2], "facts") {
		t.Errorf("%q, %v", lines, err)
	}
	next := (&Service{Log: log}).BeginTurn("planner", "plan", "plan/2/1", 1, swarm.Inputs{})
	if a, b := call[SendResult](t, next, "send_handoff", `{"to":"coder","message":"a <b>","artifacts":[{"ref":"`+strings.TrimPrefix(lines[0][:strings.Index(lines[0], ": ")], "stored ")+`"}]}`), first; strings.Contains(b, a.ID) {
		t.Error("another turn's message is taken for the first one's")
	}
}

func TestSeatsEnd(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	if s.Turn("planner") != nil {
		t.Error("nobody has a turn yet")
	}
	first := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{From: 3, Upto: 5})
	if s.Turn("planner") != first {
		t.Error("the handle is not found")
	}
	second := s.BeginTurn("planner", "plan", "plan/2/1", 1, swarm.Inputs{})
	for range 2 {
		if in := first.End(); in != (swarm.Inputs{From: 3, Upto: 5}) {
			t.Errorf("%+v", in)
		}
	}
	if s.Turn("planner") != second {
		t.Error("an old handle took the new one along")
	}
	for _, tool := range []string{"send_handoff", "read_inbox", "publish_data", "put_artifact", "read_artifact", "nosuch"} {
		if _, err := first.Call(t.Context(), tool, json.RawMessage(`{}`)); err == nil || err.Error() != "the turn plan/1/1 has ended" {
			t.Errorf("%s: %v", tool, err)
		}
	}
	second.End()
	if s.Turn("planner") != nil {
		t.Error("a handle that was ended is found")
	}
}

// Every acknowledged action is in the log and every refused one is not, whenever the turn ends in
// between.
func TestLeavingDuringCalls(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := map[string]bool{}
	half := make(chan struct{}, 1)
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				text := fmt.Sprintf("%d/%d", i, n)
				_, err := h.Call(context.Background(), "send_handoff", json.RawMessage(`{"to":"coder","message":"`+text+`"}`))
				if err != nil && err.Error() != "the turn plan/1/1 has ended" {
					t.Error(err)
				}
				mu.Lock()
				answered[text] = err == nil
				if len(answered) == 100 {
					half <- struct{}{}
				}
				mu.Unlock()
			}
		})
	}
	<-half
	h.End()
	left := count(t, log, swarm.HandoffStored)
	wg.Wait()
	written := map[string]bool{}
	for _, e := range all(t, log) {
		if e.Kind == swarm.HandoffStored {
			var env swarm.Envelope
			if err := json.Unmarshal(e.Data, &env); err != nil {
				t.Fatal(err)
			}
			written[env.Payload.Message] = true
		}
	}
	if len(written) != left {
		t.Errorf("%d messages were stored after the turn had ended", len(written)-left)
	}
	for text, ok := range answered {
		if ok != written[text] {
			t.Errorf("%s: answered %v, stored %v", text, ok, written[text])
		}
	}
}

// A givesWay is a log that yields to other goroutines during its reads.
type givesWay struct{ swarm.Log }

func (l givesWay) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	events, err := l.Log.Read(after, limit, to...)
	for range 10 {
		runtime.Gosched()
	}
	return events, err
}

// With concurrent reads each envelope is shown once in a turn, and the turn has seen exactly what
// was shown.
func TestInboxIsShownOnce(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: givesWay{log}}
	planner := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	coder := s.BeginTurn("coder", "code", "code/1/1", 1, swarm.Inputs{})
	const sends = 60
	var wg sync.WaitGroup
	var mu sync.Mutex
	times := map[string]int{}
	last := int64(0)
	read := func() {
		raw, err := coder.Call(context.Background(), "read_inbox", json.RawMessage(`{"max":2}`))
		var got inboxResult
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, item := range got.Envelopes {
			times[item.ID]++
			last = max(last, item.Seq)
		}
	}
	for i := range sends {
		call[SendResult](t, planner, "send_handoff", fmt.Sprintf(`{"to":"coder","message":"%d"}`, i))
	}
	for range 4 {
		wg.Go(func() {
			for range sends / 2 {
				read()
			}
		})
	}
	wg.Wait()
	if len(times) != sends {
		t.Errorf("%d of %d were shown", len(times), sends)
	}
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s was shown %d times", id, n)
		}
	}
	if in := coder.End(); in.Upto != last {
		t.Errorf("seen up to %d, shown up to %d", in.Upto, last)
	}
}

// The number of digits in a message's time does not change what a prompt holds.
func TestTimeTakesNoRoom(t *testing.T) {
	held := func(at time.Time) int {
		log, _ := opened(t)
		s := &Service{Log: log, Now: func() time.Time { return at }}
		h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
		for i := range 12 {
			call[SendResult](t, h, "send_handoff", fmt.Sprintf(`{"to":"coder","message":"%02d%s"}`, i, strings.Repeat("x", 6000)))
		}
		// The last message shown fills the limit to the byte.
		shown, err := s.Unread("coder", 0, 100)
		if err != nil || len(shown) < 2 {
			t.Fatal(len(shown), err)
		}
		room := 0
		for _, item := range shown {
			item.CreatedAt = time.Time{}
			room += len(swarm.Encode(item.Envelope)) - len(item.CreatedAt.Format(time.RFC3339Nano))
		}
		some, _, err := s.unread("coder", 0, 100, room)
		if err != nil {
			t.Fatal(err)
		}
		return len(some) - len(shown)
	}
	second := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if short, long := held(second), held(second.Add(123456789)); short != 0 || long != 0 {
		t.Errorf("at a full second %d fewer are shown, a little later %d", -short, -long)
	}
}

// An agent cannot take the id of another's message: a chosen id belongs to its sender, and a made
// id cannot be chosen.
func TestIDsCannotBeTaken(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log}
	tester := s.BeginTurn("tester", "test", "test/1/1", 1, swarm.Inputs{})
	add(t, log, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:2", Data: swarm.Encode(swarm.Plan{Edges: []swarm.Edge{{From: "tester", To: "coder"}}})})
	made := call[SendResult](t, s.BeginTurn("planner", "plan", "plan/2/1", 1, swarm.Inputs{}), "send_handoff", `{"to":"coder","message":"made"}`).ID
	planner := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	for _, h := range []*TurnHandle{planner, tester} {
		call[SendResult](t, h, "send_handoff", `{"to":"coder","message":"from `+h.Agent+`","id":"result-1"}`)
		if _, err := h.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"coder","message":"mine","id":"`+made+`"}`)); err == nil || !strings.Contains(err.Error(), "not yours to give") {
			t.Errorf("%s: %v", h.Agent, err)
		}
	}
	if n := count(t, log, swarm.HandoffStored); n != 3 {
		t.Errorf("%d messages are stored, want 3", n)
	}
	again := s.BeginTurn("planner", "plan", "plan/2/1", 1, swarm.Inputs{}) // handed in once more
	if sent := call[SendResult](t, again, "send_handoff", `{"to":"coder","message":"made","id":"`+made+`"}`); sent.ID != made || count(t, log, swarm.HandoffStored) != 3 {
		t.Errorf("the same message with its id is another: %+v", sent)
	}
}
