package provider

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarm"
)

// BenchmarkTurn runs `true` as a turn and, in between, by os/exec with three pipes: what a turn
// costs beside its process.
func BenchmarkTurn(b *testing.B) {
	p, err := OpenCommand(swarm.ProviderSpec{Name: "sh", Kind: "command", Command: []string{"true"}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	prompt := strings.Repeat("Do the work.\n", 80)
	request := Request{Run: "r", Turn: "code/1/1", Task: "code", Agent: "code", Iteration: 1, Attempt: 1, Prompt: prompt, Dir: b.TempDir()}
	env := os.Environ()
	var turn, floor cost
	b.ReportAllocs()
	for b.Loop() {
		turn.measure(func() {
			if _, err := p.Turn(b.Context(), request, func(swarm.Delta) {}); err != nil {
				b.Fatal(err)
			}
		})
		floor.measure(func() {
			var stdout, stderr bytes.Buffer
			cmd := exec.Command("true")
			cmd.Dir, cmd.Env = request.Dir, env
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(prompt), &stdout, &stderr
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.ReportMetric(float64(turn.wall)/float64(floor.wall), "x-wall")
	b.ReportMetric(float64(turn.cpu)/float64(floor.cpu), "x-cpu")
	b.ReportMetric(float64(turn.wall.Microseconds())/float64(b.N), "µs/turn")
}

// BenchmarkOutput sends 256 MB to a turn and, in between, to os/exec with a writer that drops it.
func BenchmarkOutput(b *testing.B) {
	p, err := OpenCommand(swarm.ProviderSpec{Name: "sh", Kind: "command", Command: []string{"head", "-c", "268435456", "/dev/zero"}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	var turn, floor cost
	for b.Loop() {
		turn.measure(func() {
			if r, err := p.Turn(b.Context(), Request{Turn: "code/1/1"}, func(swarm.Delta) {}); err != nil || r.Bytes != 256<<20 {
				b.Fatal(r.Bytes, err)
			}
		})
		floor.measure(func() {
			cmd := exec.Command("head", "-c", "268435456", "/dev/zero")
			cmd.Stdout = struct{ io.Writer }{io.Discard}
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.ReportMetric(float64(turn.wall)/float64(floor.wall), "x-wall")
	b.ReportMetric(float64(turn.cpu)/float64(floor.cpu), "x-cpu")
	b.ReportMetric(float64(b.N)*256/turn.wall.Seconds(), "MB/s")
}

// A cost is the time that something took: by the clock, and of this process and the children that
// it waited for.
type cost struct{ wall, cpu time.Duration }

func (c *cost) measure(f func()) {
	start, used := time.Now(), cpuTime()
	f()
	c.wall += time.Since(start)
	c.cpu += cpuTime() - used
}

func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var use syscall.Rusage
		_ = syscall.Getrusage(who, &use)
		sum += time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	return sum
}
