package local

import (
	"context"
	"sync"
	"testing"
)

// Any number of calls run at the same time, and a goroutine that has done one does others.
func TestWorkers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	w := newWorkers(ctx)
	for range 3 {
		var begun, ended sync.WaitGroup
		gate := make(chan struct{})
		for range 100 {
			begun.Add(1)
			ended.Add(1)
			w.do(func() {
				begun.Done()
				<-gate
				ended.Done()
			})
		}
		begun.Wait()
		close(gate)
		ended.Wait()
	}
	w.next <- func() {} // a goroutine is idle
	stop()
	w.all.Wait()
}
