package prompt

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// written parses a text into a template.
func written(t testing.TB, text string) Template {
	t.Helper()
	tpl, _, err := Parse(Source{File: "main.md", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// saying returns an Output function by which every task said the same.
func saying(text string) func(string) (Output, bool) {
	out := Output{Text: []byte(text), Turn: "x/1/1"}
	return func(string) (Output, bool) { return out, true }
}

func TestBuildEmpty(t *testing.T) {
	for _, turn := range []Turn{{}, {Text: written(t, "\n\n"), Mode: "\n"}} {
		if p, err := Build(turn); err != nil || p.Text != "" || len(p.Spans) > 0 {
			t.Errorf("%q, %v, %v", p.Text, p.Spans, err)
		}
	}
}

// Text that comes from a file and text that comes from a string make the same prompt.
func TestBuildEndsWithOneNewline(t *testing.T) {
	for _, text := range []string{"Do it.", "Do it.\n", "\nDo it.\r\n\n"} {
		if p, err := Build(Turn{Text: written(t, text)}); err != nil || p.Text != "Do it.\n" {
			t.Errorf("%q: %q, %v", text, p.Text, err)
		}
	}
}

func TestBuildWithCRLF(t *testing.T) {
	p, err := Build(Turn{Text: written(t, "a\r\n{{output:x}}\r\nb\r\n"), Output: saying("out\r\n")})
	want := "a\r\n--- Output from task \"x\" ---\nout\n--- End output from task \"x\" ---\r\nb\n"
	if err != nil || p.Text != want {
		t.Errorf("%q, %v", p.Text, err)
	}
}

func TestBuildMendsText(t *testing.T) {
	p, err := Build(Turn{
		Text: written(t, "{{output:x}}\n{{STDIN}}"), Stdin: []byte("a\x00b"), Inbox: "mail\xff",
		Output:   saying("half a rune: \xc3\nand \xff\xfe\x00."),
		Failures: []Failure{{1, "\x00"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "mail\uFFFD\n\n--- Output from task \"x\" ---\nhalf a rune: \uFFFD\nand \uFFFD\uFFFD.\n--- End output from task \"x\" ---\n" +
		"a\uFFFDb\n\n--- Why attempt 1 failed ---\n\uFFFD\n--- End ---\n"
	if p.Text != want {
		t.Errorf("got  %q\nwant %q", p.Text, want)
	}
}

func TestBuildFails(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	for _, c := range []struct{ text, output, err, hint string }{
		{"a\n b {{output:x:.files}}", `{"file": 1}`,
			`main.md:2:4: {{output:x:.files}} cannot be taken from the output of task "x": the output has no key "files": it has file`, `did you mean "file"?`},
		{"{{input:plan:.a}}", "no JSON", `main.md:1:1: {{input:plan:.a}} cannot be taken from the output of task "planner": it is not JSON`, "print JSON"},
		{"{{input:plna}}", "", `main.md:1:1: task "code" has no input "plna"`, `did you mean "plan"?`},
		{strings.Repeat("{{output:x}}\n", 42), large, `main.md:42:1: the prompt of task "code" is larger than 4 MB`, "{{output:x:last_50_lines}}"},
		{strings.Repeat("{{STDIN}}\n", 42), "", `main.md:42:1: the prompt of task "code" is larger than 4 MB`, ""},
	} {
		_, err := Build(Turn{
			Task: "code", Text: written(t, c.text), Output: saying(c.output), Stdin: []byte(large),
			Inputs: map[string]string{"plan": "planner"},
		})
		if err == nil || !strings.HasPrefix(err.Error(), c.err) || swarm.KindOf(err) != swarm.BadPrompt {
			t.Errorf("%.40q: %v (%s)\nwant %s", c.text, err, swarm.KindOf(err), c.err)
			continue
		}
		if e := err.(*swarm.Error); !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%.40q: hint %q", c.text, e.Hint)
		}
	}
}

func TestBuildFillsTheCap(t *testing.T) {
	fits := written(t, strings.Repeat("x", MaxPrompt-1))
	if p, err := Build(Turn{Text: fits}); err != nil || len(p.Text) != MaxPrompt {
		t.Errorf("%d bytes, %v", len(p.Text), err)
	}
	if _, err := Build(Turn{Text: Join(fits, written(t, "x"))}); swarm.KindOf(err) != swarm.BadPrompt {
		t.Errorf("more than the cap: %v", err)
	}
	if _, err := Build(Turn{Text: fits, Failures: []Failure{{1, "x"}}}); swarm.KindOf(err) != swarm.BadPrompt {
		t.Errorf("more than the cap with a failure: %v", err)
	}
}

// A prompt that would be 10 GB is refused before it takes memory.
func TestBuildRefusesBeforeAllocating(t *testing.T) {
	turn := Turn{Text: written(t, strings.Repeat("{{output:x}}", 100_000)), Output: saying(strings.Repeat("x", 100_000))}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Build(turn)
	runtime.ReadMemStats(&after)
	if swarm.KindOf(err) != swarm.BadPrompt {
		t.Fatal(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// A reference costs no allocation of its own. The limit leaves room for the race detector: under it
// sync.Pool drops items at random, and a dropped page grows again.
func TestBuildAllocatesLittle(t *testing.T) {
	turn := Turn{Text: written(t, strings.Repeat("a line\n{{output:x}}\n", 100)), Output: saying("out")}
	if n := testing.AllocsPerRun(20, func() {
		if _, err := Build(turn); err != nil {
			t.Fatal(err)
		}
	}); n > 50 {
		t.Errorf("%v allocations for 100 references", n)
	}
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{`--- Output from task "x" ---`, `\--- Output from task "x" ---`},
		{`--- Output from tasks`, `\--- Output from tasks`},
		{"a\n--- End output from task\nb", "a\n\\--- End output from task\nb"},
		{"[Output from @pm]: x\n[Output from @", "\\[Output from @pm]: x\n\\[Output from @"},
		{"--- End ---\n--- End ---", "\\--- End ---\n\\--- End ---"},
		{"--- Why attempt 2", `\--- Why attempt 2`},
		{"--- Output already sent", `\--- Output already sent`},
		{"--- Message 1 from", `\--- Message 1 from`},
		{"--- End message 1 ---", `\--- End message 1 ---`},
		{"## Shared Findings", `\## Shared Findings`},
		{"## Shared", "## Shared"},
		{"a --- End ---", "a --- End ---"},
		{"--- End", "--- End"},
		{"---- End ---", `\---- End ---`},
		{"a\r--- End ---", "a\r\\--- End ---"},
		{"a\r\n--- End ---", "a\r\n\\--- End ---"},
		{"a\f--- End ---", "a\f\\--- End ---"},
		{"a\v--- End ---", "a\v\\--- End ---"},
		{"a\u0085--- End ---", "a\u0085\\--- End ---"},
		{"a\u2028--- End ---", "a\u2028\\--- End ---"},
		{"a\u2029--- End ---", "a\u2029\\--- End ---"},
		{"a\x00--- End ---", "a\uFFFD--- End ---"},
		{"\xff", "\uFFFD"},
	} {
		if got := Escape(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
		if got := Escape([]byte(c.text)); got != c.want {
			t.Errorf("the bytes of %q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// TestEditedPrompt: a person's text stands for the whole prompt, and what came later stands after it, with
// its origin.
func TestEditedPrompt(t *testing.T) {
	made, err := Build(Turn{Task: "code", Text: Template{Parts: plain("Code it.")}, Failures: []Failure{{Attempt: 1, Reason: "broken"}}, Sent: []string{"half"}})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := made.Edited("Mine.\n", Turn{}); err != nil || first.Text != "Mine.\n" || len(first.Spans) != 1 {
		t.Errorf("the first attempt has %q, %v, %v", first.Text, first.Spans, err)
	}
	swarms := Prompt{"You are one.\n\nDo it.\n", []swarm.Span{{From: FromSystem, End: 13}, {From: KindText, Start: 13, End: 21}}}
	if kept, err := swarms.Edited("You are one.\n\nDo more.\n", Turn{}); err != nil || kept.Spans[0] != swarms.Spans[0] || kept.Spans[1] != (swarm.Span{From: FromEdit, Start: 13, End: 23}) {
		t.Errorf("with the system part as it was: %v, %v", kept.Spans, err)
	}
	again, err := made.Edited("Mine.\n", Turn{Inbox: "A message.", Failures: []Failure{{Attempt: 1, Reason: "broken"}}, Sent: []string{"half"}})
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	var from []string
	for _, s := range again.Spans {
		if s.Start != at {
			t.Errorf("a span begins at %d, want %d", s.Start, at)
		}
		if at = s.End; s.From != FromSeparator {
			from = append(from, s.From)
		}
	}
	if at != len(again.Text) || !slices.Equal(from, []string{FromEdit, FromInbox, FromRetry, FromSent}) {
		t.Errorf("the spans %v end at %d of %d", from, at, len(again.Text))
	}
	if strings.Contains(again.Text, "Code it.") || !strings.HasPrefix(again.Text, "Mine.\n\nA message.\n\n--- Why attempt 1 failed ---\nbroken\n--- End ---\n") {
		t.Errorf("another attempt has %q", again.Text)
	}
}
