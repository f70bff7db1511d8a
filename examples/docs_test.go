package examples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"swarm"
)

// notRun is the number of blocks that a test cannot run, each with its reason in an HTML comment above it:
// <!-- not run: REASON -->
const notRun = 13

// A block is one piece of code in a document.
type block struct {
	page, heading, language, text string
	file                          string // the second word behind the fence: the block is this file of the page's folder
	notRun                        string // why no test can run it
	line                          int
}

// TestDocumentsRun runs every block of README.md and docs/ exactly as printed. The blocks of a page share
// one folder and one home, from the first to the last:
//   - sh: a script. testdata/docs/PAGE/HEADING.before.sh is what the reader has done before; of the second
//     script below a heading, HEADING-2.before.sh. HEADING.run.sh runs the block that it is given:
//     in a turn of an agent, or each line with a run of its own;
//   - repl: lines for `swarm run -`;
//   - yaml: a compose file or a part of one, for `swarm check`;
//   - json: JSON;
//   - any of them with the name of a file: that file, for the blocks below it.
//
// Blocks of other languages show what is printed. testdata/docs/PAGE/files is what the reader has, and
// testdata/docs/bin has stand-ins for programs of vendors.
func TestDocumentsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it runs every page")
	}
	program(t) // built before the clocks of the pages start
	without := 0
	for _, document := range documents(t) {
		all := blocksOf(t, document)
		for _, b := range all {
			if b.notRun != "" {
				without++
			}
		}
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			runPage(t, all)
		})
	}
	if without != notRun {
		t.Errorf("%d blocks are marked as not run; the test says %d", without, notRun)
	}
}

// documents are the paths of README.md and the pages of docs/.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, "../README.md")
}

// port holds back pages that start a server: its port is printed in them.
var port sync.Mutex

func runPage(t *testing.T, all []block) {
	dir, home := t.TempDir(), t.TempDir()
	if len(all) == 0 {
		return
	}
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	prepared := filepath.Join(repository, "examples", "testdata", "docs", strings.TrimSuffix(filepath.Base(all[0].page), ".md"))
	if err := os.Symlink(filepath.Join(repository, "examples"), filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	if files := filepath.Join(prepared, "files"); exists(files) {
		if err := os.CopyFS(dir, os.DirFS(files)); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range all {
		if b.language == "sh" && strings.Contains(b.text, "swarm serve") {
			port.Lock()
			defer port.Unlock()
			defer endServers(t, home)
			break
		}
	}
	writeFiles(t, home, map[string]string{".curlrc": "fail\nsilent\nshow-error\n", ".gitconfig": "[user]\nname = Reader\nemail = reader@example.org\n"})
	env := append(os.Environ(), "HOME="+home, "SWARM_HOME=", "SWARM_PROGRAM="+program(t), "EDITOR=true", "PREPARED="+prepared,
		"PATH="+filepath.Join(repository, "examples", "testdata", "docs", "bin")+":"+os.Getenv("PATH"))
	run := func(b block, name string, args ...string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
		cmd.Stdin = strings.NewReader("")
		if b.language == "repl" {
			cmd.Stdin = strings.NewReader(b.text)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s:%d: %v\n%s\nthe block:\n%s", b.page, b.line, err, out, b.text)
		}
	}
	heading, scripts := "", 0
	for i, b := range all {
		if b.notRun != "" {
			continue
		}
		if b.heading != heading {
			heading, scripts = b.heading, 0
		}
		step := filepath.Join(prepared, slug(heading))
		if b.language == "sh" || b.language == "repl" {
			if scripts++; scripts > 1 {
				step += fmt.Sprintf("-%d", scripts)
			}
			if exists(step + ".before.sh") {
				run(b, "sh", "-ex", step+".before.sh")
			}
		}
		if b.file != "" {
			writeFiles(t, dir, map[string]string{b.file: b.text})
		}
		switch {
		case b.language == "json":
			if !json.Valid([]byte(b.text)) {
				t.Errorf("%s:%d: this is not JSON:\n%s", b.page, b.line, b.text)
			}
		case b.language == "yaml":
			checkBlock(t, b, env)
		case b.file != "" && !exists(step+".run.sh"):
		case b.language == "repl":
			run(b, program(t), "run", "-")
		case b.language == "sh", b.language == "bash":
			script := filepath.Join(home, fmt.Sprintf("%d.sh", i))
			if err := os.WriteFile(script, []byte(b.text), 0o700); err != nil {
				t.Fatal(err)
			}
			if exists(step + ".run.sh") {
				run(b, "sh", "-ex", step+".run.sh", script)
			} else {
				run(b, "sh", "-ex", script)
			}
		case b.language == "text", b.language == "console", b.language == "mermaid":
		default:
			t.Errorf("%s:%d: say in which language this block is: sh, repl, yaml, json, or text for what is printed", b.page, b.line)
		}
	}
}

var (
	top       = regexp.MustCompile(`(?m)^([a-z_]+):`)
	providers = regexp.MustCompile(`(?m)^providers: *(?:\n +|\{)([a-z0-9-]+):`)
)

// checkBlock gives a compose file to `swarm check`. A part of one gets what it lacks first: a provider and a
// task; and a list, which is a script of answers, the file that names it.
func checkBlock(t *testing.T, b block, env []string) {
	t.Helper()
	has := map[string]bool{}
	for _, key := range top.FindAllStringSubmatch(b.text, -1) {
		has[key[1]] = true
	}
	files := map[string]string{"swarm/swarm.yaml": b.text}
	if strings.HasPrefix(b.text, "- ") {
		files = map[string]string{"swarm/says.yaml": b.text, "swarm/swarm.yaml": "provider: scripted\nproviders: {scripted: {kind: script, script: says.yaml}}\ntasks: {plan: {prompt-string: x}}\n"}
	} else {
		if !has["tasks"] && !has["agents"] {
			files["swarm/swarm.yaml"] += "\ntasks: {wrapped: {prompt-string: x}}\n"
		}
		if !has["provider"] && !has["agents"] {
			provider := "claude-code"
			if declared := providers.FindStringSubmatch(b.text); declared != nil {
				provider = declared[1]
			}
			files["swarm/swarm.yaml"] += "\nprovider: " + provider + "\n"
		}
	}
	dir := t.TempDir()
	writeFiles(t, dir, files)
	for _, list := range inputs.FindAllStringSubmatch(b.text, -1) { // files that a task gets have to be there
		for _, input := range strings.Split(list[1], ", ") {
			writeFiles(t, dir, map[string]string{input: ""})
		}
	}
	cmd := exec.Command(program(t), "check")
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s:%d: swarm check: %v\n%s\n%s", b.page, b.line, err, out, files["swarm/swarm.yaml"])
	}
}

// endServers ends what the stand-in for `swarm serve` has started, and returns when the port is free.
func endServers(t *testing.T, home string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "servers"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if server, err := os.FindProcess(pid); err == nil {
			_ = server.Kill()
		}
	}
	for {
		listening, err := net.Listen("tcp", "127.0.0.1:7777")
		if err == nil {
			listening.Close()
			return
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// slug is a heading as a part of a file's name.
func slug(heading string) string {
	return strings.Trim(notWord.ReplaceAllString(strings.ToLower(heading), "-"), "-")
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

// blocks are the texts of a document's blocks in a language.
func blocks(t *testing.T, document, language string) []string {
	t.Helper()
	var all []string
	for _, b := range blocksOf(t, document) {
		if b.language == language {
			all = append(all, b.text)
		}
	}
	return all
}

var (
	fence   = regexp.MustCompile("^( *)```([a-z]*)(?: ([^ ]+))?$")
	comment = regexp.MustCompile(`^ *<!-- not run: (.+) -->$`)
)

// blocksOf are the blocks of a document, in their order.
func blocksOf(t *testing.T, document string) []block {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	var now *block
	heading, before, indent := "", "", ""
	for i, line := range strings.Split(string(text), "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case now != nil && mark != nil:
			all = append(all, *now)
			now, before = nil, ""
		case now != nil:
			now.text += strings.TrimPrefix(line, indent) + "\n"
		case mark != nil:
			indent = mark[1]
			now = &block{page: document, heading: heading, language: mark[2], file: mark[3], line: i + 1}
			if reason := comment.FindStringSubmatch(before); reason != nil {
				now.notRun = reason[1]
			}
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
			before = line
		case line != "":
			before = line
		}
	}
	if now != nil {
		t.Fatalf("%s:%d: this block does not end", document, now.line)
	}
	return all
}

// TestDocumentsAreWrapped: documents are read in terminals and in diffs. Tables, and what a program prints, are as wide as
// they are.
func TestDocumentsAreWrapped(t *testing.T) {
	const most = 100
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		code, printed := false, false
		for i, line := range strings.Split(string(text), "\n") {
			if mark := fence.FindStringSubmatch(line); mark != nil {
				code = !code
				printed = code && (mark[2] == "text" || mark[2] == "console")
			}
			if n := utf8.RuneCountInString(line); n > most && !printed && !strings.HasPrefix(strings.TrimLeft(line, " "), "|") {
				t.Errorf("%s:%d has %d columns; wrap it at %d", document, i+1, n, most)
			}
		}
	}
}

// TestChangelog: each version lists what was added, changed and fixed, in this order, in lines of at most
// 120 columns.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	versions, last := 0, ""
	for i, line := range strings.Split(string(text), "\n") {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("CHANGELOG.md:%d has %d columns; wrap it at 120", i+1, n)
		}
		if strings.HasPrefix(line, "## ") {
			versions, last = versions+1, ""
		}
		if kind, ok := strings.CutPrefix(line, "### "); ok {
			if kind <= last || kind != "Added" && kind != "Changed" && kind != "Fixed" {
				t.Errorf("CHANGELOG.md:%d: %s after %s; the order is Added, Changed, Fixed", i+1, kind, last)
			}
			last = kind
		}
	}
	if versions < 2 || !strings.Contains(string(text), "\n## [0.1.0] - ") {
		t.Error("CHANGELOG.md has no section for v0.1.0")
	}
}

var (
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchor = regexp.MustCompile(`[^\pL\pN_\- ]`)
)

// TestDocumentLinks: a link in a document leads to a file that is there, and to a heading that it has.
func TestDocumentLinks(t *testing.T) {
	headings := func(document string) map[string]bool {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		all, code := map[string]bool{}, false
		for _, line := range strings.Split(string(text), "\n") {
			if fence.MatchString(line) {
				code = !code
			}
			if !code && strings.HasPrefix(line, "#") {
				words := notInAnchor.ReplaceAllString(strings.ToLower(strings.Trim(line, "# ")), "")
				all[strings.ReplaceAll(words, " ", "-")] = true
			}
		}
		return all
	}
	for _, document := range append(documents(t), "../CHANGELOG.md", "../ARCHITECTURE.md", "../CONTRIBUTING.md", "README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			file, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			to := document
			if file != "" {
				to = filepath.Join(filepath.Dir(document), file)
			}
			if !exists(to) {
				t.Errorf("%s: %s is not there", document, found[1])
			} else if heading != "" && strings.HasSuffix(to, ".md") && !headings(to)[heading] {
				t.Errorf("%s: %s has no such heading", document, found[1])
			}
		}
	}
}
