package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: gcShort, 8 << 20: gcShort, 16 << 20: 300, 32 << 20: 100, 48 << 20: gcLong, 90 << 20: gcLong, 1 << 40: gcLarge} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MB are live: %d percent, want %d", live>>20, got, want)
		}
	}
}

func TestALargeHeapIsCollectedSooner(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	paceCollector()
	held := make([]byte, 2*smallHeap)
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for metrics.Read(percent); percent[0].Value.Uint64() != gcLong; metrics.Read(percent) { // its finalizer is called some time after a collection
		runtime.GC()
	}
	runtime.KeepAlive(held)
}
