package storetest

import (
	"fmt"
	"testing"

	"swarm"
)

var readTests = []test{
	{"by pages", func(t *testing.T, o Opener) {
		l := open(t, o)
		add(t, l, events("a", "b", "c", "d", "e"))
		for _, c := range []struct {
			after int64
			limit int
			want  string
		}{
			{0, 2, "[a b]"}, {2, 2, "[c d]"}, {4, 2, "[e]"}, {5, 2, "[]"}, {99, 2, "[]"}, {-1, 99, "[a b c d e]"}, {0, 0, "[]"},
		} {
			es, err := l.Read(c.after, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			want(t, fmt.Sprintf("Read(%d, %d)", c.after, c.limit), texts(es), c.want)
		}
	}},
	{"by receiver", func(t *testing.T, o Opener) {
		writer := open(t, o)
		add(t, writer, swarm.Batch{Events: []swarm.Event{to("x", "x1"), notice("nobody's"), to("y", "y1"), to("x", "x2"), to("z", "z1")}})
		reopened := open(t, o)
		add(t, writer, swarm.Batch{Events: []swarm.Event{to("y", "y2"), to("x", "x3")}})
		for who, l := range map[string]swarm.Log{"who wrote": writer, "another": reopened} {
			want(t, who+": x", texts(read(t, l, "x")), "[x1 x2 x3]")
			want(t, who+": y and x", texts(read(t, l, "y", "x")), "[x1 y1 x2 y2 x3]")
			want(t, who+": x twice", texts(read(t, l, "x", "x")), "[x1 x2 x3]")
			want(t, who+": nobody", texts(read(t, l, "w")), "[]")
			es, err := l.Read(3, 2, "x", "y", "z")
			if err != nil {
				t.Fatal(err)
			}
			want(t, who+": two after 3", texts(es), "[x2 z1]")
		}
	}},
	{"every agent's mail", func(t *testing.T, o Opener) {
		writer := open(t, o)
		add(t, writer, swarm.Batch{Events: []swarm.Event{to(swarm.ToAgent("a"), "a1"), to("x", "x1"), to(swarm.ToAgent("b"), "b1"), notice("nobody's")}})
		reopened := open(t, o)
		wake, off := reopened.Watch(swarm.ToAgents)
		defer off()
		add(t, writer, swarm.Batch{Events: []swarm.Event{to(swarm.ToAgent("b"), "b2"), to("x", "x2")}})
		<-wake
		for who, l := range map[string]swarm.Log{"who wrote": writer, "another": reopened, "a third": open(t, o)} {
			want(t, who+": all", texts(read(t, l, swarm.ToAgents)), "[a1 b1 b2]")
			want(t, who+": all and x", texts(read(t, l, "x", swarm.ToAgents)), "[a1 x1 b1 b2 x2]")
			want(t, who+": all and b", texts(read(t, l, swarm.ToAgents, swarm.ToAgent("b"))), "[a1 b1 b2]")
			want(t, who+": b", texts(read(t, l, swarm.ToAgent("b"))), "[b1 b2]")
		}
	}},
	{"an own append is there when it returns", func(t *testing.T, o Opener) {
		l := open(t, o)
		_, stop := l.Watch()
		defer stop()
		for i := int64(1); i <= 50; i++ {
			add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "a")}})
			for _, receivers := range [][]string{nil, {"x"}} {
				if es, err := l.Read(i-1, 10, receivers...); err != nil || len(es) != 1 || es[0].Seq != i {
					t.Fatalf("after append %d: %v, %v", i, es, err)
				}
			}
		}
	}},
	{"another process's append is there without a watch", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		for i := int64(1); i <= 20; i++ {
			add(t, other, swarm.Batch{Events: []swarm.Event{to("x", "a")}})
			for _, receivers := range [][]string{nil, {"x"}} {
				if es, err := l.Read(i-1, 10, receivers...); err != nil || len(es) != 1 {
					t.Fatalf("after append %d: %v, %v", i, es, err)
				}
			}
		}
	}},
	{"more than anybody keeps in memory", func(t *testing.T, o Opener) {
		l := open(t, o)
		const n = 20_000
		middle := open(t, o)
		for i := 0; i < n; i += 1000 {
			if i == 2000 { // It follows from here on. It asks for older events when the first ones are gone from memory.
				if _, err := middle.Read(int64(i), 1, "even"); err != nil {
					t.Fatal(err)
				}
			}
			var b swarm.Batch
			for j := i; j < i+1000; j++ {
				b.Events = append(b.Events, to([]string{"even", "odd"}[j%2], fmt.Sprint(j)))
			}
			add(t, l, b)
		}
		late := open(t, o)
		add(t, l, swarm.Batch{Events: []swarm.Event{to("even", fmt.Sprint(n))}})
		for who, l := range map[string]swarm.Log{"who wrote": l, "one that came in the middle": middle, "another": late} {
			es := read(t, l, "even")
			want(t, who+": how many", len(es), n/2+1)
			for i, e := range es {
				if textOf(e) != fmt.Sprint(2*i) {
					t.Fatalf("%s: the %dth is %s", who, i, textOf(e))
				}
			}
			want(t, who+": all", count(t, l), n+1)
		}
	}},
	{"what is read may be kept", func(t *testing.T, o Opener) {
		l := open(t, o)
		add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "a")}})
		first := read(t, l, "x")
		first[0].To, first[0].Kind = "changed", "changed"
		for range 10 {
			add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "b")}})
		}
		if again := read(t, l, "x")[0]; again.To != "x" || again.Kind != swarm.Notice {
			t.Errorf("a reader changed the log: %+v", again)
		}
	}},
	{"by key", func(t *testing.T, o Opener) {
		l := open(t, o)
		add(t, l, swarm.Batch{Events: []swarm.Event{notice("a"), keyed("k", "b")}})
		if e, ok, err := l.Find("k"); !ok || err != nil || e.Seq != 2 || textOf(e) != "b" {
			t.Errorf("Find(k): %+v, %v, %v", e, ok, err)
		}
		for _, key := range []string{"", "K", "none"} {
			if _, ok, err := l.Find(key); ok || err != nil {
				t.Errorf("Find(%q): %v, %v", key, ok, err)
			}
		}
	}},
	{"keys by their beginning", func(t *testing.T, o Opener) {
		l := open(t, o)
		byKey, ok := l.(interface {
			Keys(prefix string) ([]string, error)
		})
		if !ok {
			t.Skip("the log of an engine has no such question")
		}
		var events []swarm.Event
		for _, key := range []string{"end:a/2/1", "end:a/1/1", "end:a.2/1/1", "end:ab/1/1", "end:a/10/1", "end:b/1/1", "end:a", "end:a0"} {
			events = append(events, keyed(key, "x"))
		}
		add(t, l, swarm.Batch{Events: append(events, notice("without a key"))})
		for prefix, is := range map[string]string{"end:a/": "[end:a/10/1 end:a/1/1 end:a/2/1]", "end:a.2/": "[end:a.2/1/1]", "end:c/": "[]", "": "[]"} {
			got, err := byKey.Keys(prefix)
			if err != nil || fmt.Sprint(got) != is {
				t.Errorf("Keys(%q): %v, %v, want %s", prefix, got, err, is)
			}
		}
	}},
}

var watchTests = []test{
	{"own appends", func(t *testing.T, o Opener) {
		l := open(t, o)
		x, stopX := l.Watch("x")
		defer stopX()
		xy, stopXY := l.Watch("y", "x")
		defer stopXY()
		all, stopAll := l.Watch()
		defer stopAll()
		add(t, l, events("nobody's"))
		comes(t, "anybody", all)
		add(t, l, swarm.Batch{Events: []swarm.Event{to("y", "a")}})
		comes(t, "anybody", all)
		comes(t, "x or y", xy)
		silent(t, "x", x)
		add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "b"), to("x", "c")}})
		comes(t, "x", x)
		silent(t, "x woken once", x)
	}},
	{"another process's appends", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		x, stop := l.Watch("x")
		defer stop()
		for i := range 5 {
			add(t, other, swarm.Batch{Events: []swarm.Event{to("x", fmt.Sprint(i))}})
			comes(t, "x", x)
			want(t, "read", len(read(t, l, "x")), i+1)
		}
	}},
	{"another process's acknowledged append, asked for before the wake comes", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		_, stop := l.Watch("x")
		defer stop()
		for i := range 50 {
			add(t, other, swarm.Batch{Events: []swarm.Event{to("x", fmt.Sprint(i))}})
			want(t, "read", len(read(t, l, "x")), i+1)
		}
	}},
	{"no wake is lost, and no event, when a follower and another process write", func(t *testing.T, o Opener) {
		l, other := open(t, o), open(t, o)
		const n = 300
		go func() {
			for i := range n {
				writer := []swarm.Log{l, other}[i%2]
				if _, err := writer.Append(t.Context(), swarm.Batch{Events: []swarm.Event{to("x", "a")}}); err != nil {
					t.Error(err)
				}
			}
		}()
		x, stop := l.Watch("x")
		defer stop()
		for got := int64(0); got < n; {
			es, err := l.Read(got, n, "x")
			if err != nil {
				t.Fatal(err)
			}
			if len(es) == 0 {
				comes(t, "the next", x)
				continue
			}
			for _, e := range es {
				if got++; e.Seq != got {
					t.Fatalf("event %d follows %d", e.Seq, got-1)
				}
			}
		}
	}},
	{"an ended watch is silent", func(t *testing.T, o Opener) {
		l := open(t, o)
		x, stop := l.Watch("x")
		stop()
		stop()
		add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "a")}})
		silent(t, "x", x)
		again, stop := l.Watch("x")
		defer stop()
		add(t, l, swarm.Batch{Events: []swarm.Event{to("x", "b")}})
		comes(t, "a new watch", again)
	}},
}

// silent checks that a channel holds nothing. Appends of this process are announced before they
// return.
func silent(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		t.Errorf("%s: a value came", what)
	default:
	}
}
