package provider

import (
	"context"
	"sync"
)

// A Delivery is the way of one answer to the agent that has called a tool. Who shows mail in an answer learns by it whether the answer
// went out: what nobody took was not seen.
type Delivery struct {
	mu      sync.Mutex
	settled bool
	arrived bool
	told    []func(arrived bool)
}

type deliveryKey struct{}

// WithDelivery makes a delivery known to whoever does the call.
func WithDelivery(ctx context.Context, d *Delivery) context.Context {
	return context.WithValue(ctx, deliveryKey{}, d)
}

// OnDelivery calls told once, when it is known whether the answer of the call that ctx belongs to went out. An answer that is given in
// this process has arrived.
func OnDelivery(ctx context.Context, told func(arrived bool)) {
	d, ok := ctx.Value(deliveryKey{}).(*Delivery)
	if !ok {
		told(true)
		return
	}
	d.mu.Lock()
	settled, arrived := d.settled, d.arrived
	if !settled {
		d.told = append(d.told, told)
	}
	d.mu.Unlock()
	if settled {
		told(arrived)
	}
}

// Settle says whether the answer went out. The first word counts.
func (d *Delivery) Settle(arrived bool) {
	d.mu.Lock()
	if d.settled {
		d.mu.Unlock()
		return
	}
	d.settled, d.arrived = true, arrived
	told := d.told
	d.told = nil
	d.mu.Unlock()
	for _, tell := range told {
		tell(arrived)
	}
}
