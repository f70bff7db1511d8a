package line

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm"
)

// tenRefs returns a line with references to ten agents.
func tenRefs() (string, Team) {
	var b strings.Builder
	team := Team{Default: "agent-0"}
	b.WriteString("@agent-0 Put together what the others have found:")
	for i := range 10 {
		team.Agents = append(team.Agents, fmt.Sprintf("agent-%d", i))
		fmt.Fprintf(&b, " the part about %d from $agent-%d,", i, i)
	}
	return b.String(), team
}

// BenchmarkParse parses a line with ten references. Its lower bound is one pass over the bytes and
// one copy of them.
func BenchmarkParse(b *testing.B) {
	text, team := tenRefs()
	b.Run("refs=10", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(text, team); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if !utf8.ValidString(strings.Clone(text)) {
				b.Fatal("not text")
			}
		}
	})
}

// BenchmarkPlan plans the same line while all ten agents have open tasks.
func BenchmarkPlan(b *testing.B) {
	text, team := tenRefs()
	l, err := Parse(text, team)
	if err != nil {
		b.Fatal(err)
	}
	var s Standing
	o := PlanOptions{Agents: map[string]swarm.Agent{}}
	for _, name := range team.Agents {
		s.Open = append(s.Open, OpenTask{Name: name + "_1", Agent: name})
		o.Agents[name] = swarm.Agent{Name: name, Provider: "sh"}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Plan(s, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan scans the longest line, made of the slowest parts. ns/byte must not grow with the
// length.
func BenchmarkScan(b *testing.B) {
	for _, piece := range []string{"$pm ", "$", `\&`, "-> ", "->", "-> \t \t \t", "& ", "@", "--", "\u00a0"} {
		for _, size := range []int{1 << 10, MaxLine} {
			text := "@pm " + strings.Repeat(piece, size/len(piece)) + "x"
			b.Run(fmt.Sprintf("%q/%d", piece, size), func(b *testing.B) {
				for b.Loop() {
					Scan(text, team)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)), "ns/byte")
			})
		}
	}
}
