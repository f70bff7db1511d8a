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
)

const listeners = 1000

// BenchmarkStream is how long it takes until the last of 1,000 clients of one run has an event, from when it is on disk: one that this
// process wrote, and one that another wrote; beside a bare server that has nothing to read and hands the same bytes to as many.
func BenchmarkStream(b *testing.B) {
	b.Run("bare", benchBare)
	b.Run("own", func(b *testing.B) { benchSwarm(b, true) })
	b.Run("others", func(b *testing.B) { benchSwarm(b, false) })
}

func benchSwarm(b *testing.B, own bool) {
	h := open(b)
	id, log, write := h.log(h.dir)
	if own {
		defer h.api.Heed(id, log)()
	}
	crowd := newCrowd(b, strings.TrimPrefix(h.server.URL(), "http://"), "/api/v1/stream/sse?after=2&workflow_id="+id)
	crowd.measure(b, func(n int) time.Time {
		write(note(fmt.Sprintf("number %d", n)))
		return time.Now()
	})
}

func benchBare(b *testing.B) {
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
	crowd := newCrowd(b, strings.TrimPrefix(s.URL, "http://"), "/")
	crowd.measure(b, func(n int) time.Time {
		start := time.Now()
		e := note(fmt.Sprintf("number %d", n))
		e.Seq, e.Time = int64(n), time.Now()
		frame := eventFrame("20261115-143205-g7k3f9q", &e).wire
		mu.Lock()
		defer mu.Unlock()
		for _, c := range all {
			c <- frame
		}
		return start
	})
}

// A crowd is many clients, each of which says when it has got an event.
type crowd struct{ got chan time.Time }

func newCrowd(b *testing.B, address, path string) *crowd {
	b.Helper()
	c := &crowd{make(chan time.Time, listeners)}
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

// measure sends events, one after the other, and reports when the middle and the last of the clients have them.
func (c *crowd) measure(b *testing.B, send func(n int) time.Time) {
	var middle, last []time.Duration
	n := 0
	for b.Loop() {
		n++
		start := send(n)
		all := make([]time.Duration, listeners)
		for i := range all {
			all[i] = (<-c.got).Sub(start)
		}
		slices.Sort(all)
		middle, last = append(middle, all[listeners/2]), append(last, all[listeners-1])
	}
	slices.Sort(middle)
	slices.Sort(last)
	b.ReportMetric(float64(middle[n/2].Microseconds())/1000, "ms/middle-client")
	b.ReportMetric(float64(last[n/2].Microseconds())/1000, "ms/last-client")
	b.ReportMetric(float64(last[n*95/100].Microseconds())/1000, "ms/last-client-p95")
}
