package storetest

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"testing"
	"time"

	"swarm"
)

func is(err, target error) bool { return err != nil && errors.Is(err, target) }

var appendTests = []test{
	{"numbers run from 1 without gaps", func(t *testing.T, o Opener) {
		l := open(t, o)
		want(t, "first", add(t, l, events("a")), []int64{1})
		want(t, "a batch", add(t, l, events("b", "c", "d")), []int64{2, 3, 4})
		want(t, "an empty batch", add(t, l, swarm.Batch{}), []int64{})
		want(t, "next", add(t, l, events("e")), []int64{5})
		want(t, "all", texts(read(t, l)), "[a b c d e]")
	}},
	{"an event comes back as it was written", func(t *testing.T, o Opener) {
		l := open(t, o)
		full := swarm.Event{Kind: swarm.TurnEnded, Agent: "coder", Task: "code_it", Turn: "code_it/2/1", To: swarm.ToLoop("main"),
			Key: swarm.EndKey("code_it/2/1"), Data: []byte(`{"id":"ä\u0000€","n":1.5}`)}
		bare := swarm.Event{Kind: swarm.RunPaused}
		add(t, l, swarm.Batch{Events: []swarm.Event{full, bare}})
		second := open(t, o)
		for who, l := range map[string]swarm.Log{"who wrote it": l, "another": second} {
			got := read(t, l)
			if len(got) != 2 {
				t.Fatalf("%s reads %d events, want 2", who, len(got))
			}
			for i, e := range got {
				w := []swarm.Event{full, bare}[i]
				w.Seq, w.Time = int64(i+1), e.Time
				if !reflect.DeepEqual(e, w) {
					t.Errorf("%s reads\n%+v, want\n%+v", who, e, w)
				}
			}
		}
	}},
	{"the time is the store's, whatever a writer says, and never runs backwards", func(t *testing.T, o Opener) {
		writers := []Store{open(t, o), open(t, o)}
		ahead, behind := time.Now().Add(24*time.Hour), time.Now().Add(-24*time.Hour)
		for i := range 20 { // two processes whose clocks are wrong
			e := notice("a")
			e.Time = []time.Time{ahead, behind}[i%2]
			add(t, writers[i%2], swarm.Batch{Events: []swarm.Event{e, e}})
		}
		for who, l := range map[string]swarm.Log{"who wrote it": writers[0], "another": open(t, o)} {
			var last time.Time
			for _, e := range read(t, l) {
				if e.Time.Before(last) || e.Time.Location() != time.UTC || !e.Time.Before(ahead.Add(-time.Hour)) || !e.Time.After(behind.Add(time.Hour)) {
					t.Fatalf("%s: event %d has the time %v, and the one before it %v", who, e.Seq, e.Time, last)
				}
				last = e.Time
			}
		}
	}},
	{"what was acknowledged is there after closing", func(t *testing.T, o Opener) {
		l := o(t)
		add(t, l, swarm.Batch{Events: []swarm.Event{keyed("k", "a")}, Bodies: [][]byte{[]byte("text")}})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, o)
		want(t, "events", texts(read(t, l)), "[a]")
		if got, err := l.Body(swarm.HashOf([]byte("text"))); err != nil || string(got) != "text" {
			t.Errorf("the body is %q, %v", got, err)
		}
		want(t, "next", add(t, l, events("b")), []int64{2})
	}},
	{"the same key and body is one event", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		add(t, l, events("before"))
		b := swarm.Batch{Events: []swarm.Event{keyed("k", "same")}}
		want(t, "first", add(t, l, b), []int64{2})
		want(t, "again", add(t, l, b), []int64{2})
		want(t, "by another process", add(t, other, b), []int64{2})
		want(t, "among new ones", add(t, l, swarm.Batch{Events: []swarm.Event{notice("x"), keyed("k", "same"), notice("y")}}), []int64{3, 2, 4})
		want(t, "all", texts(read(t, l)), "[before same x y]")
	}},
	{"the same key twice in a batch is one event", func(t *testing.T, o Opener) {
		l := open(t, o)
		want(t, "numbers", add(t, l, swarm.Batch{Events: []swarm.Event{keyed("k", "a"), keyed("k", "a"), notice("b")}}), []int64{1, 1, 2})
	}},
	{"the same key with another body is a conflict, and nothing of its batch is written", func(t *testing.T, o Opener) {
		l := open(t, o)
		add(t, l, swarm.Batch{Events: []swarm.Event{keyed("k", "a")}})
		late := []byte("a text of a refused batch")
		refused(t, l, swarm.Batch{Events: []swarm.Event{notice("x"), keyed("new", "y"), keyed("k", "b"), notice("z")}, Bodies: [][]byte{late}}, swarm.ErrConflict)
		refused(t, l, swarm.Batch{Events: []swarm.Event{keyed("m", "1"), keyed("m", "2")}}, swarm.ErrConflict)
		other := keyed("k", "a")
		other.Kind = swarm.TaskFailed
		refused(t, l, swarm.Batch{Events: []swarm.Event{other}}, swarm.ErrConflict)
		if _, ok, err := l.Find("new"); ok || err != nil {
			t.Errorf("a key of a refused batch is there: %v, %v", ok, err)
		}
		if _, err := l.Body(swarm.HashOf(late)); !is(err, swarm.ErrNoBody) {
			t.Errorf("a body of a refused batch: %v", err)
		}
		want(t, "the number after refusals", add(t, l, events("next")), []int64{2})
	}},
	{"keys that must be absent", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		guarded := func(keys ...string) swarm.Batch {
			return swarm.Batch{Absent: keys, Events: []swarm.Event{notice("of start 1")}}
		}
		want(t, "while they are", add(t, l, guarded("ended", "start:2")), []int64{1})
		add(t, other, swarm.Batch{Events: []swarm.Event{keyed("start:2", "")}})
		refused(t, l, guarded("start:2"), swarm.ErrStale)
		refused(t, l, guarded("ended", "start:2"), swarm.ErrStale)
		refused(t, l, guarded("start:2", "ended"), swarm.ErrStale)
		want(t, "others", add(t, l, guarded("ended", "start:3")), []int64{3})
	}},
	{"the empty text is in every log", func(t *testing.T, o Opener) {
		if got, err := open(t, o).Body(swarm.NoText); err != nil || len(got) != 0 {
			t.Errorf("it is %q, %v", got, err)
		}
	}},
	{"bodies", func(t *testing.T, o Opener) {
		l := open(t, o)
		large := make([]byte, 300_000)
		for i := range large {
			large[i] = byte(i * i >> 3)
		}
		all := [][]byte{[]byte("a"), {}, {0, 0xff, '\n'}, large}
		add(t, l, swarm.Batch{Bodies: all})
		add(t, l, swarm.Batch{Events: []swarm.Event{notice("again")}, Bodies: all[:2]})
		for _, want := range all {
			if got, err := l.Body(swarm.HashOf(want)); err != nil || string(got) != string(want) {
				t.Errorf("a body of %d bytes comes back with %d, %v", len(want), len(got), err)
			}
		}
		for _, h := range []swarm.Hash{swarm.HashOf([]byte("none")), "", "zz", "abcd"} {
			if _, err := l.Body(h); !is(err, swarm.ErrNoBody) {
				t.Errorf("Body(%q): %v", h, err)
			}
		}
	}},
	{"a context that has ended writes nothing", func(t *testing.T, o Opener) {
		l := open(t, o)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := l.Append(ctx, events("a")); !is(err, context.Canceled) {
			t.Errorf("append: %v", err)
		}
		want(t, "events", count(t, l), 0)
	}},
	{"a closed log refuses", func(t *testing.T, o Opener) {
		l := o(t)
		l.Close()
		if _, err := l.Append(context.Background(), events("a")); swarm.KindOf(err) != swarm.Stopped {
			t.Errorf("append: %v", err)
		}
		if _, err := l.Read(0, 1); swarm.KindOf(err) != swarm.Stopped {
			t.Errorf("read: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("a second close: %v", err)
		}
	}},
}

// lazy makes a batch lazy.
func lazy(b swarm.Batch) swarm.Batch {
	b.Lazy = true
	return b
}

var lazyTests = []test{
	{"an early one has numbers at once, and is read by everybody", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		b := swarm.Batch{Early: true, Events: []swarm.Event{to(swarm.ToLoop("root"), "a")}}
		want(t, "its number", add(t, l, b), []int64{1})
		want(t, "its loop reads", texts(read(t, l, swarm.ToLoop("root"))), "[a]")
		want(t, "others read", texts(read(t, l)), "[a]")
		want(t, "another process reads", texts(read(t, other)), "[a]")
		b.Fence = 7
		if _, err := l.Append(t.Context(), b); !errors.Is(err, swarm.ErrFenced) {
			t.Errorf("with a fence that is nobody's: %v", err)
		}
	}},
	{"it keeps its place in the order", func(t *testing.T, o Opener) {
		l := open(t, o)
		for range 3 {
			if seqs := add(t, l, lazy(events("lazy"))); seqs != nil {
				t.Errorf("a lazy batch has the numbers %v", seqs)
			}
		}
		want(t, "the number of the next", add(t, l, events("waited for")), []int64{4})
		want(t, "all", texts(read(t, l)), "[lazy lazy lazy waited for]")
	}},
	{"alone it is written after a moment", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		woken, stop := other.Watch("inbox")
		defer stop()
		add(t, l, lazy(swarm.Batch{Events: []swarm.Event{to("inbox", "a")}}))
		comes(t, "the other process is woken", woken)
		want(t, "it reads", texts(read(t, other, "inbox")), "[a]")
	}},
	{"a flush writes it, and others are woken", func(t *testing.T, o Opener) {
		l := open(t, o)
		woken, stop := l.Watch("inbox")
		defer stop()
		add(t, l, lazy(swarm.Batch{Events: []swarm.Event{to("inbox", "a")}}))
		l.Flush()
		want(t, "it reads", texts(read(t, l, "inbox")), "[a]")
		comes(t, "a follower is woken", woken)
		l.Flush()
		want(t, "a second flush writes", count(t, l), 1)
	}},
	{"a flush waits for an append that is under way", func(t *testing.T, o Opener) {
		l := open(t, o)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := l.Append(context.Background(), events("busy")); err != nil {
					done <- err
					return
				}
			}
		}()
		for n := range 100 {
			key := "lazy " + strconv.Itoa(n)
			add(t, l, lazy(swarm.Batch{Events: []swarm.Event{keyed(key, "a")}}))
			l.Flush()
			if _, ok, err := l.Find(key); !ok || err != nil {
				t.Errorf("after the flush: found %v, %v", ok, err)
				break
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}},
	{"closing writes it", func(t *testing.T, o Opener) {
		l := o(t)
		b := lazy(events("a", "b"))
		b.Bodies = [][]byte{[]byte("text")}
		add(t, l, b)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, o)
		want(t, "all", texts(read(t, l)), "[a b]")
		if _, err := l.Body(swarm.HashOf([]byte("text"))); err != nil {
			t.Errorf("its body: %v", err)
		}
	}},
	{"it is repeated like any other", func(t *testing.T, o Opener) {
		l := open(t, o)
		same := swarm.Batch{Events: []swarm.Event{keyed("k", "a")}}
		add(t, l, lazy(same))
		add(t, l, lazy(same))
		want(t, "waited for", add(t, l, same), []int64{1})
		want(t, "all", texts(read(t, l)), "[a]")
	}},
	{"what follows a lost one is not written", func(t *testing.T, o Opener) {
		l := open(t, o)
		fence := own(t, l)
		add(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{keyed("k", "a")}})
		add(t, l, lazy(swarm.Batch{Fence: fence, Events: []swarm.Event{keyed("k", "b")}}))
		refused(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("after the lost one")}}, swarm.ErrConflict)
		refused(t, l, swarm.Batch{Fence: fence, Events: []swarm.Event{notice("later")}}, swarm.ErrConflict)
		add(t, l, events("somebody else's"))
		add(t, l, swarm.Batch{Fence: own(t, l), Events: []swarm.Event{notice("with a new fence")}})
		want(t, "all", texts(read(t, l)), "[a somebody else's with a new fence]")
	}},
	{"an owner that was replaced learns it", func(t *testing.T, o Opener) {
		l := open(t, o)
		old := own(t, l)
		own(t, l)
		add(t, l, lazy(swarm.Batch{Fence: old, Events: []swarm.Event{notice("late")}}))
		refused(t, l, swarm.Batch{Fence: old, Events: []swarm.Event{notice("later")}}, swarm.ErrFenced)
		want(t, "all", count(t, l), 0)
	}},
}
