package compose

import (
	"bytes"
	"fmt"
	"testing"

	"go.yaml.in/yaml/v4"
)

// large makes a file of n tasks, each of which depends on the two before it and reads one of them.
func large(n int) []byte {
	var b bytes.Buffer
	b.WriteString("provider: codex\nagents: {worker: {}}\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  task-%d:\n    timeout: 10m\n    retries: 2\n    env: {N: %d}\n", i, i)
		if i < 2 {
			b.WriteString("    prompt-string: Begin.\n")
			continue
		}
		fmt.Fprintf(&b, "    depends_on: [task-%d, {task: task-%d, condition: success}]\n", i-1, i-2)
		fmt.Fprintf(&b, "    prompt-string: |\n      Go on from here:\n      {{output:task-%d}}\n", i-1)
	}
	return b.Bytes()
}

// wrong makes a file of n tasks that all depend on a missing task.
func wrong(n int) []byte {
	var b bytes.Buffer
	b.WriteString("provider: codex\ntasks:\n")
	for i := range n {
		fmt.Fprintf(&b, "  task-%d: {prompt-string: Go., depends_on: [tusk-%d]}\n", i, i)
	}
	return b.Bytes()
}

func BenchmarkCheck(b *testing.B) {
	for _, kind := range []struct {
		name string
		make func(int) []byte
	}{{"good", large}, {"wrong", wrong}} {
		for _, n := range []int{1000, 10_000} {
			src := kind.make(n)
			o := Options{File: "swarm.yaml", Source: src, Dir: "/here"}
			b.Run(fmt.Sprintf("%s/tasks=%d", kind.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					errs, _ := Check(o)
					if (len(errs) > 0) != (kind.name == "wrong") {
						b.Fatal(errs)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
			})
		}
	}
}

// BenchmarkCompileOverParse compares Compile with the YAML parser alone, on the same file, as its
// floor.
func BenchmarkCompileOverParse(b *testing.B) {
	src := large(10_000)
	o := Options{File: "swarm.yaml", Source: src, Dir: "/here"}
	var floor, ours int64
	for b.Loop() {
		start := b.Elapsed()
		var n yaml.Node
		if err := yaml.Load(src, &n); err != nil {
			b.Fatal(err)
		}
		middle := b.Elapsed()
		if _, err := Compile(o); err != nil {
			b.Fatal(err)
		}
		floor += int64(middle - start)
		ours += int64(b.Elapsed() - middle)
	}
	b.ReportMetric(float64(ours)/float64(floor), "×parse")
}
