package examples_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm"
)

// compose matches a block that is a whole compose file; the others are fragments.
var compose = regexp.MustCompile(`(?m)^(agents|tasks):`)

// TestFilesInDocumentsAreGood: every compose file that a document shows can be copied as it is.
func TestFilesInDocumentsAreGood(t *testing.T) {
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, document := range append(documents, "../README.md") {
		for i, file := range blocks(t, document, "yaml") {
			if !compose.MatchString(file) {
				continue
			}
			checked++
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(document), i+1), func(t *testing.T) {
				dir := t.TempDir()
				if err := os.Mkdir(filepath.Join(dir, "swarm"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "swarm", "swarm.yaml"), []byte(file), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, list := range inputs.FindAllStringSubmatch(file, -1) { // files that a task gets have to be there
					for _, input := range strings.Split(list[1], ", ") {
						if err := os.WriteFile(filepath.Join(dir, input), nil, 0o600); err != nil {
							t.Fatal(err)
						}
					}
				}
				if out, err := command(t, dir, "check").CombinedOutput(); err != nil {
					t.Errorf("swarm check: %v\n%s\n%s", err, out, file)
				}
			})
		}
	}
	if checked < 5 {
		t.Errorf("only %d files were found in the documents", checked)
	}
}

var (
	called = regexp.MustCompile(`(?m)(?:^|\| )swarm ([a-z-]+)([^#\n]*)`)
	flag   = regexp.MustCompile(`(?:^|\s)(--?[a-z][a-z0-9-]*)`)
	listed = regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`)
	inputs = regexp.MustCompile(`(?m)^ +files: \[(.*)\]`)
)

// TestDocumentedCommandsExist: every command and flag in the documents is there, and every command is in the documents.
func TestDocumentedCommandsExist(t *testing.T) {
	dir := t.TempDir()
	help := func(of ...string) string {
		out, err := command(t, dir, append(of, "--help")...).CombinedOutput()
		if err != nil {
			t.Errorf("swarm %s --help: %v\n%s", strings.Join(of, " "), err, out)
		}
		return string(out)
	}
	all := map[string]string{"help": ""} // it helps itself
	for _, name := range listed.FindAllStringSubmatch(help(), -1) {
		if name[1] != "help" {
			all[name[1]] = help(name[1])
		}
	}
	seen := map[string]bool{"help": true}
	for _, document := range []string{"../README.md", "../docs/commands.md"} {
		for _, block := range blocks(t, document, "sh") {
			for _, call := range called.FindAllStringSubmatch(block, -1) {
				name, rest := call[1], call[2]
				text, ok := all[name]
				if !ok {
					t.Errorf("%s: there is no command %s", document, name)
					continue
				}
				seen[name] = true
				rest, _, _ = strings.Cut(rest, " '") // a text that is given
				if words := strings.Fields(rest); len(words) > 0 && regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(words[0])+` +[A-Z]`).MatchString(text) {
					text = help(name, words[0])
				}
				for _, f := range flag.FindAllStringSubmatch(rest, -1) {
					if !regexp.MustCompile(`(?m)[\s,]` + f[1] + `([\s,]|$)`).MatchString(text) {
						t.Errorf("%s: swarm %s has no flag %s", document, name, f[1])
					}
				}
			}
		}
	}
	for name := range all {
		if !seen[name] {
			t.Errorf("docs/commands.md has no example of swarm %s", name)
		}
	}
}

// TestEventKindsAreDocumented: a program that reads events finds each kind in the table.
func TestEventKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range swarm.EventKinds {
		if !strings.Contains(string(text), "`"+string(kind)+"`") {
			t.Errorf("docs/runs.md does not tell of %s", kind)
		}
	}
}

// blocks are the pieces of a document that are written in a language.
func blocks(t *testing.T, document, language string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, piece := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(piece, "```")
		all = append(all, block)
	}
	return all
}

// TestDocumentsAreWrapped: prose is read in terminals and in diffs. Code and tables are as wide as they are.
func TestDocumentsAreWrapped(t *testing.T) {
	const most = 100
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			start := strings.TrimLeft(line, " ")
			fence := strings.HasPrefix(start, "```")
			code = code != fence
			if n := utf8.RuneCountInString(line); n > most && !code && !strings.HasPrefix(start, "|") {
				t.Errorf("%s:%d has %d columns; wrap it at %d", document, i+1, n, most)
			}
		}
	}
}
