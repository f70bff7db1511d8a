package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/schema"
)

// A desk is an agent with its box and its folder, beside a folder that it must not reach.
type desk struct {
	*testing.T
	box     *Box
	root    string
	outside string
}

const canary = "canary-of-the-neighbour"

func sit(t *testing.T, allow ...string) *desk {
	t.Helper()
	top := t.TempDir()
	d := &desk{T: t, root: filepath.Join(top, "desk"), outside: filepath.Join(top, "outside")}
	for _, dir := range []string{d.root, d.outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.file(filepath.Join(d.outside, "secret.txt"), canary)
	d.open(Options{Allow: allow})
	return d
}

func (d *desk) open(o Options) {
	d.Helper()
	if o.Root == "" {
		o.Root = d.root
	}
	o.Run, o.Agent, o.Grace = "run-of-test", "coder", 100*time.Millisecond
	var err error
	if d.box, err = Open(o); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) file(path, text string) {
	d.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.root, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.Fatal(err)
	}
}

// call calls a tool with pairs of names and values.
func (d *desk) call(tool string, pairs ...any) (string, error) {
	d.Helper()
	args := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		args[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(args)
	if err != nil {
		d.Fatal(err)
	}
	return d.box.Call(d.Context(), tool, text)
}

// must calls a tool that must succeed.
func (d *desk) must(tool string, pairs ...any) string {
	d.Helper()
	text, err := d.call(tool, pairs...)
	if err != nil {
		d.Fatalf("%s %v: %v", tool, pairs, err)
	}
	return text
}

// refused calls a tool that must be refused with this kind, and returns the message.
func (d *desk) refused(kind swarm.ErrorKind, tool string, pairs ...any) string {
	d.Helper()
	text, err := d.call(tool, pairs...)
	var e *swarm.Error
	if !errors.As(err, &e) || e.Kind != kind || strings.Contains(err.Error(), canary) {
		d.Errorf("%s %v: %.100q, %v (%v)", tool, pairs, text, err, swarm.KindOf(err))
		return ""
	}
	return e.Error() + "\n" + e.Hint
}

func TestReadAndWrite(t *testing.T) {
	d := sit(t, "file_read", "file_write")
	if got := d.must("file_write", "path", "a/b/c.txt", "content", "héllo\n"); got != "wrote 7 bytes to a/b/c.txt" {
		t.Error(got)
	}
	for _, path := range []string{"a/b/c.txt", "./a/b/../b/c.txt", filepath.Join(d.root, "a/b/c.txt")} {
		if got := d.must("file_read", "path", path); got != "héllo\n" {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got := d.must("file_read", "path", "a/b/c.txt", "max", 2); got != "h\n[bytes 0 to 1 of 7; read on with offset 1]" {
		t.Errorf("%q", got) // é does not fit
	}
	if got := d.must("file_read", "path", "a/b/c.txt", "offset", 2); got != "llo\n[bytes 3 to 7 of 7]" {
		t.Errorf("%q", got) // begins in the middle of é
	}
	d.file("empty", "")
	if got := d.must("file_read", "path", "empty"); got != "" {
		t.Errorf("%q", got)
	}
	if err := os.Chmod(filepath.Join(d.root, "a/b/c.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	d.must("file_write", "path", "a/b/c.txt", "content", "new")
	info, _ := os.Stat(filepath.Join(d.root, "a/b/c.txt"))
	if got := d.must("file_read", "path", "a/b/c.txt"); got != "new" || info.Mode().Perm() != 0o750 {
		t.Errorf("%q %v", got, info.Mode())
	}
	if entries, _ := os.ReadDir(filepath.Join(d.root, "a/b")); len(entries) != 1 {
		t.Errorf("something was left: %v", entries)
	}
}

func TestReadLarge(t *testing.T) {
	d := sit(t, "file_read")
	d.file("large", strings.Repeat("0123456789", 100_000))
	var all strings.Builder
	for all.Len() < 1_000_000 {
		got := d.must("file_read", "path", "large", "offset", all.Len(), "max", 10<<20)
		text, note, found := strings.Cut(got, "\n[bytes ")
		if !found || len(text) == 0 || len(text) > maxRead {
			t.Fatalf("%d bytes, %.40q", len(text), note)
		}
		all.WriteString(text)
	}
	if all.Len() != 1_000_000 {
		t.Errorf("%d bytes", all.Len())
	}
	if got := d.refused(swarm.BadInput, "file_read", "path", "large", "offset", 1_000_000); !strings.Contains(got, "nothing after") {
		t.Error(got)
	}
	d.file("binary", "\x7fELF\x00\x01")
	d.file("latin", "caf\xe9")
	for _, path := range []string{"binary", "latin"} {
		if got := d.refused(swarm.BadInput, "file_read", "path", path); !strings.Contains(got, "binary file of") {
			t.Error(got)
		}
	}
}

// A text that is read in pieces of any size is complete.
func FuzzShown(f *testing.F) {
	f.Add("héllo\nwörld\n", 4)
	f.Add("€€€", 5)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < utf8.UTFMax || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		for from := 0; from < len(text); {
			end := min(len(text), from+most)
			got, err := formatPiece("f", []byte(text[from:end]), int64(from), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			_, note, cut := strings.Cut(got[strings.LastIndexByte(got, '\n')+1:], "read on with offset ")
			next := len(text)
			if cut {
				if _, err := fmt.Sscanf(note, "%d]", &next); err != nil || next <= from || next > end {
					t.Fatalf("after %d comes %q", from, note)
				}
			}
			if piece := text[from:next]; !strings.HasPrefix(got, strings.TrimSuffix(piece, "\n")) {
				t.Fatalf("%q is shown as %q", piece, got)
			}
			if !cut {
				return
			}
			from = next
		}
	})
}

func TestBadArguments(t *testing.T) {
	d := sit(t, "file_read", "file_write", "file_list", "command(true)", "web_fetch(example.org)")
	for tool, all := range map[string][]string{
		"file_read":  {`{}`, `{"path":7}`, `{"path":"a","ofset":1}`, `[]`, `"a"`, `{"path":"a"} x`, `{"path":"a","offset":-1}`, `{`},
		"file_write": {`{"path":"a"}`, `{"content":"a"}`, `{"path":"a/","content":""}`, `{"path":".","content":""}`, `{"path":"a","content":null}`},
		"file_list":  {`{"depth":-1}`, `{"depth":1000}`, `{"depth":"1"}`},
		"command":    {`{}`, `{"argv":[]}`, `{"argv":[""]}`, `{"argv":"true"}`, `{"argv":["true","\u0000"]}`},
		"web_fetch":  {`{}`, `{"url":"example.org"}`, `{"url":"://"}`, `{"url":"file:///etc/passwd"}`, `{"url":"http://u:p@example.org/"}`},
	} {
		for _, args := range all {
			text, err := d.box.Call(t.Context(), tool, json.RawMessage(args))
			if swarm.KindOf(err) != swarm.BadInput {
				t.Errorf("%s %s: %q, %v", tool, args, text, err)
			}
		}
	}
	if entries, _ := os.ReadDir(d.root); len(entries) != 0 {
		t.Errorf("something was written: %v", entries)
	}
}

// No file outside of the folder is read, written or listed, however it is named.
func TestEscapes(t *testing.T) {
	d := sit(t, "file_read", "file_write", "file_list")
	secret := filepath.Join(d.outside, "secret.txt")
	for name, to := range map[string]string{
		"link": secret, "up": "../outside", "dir": d.outside, "proc": "/proc/self/environ", "procroot": "/proc/self/root", "loop": "loop",
		"chain": "up/secret.txt", "null": "/dev/null",
	} {
		if err := os.Symlink(to, filepath.Join(d.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"../outside/secret.txt", secret, "link", "up/secret.txt", "dir/secret.txt", "chain", "a/../../outside/secret.txt", "./../outside/secret.txt",
		"/etc/passwd", "/proc/self/environ", "proc", "procroot/etc/passwd", "/proc/self/cwd/../secret", "null", "/dev/zero", "..", "loop",
		d.root + "/../outside/secret.txt", d.root + "x", strings.ToUpper(d.root) + "/a", "a\x00b", "//etc/passwd", "~/.ssh/id_rsa", "file:///etc/passwd",
		"..\\outside\\secret.txt", "%2e%2e/outside/secret.txt", "\u2025/outside/secret.txt",
	} {
		if text, err := d.call("file_read", "path", path); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("read %s: %.60q, %v", path, text, err)
		}
		if strings.Contains(path, "..\\") || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "%") || strings.HasPrefix(path, "\u2025") || strings.HasPrefix(path, "file:") {
			continue // odd names, but names of files in the folder
		}
		if text, err := d.call("file_write", "path", path, "content", "x"); err == nil {
			t.Errorf("wrote %s: %s", path, text)
		}
		if text, err := d.call("file_list", "path", path); err == nil {
			t.Errorf("listed %s: %.60q", path, text)
		}
	}
	if got, _ := os.ReadFile(secret); string(got) != canary {
		t.Errorf("the neighbour's file holds %q", got)
	}
	if entries, _ := os.ReadDir(d.outside); len(entries) != 1 {
		t.Errorf("the neighbour has %v", entries)
	}
	if got := d.must("file_list", "depth", 5); strings.Contains(got, "secret") || !strings.Contains(got, "up (link)") {
		t.Error(got)
	}
}

// Special files are not opened: a pipe would block, and a device may have effects.
func TestNotFiles(t *testing.T) {
	d := sit(t, "file_read", "file_write", "file_list")
	if err := syscall.Mkfifo(filepath.Join(d.root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // 1:5 is /dev/zero
		if err := syscall.Mknod(filepath.Join(d.root, "zero"), syscall.S_IFCHR|0o644, 1<<8|5); err == nil {
			d.refused(swarm.Denied, "file_read", "path", "zero")
			d.refused(swarm.Denied, "file_write", "path", "zero", "content", "x")
		}
	}
	if got := d.refused(swarm.Denied, "file_read", "path", "pipe"); !strings.Contains(got, "a pipe") {
		t.Error(got)
	}
	d.refused(swarm.Denied, "file_write", "path", "pipe", "content", "x")
	d.refused(swarm.BadInput, "file_list", "path", "pipe")
	d.refused(swarm.BadInput, "file_read", "path", ".")
	d.refused(swarm.NotFound, "file_read", "path", "nothing")
	d.file("dir/file", "x")
	d.refused(swarm.BadInput, "file_write", "path", "dir", "content", "x")
	d.refused(swarm.BadInput, "file_list", "path", "dir/file")
	if _, err := d.call("file_write", "path", "dir/file/below", "content", "x"); err == nil {
		t.Error("a file became a folder")
	}
	if got := d.must("file_list"); !strings.Contains(got, "pipe (not a file)") {
		t.Error(got)
	}
}

// A link that stays in the folder is followed for reading.
func TestLinksInside(t *testing.T) {
	d := sit(t, "file_read", "file_write")
	d.file("a/file", "inside")
	if err := os.Symlink("a/file", filepath.Join(d.root, "link")); err != nil {
		t.Fatal(err)
	}
	if got := d.must("file_read", "path", "link"); got != "inside" {
		t.Error(got)
	}
	if got := d.refused(swarm.Denied, "file_write", "path", "link", "content", "x"); !strings.Contains(got, "what it leads to") {
		t.Error(got)
	}
}

func TestList(t *testing.T) {
	d := sit(t, "file_list")
	if got := d.must("file_list"); got != "(empty)" {
		t.Error(got)
	}
	d.file("b.txt", "12345")
	d.file("a/deep/er.txt", "1")
	d.file("a/x\ny", "")
	if got, want := d.must("file_list"), "a/\nb.txt 5"; got != want {
		t.Errorf("%q", got)
	}
	if got, want := d.must("file_list", "depth", 3), "a/\nb.txt 5\na/deep/\na/x\uFFFDy 0\na/deep/er.txt 1"; got != want {
		t.Errorf("%q", got)
	}
	if got := d.must("file_list", "path", "a/deep"); got != "a/deep/er.txt 1" {
		t.Errorf("%q", got)
	}
	for i := range 2100 {
		d.file(filepath.Join("many", strings.Repeat("x", 1+i/100)+string(rune('a'+i%26))+strings.Repeat("y", i%100)), "")
	}
	got := strings.Split(d.must("file_list", "path", "many"), "\n")
	if len(got) != maxListed+1 || !strings.HasPrefix(got[maxListed], "[2000 entries are shown, at least 100 were left out") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}

// Files that the root lacks are read from the folder below it. Nothing there is written, and no new
// file stands before one of them.
func TestBelow(t *testing.T) {
	d := sit(t)
	below := filepath.Join(filepath.Dir(d.root), "below")
	d.file(filepath.Join(below, "docs/a.md"), "theirs")
	d.file(filepath.Join(below, "both.md"), "theirs")
	d.file(filepath.Join(below, "state/token"), canary)
	d.file("both.md", "own")
	d.file("docs/own.md", "own")
	for link, to := range map[string]string{"out": d.outside, "in": "docs/a.md"} {
		if err := os.Symlink(to, filepath.Join(below, link)); err != nil {
			t.Fatal(err)
		}
	}
	d.open(Options{Allow: []string{"file_read", "file_write", "file_list"}, Report: "coder-report.md",
		Below: Below{Path: below, Hidden: []string{filepath.Join(below, "state")}, About: "the files of the person"}})
	for path, want := range map[string]string{"docs/a.md": "theirs", "in": "theirs", "both.md": "own", filepath.Join(below, "both.md"): "theirs"} {
		if got := d.must("file_read", "path", path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got, want := d.must("file_list", "depth", 2), "both.md 3\ndocs/\ndocs/own.md 3\nin (link) (read only)\nout (link) (read only)\ndocs/a.md 6 (read only)"; got != want {
		t.Errorf("%q", got)
	}
	if got := d.must("file_list", "path", "docs"); got != "docs/own.md 3\ndocs/a.md 6 (read only)" {
		t.Errorf("%q", got)
	}
	d.refused(swarm.NotFound, "file_read", "path", "nowhere")
	d.refused(swarm.NotFound, "file_list", "path", "nowhere")
	d.refused(swarm.Denied, "file_read", "path", "out/secret.txt")
	d.refused(swarm.Denied, "file_read", "path", "state/token")
	d.refused(swarm.Denied, "file_read", "path", filepath.Join(d.outside, "secret.txt"))
	d.refused(swarm.Denied, "file_write", "path", filepath.Join(below, "new"), "content", "x")
	if got := d.refused(swarm.Denied, "file_write", "path", "docs/a.md", "content", "x"); !strings.Contains(got, "you can only read it") {
		t.Error(got)
	}
	for _, path := range []string{"docs/a.md/x", "docs/a.md/x/y", "in/x"} { // a folder would hide the file
		if got := d.refused(swarm.Denied, "file_write", "path", path, "content", "x"); !strings.Contains(got, "you can only read it") {
			t.Error(got)
		}
	}
	d.must("file_write", "path", "docs/b.md", "content", "new")
	d.must("file_write", "path", "both.md", "content", "new")
	d.must("file_write", "path", "coder-report.md", "content", "found it")
	for path, want := range map[string]string{"docs/a.md": "theirs", "both.md": "theirs", "coder-report.md": "found it"} {
		if got, _ := os.ReadFile(filepath.Join(below, path)); string(got) != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if entries, _ := os.ReadDir(below); len(entries) != 6 {
		t.Errorf("something was written: %v", entries)
	}
}

// The hidden files and the keys of a project that nobody has chosen for the agent are not shown: by no
// spelling, through no link, and not whether they are there.
func TestProject(t *testing.T) {
	d := sit(t)
	below := filepath.Join(filepath.Dir(d.root), "below")
	private := []string{".env", ".git/config", "sub/.ssh/known", "id_rsa", "sub/ID_ED25519", "keys/a.pem", "b.Key", "c.p12"}
	for _, path := range append(private, "id_rsa.pub", "src/main.go", "monkey") {
		d.file(filepath.Join(below, path), canary)
	}
	for link, to := range map[string]string{"link": ".env", "folder": ".git"} {
		if err := os.Symlink(to, filepath.Join(below, link)); err != nil {
			t.Fatal(err)
		}
	}
	allow := []string{"file_read", "file_write", "file_list"}
	d.open(Options{Allow: allow, Below: Below{Path: below, Project: true, About: "the files of the person"}})
	for _, path := range append(private, "link", "folder/config", ".nothing", "src/../.env", filepath.Join(below, ".env")) {
		got := d.refused(swarm.Denied, "file_read", "path", path)
		if !strings.Contains(got, "hidden files of the project are not shown") {
			t.Errorf("%s: %s", path, got)
		}
	}
	d.refused(swarm.Denied, "file_list", "path", ".git")
	d.refused(swarm.Denied, "file_list", "path", "folder")
	const want = "id_rsa.pub 23 (read only)\nkeys/ (read only)\nmonkey 23 (read only)\nsrc/ (read only)\nsub/ (read only)\nsrc/main.go 23 (read only)"
	if got := d.must("file_list", "depth", 3); got != want {
		t.Errorf("%q", got)
	}
	if got := d.must("file_read", "path", "src/main.go"); got != canary {
		t.Error(got)
	}
	// Its own hidden files an agent reads.
	d.must("file_write", "path", ".mine", "content", "own")
	if got := d.must("file_read", "path", ".mine"); got != "own" {
		t.Error(got)
	}
	// A folder that somebody has chosen is shown as it is.
	d.open(Options{Allow: allow, Below: Below{Path: below}})
	if got := d.must("file_read", "path", ".env"); got != canary {
		t.Error(got)
	}
}

// A file lies no deeper than a listing goes. Thousands of levels take minutes to remove.
func TestWriteDeep(t *testing.T) {
	d := sit(t, "file_write")
	d.must("file_write", "path", strings.Repeat("e/", maxDepth-1)+"x", "content", "x")
	got := d.refused(swarm.BadInput, "file_write", "path", strings.Repeat("f/", maxDepth)+"x", "content", "x")
	if !strings.Contains(got, "the path has 33 parts, and 32 are the most") {
		t.Error(got)
	}
}

// Our own state is hidden, even where it is in the agent's folder.
func TestHidden(t *testing.T) {
	d := sit(t)
	d.file(".swarm/token", canary)
	d.file("work.txt", "x")
	d.open(Options{Allow: []string{"file_read", "file_write", "file_list"}, Hidden: []string{filepath.Join(d.root, ".swarm")}})
	if err := os.Symlink(".swarm", filepath.Join(d.root, "state")); err != nil {
		t.Fatal(err)
	}
	d.refused(swarm.Denied, "file_read", "path", "state/token")
	d.refused(swarm.Denied, "file_write", "path", "state/new/file", "content", "x")
	d.refused(swarm.Denied, "file_list", "path", "state")
	d.refused(swarm.Denied, "file_read", "path", ".swarm/token")
	d.refused(swarm.Denied, "file_write", "path", ".swarm/token", "content", "x")
	d.refused(swarm.Denied, "file_list", "path", ".swarm")
	if got := d.must("file_list", "depth", 3); got != "state (link)\nwork.txt 1" {
		t.Error(got)
	}
}

func TestOpen(t *testing.T) {
	top := t.TempDir()
	for what, o := range map[string]Options{
		"there is no tool":                   {Root: top, Allow: []string{"file_reed"}},
		"command does not say":               {Root: top, Allow: []string{"command"}},
		"no tool server":                     {Root: top, Allow: []string{"search.x"}},
		"is not there":                       {Root: filepath.Join(top, "nothing"), Allow: []string{"file_read"}},
		"not an absolute path":               {Root: "here", Allow: []string{"file_read"}},
		"the keys of every program lie open": {Root: "/proc/self", Allow: []string{"file_read"}},
		"/ cannot be the folder":             {Root: "/", Allow: []string{"command(true)"}},
		"/dev cannot be the folder":          {Root: "/dev", Allow: []string{"file_read"}},
	} {
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	box, err := Open(Options{Root: filepath.Join(top, "nothing"), Agent: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	if specs, err := box.Specs(t.Context()); len(specs) != 0 || err != nil {
		t.Errorf("who may use nothing is offered %v, %v", specs, err)
	}
	if _, err := box.Call(t.Context(), "file_read", nil); swarm.KindOf(err) != swarm.Denied {
		t.Error(err)
	}
}

// A folder in memory is a folder like another, although it lies below /dev.
func TestAFolderInMemoryIsARoot(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "swarm-test-") //nolint:usetesting // it must lie there
	if err != nil {
		t.Skip("no /dev/shm here:", err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := CheckRoot(folder, "coder"); err != nil {
		t.Error(err)
	}
}

func TestSpecs(t *testing.T) {
	d := sit(t, "file_read", "command(go test)", "command(git diff)", "web_fetch(*.example.org)")
	specs, err := d.box.Specs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
		if _, err := schema.Parse(s.Schema); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if got := strings.Join(names, " "); got != "file_read command web_fetch" {
		t.Error(got)
	}
	if !strings.Contains(specs[1].Description, "go test; git diff") || !strings.Contains(specs[2].Description, "*.example.org") {
		t.Errorf("%+v", specs)
	}
	for _, tool := range []string{"file_write", "file_list", "FILE_READ", "send_handoff", "", "search__x"} {
		d.refused(swarm.Denied, tool, "path", "x")
	}
	ctx, cut := context.WithCancelCause(t.Context())
	cut(swarm.Errorf(swarm.CutToSpeak, "somebody wants to say something"))
	if _, err := d.box.Call(ctx, "file_read", nil); swarm.KindOf(err) != swarm.CutToSpeak {
		t.Error(err)
	}
}

// No tool writes into a .git, at any depth, under any name: what is there decides which programs
// git runs.
func TestNobodyWritesIntoAGit(t *testing.T) {
	for _, phase := range []swarm.Phase{swarm.ImplementationPhase, swarm.PlanningPhase} {
		d := sit(t)
		d.file("docs/real/.git/HEAD", "ref: refs/heads/main\n")
		for link, to := range map[string]string{"docs/link": "real/.git", "docs/head": "real/.git/HEAD"} {
			if err := os.Symlink(to, filepath.Join(d.root, link)); err != nil {
				t.Fatal(err)
			}
		}
		d.open(Options{Allow: everything, Phase: phase})
		for _, path := range []string{"docs/lib/.git/config", "docs/.git", "docs/a/b/.GIT/hooks/pre-commit", "docs/.Git/info/attributes",
			"docs/link/config", "docs/head", "docs/x/../.git/config", filepath.Join(d.root, "docs/.git/config")} {
			if said := d.refused(swarm.Denied, "file_write", "path", path, "content", "x"); !strings.Contains(said, "belongs to git") {
				t.Errorf("%s: %q", path, said)
			}
		}
		d.must("file_write", "path", "docs/.gitignore", "content", "*.log\n")
		d.must("file_write", "path", "docs/.github/ci.yml", "content", "on: push\n")
		d.must("file_read", "path", "docs/real/.git/HEAD")
	}
}

// A file that programs execute or obey is written only by an agent whose tools name it, under any
// spelling and through any link. A pattern names what stands before its first wildcard.
func TestGuardedFiles(t *testing.T) {
	d := sit(t)
	d.file("swarm/swarm.yaml", "tasks: {}\n")
	d.file("agent.sh", "echo hi\n")
	d.file("bin/helper", "#!/bin/sh\n")
	d.file("notes.txt", "notes\n")
	for link, to := range map[string]string{"link": "swarm", "file": "agent.sh", "rules": ".claude"} {
		if err := os.Symlink(to, filepath.Join(d.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	plan := &swarm.Plan{
		Providers: []swarm.ProviderSpec{{Command: []string{"sh", "-c", "exec ./agent.sh < notes.txt"}}, {Command: []string{"python3", "later.py"}}},
		Servers:   []swarm.ToolServer{{Command: []string{"sh", "bin/helper", "--out=data.json"}}},
	}
	guard := NewGuard(plan, d.root, "swarm/swarm.yaml", []string{"docs/task.md"})
	guarded := []string{"swarm/swarm.yaml", "SWARM/Swarm.YAML", "link/swarm.yaml", "swarm/prompts/role.md", "swarm/new.yaml", "swarm",
		"agent.sh", "./x/../agent.sh", "file", "bin/helper", "later.py", "docs/task.md", "sub/swarm.yml", "sub/swarm/prompts/a.md",
		".claude/settings.json", "sub/.Claude/settings.json", "rules/settings.json", ".mcp.json", "AGENTS.md", "agents.md", "sub/CLAUDE.md",
		"CLAUDE\u200b.md", "AGENT\u017f.md", "GEMINI.md", ".gemini/x", ".codex/config.toml", ".opencode/x", "opencode.json", ".cursor/rules/a",
		".vscode/tasks.json", ".envrc", ".github/copilot-instructions.md", ".husky/pre-commit",
		".pre-commit-config.yaml", "lefthook.yml", ".github/prompts/a.prompt.md", ".github/hooks/a.json", "CRUSH.md", "sub/.rules", ".bashrc", "sub/.ssh/authorized_keys",
		".config/fish/config.fish", ".config/systemd/user/a.service", ".gitconfig", ".nvim.lua", ".mise.toml"}
	free := []string{"Makefile", "notes.txt", "data.json", "src/swarm/a.go", "main.py", ".github/workflows/ci.yml", ".config/app.yml", "docs/AGENTS.txt", "claude.go", "swarming/a"}
	d.open(Options{Allow: []string{"file_write", "file_write(**)", "file_write(*/**)", "file_write(**/AGENTS.md)", "file_write(.claude/**/x)"}, Guard: guard})
	for _, path := range guarded {
		said := d.refused(swarm.Denied, "file_write", "path", path, "content", "x")
		if !strings.Contains(said, "may not be written, because ") || !strings.Contains(said, `tools: ["file_write(`) {
			t.Errorf("%s: %q", path, said)
		}
	}
	for _, path := range free {
		d.must("file_write", "path", path, "content", "x")
	}
	if text, _ := os.ReadFile(filepath.Join(d.root, "agent.sh")); string(text) != "echo hi\n" {
		t.Errorf("%q", text)
	}

	d.open(Options{Allow: []string{"file_write", "file_write(swarm/prompts/**)", "file_write(agent.sh)", "file_write(sub/.claude/*)"}, Guard: guard})
	for _, path := range []string{"swarm/prompts/role.md", "link/prompts/a/b.md", "agent.sh", "sub/.claude/settings.json", "src/a.go"} {
		d.must("file_write", "path", path, "content", "x")
	}
	for _, path := range []string{"swarm/swarm.yaml", "sub/.claude/a/b", ".claude/settings.json", ".git/config"} {
		d.refused(swarm.Denied, "file_write", "path", path, "content", "x")
	}

	// A root inside of what is guarded is no way around the list.
	d.file(".claude/work/a", "")
	d.open(Options{Allow: []string{"file_write"}, Root: filepath.Join(d.root, ".claude"), Guard: guard})
	d.refused(swarm.Denied, "file_write", "path", "settings.json", "content", "x")
	d.open(Options{Allow: []string{"file_write(work/**)"}, Root: filepath.Join(d.root, ".claude"), Guard: guard})
	d.must("file_write", "path", "work/b", "content", "x")
	d.refused(swarm.Denied, "file_write", "path", "settings.json", "content", "x")
}

// With paths in all its entries, file_write writes those and nothing else.
func TestFileWriteWithPaths(t *testing.T) {
	d := sit(t, "file_write(docs/**)", "file_write(*.txt)")
	d.must("file_write", "path", "docs/a/b.md", "content", "x")
	d.must("file_write", "path", "a.txt", "content", "x")
	if said := d.refused(swarm.Denied, "file_write", "path", "src/a.txt", "content", "x"); !strings.Contains(said, "allowed are docs/**, *.txt") {
		t.Error(said)
	}
	if err := os.Symlink("../src", filepath.Join(d.root, "docs/out")); err != nil {
		t.Fatal(err)
	}
	d.refused(swarm.Denied, "file_write", "path", "docs/out/a.go", "content", "x")
	if spec := d.box.writeSpec(); !strings.Contains(spec.Description, "Only these may be written: docs/**, *.txt.") {
		t.Error(spec.Description)
	}
}
