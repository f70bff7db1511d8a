// Package storetest is the contract of a store of logs, as a suite of tests. Each store runs it
// from a test of its own with [Run] and [Mail]. The package also has a [CrashingLog], for tests of
// code that must survive a crash.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"swarm"
)

// A Store is the subject of the tests: a log that can have an owner, and be closed.
type Store interface {
	swarm.Log
	swarm.Owned
	Close() error
}

// An Opener opens one log, each time as another process would.
type Opener func(t *testing.T) Store

// Run runs the suite. new makes an empty log and returns its opener.
func Run(t *testing.T, new func(t *testing.T) Opener) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"append", appendTests},
		{"lazy", lazyTests},
		{"read", readTests},
		{"watch", watchTests},
		{"own", ownTests},
		{"together", togetherTests},
		{"mail", []test{{"four writers, one inbox, two readers", func(t *testing.T, o Opener) { Mail(t, o, nil) }}}},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, new(t)) })
			}
		})
	}
}

type test struct {
	name string
	run  func(t *testing.T, open Opener)
}

// patience is how long a test waits for something that must come. A passing test never waits that
// long.
const patience = 20 * time.Second

// open opens the log for the length of a test.
func open(t *testing.T, open Opener) Store {
	t.Helper()
	s := open(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// add appends a batch that must be accepted.
func add(t *testing.T, l swarm.Log, b swarm.Batch) []int64 {
	t.Helper()
	seqs, err := l.Append(context.Background(), b)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return seqs
}

// refused appends a batch that must be refused with an error.
func refused(t *testing.T, l swarm.Log, b swarm.Batch, want error) {
	t.Helper()
	before := count(t, l)
	seqs, err := l.Append(context.Background(), b)
	if !is(err, want) {
		t.Fatalf("append answered %v, %v; want the error %v", seqs, err, want)
	}
	if seqs != nil {
		t.Errorf("a refused batch has the numbers %v", seqs)
	}
	if after := count(t, l); after != before {
		t.Errorf("a refused batch wrote %d events", after-before)
	}
}

// events makes a batch of notices with these texts.
func events(texts ...string) swarm.Batch {
	var b swarm.Batch
	for _, text := range texts {
		b.Events = append(b.Events, notice(text))
	}
	return b
}

func notice(text string) swarm.Event {
	return swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: text})
}

func keyed(key, text string) swarm.Event {
	e := notice(text)
	e.Key = key
	return e
}

func to(receiver, text string) swarm.Event {
	e := notice(text)
	e.To = receiver
	return e
}

func textOf(e swarm.Event) string {
	r, err := swarm.Body[swarm.Reason](&e)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return r.Reason
}

// read reads all events, in small pages.
func read(t *testing.T, l swarm.Log, to ...string) []swarm.Event {
	t.Helper()
	var all []swarm.Event
	after := int64(0)
	for {
		es, err := l.Read(after, 100, to...)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if len(es) == 0 {
			return all
		}
		all = append(all, es...)
		after = es[len(es)-1].Seq
	}
}

func count(t *testing.T, l swarm.Log) int { t.Helper(); return len(read(t, l)) }

// texts returns the texts of the events, for comparing.
func texts(es []swarm.Event) string {
	var out []string
	for _, e := range es {
		out = append(out, textOf(e))
	}
	return fmt.Sprint(out)
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// comes waits for a value.
func comes[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing came", what)
		panic("unreachable")
	}
}

// becomes retries until a condition is true: for the work of another process, or for a lease to
// expire.
func becomes(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("%s: it never did", what)
		}
		<-time.After(time.Millisecond)
	}
}
