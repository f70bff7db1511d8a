package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"swarm"
	"swarm/internal/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		first, path := create(t)
		return func(t *testing.T) storetest.Store {
			if l := first; l != nil { // the suite sees a created log as well as opened ones
				first = nil
				return l
			}
			l, err := Open(path)
			must(t, err)
			return l
		}
	})
}

func TestFaults(t *testing.T) {
	storetest.RunFaults(t, func(t *testing.T) storetest.Faults {
		first, path := create(t)
		must(t, first.Close())
		return storetest.Faults{
			Open: func(t *testing.T) storetest.Store {
				l, err := Open(path)
				must(t, err)
				return l
			},
			Shorten: func(t *testing.T) {
				l, err := Open(path)
				must(t, err)
				must(t, l.w.exec("DELETE FROM ev WHERE seq=(SELECT max(seq) FROM ev)"))
				must(t, l.Close())
			},
		}
	})
}

func TestManyLogs(t *testing.T) {
	dir := t.TempDir()
	storetest.ManyLogs(t, func(*testing.T) swarm.Store { return NewStore(dir) })
}

// TestACrashLeavesAPrefix crashes a log at each of its appends, and checks what is left.
func TestACrashLeavesAPrefix(t *testing.T) {
	const n = 6
	for k := range n + 2 {
		for _, after := range []bool{false, true} {
			l, path := create(t)
			c := storetest.Crash(l, k, after)
			_, err := c.Own(context.Background(), "1", 1e9)
			must(t, err)
			for i := range n {
				b := small(i)
				b.Lazy = i%2 == 0
				_, err := c.Append(context.Background(), b)
				if dead := k > 0 && i+1 >= k; dead != errors.Is(err, storetest.ErrCrash) {
					t.Fatalf("death at %d: append %d says %v", k, i+1, err)
				}
			}
			want := n
			if k > 0 && k <= n {
				<-c.Dead()
				if _, err := c.Read(0, 9); !errors.Is(err, storetest.ErrCrash) {
					t.Errorf("a dead log is read: %v", err)
				}
				want = k - 1
				if after {
					want = k
				}
			}
			must(t, c.Close())
			again, err := Open(path)
			must(t, err)
			var keys []string
			must(t, again.Scan(0, func(e *swarm.Event) error { keys = append(keys, e.Key); return nil }))
			if len(keys) != want || want > 0 && keys[want-1] != fmt.Sprintf("end:code/%d/1", want-1) {
				t.Errorf("death at %d (after %v) leaves %v, want %d", k, after, keys, want)
			}
			if _, err := again.Own(context.Background(), "1", 1e9); err != nil {
				t.Errorf("the dead owner's run: %v", err)
			}
			must(t, again.Close())
		}
	}
}

// The checksums of pages say that a text is what was written. Its hash says that the right text was.
func TestATextThatIsNotItsHashIsRefused(t *testing.T) {
	l, path := create(t)
	text := []byte("the right text")
	_, err := l.Append(t.Context(), swarm.Batch{Bodies: [][]byte{text}})
	must(t, err)
	must(t, l.w.exec("UPDATE body SET data=?", []byte("another text")))
	if got, err := l.Body(swarm.HashOf(text)); err == nil || len(got) > 0 {
		t.Errorf("it is served as %q, %v", got, err)
	}
	must(t, l.Close())
	check, err := NewStore(filepath.Dir(path)).(*Store).Check(t.Context(), "run", nil)
	must(t, err)
	for _, part := range check.Parts {
		if want := part.Part == "texts"; part.Damaged > 0 != want {
			t.Errorf("of a wrong text a check says %+v", part)
		}
	}
	if !check.Damaged {
		t.Errorf("a check says %+v", check)
	}
}

// TestRoomForArgumentsIsGivenBack: a connection lives as long as its run, and a plan may have 28 MB.
func TestRoomForArgumentsIsGivenBack(t *testing.T) {
	c := &conn{tls: libc.NewTLS()}
	defer c.tls.Close()
	defer func() { lib.Xsqlite3_free(c.tls, c.args) }()
	for _, one := range []struct{ n, room int }{{0, 0}, {10, 4096}, {5000, 8192}, {8000, 8192}, {28 << 20, 28 << 20}, {2 << 20, 28 << 20}, {10, keptRoom}, {20, keptRoom}, {keptRoom + 1, keptRoom + 1}} {
		if err := c.reserve(one.n); err != nil || c.room != one.room {
			t.Errorf("for %d bytes there is room for %d (%v), want %d", one.n, c.room, err, one.room)
		}
	}
}
