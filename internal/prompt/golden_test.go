package prompt

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the goldens anew")

// Each file in testdata holds one turn, then its prompt, then the spans of the prompt.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			written, files := split(string(data))
			p, err := Build(goldenTurn(t, files))
			if err != nil {
				t.Fatal(err)
			}
			checkSpans(t, p)
			got := written + "-- prompt --\n" + p.Text + "-- spans --\n" + table(p)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(data, []byte(got)) {
				t.Errorf("the prompt is another one:\n%s", got)
			}
		})
	}
}

type file struct{ name, text string }

// split splits a golden file at lines like `-- name --`. written is the text before the prompt.
func split(golden string) (written string, files []file) {
	for line := range strings.Lines(golden) {
		name, ok := strings.CutPrefix(line, "-- ")
		if name, ok2 := strings.CutSuffix(name, " --\n"); ok && ok2 {
			if name == "prompt" {
				break
			}
			files = append(files, file{name: name})
		} else if n := len(files); n > 0 {
			files[n-1].text += line
		}
		written += line
	}
	return written, files
}

func goldenTurn(t *testing.T, files []file) Turn {
	turn := Turn{Inputs: map[string]string{}}
	included, outputs := folder{}, map[string]Output{}
	var text []Template
	parse := func(f file) Template {
		tpl, _, err := Parse(Source{File: f.name, Text: []byte(f.text)}, included.include)
		if err != nil {
			t.Fatal(err)
		}
		return tpl
	}
	for _, f := range files {
		kind, name, _ := strings.Cut(f.name, " ")
		switch kind {
		case "ids":
			if _, err := fmt.Sscan(f.text, &turn.Task, &turn.Agent, &turn.Iteration, &turn.Of); err != nil {
				t.Fatal(err)
			}
		case "include":
			included[name] = f.text
		case "role":
			turn.Role = parse(file{name, f.text})
		case "mode":
			turn.Mode = f.text
		case "pack":
			turn.Packs = append(turn.Packs, Pack{Refs: name, Text: f.text})
		case "inbox":
			turn.Inbox = f.text
		case "text":
			text = append(text, parse(file{name, f.text}))
		case "output":
			outputs[name] = Output{Text: []byte(f.text), Turn: name + "/1/1"}
		case "input":
			turn.Inputs[name] = strings.TrimSpace(f.text)
		case "stdin":
			turn.Stdin = []byte(f.text)
		case "failure":
			attempt, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			turn.Failures = append(turn.Failures, Failure{attempt, f.text})
		case "sent":
			turn.Sent = append(turn.Sent, f.text)
		default:
			t.Fatalf("unknown file %q", f.name)
		}
	}
	turn.Text = Join(text...)
	turn.Output = func(task string) (Output, bool) { o, ok := outputs[task]; return o, ok }
	return turn
}

// table writes spans, each with the bytes that it covers.
func table(p Prompt) string {
	var b strings.Builder
	for _, s := range p.Spans {
		origin := strings.Join(strings.Fields(s.From+" "+s.Name+" "+string(s.Turn)), " ")
		fmt.Fprintf(&b, "%4d %4d %-32s %s\n", s.Start, s.End, origin, ends(p.Text[s.Start:s.End]))
	}
	return b.String()
}

// ends quotes a text. A long text loses its middle.
func ends(text string) string {
	if len(text) > 50 {
		return fmt.Sprintf("%q … %q", text[:20], text[len(text)-20:])
	}
	return strconv.Quote(text)
}

// checkSpans checks that the spans cover the whole prompt in order, and that no span could be
// merged with the one before it.
func checkSpans(t *testing.T, p Prompt) {
	t.Helper()
	at := 0
	for i, s := range p.Spans {
		if s.Start != at || s.End <= s.Start {
			t.Fatalf("span %d goes from %d to %d, the one before it ends at %d", i, s.Start, s.End, at)
		}
		if i > 0 {
			if b := p.Spans[i-1]; b.From == s.From && b.Name == s.Name && b.Turn == s.Turn {
				t.Fatalf("spans %d and %d are of the same origin: %+v", i-1, i, s)
			}
		}
		at = s.End
	}
	if at != len(p.Text) {
		t.Fatalf("the spans end at %d, the prompt at %d", at, len(p.Text))
	}
}
