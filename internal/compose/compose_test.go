package compose

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

const hello = "provider: codex\ntasks: {hello: {prompt-string: Say hello.}}\n"

func resolvedSchema(t *testing.T) *jsonschema.Resolved {
	var doc jsonschema.Schema
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	schema, err := doc.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSchemaAgreesWithDecoder gives every golden file to both. They read the same table, so they
// accept the same files.
func TestSchemaAgreesWithDecoder(t *testing.T) {
	schema := resolvedSchema(t)
	// A schema cannot refuse what JSON does not have.
	only := []string{"duplicate-key", "tag", "merge-key", "alias-bomb"}
	refused := 0
	files, _ := filepath.Glob("testdata/*.golden")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		src, _, _ := strings.Cut(string(raw), dashes)
		name := strings.TrimSuffix(filepath.Base(file), ".golden")
		var v any
		if slices.Contains(only, name) || yaml.Load([]byte(src), &v) != nil {
			continue
		}
		comp := newCompiler(Options{File: "swarm.yaml", Source: []byte(src)})
		comp.read()
		if comp.root == nil {
			continue
		}
		for i := range comp.file.Providers.entries {
			if e := &comp.file.Providers.entries[i]; !e.value.broken {
				comp.checkKind(e, providerkind.Of(kindOf(e)))
			}
		}
		err = schema.Validate(v)
		if comp.failed() {
			refused++
		}
		if comp.failed() != (err != nil) {
			t.Errorf("%s: the decoder says %v, the schema %v", name, comp.errs, err)
		}
	}
	if refused < 10 {
		t.Errorf("only %d files were refused: do the golden files still hold wrong types and unknown keys?", refused)
	}
}

// An editor flags a key that belongs to another kind of provider, as `swarm check` does.
func TestSchemaKnowsTheKeysOfKinds(t *testing.T) {
	schema := resolvedSchema(t)
	for provider, fine := range map[string]bool{
		`mine: {kind: command, command: [cat]}`:                                          true,
		`mine: {kind: command}`:                                                          false, // a key that it needs
		`mine: {kind: command, command: [cat], base_url: http://x}`:                      false, // another kind's key
		`mine: {kind: openai, base_url: http://x, price: {input: 1}}`:                    true,
		`mine: {kind: openai, command: [b]}`:                                             false,
		`mine: {kind: openai, effort: low, api: chat, extra: {a: [1]}, headers: {A: b}}`: true,
		`mine: {kind: openai, effort: huge}`:                                             false,
		`mine: {kind: openai, extra: {tools: []}}`:                                       false,
		`mine: {kind: anthropic, thinking: 2048, service_tier: auto}`:                    true,
		`mine: {kind: anthropic, thinking: 12}`:                                          false,
		`mine: {kind: acp, command: [codex-acp], mode: read-only}`:                       true,
		`mine: {kind: openai, mode: read-only}`:                                          false,
		`mine: {command: [cat]}`:                                                         false, // no kind
		`mine:`:                                                                          false,
		`codex:`:                                                                         true, // the name is the kind
		`codex: {models: {small: x}}`:                                                    true,
		`codex: {script: x.yaml}`:                                                        false,
		`codex: {kind: openai}`:                                                          false,
		`command:`:                                                                       false,
	} {
		src := "provider: codex\ntasks: {a: {prompt-string: x}}\nproviders: {" + provider + "}\n"
		var v any
		if err := yaml.Load([]byte(src), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != fine {
			t.Errorf("%s: the schema says %v", provider, err)
		}
		if _, err := Compile(Options{File: "swarm.yaml", Source: []byte(src)}); (err == nil) != fine {
			t.Errorf("%s: the compiler says %v", provider, err)
		}
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	if s := string(Schema()); strings.Count(s, `"description"`) < 80 || !strings.Contains(s, "2020-12") {
		t.Error(s)
	}
}

func TestStdinIsReadOnlyWhereItStands(t *testing.T) {
	calls := 0
	o := Options{File: "swarm.yaml", Stdin: func() ([]byte, error) { calls++; return []byte("in"), nil }, Select: []string{"b"}}
	o.Source = []byte("provider: codex\ntasks: {a: {prompt-string: '{{STDIN}}'}, b: {prompt-string: x}}\n")
	if b, err := Compile(o); err != nil || calls != 0 || b.Plan.Stdin != "" {
		t.Errorf("b does not read standard input: %d calls, %v", calls, err)
	}
	o.Select = []string{"a"}
	b, err := Compile(o)
	if err != nil || calls != 1 || b.Plan.Stdin != swarm.HashOf([]byte("in")) {
		t.Errorf("a reads it: %d calls, %v", calls, err)
	}
	Check(o)
	if calls != 1 {
		t.Error("Check must not read it")
	}
	o.Stdin = func() ([]byte, error) { return nil, errors.New("closed") }
	if _, err := Compile(o); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}

// counting counts how often each prompt is read.
type counting struct {
	folder
	reads map[string]int
}

func (c counting) Prompt(name string) (string, []byte, error) {
	c.reads[name]++
	return c.folder.Prompt(name)
}

func TestOnePromptOfManyTasks(t *testing.T) {
	src := "provider: codex\ntasks:\n"
	for _, name := range names("t", 0, 100) {
		src += "  " + name + ": {prompt: plan}\n"
	}
	prompts := counting{reads: map[string]int{}}
	b, err := Compile(Options{File: "swarm.yaml", Source: []byte(src), Prompts: prompts})
	if err != nil || len(b.Bodies) != 1 || prompts.reads["plan"] != 1 {
		t.Fatalf("%d bodies, %d reads, %v", len(b.Bodies), prompts.reads["plan"], err)
	}
}

// TestSamePlan: the same input gives the same plan.
func TestSamePlan(t *testing.T) {
	o, _ := options(valid(t))
	first := native(o, false)
	for range 20 {
		if again := native(o, false); again != first {
			t.Fatalf("%s\nand then\n%s", first, again)
		}
	}
}

// TestPlaces: a reference in a prompt-string has the place where a person sees it, however the
// string is written.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
	}{
		{"plain", " Go {{output:x}}", 3, 22},
		{"quoted", " \"Go {{output:x}}\"", 3, 19},
		{"escaped newline", ` "Go\n{{output:x}}"`, 3, 19},
		{"folded", " >\n    Go\n    {{output:x}}", 3, 19},
		{"literal", " |\n    Go\n      there {{output:x}}", 5, 13},
		{"literal, first line", " |\n    {{output:x}}", 4, 5},
		{"literal, empty line", " |\n\n     Go {{output:x}}", 5, 9},
		{"literal, own indentation", " |2\n      Go {{output:x}}", 4, 10},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			src := strings.ReplaceAll("tasks:\n  a:\n   prompt-string:"+c.text+"\nprovider: codex\n", "\n", eol)
			_, err := Compile(Options{File: "swarm.yaml", Source: []byte(src)})
			var e *swarm.Error
			if !errors.As(err, &e) || !strings.Contains(e.Msg, `no task "x"`) {
				t.Fatalf("%s: %v", c.name, err)
			}
			if e.Line != c.line || e.Column != c.column {
				t.Errorf("%s: %d:%d, want %d:%d", c.name, e.Line, e.Column, c.line, c.column)
			}
		}
	}
}

// TestColumnsAreCharacters: columns are not bytes, and a byte order mark does not move them.
func TestColumnsAreCharacters(t *testing.T) {
	for _, bom := range []string{"", "\ufeff"} {
		_, err := Compile(Options{File: "f", Source: []byte(bom + "{provider: codex, tasks: {a: {prompt-string: é, desk: é}}}")})
		if err == nil || !strings.HasPrefix(err.Error(), "f:1:55: desk must be") {
			t.Error(err)
		}
	}
}

func TestBadBytes(t *testing.T) {
	for src, want := range map[string]string{
		"a: \xff\n":            "f:1:4: the byte 0xff is not UTF-8",
		"a: b\nc: é\x00\n":     "f:2:5: the control character U+0000 is not allowed",
		"a: \x1b[31m\n":        "f:1:4: the control character U+001B is not allowed",
		"\xff\xfea\x00:\x00":   "f:1:1: the byte 0xff is not UTF-8",
		"a: \u009b1m\n":        "f:1:4: the control character U+009B is not allowed",
		"version: \"\\0\"\n":   "f:1:10: version holds a NUL character",
		"tasks: {a: {x\n":      "f:1:14: the file stops in the middle",
		"tasks: !!binary eA==": "f:1:8: tasks must be a mapping",
	} {
		if _, err := Compile(Options{File: "f", Source: []byte(src)}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}

// TestWithoutPrompts: without Prompts no file is read, and a reference to one is an error.
func TestWithoutPrompts(t *testing.T) {
	if _, err := Compile(Options{File: "f", Source: []byte(hello)}); err != nil {
		t.Error(err)
	}
	for _, task := range []string{"prompt: x", "prompt-file: x", "prompt-string: '{{include: x}}'", "prompt-string: x, expect: {schema: x}"} {
		_, err := Compile(Options{File: "f", Source: []byte("provider: codex\ntasks: {a: {" + task + "}}\n")})
		if swarm.KindOf(err) != swarm.NotFound || swarm.ExitCode(err) != swarm.ExitBadInput {
			t.Errorf("%s: %v", task, err)
		}
	}
}

func TestWorstCasePlanIsBounded(t *testing.T) {
	src := "provider: codex\ntasks:\n  a: {prompt-string: x, parallelism: 1000}\n  b: {prompt-string: x, parallelism: 1000, depends_on: [a]}\n  c: {prompt-string: x, parallelism: 1000, depends_on: [a]}\n"
	_, err := Compile(Options{File: "f", Source: []byte(src)})
	if err == nil || !strings.HasPrefix(err.Error(), "f:5:3: this makes more than") {
		t.Error(err)
	}
}

func TestBodiesAreTemplates(t *testing.T) {
	b, err := Compile(Options{File: "swarm.yaml", Source: []byte(hello)})
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := prompt.Unmarshal(b.Bodies[0])
	if err != nil || swarm.HashOf(b.Bodies[0]) != b.Plan.Tasks[0].Prompt || tmpl.Parts[0].Text != "Say hello." {
		t.Errorf("%v %v", tmpl, err)
	}
}

func TestReadSettingsNeedsNothingElse(t *testing.T) {
	o := Options{File: "f", Source: []byte("tasks: {a: {prompt: nosuch}}\nwait_timeout: 7s\n"), MaxParallel: 3}
	s, err := ReadSettings(o)
	if err != nil || s.WaitTimeout != 7*time.Second || s.MaxParallel != 3 || s.ReplyTimeout != Defaults().ReplyTimeout {
		t.Errorf("%+v %v", s, err)
	}
	o.Set = []string{"wait_timeout=soon"}
	if _, err := ReadSettings(o); err == nil || !strings.HasPrefix(err.Error(), "--set wait_timeout=soon: ") {
		t.Error(err)
	}
}
