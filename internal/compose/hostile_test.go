package compose

import (
	"fmt"
	"strings"
	"testing"

	"swarm/internal/yamlfile"
)

// hostile are files that would cost a careless reader much time or memory.
func hostile() map[string]string {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	var pipelines strings.Builder
	pipelines.WriteString("provider: codex\ntasks:\n")
	for i := range 5000 {
		fmt.Fprintf(&pipelines, "  t%d: {prompt-string: x}\n", i)
	}
	pipelines.WriteString("pipelines:\n")
	for i := range 5000 {
		fmt.Fprintf(&pipelines, "  p%d: {tasks: [t%d]}\n", i, i%5000)
	}
	dense := "provider: codex\ntasks:\n"
	for i := range 500 {
		dense += fmt.Sprintf("  t%d: {prompt-string: x, depends_on: [%s]}\n", i, strings.Join(names("t", max(0, i-100), i), ", "))
	}
	return map[string]string{
		"open brackets":     strings.Repeat("[", yamlfile.MaxFile),
		"nested dashes":     strings.Repeat("- ", yamlfile.MaxFile/2),
		"dashes":            strings.Repeat("-\n", yamlfile.MaxFile/2),
		"commas":            "[" + strings.Repeat(",", yamlfile.MaxFile-1),
		"one-line list":     "[" + strings.Repeat("a,", 19_000) + "]",
		"one-line lists":    strings.Repeat("["+strings.Repeat("a,", 15_000)+"]\n", 20),
		"keys":              strings.Repeat("a: b\n", yamlfile.MaxFile/5),
		"question marks":    strings.Repeat("? ", yamlfile.MaxFile/2),
		"comments":          strings.Repeat("#\n", yamlfile.MaxFile/16),
		"words":             "a: " + strings.Repeat("x ", yamlfile.MaxFile/16),
		"alias bomb":        bomb,
		"many pipelines":    pipelines.String(),
		"many dependencies": dense,
		"many roots":        strings.Repeat("---\n", yamlfile.MaxFile/4),
		"one key":           strings.Repeat("k", yamlfile.MaxFile/8) + ": 1",
		"too large":         strings.Repeat(" ", yamlfile.MaxFile+1),
	}
}

func names(prefix string, from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

// TestHostile checks that each gets one readable message.
func TestHostile(t *testing.T) {
	for name, src := range hostile() {
		t.Run(name, func(t *testing.T) {
			errs, _ := Check(Options{File: "swarm.yaml", Source: []byte(src), Dir: "/here"})
			_, err := Compile(Options{File: "swarm.yaml", Source: []byte(src), Dir: "/here"})
			if good := strings.HasPrefix(name, "many ") && name != "many roots"; good != (len(errs) == 0) {
				t.Fatalf("%v", errs)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestEnoughErrors: a file with an error in every line is not read to its end.
func TestEnoughErrors(t *testing.T) {
	src := "tasks:\n" + strings.Repeat(" ", 2) + strings.Join(names("t", 0, 50_000), ": 1\n  ") + ": 1\n"
	c := newCompiler(Options{File: "swarm.yaml", Source: []byte(src)})
	if c.read(); len(c.file.Tasks.entries) > 2*maxProblems {
		t.Errorf("%d tasks were read", len(c.file.Tasks.entries))
	}
	errs, _ := Check(c.o)
	if n := len(errs); n != maxProblems+1 || errs[n-1].Msg != "and more errors" {
		t.Errorf("%d errors, the last: %v", n, errs[n-1])
	}
}

// TestLongCycleStaysReadable: a cycle through thousands of tasks is one line of bearable length.
func TestLongCycleStaysReadable(t *testing.T) {
	src := "provider: codex\ntasks:\n"
	const n = 5000
	for i := range n {
		src += fmt.Sprintf("  t%d: {prompt-string: x, depends_on: [t%d]}\n", i, (i+1)%n)
	}
	_, err := Compile(Options{File: "swarm.yaml", Source: []byte(src)})
	if err == nil || !strings.Contains(err.Error(), "swarm.yaml:3:3: dependency cycle: t0 → t1 → ") || !strings.HasSuffix(err.Error(), "… 4900 more … → t0") {
		t.Fatal(err)
	}
}
