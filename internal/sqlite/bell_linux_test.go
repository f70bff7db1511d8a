package sqlite

import (
	"context"
	"testing"
	"time"
)

func heard(t *testing.T, ring <-chan struct{}) {
	t.Helper()
	select {
	case <-ring:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing rings")
	}
}

func TestACommitRingsForAllWhoListen(t *testing.T) {
	l, path := create(t)
	first, second, third := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	for _, ring := range []chan struct{}{first, second} {
		if _, ok := listen(path+".lock", ring); !ok {
			t.Skip("this system gives no inotify instance")
		}
	}
	watch, _ := listen(path+".lock", third)
	unlisten(watch, third)
	_, err := l.Append(context.Background(), small(1))
	must(t, err)
	heard(t, first)
	heard(t, second)
	if len(third) > 0 {
		t.Error("it rings for one who does not listen any more")
	}
	bells.mu.Lock()
	defer bells.mu.Unlock()
	if len(bells.ring[watch]) > 0 {
		t.Error("it would ring again, and nobody has asked for that")
	}
}

func TestAnotherProcessIsHeardWhereNothingRings(t *testing.T) {
	l, path := create(t)
	bells.once.Do(openBells)
	deaf := func(fd int) (was int) {
		bells.mu.Lock()
		defer bells.mu.Unlock()
		was, bells.fd = bells.fd, fd
		return was
	}
	was := deaf(-1)
	defer deaf(was)
	other, err := Open(path)
	must(t, err)
	defer other.Close()
	woken, stop := other.Watch()
	defer stop()
	for i := range 3 {
		_, err = l.Append(context.Background(), small(i))
		must(t, err)
		heard(t, woken)
	}
}
