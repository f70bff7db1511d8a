package agentapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/mail"
)

// does runs a whole turn of an agent: it reads its mail, sends something, and commits.
func does(t *testing.T, s *Service, agent string, turn swarm.TurnID, says string) {
	t.Helper()
	h := starts(t, s, agent, turn)
	ends(t, s, h, says)
}

func starts(t *testing.T, s *Service, agent string, turn swarm.TurnID) *TurnHandle {
	t.Helper()
	h, _ := begin(t, s, agent, turn)
	add(t, s.Log, swarm.Event{Kind: swarm.TurnStarted, Key: swarm.StartKey(turn, 1), Agent: agent, Task: "task", Turn: turn, Data: swarm.Encode(swarm.TurnStart{Start: 1, Inputs: h.in})})
	return h
}

func ends(t *testing.T, s *Service, h *TurnHandle, says string) {
	t.Helper()
	in := h.End()
	b := swarm.Batch{Bodies: [][]byte{[]byte(says)}}
	if in.Upto > in.From {
		b.Events = append(b.Events, swarm.Event{Kind: swarm.HandoffConsumed, Key: swarm.UsedKey(h.Agent, in.From), Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(in)})
	}
	end := swarm.CallEnd{ID: string(h.Turn), Status: swarm.CallOK, Output: swarm.HashOf([]byte(says)), Inputs: in}
	b.Events = append(b.Events, swarm.Event{Kind: swarm.TurnEnded, Key: swarm.EndKey(string(h.Turn)), Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: swarm.Encode(end)})
	if _, err := s.Log.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// wrong checks an error's text and the beginning of its hint.
func wrong(t *testing.T, err error, text, hint string) {
	t.Helper()
	var e *swarm.Error
	if !errors.As(err, &e) || e.Text() != text || !strings.HasPrefix(e.Hint, hint) {
		t.Errorf("got  %v; %+v\nwant %s; %s", err, e, text, hint)
	}
}

// A person may write to any agent, and an agent that was written to may answer. Other agents cannot
// write to the person.
func TestAPersonAndAnAgentWriteToEachOther(t *testing.T) {
	log, again := opened(t)
	s := &Service{Run: "r1", Log: log}
	tester := starts(t, s, "tester", "tester/1/1")
	_, err := tester.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"user","message":"hello"}`))
	wrong(t, err, "no person has written to tester. tester may write to: nobody", "a person reads what you say at the end of your turn; request_help")

	sent, err := (&Service{Run: "r1", Log: again()}).FromUser(t.Context(), mail.Draft{To: "@Tester", Message: "how is it?", Response: &swarm.Response{Expectation: "required"}})
	if err != nil {
		t.Fatal(err)
	}
	mails := call[inboxResult](t, tester, "read_inbox", `{}`).Envelopes
	if len(mails) != 1 || mails[0].Seq != sent.Seq || mails[0].ID != sent.ID || mails[0].FromNodeID != "user" || mails[0].Payload.Message != "how is it?" {
		t.Fatalf("tester reads %+v, sent was %+v", mails, sent)
	}
	answer := call[SendResult](t, tester, "send_handoff", `{"to":"User","message":"all is green"}`)
	ends(t, s, tester, "answered")
	_, err = starts(t, s, "coder", "coder/1/1").Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"user","message":"me too"}`))
	wrong(t, err, "no person has written to coder. coder may write to: planner, tester", "")

	items, more, err := s.UserMail(10)
	if err != nil || more || len(items) != 1 || items[0].ID != answer.ID {
		t.Fatalf("the person reads %+v, %v, %v", items, more, err)
	}
	for range 2 { // noted twice, it is read once
		if err := s.UserRead(t.Context(), items[0].Seq); err != nil {
			t.Fatal(err)
		}
	}
	if items, _, err := (&Service{Log: again()}).UserMail(10); err != nil || len(items) != 0 {
		t.Errorf("read mail comes again: %+v, %v", items, err)
	}
	reply, err := s.Answer(t.Context(), answer.ID, mail.Draft{Message: "thanks"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Envelope(reply.ID)
	if err != nil || e.ToNodeID != "tester" || mail.MetaOf(e) != (mail.Meta{Type: "answer", InReplyTo: answer.ID}) {
		t.Errorf("the reply is %+v, %v", e, err)
	}
	_, err = s.Answer(t.Context(), sent.ID, mail.Draft{Message: "x"})
	wrong(t, err, "message \""+sent.ID+"\" is for tester, not for you", "`swarm inbox --all`")
	_, err = s.Answer(t.Context(), "nosuch", mail.Draft{Message: "x"})
	wrong(t, err, `there is no message "nosuch" in run r1`, "`swarm mail` lists them all")
}

// The same text sent twice by a person is two messages. With an id it is one message, and
// interrupts once.
func TestAPersonsMessagesAreAsManyAsWereMeant(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	var seqs []int64
	for _, id := range []string{"", "", "mine", "mine"} {
		sent, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "stop", Interrupt: true, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, sent.Seq)
	}
	if seqs[0] == seqs[1] || seqs[2] != seqs[3] || count(t, log, swarm.HandoffStored) != 3 || count(t, log, swarm.Control) != 3 {
		t.Errorf("numbers %v, %d envelopes, %d words", seqs, count(t, log, swarm.HandoffStored), count(t, log, swarm.Control))
	}
	_, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "go on", Interrupt: true, ID: "mine"})
	if !errors.Is(err, swarm.ErrConflict) {
		t.Errorf("another message under the same id: %v", err)
	}
	// The cut comes before the message, so the turn that the message starts is not cut.
	events := all(t, log)
	for i, e := range events {
		if e.Kind == swarm.Control && (events[i+1].Kind != swarm.HandoffStored || e.To != swarm.ToControl || !bytes.Contains(e.Data, []byte(`{"word":"interrupt","target":"coder"}`))) {
			t.Errorf("event %d is %s %s, and then comes %s", e.Seq, e.Kind, e.Data, events[i+1].Kind)
		}
	}
}

// An urgent message is in the next prompt, even behind more mail than a prompt should hold.
func TestUrgentMailDoesNotWaitBehindAFullInbox(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	planner := starts(t, s, "planner", "planner/1/1")
	send := func(n int) {
		for i := range n {
			call[SendResult](t, planner, "send_handoff", fmt.Sprintf(`{"to":"coder","message":"m","id":"%d-%d"}`, n, i))
		}
	}
	send(150)
	if items, err := s.Unread("coder", 0, 100); err != nil || len(items) != 100 {
		t.Fatalf("%d envelopes, %v", len(items), err)
	}
	sent, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "stop", Priority: mail.High})
	if err != nil {
		t.Fatal(err)
	}
	send(20)
	items, err := s.Unread("coder", 0, 100)
	if err != nil || len(items) != 151 || items[150].Seq != sent.Seq {
		t.Errorf("%d envelopes, %v", len(items), err)
	}
	if items, err := s.Unread("coder", sent.Seq, 100); err != nil || len(items) != 20 {
		t.Errorf("afterwards: %d envelopes, %v", len(items), err)
	}
	if items, err := s.Unread("coder", 0, 10); err != nil || len(items) != 10 {
		t.Errorf("who asks for 10 gets %d, %v", len(items), err)
	}
}

func TestAPersonsBadInput(t *testing.T) {
	log, again := opened(t)
	s := &Service{Run: "r1", Log: log}
	draft := func(to string) mail.Draft { return mail.Draft{To: to, Message: "m"} }
	before := len(all(t, log))
	send := func(d mail.Draft) error { _, err := s.FromUser(t.Context(), d); return err }
	wrong(t, send(mail.Draft{To: "nosuch"}), "Unknown agent: 'nosuch'. Valid agents: planner, coder, tester", "")
	wrong(t, send(draft("codr")), "Unknown agent: 'codr'. Valid agents: planner, coder, tester", `did you mean "coder"?`)
	wrong(t, send(draft("user")), "Unknown agent: 'user'. Valid agents: planner, coder, tester", "")
	wrong(t, send(mail.Draft{To: "coder", Message: " \n"}), "the message is empty", "")
	wrong(t, send(mail.Draft{To: "coder", Message: "m", From: "planner"}), `fromNodeId is "planner", but you are user`, "leave fromNodeId out")
	if n := len(all(t, log)); n != before {
		t.Errorf("%d events were written", n-before)
	}
	// For an ended run a wrong name is reported first, then that the run has ended.
	add(t, again(), swarm.Event{Kind: swarm.RunEnded, Key: string(swarm.RunEnded), Data: swarm.Encode(swarm.RunEnd{})})
	wrong(t, send(draft("nosuch")), "Unknown agent: 'nosuch'. Valid agents: planner, coder, tester", "")
	wrong(t, send(draft("coder")), "run r1 has ended", "start another one")
	_, err := s.Publish(t.Context(), "facts", json.RawMessage(`1`))
	wrong(t, err, "run r1 has ended", "")
	with := draft("coder")
	with.Enclosed = []mail.Enclosure{{Kind: "file", Name: "n", Content: []byte("x")}}
	wrong(t, send(with), "run r1 has ended", "")
	if n := count(t, log, swarm.ArtifactStored); n != 0 {
		t.Errorf("%d artifacts are stored with messages that were refused", n)
	}
}

// A person's message is stored without secrets.
func TestAPersonsSecretsAreTakenOut(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Log: log, Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("[secret PASSWORD]")) }}
	sent, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "it is hunter2", Structured: json.RawMessage(`{"p":"hunter2"}`),
		Enclosed: []mail.Enclosure{{Kind: "file", Name: "hunter2.txt", Content: []byte("hunter2")}}})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.Envelope(sent.ID)
	if err != nil || len(stored.Payload.Artifacts) != 1 {
		t.Fatalf("%+v, %v", stored, err)
	}
	ref := stored.Payload.Artifacts[0].Ref
	envelope := swarm.Envelope{Kind: swarm.Handoff, ID: "e1", FromNodeID: "user", ToNodeID: "coder", CreatedAt: time.Now(), Payload: swarm.Payload{Message: "hunter2"},
		Meta: json.RawMessage(`{"note":"hunter2"}`)}
	if _, err := s.SendEnvelope(t.Context(), envelope, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Publish(t.Context(), "facts", json.RawMessage(`"hunter2"`)); err != nil {
		t.Fatal(err)
	}
	for _, e := range all(t, log) {
		if bytes.Contains(e.Data, []byte("hunter2")) {
			t.Errorf("event %d: %s", e.Seq, e.Data)
		}
	}
	coder := s.BeginTurn("coder", "task", "coder/1/1", 1, swarm.Inputs{})
	if got := call[readResult](t, coder, "read_artifact", `{"ref":"`+ref+`"}`); got.Content != "[secret PASSWORD]" || got.Name != "[secret PASSWORD].txt" {
		t.Errorf("%+v", got)
	}
	_, err = s.FromUser(t.Context(), mail.Draft{To: "hunter2", Message: "m"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error says %v", err)
	}
}

// An envelope that the client made is stored as it is.
func TestAnEnvelopeIsPostedWhole(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	text := `{"kind":"signal","id":"e-1","fromNodeId":"user","toNodeId":"coder","createdAt":"2026-01-01T00:00:00Z","payload":{"message":"m","structured":{"n":1.50}},"meta":{"trace":7,"priority":"normal"}}`
	e, err := mail.ReadEnvelope([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SendEnvelope(t.Context(), e, false); err != nil {
		t.Fatal(err)
	}
	found, ok, err := log.Find(swarm.MailKey("user/e-1"))
	if err != nil || !ok || string(found.Data) != text {
		t.Errorf("the log has %s, %v", found.Data, err)
	}
	e.FromNodeID = "planner"
	_, err = s.SendEnvelope(t.Context(), e, false)
	wrong(t, err, `fromNodeId is "planner", but you are user`, "")
}

// The unread mail of an agent that has ended is returned, each envelope once. From then on sending
// to the agent fails.
func TestMailOfAnEndedAgentComesBack(t *testing.T) {
	log, again := opened(t)
	s := &Service{Run: "r1", Log: log}
	planner := starts(t, s, "planner", "planner/1/1")
	read := call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"read"}`)
	does(t, s, "coder", "coder/1/1", "ok")
	lost := call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"lost"}`)
	mine, err := s.FromUser(t.Context(), mail.Draft{To: "coder", Message: "lost too"})
	if err != nil {
		t.Fatal(err)
	}
	// A send that was checked before the agent ended and is appended after is refused by the log
	// itself.
	late := &Service{Run: "r1", Log: again()}
	e, err := late.write(func(r *mail.Rules) (swarm.Envelope, error) {
		return r.Envelope("planner", mail.Draft{To: "coder", Message: "late"}, "planner/1/1", time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, swarm.Event{Kind: swarm.AgentEnded, Key: swarm.AgentEndedKey("coder", 0), Agent: "coder", Data: swarm.Encode(swarm.Reason{Reason: "it failed: no luck"})})
	_, err = late.store(t.Context(), e, nil, swarm.Batch{})
	wrong(t, err, "agent coder has ended: it failed: no luck", "it gets no mail any more")

	var wg sync.WaitGroup
	for range 4 { // whoever returns it, and however often
		wg.Go(func() {
			if _, err := (&Service{Run: "r1", Log: again()}).Return(t.Context(), "coder", swarm.NewMessage(swarm.BackFailed, "no luck")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	returned := map[string]int{}
	for _, e := range all(t, log) {
		if e.Kind == swarm.HandoffReturned {
			var r swarm.Return
			if err := json.Unmarshal(e.Data, &r); err != nil || r.Reason != "it failed: no luck" {
				t.Errorf("%s, %v", e.Data, err)
			}
			returned[r.ID]++
		}
	}
	if len(returned) != 2 || returned[lost.ID] != 1 || returned[mine.ID] != 1 || returned[read.ID] != 0 {
		t.Errorf("returned: %v", returned)
	}
	back := call[inboxResult](t, planner, "read_inbox", `{}`).Envelopes
	if len(back) != 1 || back[0].Kind != swarm.Handoff || back[0].FromNodeID != "orchestrator" ||
		back[0].Payload.Message != "Your message "+lost.ID+" to coder was not delivered: it failed: no luck" {
		t.Errorf("planner is told %+v", back)
	}
	if items, _, err := s.UserMail(10); err != nil || len(items) != 1 || mail.MetaOf(items[0].Envelope).Type != "undeliverable" {
		t.Errorf("the person is told %+v, %v", items, err)
	}
	_, err = planner.Call(t.Context(), "send_handoff", json.RawMessage(`{"to":"coder","message":"are you there?"}`))
	wrong(t, err, "agent coder has ended: it failed: no luck", "it gets no mail any more; write to another agent")
	if d := s.Tools("planner")[0].Description; !strings.HasSuffix(d, "You may write to: nobody yet.") {
		t.Error(d)
	}
}

// A reminder is one handoff, however often it is sent.
func TestRemind(t *testing.T) {
	log, _ := opened(t)
	s := &Service{Run: "r1", Log: log}
	planner := starts(t, s, "planner", "planner/1/1")
	asked := call[SendResult](t, planner, "send_handoff", `{"to":"coder","message":"which?","response":{"expectation":"required"}}`)
	for range 2 {
		if _, err := s.Overdue(t.Context(), asked.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	_, items := begin(t, s, "coder", "coder/1/1")
	if len(items) != 2 || items[1].Kind != swarm.Handoff || items[1].FromNodeID != "orchestrator" ||
		items[1].Payload.Message != "Message "+asked.ID+" from planner still wants your reply; answer with send_handoff to planner. It says: which?" {
		t.Errorf("coder reads %+v", items)
	}
}
