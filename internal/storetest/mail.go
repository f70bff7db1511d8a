package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarm"
)

// Mail tests what mail between agents needs of a store. Four writers fill one inbox while two
// readers empty it, each as another process would. Nothing is lost, nothing is read twice, and each
// writer's mail is read in the order in which it was sent. start starts a writer, which calls
// WriteMail, and returns a function that waits for its end. If start is nil, writers are
// goroutines, each with a log of its own.
func Mail(t *testing.T, o Opener, start func(t *testing.T, writer, n int) (wait func() error)) {
	const writers = 4
	each := 500
	switch {
	case os.Getenv("SWARM_TEST_LONG") != "":
		each = 25_000
	case testing.Short():
		each = 200
	}
	if start == nil {
		start = func(t *testing.T, writer, n int) func() error {
			l, end := open(t, o), make(chan error, 1)
			go func() { end <- WriteMail(l, writer, n) }()
			return func() error { return <-end }
		}
	}
	post := &post{t: t, left: writers * each, over: make(chan struct{})}
	var readers sync.WaitGroup
	for r := range 2 {
		l := open(t, o)
		readers.Go(func() { post.read(l, r) })
	}
	var waits []func() error
	for w := range writers {
		waits = append(waits, start(t, w, each))
	}
	for w, wait := range waits {
		if err := wait(); err != nil {
			t.Errorf("writer %d: %v", w, err)
			post.end()
		}
	}
	readers.Wait()
	post.audit(open(t, o), writers, each)
}

// mailbox is the agent whose inbox is tested.
const mailbox = "reader"

// WriteMail is the work of a writer. It sends so many envelopes, one after the other. Some it sends
// again, as a sender does that got no acknowledgement.
func WriteMail(l swarm.Log, writer, n int) error {
	last := int64(0)
	for i := range n {
		id := fmt.Sprintf("%d-%d", writer, i)
		data := swarm.Encode(swarm.Envelope{Kind: swarm.Handoff, ID: id, FromNodeID: fmt.Sprint("writer-", writer), ToNodeID: mailbox, Payload: swarm.Payload{Message: "m"}})
		b := swarm.Batch{Events: []swarm.Event{{Kind: swarm.HandoffStored, To: swarm.ToAgent(mailbox), Key: swarm.MailKey(id), Data: data}}}
		for try := range 2 {
			seqs, err := l.Append(context.Background(), b)
			switch {
			case err != nil:
				return err
			case try == 0 && seqs[0] <= last, try == 1 && seqs[0] != last:
				return fmt.Errorf("envelope %s, sent for the %d. time, has the number %d after %d", id, try+1, seqs[0], last)
			}
			if last = seqs[0]; i%50 != 0 {
				break
			}
		}
	}
	return nil
}

// post is an inbox while readers empty it.
type post struct {
	t     *testing.T
	mu    sync.Mutex
	left  int
	over  chan struct{}
	once  sync.Once
	turns []turnMail
}

// turnMail is the mail that one turn has consumed.
type turnMail struct {
	turn swarm.TurnID
	in   swarm.Inputs
	ids  []string
}

func (p *post) end() { p.once.Do(func() { close(p.over) }) }

// read empties the inbox, turn by turn, together with other readers. The reader that commits a turn
// first gets its mail.
func (p *post) read(l swarm.Log, reader int) {
	wake, off := l.Watch(swarm.ToAgent(mailbox))
	defer off()
	from := int64(0)
	for n := 0; ; {
		used, ok, err := l.Find(swarm.UsedKey(mailbox, from))
		if err == nil && ok { // another reader was first
			var taken swarm.Inputs
			if taken, err = swarm.Body[swarm.Inputs](&used); err == nil {
				from = taken.Upto
				continue
			}
		}
		var es []swarm.Event
		if err == nil {
			es, err = l.Read(from, 100, swarm.ToAgent(mailbox))
		}
		if err != nil {
			p.t.Errorf("reader %d: %v", reader, err)
			p.end()
			return
		}
		if len(es) == 0 {
			select {
			case <-wake:
				continue
			case <-p.over:
				return
			}
		}
		n++
		turn := turnMail{turn: swarm.TurnID(fmt.Sprintf("reader.%d/%d/1", reader, n)), in: swarm.Inputs{From: from, Upto: es[len(es)-1].Seq}}
		for _, e := range es {
			turn.ids = append(turn.ids, strings.TrimPrefix(e.Key, swarm.MailKey("")))
		}
		err = commit(l, turn)
		switch {
		case err == nil:
			p.took(turn)
		case !errors.Is(err, swarm.ErrConflict):
			p.t.Errorf("reader %d: %v", reader, err)
			p.end()
			return
		}
	}
}

// commit ends a turn as the runtime does: the end and the consumption are one batch.
func commit(l swarm.Log, turn turnMail) error {
	used := swarm.Encode(swarm.Consumption{Inputs: turn.in, Turn: turn.turn})
	end := swarm.Encode(swarm.CallEnd{ID: string(turn.turn), Status: swarm.CallOK, Inputs: turn.in})
	_, err := l.Append(context.Background(), swarm.Batch{Events: []swarm.Event{
		{Kind: swarm.HandoffConsumed, Key: swarm.UsedKey(mailbox, turn.in.From), Agent: mailbox, Turn: turn.turn, Data: used},
		{Kind: swarm.TurnEnded, Key: swarm.EndKey(string(turn.turn)), Agent: mailbox, Turn: turn.turn, Data: end}}})
	return err
}

func (p *post) took(turn turnMail) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns = append(p.turns, turn)
	if p.left -= len(turn.ids); p.left <= 0 {
		p.end()
	}
}

// audit compares the mail that was read with the mail that was sent, and with the log.
func (p *post) audit(l swarm.Log, writers, each int) {
	p.t.Helper()
	slices.SortFunc(p.turns, func(a, b turnMail) int { return int(a.in.From - b.in.From) })
	next, upto, total := make([]int, writers), int64(0), 0
	for _, turn := range p.turns {
		if turn.in.From != upto {
			p.t.Fatalf("turn %s took the mail after %d, and the turn before it had taken it up to %d", turn.turn, turn.in.From, upto)
		}
		upto = turn.in.Upto
		for _, id := range turn.ids {
			var w, i int
			if _, err := fmt.Sscanf(id, "%d-%d", &w, &i); err != nil || w >= writers || i != next[w] {
				p.t.Fatalf("turn %s read %s, want envelope %d of writer %d (%v)", turn.turn, id, next[w], w, err)
			}
			next[w]++
			total++
		}
	}
	want(p.t, "envelopes read", total, writers*each)
	kinds := map[swarm.EventKind]int{}
	for after := int64(0); ; {
		es, err := l.Read(after, 1000)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(es) == 0 {
			break
		}
		for _, e := range es {
			kinds[e.Kind]++
			after = e.Seq
		}
	}
	want(p.t, "envelopes stored", kinds[swarm.HandoffStored], writers*each)
	want(p.t, "turns committed", kinds[swarm.TurnEnded], len(p.turns))
	want(p.t, "consumptions", kinds[swarm.HandoffConsumed], len(p.turns))
}
