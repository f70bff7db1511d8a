package httpd

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
)

// connections limits the open connections of a server. Each takes a file descriptor, and without
// descriptors no program can be started. So any process of this machine could stop a run by opening
// connections.
//
// A connection is a stranger's until its first request with a valid token. Strangers and admitted
// clients are limited separately, so strangers never take an admitted client's place. A new
// connection closes the oldest one that is worth less than itself: a stranger's, or, for an admitted
// client, one that is idle. mu guards the fields below it.
type connections struct {
	maxStrangers, maxAdmitted int

	mu      sync.Mutex
	places  map[net.Conn]place
	classes [4]list.List // of net.Conn, by class, the oldest first
}

// A connClass says what a connection is worth. The lower ones are closed first.
type connClass int

const (
	silent connClass = iota // a stranger's, without a request so far
	heard                   // a stranger's, with the beginning of a request
	idle                    // an admitted client's, between two requests
	busy                    // an admitted client's, with a request
)

// A place is where a connection stands in the list of its class.
type place struct {
	class connClass
	at    *list.Element
}

// maxSilent limits strangers where descriptors are plenty, because each takes some 13 KB of memory.
const maxSilent = 4096

// newConnections takes three quarters of the file descriptors that this process may open: an eighth
// is for strangers, and the rest for admitted clients. A quarter is left for programs' pipes and for
// files.
func newConnections() *connections {
	files := uint64(1024)
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		files = max(64, min(limit.Cur, 1<<24)) // macOS has 1<<63-1 for no limit
	}
	c := &connections{places: map[net.Conn]place{}}
	c.maxStrangers = int(min(files/8, maxSilent))
	c.maxAdmitted = int(files * 5 / 8)
	return c
}

// A conn remembers which tokens its client may use. A look at the client takes up to a millisecond,
// so there is one for each connection and token. mu guards tokens.
type conn struct {
	net.Conn
	mu     sync.Mutex
	tokens []string
}

type connKey struct{}

// withConn has a request know its connection.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{Conn: c})
}

// connOf returns the connection of a request; nil = a test has none.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// admit returns an error if the client of this connection must not act as the caller. keyCheck is
// for callers with the server's key.
func (c *conn) admit(v caller, keyCheck func(net.Conn) error) error {
	check := keyCheck
	if agent, bound := v.agent.(Bound); bound {
		check = agent.Admits
	} else if v.agent != nil {
		check = nil
	}
	if check == nil || c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.tokens, v.token) {
		return nil
	}
	if err := check(c.Conn); err != nil {
		return err
	}
	c.tokens = append(c.tokens, v.token)
	return nil
}

// check returns an error if the client of this connection is refused by a check.
func (c *conn) check(check func(net.Conn) error) error {
	if c == nil || check == nil {
		return nil
	}
	return check(c.Conn)
}

// track follows the state of a connection. The server calls it for each change, and for a new
// connection before it accepts the next.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.places[conn]
	switch {
	case state == http.StateNew:
		if c.classes[silent].Len()+c.classes[heard].Len() >= c.maxStrangers && !c.closeOldest(silent) {
			c.closeOldest(heard)
		}
		c.move(conn, silent)
	case !known: // it was closed for another
	case state == http.StateActive && at.class == silent:
		c.move(conn, heard)
	case state == http.StateActive && at.class == idle:
		c.move(conn, busy)
	case state == http.StateIdle && at.class == busy:
		c.move(conn, idle)
	case state == http.StateClosed || state == http.StateHijacked:
		c.forget(conn)
	}
}

// admit makes a request's connection an admitted client's. It returns false if there are too many
// and each has a request.
func (c *connections) admit(r *http.Request) bool {
	of := connOf(r)
	if of == nil {
		return true
	}
	conn := of.Conn
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.places[conn]
	if !known || at.class >= idle {
		return true
	}
	if c.classes[idle].Len()+c.classes[busy].Len() >= c.maxAdmitted && !c.closeOldest(idle) {
		return false
	}
	c.move(conn, busy)
	return true
}

// closeStrangers closes all connections without a request.
func (c *connections) closeStrangers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closeOldest(silent) {
	}
}

// closeOldest closes the oldest connection of a class, if there is one.
func (c *connections) closeOldest(class connClass) bool {
	oldest := c.classes[class].Front()
	if oldest == nil {
		return false
	}
	conn := oldest.Value.(net.Conn)
	c.forget(conn)
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn() // Close of the secured one would wait until its last word is sent
	}
	_ = conn.Close() // nobody is left to be told of an error
	return true
}

// move puts a connection at the end of a class.
func (c *connections) move(conn net.Conn, to connClass) {
	c.forget(conn)
	c.places[conn] = place{to, c.classes[to].PushBack(conn)}
}

func (c *connections) forget(conn net.Conn) {
	if at, ok := c.places[conn]; ok {
		c.classes[at.class].Remove(at.at)
		delete(c.places, conn)
	}
}
