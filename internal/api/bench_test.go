package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"swarm"
	"swarm/internal/feed"
)

const listeners = 1000

// BenchmarkStream measures the time from an event on disk until the last of 1,000 clients has it.
// The event comes from this process, or from another. For comparison, a bare server sends the same
// bytes to as many clients. The three take turns, so that load on the machine affects all of them.
func BenchmarkStream(b *testing.B) {
	h := open(b)
	bare, own, others := bareCrowd(b), h.crowd(b, true), h.crowd(b, false)
	for n := 1; b.Loop(); n++ {
		for _, c := range []*crowd{bare, own, others} {
			c.round(n)
		}
	}
	floor := middle(bare.last)
	b.ReportMetric(floor.Seconds()*1000, "ms/bare")
	b.ReportMetric(middle(own.last).Seconds()*1000, "ms/own")
	b.ReportMetric(middle(others.last).Seconds()*1000, "ms/others")
	b.ReportMetric(float64(middle(own.last))/float64(floor), "own/bare")
	b.ReportMetric(float64(middle(others.last))/float64(floor), "others/bare")
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// crowd are the clients of a run that this process writes, or another.
func (h *house) crowd(b *testing.B, own bool) *crowd {
	id, log, write := h.log(h.dir)
	if own {
		b.Cleanup(h.api.Feed.Watch(swarm.RunID(id), log))
	}
	return newCrowd(b, strings.TrimPrefix(h.server.URL(), "http://"), "/api/v1/stream/sse?after=2&workflow_id="+id, func(n int) time.Time {
		write(note(fmt.Sprintf("number %d", n)))
		return time.Now()
	})
}

// bareCrowd are the clients of a server that only hands out bytes.
func bareCrowd(b *testing.B) *crowd {
	var mu sync.Mutex
	var all []chan []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := make(chan []byte, 16)
		mu.Lock()
		all = append(all, c)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case frame := <-c:
				_, _ = w.Write(frame)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	b.Cleanup(s.Close)
	return newCrowd(b, strings.TrimPrefix(s.URL, "http://"), "/", func(n int) time.Time {
		start := time.Now()
		e := note(fmt.Sprintf("number %d", n))
		e.Seq, e.Time = int64(n), start
		frame := feed.EventFrame("20261115-143205-g7k3f9q", &e).Wire
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			c <- frame
		}
		return start
	})
}

// A crowd is many clients, each of which reports when it has an event.
type crowd struct {
	send func(n int) (at time.Time)
	got  chan time.Time
	last []time.Duration // how long each event took to the last of them
}

func newCrowd(b *testing.B, address, path string, send func(n int) time.Time) *crowd {
	b.Helper()
	c := &crowd{send: send, got: make(chan time.Time, listeners)}
	for range listeners {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path, address, token)
		lines := bufio.NewReaderSize(conn, 1024)
		for line := ""; line != "\r\n"; { // it is let in
			if line, err = lines.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		go func() {
			for {
				line, err := lines.ReadSlice('\n')
				if err != nil {
					return
				}
				if strings.HasPrefix(string(line), "data: ") {
					c.got <- time.Now()
				}
			}
		}()
	}
	return c
}

// round sends an event, and waits until all clients have it.
func (c *crowd) round(n int) {
	start := c.send(n)
	var last time.Time
	for range listeners {
		if at := <-c.got; at.After(last) {
			last = at
		}
	}
	c.last = append(c.last, last.Sub(start))
}
