package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkExpand measures Build of one prompt. Each turn pays for it; the template is parsed once
// in a run. Two floors run in turn with it: one copy of the resulting bytes, and the three passes
// with regular expressions of a straightforward expansion.
func BenchmarkExpand(b *testing.B) {
	for _, c := range []struct {
		name                      string
		references, prose, output int // bytes of prose between two references, and of one output
	}{
		{"10_references_in_100_KB_of_prose", 10, 10_000, 400},
		{"10_references_to_10_KB_outputs", 10, 100, 10_000},
		{"1000_references_in_100_KB", 1000, 60, 60},
	} {
		b.Run(c.name, func(b *testing.B) {
			var text strings.Builder
			for i := range c.references {
				fmt.Fprintf(&text, "%s\n{{output:task_%d}}\n", prose(c.prose), i)
			}
			source := []byte(text.String())
			template, _, err := Parse(Source{File: "code.md", Text: source}, nil)
			if err != nil {
				b.Fatal(err)
			}
			output := []byte(prose(c.output))
			find := func(string) (Output, bool) { return Output{Text: output, Turn: "x/1/1"}, true }

			var ours, copying, passes []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				ours = append(ours, timed(func() { sink = expand(b, template, find) }))
				result := sink
				copying = append(copying, timed(func() { sink = strings.Clone(result) }))
				passes = append(passes, timed(func() { sink = expandByPasses(string(source), find) }))
				if sink != result {
					b.Fatal("the floor makes another prompt")
				}
			}
			b.ReportMetric(median(ours)/median(copying), "×copy")
			b.ReportMetric(median(passes)/median(ours), "×faster-than-regexps")
			b.ReportMetric(median(ours), "ns/prompt")
			b.ReportMetric(float64(len(sink)), "bytes/prompt")
		})
	}
}

var sink string

// timed returns the time of one of several calls in a row. So no call is judged by the caches that
// another left behind, and each pays for its own garbage.
func timed(call func()) time.Duration {
	const calls = 16
	start := time.Now()
	for range calls {
		call()
	}
	return time.Since(start) / calls
}

// median ignores the outliers that other work of the machine causes.
func median(of []time.Duration) float64 {
	slices.Sort(of)
	return float64(of[len(of)/2])
}

func expand(b *testing.B, t Template, find func(string) (Output, bool)) string {
	p, err := Build(Turn{Text: t, Output: find})
	if err != nil {
		b.Fatal(err)
	}
	return p.Text
}

var passes = []*regexp.Regexp{
	regexp.MustCompile(`\{\{include:\s*([^}]+)\}\}`),
	regexp.MustCompile(`\{\{output:\s*([^}]+)\}\}`),
	regexp.MustCompile(`\{\{input:\s*([^}]+)\}\}`),
}

func expandByPasses(text string, find func(string) (Output, bool)) string {
	for _, pass := range passes {
		text = pass.ReplaceAllStringFunc(text, func(match string) string {
			name := pass.FindStringSubmatch(match)[1]
			out, _ := find(name)
			return `--- Output from task "` + name + `" ---` + "\n" + string(out.Text) + "\n" + `--- End output from task "` + name + `" ---`
		})
	}
	return text
}

// prose returns n bytes in lines as people write them, with a list and a table now and then.
func prose(n int) string {
	const page = "The planner reads the issue, writes a plan, and the coder follows it step by step.\n" +
		"Every step names a file - and what to change in it; a step without a file is no step.\n\n" +
		"- read `main.go` [1], then the tests\n- write the code\n\n| file | lines |\n|------|-------|\n| a.go | 120   |\n\n"
	return strings.TrimSpace(strings.Repeat(page, n/len(page)+1)[:n-1]) + "."
}
