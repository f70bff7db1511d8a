package simulation

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice returns random numbers that depend on the seed and on what they are for, and on nothing else.
// So it does not matter which goroutine asks first.
func dice(seed uint64, what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// length returns a delay that ends at an instant at which no other delay ends. Short delays are more
// frequent than long ones. The caller holds the mutex.
func (d *disk) length(least, most time.Duration, what ...any) time.Duration {
	f := dice(d.seed, what...).Float64()
	long := least + 1 + time.Duration(f*f*f*float64(most-least))
	for now := time.Now().UnixNano(); ; long++ {
		if at := now + int64(long); !d.instants[at] {
			d.instants[at] = true
			return long
		}
	}
}

// delay sleeps for a length of time that the seed decides.
func (d *disk) delay(least, most time.Duration, what ...any) {
	d.mu.Lock()
	long := d.length(least, most, what...)
	d.mu.Unlock()
	time.Sleep(long)
}
