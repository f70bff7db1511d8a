package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
)

// small is one event as a turn writes it.
func small(i int) swarm.Batch {
	return swarm.Batch{Events: []swarm.Event{{Kind: swarm.TurnEnded, Agent: "coder", Task: "code", Turn: "code/1/1", To: "loop:main",
		Key: fmt.Sprintf("end:code/%d/1", i), Data: []byte(`{"id":"code/1/1","call":"turn code coder plan","status":"ok","bytes":5120}`)}}}
}

func benchLog(b *testing.B) *Log {
	l, err := Create(filepath.Join(b.TempDir(), "run.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func median(ds []time.Duration) float64 {
	slices.Sort(ds)
	return float64(ds[len(ds)/2].Nanoseconds()) / 1e3
}

// BenchmarkAppend measures a durable append by one caller. The floor is a write of the same bytes
// and an fdatasync.
func BenchmarkAppend(b *testing.B) {
	l := benchLog(b)
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	must(b, err)
	defer f.Close()
	row := make([]byte, 256)
	var ours, floor []time.Duration
	var cpu, floorCPU time.Duration
	for i := range b.N {
		used := processor()
		start := time.Now()
		_, err := f.Write(row)
		must(b, err)
		must(b, fdatasync(f))
		floor = append(floor, time.Since(start))
		floorCPU += processor() - used
		used = processor()
		start = time.Now()
		_, err = l.Append(context.Background(), small(i))
		ours = append(ours, time.Since(start))
		cpu += processor() - used
		must(b, err)
	}
	b.ReportMetric(median(ours), "p50-µs")
	b.ReportMetric(median(floor), "floor-p50-µs")
	b.ReportMetric(median(ours)/median(floor), "×floor")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(floorCPU.Microseconds())/float64(b.N), "floor-cpu-µs/op")
}

func processor() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend64 measures 64 callers against one.
func BenchmarkAppend64(b *testing.B) {
	l := benchLog(b)
	n := 0
	rate := func(callers, each int) float64 {
		var wg sync.WaitGroup
		start := time.Now()
		for c := range callers {
			base := n + c*each
			wg.Go(func() {
				for i := range each {
					_, err := l.Append(context.Background(), small(base+i))
					must(b, err)
				}
			})
		}
		wg.Wait()
		n += callers * each
		return float64(callers*each) / time.Since(start).Seconds()
	}
	var one, many float64
	for range b.N {
		one += rate(1, 64)
		many += rate(64, 16)
	}
	b.ReportMetric(one/float64(b.N), "1-caller/s")
	b.ReportMetric(many/float64(b.N), "64-callers/s")
	b.ReportMetric(many/one, "×1-caller")
}

// BenchmarkCreate measures a new run up to its first durable event, against a new file with two
// syncs, and the cost of closing it. The files stay until the end: creating files just after others
// were deleted is slow on some systems.
func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	var first, closing, floor []time.Duration
	var logs []*Log
	for i := range b.N {
		start := time.Now()
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.floor", i)))
		must(b, err)
		for range 2 {
			_, err = f.Write(make([]byte, 256))
			must(b, err)
			must(b, f.Sync())
		}
		must(b, f.Close())
		floor = append(floor, time.Since(start))
		start = time.Now()
		l, err := Create(filepath.Join(dir, fmt.Sprintf("%d.db", i)))
		must(b, err)
		_, err = l.Append(context.Background(), small(i))
		must(b, err)
		first = append(first, time.Since(start))
		logs = append(logs, l)
	}
	for _, l := range logs {
		start := time.Now()
		must(b, l.Close())
		closing = append(closing, time.Since(start))
	}
	b.ReportMetric(median(first), "first-append-p50-µs")
	b.ReportMetric(median(floor), "floor-p50-µs")
	b.ReportMetric(median(closing), "close-p50-µs")
}

// BenchmarkOpen opens a run that exists and reads something, as a command does.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "run.db")
	l, err := Create(path)
	must(b, err)
	_, err = l.Append(context.Background(), small(1))
	must(b, err)
	must(b, l.Close())
	for _, c := range []struct {
		name string
		open func(string) (*Log, error)
	}{{"Open", Open}, {"OpenReadOnly", OpenReadOnly}} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				l, err := c.open(path)
				must(b, err)
				_, err = l.Read(0, 10)
				must(b, err)
				must(b, l.Close())
			}
		})
	}
}

// BenchmarkFollow measures an append and the read of a follower that it wakes.
func BenchmarkFollow(b *testing.B) {
	l := benchLog(b)
	woken, stop := l.Watch("loop:main")
	defer stop()
	for i := range b.N {
		_, err := l.Append(context.Background(), small(i))
		must(b, err)
		<-woken
		es, err := l.Read(int64(i), 10, "loop:main")
		must(b, err)
		if len(es) != 1 {
			b.Fatal(len(es))
		}
	}
}

// BenchmarkScan opens a long log and scans it: 1,000,000 events if SWARM_BENCH_LONG is set.
func BenchmarkScan(b *testing.B) {
	n := 1_000_000
	if os.Getenv("SWARM_BENCH_LONG") == "" {
		n = 50_000
	}
	path := filepath.Join(b.TempDir(), "run.db")
	l, err := Create(path)
	must(b, err)
	for i := 0; i < n; i += 500 {
		var batch swarm.Batch
		for j := range 500 {
			batch.Events = append(batch.Events, small(i + j).Events[0])
		}
		_, err := l.Append(context.Background(), batch)
		must(b, err)
	}
	must(b, l.Close())
	st, err := os.Stat(path)
	must(b, err)
	for b.Loop() {
		l, err := Open(path)
		must(b, err)
		got := 0
		must(b, l.Scan(0, func(e *swarm.Event) error { got++; return nil }))
		if got != n {
			b.Fatal(got)
		}
		must(b, l.Close())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
	b.ReportMetric(float64(st.Size())/float64(n), "bytes/event")
}
