package project

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes files below a folder. The map has a text for each name.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// newProject returns a project with some prompts. Its folder also holds files that it must not
// reach.
func newProject(t *testing.T) (p *Project, base string) {
	t.Helper()
	base = t.TempDir()
	write(t, base, map[string]string{
		"secret.md":                    "outside",
		"work/notes.md":                "notes",
		"work/docs/design.md":          "design",
		"work/swarm/swarm.yaml":        "version: \"1\"\n",
		"work/swarm/report.json":       "{}",
		"work/swarm/prompts/plan.md":   "project's plan",
		"work/swarm/prompts/bom.md":    "\ufefftext\r\n",
		"work/swarm/prompts/bad.md":    "one\ntwo \xff\n",
		"work/swarm/prompts/sub/a.md":  "a",
		"work/swarm/prompts/common.md": "common",
		"work/swarm/prompts/v1.2":      "no extension",
		"work/swarm/prompts/v1.3.md":   "dots",
		"home/prompts/plan.md":         "shared plan",
		"home/prompts/review.md":       "shared review",
		"home/prompts/parts/style.md":  "shared style",
	})
	prompts := filepath.Join(base, "work/swarm/prompts")
	must(t, syscall.Mkfifo(filepath.Join(prompts, "pipe.md"), 0o600))
	must(t, os.Symlink("/dev/zero", filepath.Join(prompts, "device.md")))
	must(t, os.Symlink("../../../secret.md", filepath.Join(prompts, "link.md")))
	must(t, os.Symlink("..", filepath.Join(prompts, "up")))
	must(t, os.Symlink("plan.md", filepath.Join(prompts, "alias.md")))
	must(t, os.Symlink("loop.md", filepath.Join(prompts, "loop.md")))
	must(t, os.Mkdir(filepath.Join(prompts, "folder.md"), 0o755))
	huge, err := os.Create(filepath.Join(prompts, "huge.md"))
	must(t, err)
	must(t, huge.Truncate(1<<30))
	must(t, huge.Close())
	p = Open(filepath.Join(base, "work"), "", filepath.Join(base, "home/prompts"))
	t.Cleanup(p.Close)
	return p, base
}

// answer formats a path and text, or an error and its hint, for comparing.
func answer(base, path string, text []byte, err error) string {
	if err == nil {
		return strings.ReplaceAll(path, base, "BASE") + ": " + string(text)
	}
	var e *swarm.Error
	if !errors.As(err, &e) {
		return "an error of another kind: " + err.Error()
	}
	return strings.ReplaceAll(string(e.Kind)+": "+e.Error()+" | "+e.Hint, base, "BASE")
}

func TestAgentFile(t *testing.T) {
	base := t.TempDir()
	t.Setenv("HOME", filepath.Join(base, "home"))
	for name, text := range map[string]string{
		"work/.claude/agents/reviewer.md": "of the project", "home/.claude/agents/reviewer.md": "of the home folder",
		"home/.claude/agents/writer.md": "of the home folder", "secret.md": "secret", "work/.claude/settings.md": "settings",
	} {
		file := filepath.Join(base, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	agents := filepath.Join(base, "work/.claude/agents")
	must(t, syscall.Mkfifo(filepath.Join(agents, "pipe.md"), 0o600))
	must(t, os.Symlink("../../../secret.md", filepath.Join(agents, "link.md")))
	must(t, os.Symlink("../../../../secret.md", filepath.Join(base, "home/.claude/agents/other.md")))
	p := Open(filepath.Join(base, "work"), "", "")
	defer p.Close()
	for _, c := range []struct{ name, want string }{
		{"reviewer", ".claude/agents/reviewer.md: of the project"},
		{"writer", "BASE/home/.claude/agents/writer.md: of the home folder"},
		{"reviwer", `not_found: there is no role "reviwer" | did you mean "reviewer"?`},
		{"nobody", `not_found: there is no role "nobody" | choose one of link, other, pipe, reviewer, writer`},
		{"../settings", `not_found: there is no role "../settings" | write NAME for .claude/agents/NAME.md`},
		{"pipe", "bad_input: .claude/agents/pipe.md is a pipe, not a file | name a regular file"},
		{"link", "bad_input: .claude/agents/link.md is a link that leads out of its folder | put the file itself there"},
		{"other", "bad_input: BASE/home/.claude/agents/other.md is a link that leads out of its folder | put the file itself there"},
	} {
		path, text, err := p.AgentFile(c.name)
		if got := answer(base, path, text, err); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestPrompt(t *testing.T) {
	p, base := newProject(t)
	for _, c := range []struct{ name, want string }{
		{"plan", "swarm/prompts/plan.md: project's plan"},
		{"plan.md", "swarm/prompts/plan.md: project's plan"},
		{"review", "BASE/home/prompts/review.md: shared review"},
		{"sub/a", "swarm/prompts/sub/a.md: a"},
		{"alias", "swarm/prompts/alias.md: project's plan"},
		{"bom", "swarm/prompts/bom.md: text\r\n"},
		{"v1.3", "swarm/prompts/v1.3.md: dots"},
		{"pan", `not_found: there is no prompt "pan" | did you mean "plan"?`},
		{"plan/x", `not_found: there is no prompt "plan/x" | did you mean "plan"?`},
		{"bad", "bad_input: swarm/prompts/bad.md:2: this is not UTF-8 | save the file as UTF-8"},
		{"pipe", "bad_input: swarm/prompts/pipe.md is a pipe, not a file | name a regular file"},
		{"folder", "bad_input: swarm/prompts/folder.md is a folder, not a file | name a regular file"},
		{"huge", "bad_input: swarm/prompts/huge.md is larger than 4 MB | give the agent the name of the file instead of its text"},
		{"device", "bad_input: swarm/prompts/device.md is a link that leads out of its folder | put the file itself there"},
		{"link", "bad_input: swarm/prompts/link.md is a link that leads out of its folder | put the file itself there"},
		{"up/report", "bad_input: swarm/prompts/up/report.md is a link that leads out of its folder | put the file itself there"},
		{"../x", `bad_input: "../x" is not the name of a prompt | write NAME for swarm/prompts/NAME.md; other files are for prompt-file`},
	} {
		path, text, err := p.Prompt(c.name)
		if got := answer(base, path, text, err); got != c.want {
			t.Errorf("%s gives\n%s, not\n%s", c.name, got, c.want)
		}
		plain := strings.TrimSuffix(c.name, ".md")
		if want := swarm.KindOf(err) != swarm.NotFound && c.name != "../x"; p.HasPrompt(plain) != want {
			t.Errorf("there is a prompt %s: %v, not %v", plain, !want, want)
		}
	}
	for _, name := range []string{"", ".", "/etc/passwd", "-rf", "a//b", "a\nb", "a\x00b", `a\b`, strings.Repeat("a", 300), "\xff"} {
		if _, _, err := p.Prompt(name); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := p.Prompt("loop"); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestInclude(t *testing.T) {
	p, base := newProject(t)
	for _, c := range []struct{ from, rel, want string }{
		{"", "common.md", "swarm/prompts/common.md: common"},
		{"", "common", "swarm/prompts/common.md: common"},
		{"", "v1.2", "swarm/prompts/v1.2: no extension"},
		{"", "v1.3", "swarm/prompts/v1.3.md: dots"},
		{"swarm/prompts/plan.md", "sub/a.md", "swarm/prompts/sub/a.md: a"},
		{"swarm/prompts/sub/a.md", "../common", "swarm/prompts/common.md: common"},
		{"docs/design.md", "../swarm/prompts/common", "swarm/prompts/common.md: common"},
		{filepath.Join(base, "home/prompts/review.md"), "parts/style", "BASE/home/prompts/parts/style.md: shared style"},

		{"", "comon.md", `not_found: there is no swarm/prompts/comon.md | did you mean "common"?`},
		{"", "plan.md/x", `not_found: there is no swarm/prompts/plan.md/x | choose one of alias, bad, bom, common, huge, parts/style, plan, review, sub/a, v1.3`},
		{"docs/design.md", "other", `bad_input: the include "other" is outside of the prompt folders | put what is included into swarm/prompts; paths are relative to the including file`},
		{"", "../../secret", `bad_input: the include "../../secret" is outside of the prompt folders | put what is included into swarm/prompts; paths are relative to the including file`},
		{filepath.Join(base, "home/prompts/review.md"), "../../secret.md", `bad_input: the include "../../secret.md" is outside of the prompt folders | put what is included into swarm/prompts; paths are relative to the including file`},
		{"", "/etc/passwd", `bad_input: the path "/etc/passwd" is absolute | write it relative to the file it stands in`},
		{"", "~/x", `bad_input: the path "~/x" is in another folder | write it relative to the file it stands in`},
		{"", "link", "bad_input: swarm/prompts/link.md is a link that leads out of its folder | put the file itself there"},
		{"", "up/swarm.yaml", "bad_input: swarm/prompts/up/swarm.yaml is a link that leads out of its folder | put the file itself there"},
		{"", "pipe", "bad_input: swarm/prompts/pipe.md is a pipe, not a file | name a regular file"},
		{"", "huge", "bad_input: swarm/prompts/huge.md is larger than 4 MB | give the agent the name of the file instead of its text"},
		{"", "sub", "bad_input: swarm/prompts/sub is a folder, not a file | name a regular file"},
		{"", "bad", "bad_input: swarm/prompts/bad.md:2: this is not UTF-8 | save the file as UTF-8"},
	} {
		path, text, err := p.Include(c.from, c.rel)
		if got := answer(base, path, text, err); got != c.want {
			t.Errorf("%s in %q gives\n%s, not\n%s", c.rel, c.from, got, c.want)
		}
	}
	for _, rel := range []string{"", "a\x00b", "a\nb", strings.Repeat("../", 2000)} {
		if _, _, err := p.Include("", rel); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%q: %v", rel, err)
		}
	}
}

func TestFilesOfTheProject(t *testing.T) {
	p, base := newProject(t)
	must(t, os.Symlink("../secret.md", filepath.Join(base, "work/linked.md")))
	must(t, os.Symlink("/dev/zero", filepath.Join(base, "work/zero")))
	for _, c := range []struct{ path, want string }{
		{"report.json", "swarm/report.json: {}"},
		{"prompts/plan.md", "swarm/prompts/plan.md: project's plan"},
		{"../notes.md", "notes.md: notes"},
		{"../docs/design.md", "docs/design.md: design"},
		{"nosuch.json", "not_found: there is no swarm/nosuch.json | paths are relative to swarm"},
		{"..", "bad_input: . is a folder, not a file | name a regular file"},
		{"../../secret.md", `bad_input: "../../secret.md" is outside of the project's folder BASE/work | paths are relative to swarm, and stay below the folder that holds swarm/`},
		{"../linked.md", "bad_input: linked.md is a link that leads out of its folder | put the file itself there"},
		{"../zero", "bad_input: zero is a link that leads out of its folder | put the file itself there"},
		{"prompts/pipe.md", "bad_input: swarm/prompts/pipe.md is a pipe, not a file | name a regular file"},
		{"/etc/passwd", `bad_input: the path "/etc/passwd" is absolute | write it relative to the file it stands in`},
	} {
		path, text, err := p.File(c.path)
		if got := answer(base, path, text, err); got != c.want {
			t.Errorf("%s gives\n%s, not\n%s", c.path, got, c.want)
		}
	}
}

func TestComposeFile(t *testing.T) {
	p, base := newProject(t)
	if path, text, err := p.Compose(); answer(base, path, text, err) != "swarm/swarm.yaml: version: \"1\"\n" {
		t.Errorf("%s", answer(base, path, text, err))
	}
	write(t, base, map[string]string{"work/ci.yaml": "ci", "work/large.yaml": strings.Repeat("x", MaxFile+1), "yml/swarm/swarm.yml": "", "flat/swarm.yaml": ""})
	must(t, syscall.Mkfifo(filepath.Join(base, "work/pipe.yaml"), 0o600))
	must(t, os.Mkdir(filepath.Join(base, "empty"), 0o755))
	for _, c := range []struct{ cwd, file, want string }{
		{"work", "ci.yaml", "ci.yaml: ci"},
		{"work/docs", "../ci.yaml", "BASE/work/ci.yaml: ci"},
		{"work", "nosuch.yaml", "not_found: there is no nosuch.yaml | leave out -f for swarm/swarm.yaml"},
		{"empty", "nosuch.yaml", "not_found: there is no nosuch.yaml | leave out -f for swarm/swarm.yaml, which `swarm init` writes"},
		{"empty", "", "not_found: there is no swarm/swarm.yaml | `swarm init` writes one; -f FILE takes another file"},
		{"work/docs", "", "not_found: there is no swarm/swarm.yaml | there is one in BASE/work: go there, or use -f; `swarm init` writes one here"},
		{"yml", "", "not_found: there is no swarm/swarm.yaml | there is a swarm/swarm.yml: use -f swarm/swarm.yml"},
		{"flat", "", "not_found: there is no swarm/swarm.yaml | there is a swarm.yaml: use -f swarm.yaml"},
		{"work", "large.yaml", "bad_input: large.yaml is larger than 4 MB | put long texts into files: prompt, prompt-file"},
		{"work", "pipe.yaml", "bad_input: pipe.yaml is a pipe, not a file | name a regular file"},
		{"work", "swarm", "bad_input: swarm is a folder, not a file | name a regular file"},
		{"work", "/dev/zero", "bad_input: /dev/zero is a device, not a file | name a regular file"},
	} {
		p := Open(filepath.Join(base, c.cwd), c.file, "")
		path, text, err := p.Compose()
		if got := answer(base, path, text, err); got != c.want {
			t.Errorf("-f %q in %s gives\n%s, not\n%s", c.file, c.cwd, got, c.want)
		}
	}
}

// With -f, the prompts beside that file come first, and those of the current folder after them.
func TestAnotherComposeFile(t *testing.T) {
	_, base := newProject(t)
	write(t, base, map[string]string{"work/examples/demo.yaml": "", "work/examples/prompts/plan.md": "example's plan", "work/examples/x.json": "{}"})
	p := Open(filepath.Join(base, "work"), "examples/demo.yaml", "")
	defer p.Close()
	for name, want := range map[string]string{"plan": "examples/prompts/plan.md: example's plan", "common": "swarm/prompts/common.md: common"} {
		path, text, err := p.Prompt(name)
		if got := answer(base, path, text, err); got != want {
			t.Errorf("%s gives %s", name, got)
		}
	}
	if path, text, err := p.File("x.json"); answer(base, path, text, err) != "examples/x.json: {}" {
		t.Error(answer(base, path, text, err))
	}
	if _, _, err := p.File("../notes.md"); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("a file above: %v", err)
	}
}

func TestList(t *testing.T) {
	p, base := newProject(t)
	var got []string
	for _, info := range p.List() {
		line := info.Name + " " + strings.ReplaceAll(info.Path, base, "BASE")
		if info.Hidden {
			line += " hidden"
		}
		got = append(got, line)
	}
	for _, want := range []string{"plan swarm/prompts/plan.md", "plan BASE/home/prompts/plan.md hidden", "review BASE/home/prompts/review.md", "sub/a swarm/prompts/sub/a.md"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(got, "\n"))
		}
	}
	for _, line := range got {
		for _, no := range []string{"folder", "up", "pipe", "device", "link", "loop"} {
			if strings.HasPrefix(line, no) {
				t.Errorf("listed: %s", line)
			}
		}
	}
	if len(Open(t.TempDir(), "", "").List()) != 0 {
		t.Error("an empty folder has prompts")
	}
}

func TestTitle(t *testing.T) {
	for text, want := range map[string]string{"": "", "\n\n## The  plan \r\nmore": "The  plan", "text": "text", "#\n# x": "x"} {
		if got := Title([]byte(text)); got != want {
			t.Errorf("%q has the title %q", text, got)
		}
	}
}

func TestNewPrompt(t *testing.T) {
	p := Open(t.TempDir(), "", "")
	defer p.Close()
	path, err := p.NewPrompt("team/plan", []byte("first"))
	if err != nil || path != "swarm/prompts/team/plan.md" {
		t.Fatalf("%q, %v", path, err)
	}
	if _, err := p.NewPrompt("team/plan", []byte("second")); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("again: %v", err)
	}
	if _, text, err := p.Prompt("team/plan"); err != nil || string(text) != "first" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.NewPrompt("../plan", nil); swarm.KindOf(err) != swarm.BadInput {
		t.Errorf("outside: %v", err)
	}
}

// endless is a reader that never ends and counts its bytes.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

func TestReadStdin(t *testing.T) {
	for _, size := range []int{0, 1, MaxFile} {
		b, err := ReadStdin(bytes.NewReader(make([]byte, size)))
		if err != nil || len(b) != size {
			t.Errorf("%d bytes: %d, %v", size, len(b), err)
		}
	}
	var e endless
	if _, err := ReadStdin(&e); swarm.KindOf(err) != swarm.BadInput || e.n > 4*MaxFile {
		t.Errorf("after %d bytes: %v", e.n, err)
	}
	broken, w := io.Pipe()
	_ = w.CloseWithError(fs.ErrClosed)
	if _, err := ReadStdin(broken); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("broken: %v", err)
	}
}

func TestInit(t *testing.T) {
	dir := t.TempDir()
	files, err := Templates[0].Init(dir, []byte("{}"))
	must(t, err)
	want := []string{"swarm/swarm.schema.json", "swarm/demo.yaml", "swarm/prompts/code.md", "swarm/prompts/coder.md", "swarm/prompts/plan.md",
		"swarm/prompts/planner.md", "swarm/prompts/review.md", "swarm/prompts/reviewer.md", "swarm/prompts/rules.md", "swarm/swarm.yaml"}
	if !slices.Equal(files, want) {
		t.Errorf("written: %v", files)
	}
	for _, file := range files {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if _, err := Templates[0].Init(dir, []byte("{}")); swarm.KindOf(err) != swarm.BadInput || !strings.Contains(err.Error(), "swarm/swarm.yaml exists already") {
		t.Errorf("again: %v", err)
	}
}

func TestInitWritesOverNothing(t *testing.T) {
	for _, there := range []string{"swarm/prompts/coder.md", "swarm/swarm.yaml", "swarm"} {
		dir := t.TempDir()
		write(t, dir, map[string]string{there: "mine"})
		if _, err := Templates[0].Init(dir, []byte("{}")); swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("%s: %v", there, err)
		}
		var all []string
		must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				all = append(all, path)
			}
			return err
		}))
		if b, _ := os.ReadFile(filepath.Join(dir, there)); string(b) != "mine" || len(all) != 1 {
			t.Errorf("%s is %q, and there are %v", there, b, all)
		}
	}
}

func FuzzPaths(f *testing.F) {
	dir := f.TempDir()
	write(f, dir, map[string]string{"secret.md": "outside", "secret": "outside", "work/swarm/prompts/a.md": "inside", "work/swarm/swarm.yaml": "inside", "work/x": "inside"})
	must(f, os.Symlink("../../..", filepath.Join(dir, "work/swarm/prompts/up")))
	for _, seed := range []string{"a", "../../../secret", "up/secret.md", "./a.md", "sub/../../../../secret.md", "/", "..", "~/x"} {
		f.Add(seed)
	}
	p := Open(filepath.Join(dir, "work"), "", "")
	f.Fuzz(func(t *testing.T, path string) {
		for _, read := range []func() (string, []byte, error){
			func() (string, []byte, error) { return p.Prompt(path) },
			func() (string, []byte, error) { return p.File(path) },
			func() (string, []byte, error) { return p.Include("", path) },
		} {
			_, text, err := read()
			if err == nil && string(text) != "inside" {
				t.Errorf("%q gives %q", path, text)
			}
			var e *swarm.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%q: %v", path, err)
			}
		}
	})
}
