package compose

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/prompt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const dashes = "----------\n"

// folder is Prompts over testdata: prompts/NAME.md and files/PATH.
type folder struct{}

func (folder) read(path string) (string, []byte, error) {
	text, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		return "", nil, swarm.Errorf(swarm.NotFound, "there is no file %s", path)
	}
	return path, text, nil
}

func (f folder) Prompt(name string) (string, []byte, error) {
	file, text, err := f.read("prompts/" + name + ".md")
	if err != nil {
		err = swarm.Errorf(swarm.NotFound, "there is no prompt %q", name).WithHint("write it to swarm/prompts/%s.md", name)
	}
	return file, text, err
}

func (f folder) File(name string) (string, []byte, error) { return f.read("files/" + name) }

func (f folder) AgentFile(name string) (string, []byte, error) {
	return f.read("agents/" + name + ".md")
}

func (f folder) HasPrompt(name string) bool {
	_, _, err := f.Prompt(name)
	return swarm.KindOf(err) != swarm.NotFound
}

func (f folder) Include(from, rel string) (string, []byte, error) {
	dir := "prompts"
	if from != "" {
		dir = path.Dir(from)
	}
	file := path.Join(dir, rel)
	if !strings.HasPrefix(file, "prompts/") && !strings.HasPrefix(file, "files/") {
		return "", nil, swarm.Errorf(swarm.BadInput, "it is outside the prompt folders")
	}
	return f.read(file)
}

// Mode finds files/PATH for /here/PATH.
func (folder) Mode(name string) (fs.FileMode, error) {
	rel, err := filepath.Rel("/here", name)
	if err != nil || !filepath.IsLocal(rel) {
		return 0, fs.ErrNotExist
	}
	info, err := os.Lstat(filepath.Join("testdata", "files", rel))
	if err != nil {
		return 0, swarm.Errorf(swarm.NotFound, "there is no %s", name)
	}
	return info.Mode(), nil
}

// options reads a golden file's first lines: comments of the form `# key: value`.
func options(src string) (o Options, check bool) {
	o = Options{File: "swarm.yaml", Source: []byte(src), Prompts: folder{}, Dir: "/here",
		Stdin: func() ([]byte, error) { return []byte("from standard input\n"), nil }}
	for line := range strings.Lines(src) {
		key, val, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "# ")), ": ")
		if !strings.HasPrefix(line, "# ") || !ok {
			break
		}
		switch key {
		case "select":
			o.Select = strings.Fields(val)
		case "only":
			o.Only = true
		case "set":
			o.Set = append(o.Set, val)
		case "provider":
			o.Provider = val
		case "parallel":
			fmt.Sscan(val, &o.MaxParallel)
		case "check":
			check = true
		}
	}
	return o, check
}

func oneError(e *swarm.Error) string {
	s := string(e.Kind) + " " + e.Error() + "\n"
	if e.Hint != "" {
		s += "  " + e.Hint + "\n"
	}
	return s
}

// native writes the part of a golden file below the dashes: the problems that Check finds, or the
// first error, or the plan.
func native(o Options, check bool) string {
	var b strings.Builder
	if check {
		errs, warnings := Check(o)
		for _, e := range append(errs, warnings...) {
			b.WriteString(oneError(e))
		}
		if b.Len() == 0 {
			return "fine\n"
		}
		return b.String()
	}
	bundle, err := Compile(o)
	if err != nil {
		var e *swarm.Error
		if !errors.As(err, &e) {
			return "not a *swarm.Error: " + err.Error()
		}
		return oneError(e)
	}
	for _, w := range bundle.Warnings {
		b.WriteString(oneError(w))
	}
	text, _ := json.MarshalIndent(bundle.Plan, "", "  ")
	out := string(text)
	for _, body := range bundle.Bodies {
		out = strings.ReplaceAll(out, string(swarm.HashOf(body)), strings.Trim(mustQuote(readable(body)), `"`))
	}
	b.WriteString(out + "\n")
	bundle.Settings.Provider = "" // the plan has it
	have, _ := json.MarshalIndent(bundle.Settings, "", "  ")
	if usual, _ := json.MarshalIndent(Defaults(), "", "  "); string(have) != string(usual) {
		b.WriteString("settings " + string(have) + "\n")
	}
	return b.String()
}

func mustQuote(s string) string {
	q, _ := json.Marshal(s)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(q))
}

// readable writes a template as its author would have.
func readable(body []byte) string {
	tmpl, err := prompt.Unmarshal(body)
	if err != nil || len(tmpl.Parts) == 0 {
		return string(body)
	}
	var b strings.Builder
	for _, p := range tmpl.Parts {
		b.WriteString(p.String())
	}
	return b.String()
}

// TestGolden reads each file of testdata: a compose file, a line of dashes, and the expected
// result.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".golden"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			src, want, _ := strings.Cut(string(raw), dashes)
			o, check := options(src)
			got := native(o, check)
			if got == want {
				checkShared(t, o, check, want)
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(src+dashes+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got\n%s\nwant\n%s", got, want)
		})
	}
}

// checkShared checks that compilers which share one reading of the file change nothing for each
// other.
func checkShared(t *testing.T, o Options, check bool, want string) {
	o = o.ReadOnce()
	for range 2 {
		Check(o)
		_, _ = CompileAll(o)
		_, _ = CompileTeam(o)
		if got := native(o, check); got != want {
			t.Fatalf("after others that use the same reading: got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestReadOnce checks that the file is parsed by the first call only: its text may be gone then.
func TestReadOnce(t *testing.T) {
	o := Options{File: "swarm.yaml", Source: []byte("provider: codex\ntasks: {a: {prompt-string: x}}\n")}.ReadOnce()
	if errs, _ := Check(o); len(errs) > 0 {
		t.Fatal(errs)
	}
	clear(o.Source)
	for name, compile := range map[string]func(Options) (*Bundle, error){"tasks": CompileAll, "team": CompileTeam} {
		if _, err := compile(o); err != nil {
			t.Errorf("%s: the file was read again: %v", name, err)
		}
	}
}
