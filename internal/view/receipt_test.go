package view

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"swarm"
)

// A post writes the log of a run's mail.
type post struct {
	t    testing.TB
	c    *Collector
	seq  int64
	read int64 // the newest mail that the sender has read
}

func newPost(t testing.TB) *post { return &post{t: t, c: NewCollector()} }

func (p *post) tell(e swarm.Event, body any) int64 {
	p.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.seq++
	e.Seq, e.Data, e.Time = p.seq, data, time.Unix(p.seq, 0)
	if err := p.c.Take(&e); err != nil {
		p.t.Fatal(err)
	}
	return p.seq
}

func (p *post) send(id, from, to string, turn swarm.TurnID, meta string, response *swarm.Response) int64 {
	return p.tell(swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(to), Agent: from, Turn: turn}, swarm.StoredEnvelope{Envelope: swarm.Envelope{Kind: swarm.Handoff, ID: id, FromNodeID: from,
		ToNodeID: to, Payload: swarm.Payload{Message: "m", Response: response}, Meta: json.RawMessage(meta)}, Read: p.read})
}

func (p *post) start(turn swarm.TurnID, agent string, in swarm.Inputs) int64 {
	return p.tell(swarm.Event{Kind: swarm.TurnStarted, Agent: agent, Task: agent, Turn: turn}, swarm.TurnStart{Start: 1, Prompt: "p", Inputs: in})
}

func (p *post) consume(turn swarm.TurnID, agent string, in swarm.Inputs) int64 {
	return p.tell(swarm.Event{Kind: swarm.HandoffConsumed, Agent: agent, Task: agent, Turn: turn}, in)
}

func (p *post) receipt(id string, want Receipt) {
	p.t.Helper()
	i, ok := p.c.ids[id]
	if !ok {
		p.t.Fatalf("there is no envelope %s", id)
	}
	if got := p.c.Envelopes[i].Receipt; got != want {
		p.t.Errorf("%s\ngot  %+v\nwant %+v", id, got, want)
	}
}

func at(seq int64) time.Time { return time.Unix(seq, 0) }

// A receipt has the time of each state: stored, injected with the prompt or by a tool, answered.
func TestReceipts(t *testing.T) {
	p := newPost(t)
	required := &swarm.Response{Expectation: "required"}
	asked := p.send("asked", "planner", "coder", "", "", required)
	if i := &p.c.Envelopes[0]; !i.Pending() || i.Age(at(asked+7)) != 7*time.Second {
		t.Errorf("pending %v, age %v", i.Pending(), i.Age(at(asked+7)))
	}
	began := p.start("coder/1/1", "coder", swarm.Inputs{Upto: asked})
	byTool := p.send("by-tool", "tester", "coder", "", "", &swarm.Response{Expectation: "optional", ReplyTo: "boss"})
	p.send("early", "coder", "boss", "other/1/1", "", nil)
	p.send("noise", "coder", "tester", "coder/1/1", "", nil)
	p.read = byTool
	late := p.send("for-boss", "coder", "boss", "coder/1/1", "", nil)
	reply := p.send("reply", "coder", "planner", "coder/1/1", "", nil)
	p.send("reply-again", "coder", "planner", "coder/1/1", "", nil)
	used := p.consume("coder/1/1", "coder", swarm.Inputs{Upto: byTool})
	p.receipt("asked", Receipt{Seq: asked, State: MailAnswered, Stored: at(asked), Injected: at(began), Answered: at(reply), Turn: "coder/1/1", Prompt: "p", Answer: "reply"})
	p.receipt("by-tool", Receipt{Seq: byTool, State: MailAnswered, Stored: at(byTool), Injected: at(used), Answered: at(late), Turn: "coder/1/1", Answer: "for-boss"})
	if i := &p.c.Envelopes[0]; i.Pending() || i.Age(at(99)) != time.Duration(began-asked)*time.Second {
		t.Errorf("pending %v, age %v", i.Pending(), i.Age(at(99)))
	}
	changed := ""
	for _, e := range p.c.Changed() {
		changed += e.ID + " "
	}
	if changed != "asked by-tool early noise for-boss reply reply-again " || len(p.c.Changed()) != 0 {
		t.Errorf("changed: %s", changed)
	}
}

// A required reply counts whenever it comes, even in a later turn than the question, as in the
// loop. An optional reply counts only in the turn that got the question.
func TestALateReplyIsAReply(t *testing.T) {
	p := newPost(t)
	asked := p.send("asked", "planner", "coder", "", "", &swarm.Response{Expectation: "required"})
	told := p.send("told", "planner", "coder", "", "", nil)
	first := p.start("coder/1/1", "coder", swarm.Inputs{Upto: told})
	p.consume("coder/1/1", "coder", swarm.Inputs{Upto: told})
	p.start("coder/2/1", "coder", swarm.Inputs{From: told, Upto: told})
	p.read = told
	reply := p.send("reply", "coder", "planner", "coder/2/1", "", nil)
	p.receipt("asked", Receipt{Seq: asked, State: MailAnswered, Stored: at(asked), Injected: at(first), Answered: at(reply), Turn: "coder/1/1", Prompt: "p", Answer: "reply"})
	p.receipt("told", Receipt{Seq: told, State: MailInjected, Stored: at(told), Injected: at(first), Turn: "coder/1/1", Prompt: "p"})
}

// Mail that a person has read and answered, overdue replies, and undeliverable mail.
func TestReceiptsOfPeopleAndOfLostMail(t *testing.T) {
	p := newPost(t)
	plea := p.send("plea", "coder", "user", "coder/1/1", "", &swarm.Response{Expectation: "required"})
	read := p.consume("", "user", swarm.Inputs{Upto: plea})
	p.receipt("plea", Receipt{Seq: plea, State: MailInjected, Stored: at(plea), Injected: at(read)})
	p.tell(swarm.Event{Kind: swarm.ReplyOverdue}, swarm.Overdue{ID: "plea"})
	p.receipt("plea", Receipt{Seq: plea, State: MailInjected, Stored: at(plea), Injected: at(read), Overdue: ReplyReminded})
	if !p.c.Envelopes[0].Pending() {
		t.Error("its reply is still waited for")
	}
	p.tell(swarm.Event{Kind: swarm.ReplyOverdue}, swarm.Overdue{ID: "plea", Over: true})
	if p.c.Envelopes[0].Pending() {
		t.Error("its reply is not waited for any more")
	}
	answer := p.send("answer", "user", "coder", "", `{"inReplyTo":"plea"}`, nil)
	p.receipt("plea", Receipt{Seq: plea, State: MailAnswered, Stored: at(plea), Injected: at(read), Answered: at(answer), Answer: "answer", Overdue: ReplyOver})

	back := p.tell(swarm.Event{Kind: swarm.HandoffReturned}, swarm.Return{ID: "answer", Reason: "it was cancelled"})
	p.receipt("answer", Receipt{Seq: answer, State: MailUndeliverable, Stored: at(answer), Returned: at(back), Reason: "it was cancelled"})
	left, mine := p.send("left", "coder", "tester", "", "", nil), p.send("mine", "coder", "user", "", "", nil)
	over := p.tell(swarm.Event{Kind: swarm.RunEnded}, swarm.RunEnd{})
	late := p.send("late", "user", "coder", "", "", nil)
	p.receipt("left", Receipt{Seq: left, State: MailUndeliverable, Stored: at(left), Returned: at(over), Reason: "run ended"})
	p.receipt("mine", Receipt{Seq: mine, State: MailStored, Stored: at(mine)})
	p.receipt("late", Receipt{Seq: late, State: MailUndeliverable, Stored: at(late), Returned: at(late), Reason: "run ended"})
	if len(p.c.Turns) != 0 {
		t.Errorf("a person's reading is no turn: %+v", p.c.Turns)
	}
}

// The cost of an envelope does not depend on how many there are, or on its outcome.
func BenchmarkCollectMail(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := newPost(b)
				for i := range n {
					id := strconv.Itoa(i)
					seq := p.send(id, "planner", "coder", "", "", nil)
					if i%2 == 0 {
						p.tell(swarm.Event{Kind: swarm.HandoffReturned}, swarm.Return{ID: id, Reason: "r"})
						continue
					}
					in, turn := swarm.Inputs{From: seq - 1, Upto: seq}, swarm.TurnID("coder/"+id+"/1")
					p.start(turn, "coder", in)
					p.consume(turn, "coder", in)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/envelope")
		})
	}
}
