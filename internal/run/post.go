package run

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/office"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
	"swarm/internal/view"
)

// A Post is where a person writes to the agents of a run, whichever process drives it.
type Post struct {
	*office.Office
	log *sqlite.Log
}

// OpenPost opens a run to write to its agents. What is in this process's environment and in the agents' as a key is stored nowhere.
func OpenPost(h *home.Home, id string) (*Post, error) {
	log, err := sqlite.Open(h.RunPath(id))
	if err != nil {
		return nil, err
	}
	environ := os.Environ()
	if e, ok, err := log.Find(planKey); err == nil && ok {
		var p swarm.Plan
		if json.Unmarshal(e.Data, &p) == nil {
			environ = append(environ, secretsOf(&p, os.LookupEnv)...)
		}
	}
	return &Post{&office.Office{Run: id, Log: log, Redact: secret.New(environ, nil).Bytes}, log}, nil
}

// Close gives the run's log back.
func (p *Post) Close() error { return p.log.Close() }

// Envelope is the stored envelope with this id.
func (l *Look) Envelope(id string) (swarm.Envelope, error) {
	return (&office.Office{Run: l.ID, Log: l.log}).Envelope(id)
}

// FollowMail calls fn with all envelopes, and then with those that are new or that something became of, until the run is through or
// nobody drives it any more, or ctx ends.
func (l *Look) FollowMail(ctx context.Context, fn func([]view.Envelope) error) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	c, after := view.NewCollector(), int64(0)
	for {
		driven := l.Driven() // asked first: what its driver wrote before it left is told below
		err := l.log.Scan(after, func(e *swarm.Event) error {
			after = e.Seq
			return c.Take(e)
		})
		if changed := c.Changed(); err == nil && len(changed) > 0 {
			err = fn(changed)
		}
		if err != nil || !driven {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
