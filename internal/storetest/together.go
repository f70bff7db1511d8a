package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"swarm"
)

var togetherTests = []test{
	{"four writers in two processes, one receiver, one reader", func(t *testing.T, o Opener) {
		const writers, each = 4, 400 // Mail sends more
		logs := []Store{open(t, o), open(t, o)}
		reader := open(t, o)
		inbox, stop := reader.Watch("inbox")
		defer stop()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					b := swarm.Batch{Events: []swarm.Event{to("inbox", fmt.Sprintf("%d/%d", w, i)), notice("beside it")}}
					if _, err := logs[w%2].Append(t.Context(), b); err != nil {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			})
		}
		defer wg.Wait()
		next := [writers]int{}
		for got, after := 0, int64(0); got < writers*each; {
			es, err := reader.Read(after, 300, "inbox")
			if err != nil {
				t.Fatal(err)
			}
			if len(es) == 0 {
				comes(t, fmt.Sprintf("the next after %d", got), inbox)
			}
			for _, e := range es {
				var w, i int
				fmt.Sscanf(textOf(e), "%d/%d", &w, &i)
				if e.Seq <= after || i != next[w] {
					t.Fatalf("event %d after %d: %d of writer %d, want %d", e.Seq, after, i, w, next[w])
				}
				next[w]++
				got++
				after = e.Seq
			}
		}
		wg.Wait()
		for i, e := range read(t, reader) {
			if e.Seq != int64(i+1) {
				t.Fatalf("the %dth event has the number %d", i+1, e.Seq)
			}
		}
	}},
	{"of many with one key one wins, everywhere", func(t *testing.T, o Opener) {
		logs := []Store{open(t, o), open(t, o)}
		for round := range 20 {
			var wg sync.WaitGroup
			var mu sync.Mutex
			winners := map[string]int64{}
			for i := range 8 {
				wg.Go(func() {
					text := fmt.Sprint(i)
					seqs, err := logs[i%2].Append(t.Context(), swarm.Batch{Events: []swarm.Event{keyed(fmt.Sprint("k", round), text)}})
					switch {
					case err == nil:
						mu.Lock()
						winners[text] = seqs[0]
						mu.Unlock()
					case !errors.Is(err, swarm.ErrConflict):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			e, ok, err := logs[0].Find(fmt.Sprint("k", round))
			if err != nil || !ok || len(winners) != 1 || winners[textOf(e)] != e.Seq {
				t.Fatalf("winners %v; the log has %s as %d (%v)", winners, textOf(e), e.Seq, err)
			}
		}
		want(t, "events", count(t, logs[1]), 20)
	}},
	{"a refused batch harms no neighbour", func(t *testing.T, o Opener) {
		l := open(t, o)
		add(t, l, swarm.Batch{Events: []swarm.Event{keyed("taken", "a")}})
		const callers, each = 32, 20
		var wg sync.WaitGroup
		var mu sync.Mutex
		numbers := map[int64]string{}
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					var b swarm.Batch
					var refusal error
					text := fmt.Sprintf("%d/%d", c, i)
					switch c % 4 {
					case 0:
						b, refusal = swarm.Batch{Fence: 99, Events: []swarm.Event{notice("fenced")}}, swarm.ErrFenced
					case 1:
						b, refusal = swarm.Batch{Events: []swarm.Event{notice("x"), keyed("taken", "b")}}, swarm.ErrConflict
					case 2:
						b, refusal = swarm.Batch{Absent: []string{"taken"}, Events: []swarm.Event{notice("stale")}}, swarm.ErrStale
					case 3:
						b = swarm.Batch{Events: []swarm.Event{notice(text), keyed(text, text)}}
					}
					seqs, err := l.Append(context.Background(), b)
					if !errors.Is(err, refusal) {
						t.Errorf("caller %d: %v, want %v", c, err, refusal)
					}
					mu.Lock()
					for _, seq := range seqs {
						numbers[seq] = text
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		es := read(t, l)
		want(t, "events", len(es), 1+callers/4*each*2)
		for i, e := range es[1:] {
			if e.Seq != int64(i+2) || numbers[e.Seq] != textOf(e) {
				t.Fatalf("event %d says %s; its writer was told that it is %s", e.Seq, textOf(e), numbers[e.Seq])
			}
		}
	}},
	{"contexts that end at any moment are answered truthfully", func(t *testing.T, o Opener) {
		l := open(t, o)
		const callers, each = 16, 30
		var wg sync.WaitGroup
		var mu sync.Mutex
		acknowledged := map[string]bool{}
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					ctx, cancel := context.WithCancel(context.Background())
					if c%2 == 0 {
						go cancel()
					}
					text := fmt.Sprintf("%d/%d", c, i)
					_, err := l.Append(ctx, events(text))
					cancel()
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					mu.Lock()
					acknowledged[text] = err == nil
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		written := map[string]bool{}
		for _, e := range read(t, l) {
			written[textOf(e)] = true
		}
		for text, ack := range acknowledged {
			if ack != written[text] {
				t.Errorf("%s: acknowledged %v, written %v", text, ack, written[text])
			}
		}
	}},
}
