package httpd

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"swarm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// requestHeader ties a call to its HTTP request. A call outlives its request and sees only its
// headers, so the id travels there.
const requestHeader = "Swarm-Request"

// deliveries are the requests that are being answered, by id.
type deliveries struct {
	mu   sync.Mutex
	open map[string]*delivery
}

// A delivery tracks whether the answer to one request reached the client. Mail that an answer shows
// counts as seen only then.
type delivery struct {
	swarm.Delivery
	ctx context.Context // of the request: ends when the client hangs up

	mu   sync.Mutex
	made bool // the answer exists; bytes written before that are not the answer
}

// track registers a request until done is called. An answer that is not written by then counts as
// undelivered.
func (d *deliveries) track(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	id, one := rand.Text(), &delivery{ctx: r.Context()}
	r = r.Clone(r.Context())
	r.Header.Set(requestHeader, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]*delivery{}
	}
	d.open[id] = one
	return &deliveryWriter{w, one}, r, func() {
		d.mu.Lock()
		delete(d.open, id)
		d.mu.Unlock()
		one.Settle(false)
	}
}

// of returns the delivery of a call's answer; nil = the call came over pipes. If the request has
// ended already, it returns a delivery that has failed.
func (d *deliveries) of(r *mcp.CallToolRequest) *delivery {
	if d == nil || r.Extra == nil {
		return nil
	}
	d.mu.Lock()
	one := d.open[r.Extra.Header.Get(requestHeader)]
	d.mu.Unlock()
	if one == nil {
		gone, hangUp := context.WithCancel(context.Background())
		hangUp()
		one = &delivery{ctx: gone}
		one.Settle(false)
	}
	return one
}

// awaited reports whether the client still waits for the answer, as far as known.
func (o *delivery) awaited() bool { return o == nil || o.ctx.Err() == nil }

// markMade records that the answer exists. A cancelled call has no reader, so its delivery fails.
func (o *delivery) markMade(call context.Context) {
	if call.Err() != nil {
		o.Settle(false)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made = true
}

// A deliveryWriter notices when an answer is written.
type deliveryWriter struct {
	http.ResponseWriter
	delivery *delivery
}

// Unwrap lets http.ResponseController flush.
func (w *deliveryWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes a piece of the answer, or of what precedes it.
func (w *deliveryWriter) Write(p []byte) (int, error) {
	d := w.delivery
	d.mu.Lock()
	made := d.made
	d.mu.Unlock()
	there := d.ctx.Err() == nil
	n, err := w.ResponseWriter.Write(p)
	if made {
		d.Settle(there && err == nil)
	}
	return n, err
}
