package httpd

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"swarm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// requestHeader ties a call to the request that it came with: a call goes on when its request has ended, and is told only its headers.
const requestHeader = "Swarm-Request"

// deliveries are those of the requests that are being answered.
type deliveries struct {
	mu   sync.Mutex
	open map[string]*delivery
}

// A delivery is the answer to one request on its way.
type delivery struct {
	swarm.Delivery
	ctx context.Context // of the request: it ends when the client hangs up

	mu   sync.Mutex
	made bool // the answer; what is written before is none
}

// await makes a request known until done is called; then whatever was not written will not be.
func (d *deliveries) await(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	id, one := rand.Text(), &delivery{ctx: r.Context()}
	r = r.Clone(r.Context())
	r.Header.Set(requestHeader, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]*delivery{}
	}
	d.open[id] = one
	return &witness{w, one}, r, func() {
		d.mu.Lock()
		delete(d.open, id)
		d.mu.Unlock()
		one.Settle(false)
	}
}

// of is the delivery of what a call will answer. Nobody waits any more for one that is not there; nil = the call came by another way.
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

// awaited says whether somebody still waits for the answer, as far as we know.
func (o *delivery) awaited() bool { return o == nil || o.ctx.Err() == nil }

// answer says that the answer is made, unless the call was taken back: then nobody reads it.
func (o *delivery) answer(call context.Context) {
	if call.Err() != nil {
		o.Settle(false)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made = true
}

// A witness sees an answer go out.
type witness struct {
	http.ResponseWriter
	delivery *delivery
}

// Unwrap is for who flushes.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write writes a piece of the answer, or of what comes before it.
func (w *witness) Write(p []byte) (int, error) {
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
