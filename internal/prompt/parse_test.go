package prompt

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"

	"swarm"
)

// folder is a set of prompt files by path.
type folder map[string]string

func (f folder) include(from, rel string) (string, []byte, error) {
	name := path.Join(path.Dir(from), rel)
	text, ok := f[name]
	if !ok {
		return "", nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return name, []byte(text), nil
}

// parse writes out the parsed text, with each reference as [kind name selector @line:column].
func parse(t *testing.T, f folder, text string) (string, []*swarm.Error) {
	t.Helper()
	tpl, warnings, err := Parse(Source{File: "main.md", Text: []byte(text)}, f.include)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var b strings.Builder
	for _, p := range tpl.Parts {
		if p.Kind == KindText {
			b.WriteString(p.Text)
			continue
		}
		fmt.Fprintf(&b, "[%s @%d:%d]", strings.Join(strings.Fields(p.Kind+" "+p.Name+" "+p.Selector), " "), p.Line, p.Column)
	}
	return b.String(), warnings
}

func TestParse(t *testing.T) {
	files := folder{
		"part.md":     "one\ntwo\n\n",
		"raw.txt":     "raw {{output:x}}",
		"sub/a.md":    "a({{include: b}})",
		"sub/b.md":    "b",
		"bom.md":      "\uFEFF{{output:x}}",
		"escaped.md":  `\{{output:x}}`,
		"trailing.md": "one\r\n",
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"text alone", "Write { code } {a} }}.\n", "Write { code } {a} }}.\n"},
		{"an output", "A\n{{output:x}}\nB", "A\n[output x @2:1]\nB"},
		{"blanks around the name", "{{output: x }}{{input:\tx}}", "[output x @1:1][input x @1:15]"},
		{"selectors", "{{output:x:last_50_lines}} {{input:y : .a.b[0] }}", "[output x last_50_lines @1:1] [input y .a.b[0] @1:28]"},
		{"a copy", "{{output:code.2}}", "[output code.2 @1:1]"},
		{"standard input", "{{STDIN}}", "[stdin @1:1]"},
		{"columns count characters", "äö {{output:x}}", "äö [output x @1:4]"},
		{"lines end in CRLF", "a\r\n{{output:x}}\r\n", "a\r\n[output x @2:1]\r\n"},
		{"a byte order mark", "\uFEFF{{output:x}}", "[output x @1:1]"},
		{"escaped", `\{{output:x}} \{{x}}`, "{{output:x}} {{x}}"},
		{"escaped at the end of a reference", `{{output:x}}\{{output:y}}`, "[output x @1:1]{{output:y}}"},
		{"two backslashes", `\\{{output:x}}`, `\{{output:x}}`},
		{"a backslash elsewhere", `\{ \n {\{`, `\{ \n {\{`},
		{"braces around a reference", `{"a":{{output:x}}} {{{output:x}}}`, `{"a":[output x @1:6]} {[output x @1:21]}`},
		{"a reference behind lone braces", "{{ a {{output:x}} }}", "{{ a [output x @1:6] }}"},
		{"not closed in its line", "{{output:x\n}}", "{{output:x\n}}"},
		{"unknown ones stay", "{{name}} ${{ secrets.X }} {{}} [][]int{{1}, {2}}", "{{name}} ${{ secrets.X }} {{}} [][]int{{1}, {2}}"},
		{"an include", "A\n{{include: part}}\nB", "A\none\ntwo\nB"},
		{"an include with an extension", "{{include:raw.txt}}", "raw [output x @1:5]"},
		{"an include of an include", "{{include: sub/a.md}}", "a(b)"},
		{"an include with a byte order mark", "x {{include: bom}}", "x [output x @1:1]"},
		{"an include's escape", "{{include: escaped}}", "{{output:x}}"},
		{"an include's CRLF", "{{include: trailing}}\r\nB", "one\r\nB"},
		{"an include twice", "{{include: sub/b}}{{include: sub/b}}", "bb"},
		{"not UTF-8", "a\xff\xfeb\x00c", "a\uFFFDb\uFFFDc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, _ := parse(t, files, c.text); got != c.want {
				t.Errorf("\ntext %q\ngot  %q\nwant %q", c.text, got, c.want)
			}
		})
	}
}

func TestParseWarns(t *testing.T) {
	for _, c := range []struct{ text, where, hint string }{
		{"{{ output:x }}", "main.md:1:1: ", "did you mean {{output:x}}?"},
		{"a\nb {{outputs:x}}", "main.md:2:3: ", "did you mean {{output:x}}?"},
		{"{{Output:x}}", "main.md:1:1: ", "did you mean {{output:x}}?"},
		{"{{output x}}", "main.md:1:1: ", "did you mean {{output:x}}?"},
		{"{{output}}", "main.md:1:1: ", "did you mean {{output:name}}?"},
		{"{{inlcude: a/b.md}}", "main.md:1:1: ", "did you mean {{include: a/b.md}}?"},
		{"{{ STDIN }}", "main.md:1:1: ", "did you mean {{STDIN}}?"},
		{"{{stdin}}", "main.md:1:1: ", "did you mean {{STDIN}}?"},
		{"{{output:x}", "main.md:1:1: ", "did you mean {{output:x}}?"},
		{"{{output:x {{output:y}}", "main.md:1:1: ", "did you mean {{output:x}}?"},
		{"{{customer}}", "main.md:1:1: ", "directives are "},
	} {
		_, warnings := parse(t, nil, c.text)
		if len(warnings) != 1 {
			t.Errorf("%q: %d warnings", c.text, len(warnings))
			continue
		}
		w := warnings[0]
		if !strings.HasPrefix(w.Error(), c.where) || !strings.HasPrefix(w.Hint, c.hint) {
			t.Errorf("%q: %v\nhint: %s", c.text, w, w.Hint)
		}
	}
	for _, quiet := range []string{"{{output:x}} {{STDIN}}", `\{{x}}`, "a {{ b", "{{{{{{", "f(x) {{\n}}"} {
		if _, warnings := parse(t, nil, quiet); len(warnings) > 0 {
			t.Errorf("%q: %v", quiet, warnings[0])
		}
	}
}

// Any number of unknown directives gives a readable number of warnings, and the last one says that
// there are more.
func TestParseWarnsOnlySoOften(t *testing.T) {
	_, warnings := parse(t, nil, strings.Repeat("{{x}}\n", 1000))
	if len(warnings) != maxWarnings+1 {
		t.Fatalf("%d warnings", len(warnings))
	}
	if last := warnings[maxWarnings]; last.Line != maxWarnings+1 || !strings.Contains(last.Msg, "nothing more is said") {
		t.Errorf("the last: %v", last)
	}
}

func TestParseRefuses(t *testing.T) {
	files := folder{
		"a.md":     "\n {{include: b}}",
		"b.md":     "{{include: a}}",
		"self.md":  "{{include: self}}",
		"bad.md":   "fine\n{{output:UPPER}}",
		"large.md": strings.Repeat("x", MaxPrompt/2),
	}
	for i := range 12 {
		files[fmt.Sprintf("deep%d.md", i)] = fmt.Sprintf("{{include: deep%d}}", i+1)
	}
	files["deep12.md"] = "the end"
	for _, c := range []struct{ text, err, hint string }{
		{"{{output:../../x}}", `main.md:1:1: {{output:../../x}}: "../../x" is not a name for a task`, "names are made of"},
		{"a\n  {{output:}}", `main.md:2:3: {{output:}}: "" is not a name`, "names are made of"},
		{"{{output:-rf}}", `main.md:1:1: {{output:-rf}}: "-rf" is not a name`, ""},
		{"{{output:code.0}}", `main.md:1:1: {{output:code.0}}: "code.0" is not a name`, ""},
		{"{{output:code.2.3}}", `main.md:1:1: {{output:code.2.3}}: "code.2.3" is not a name`, ""},
		{"{{output:user}}", `main.md:1:1: {{output:user}}: the name "user" is reserved`, "reserved are"},
		{"{{input:" + strings.Repeat("x", 300) + "}}", "main.md:1:1: {{input:xxx", ""},
		{"{{output:x\x1b[2J}}", "main.md:1:1: {{output:x\uFFFD[2J}}", ""},
		{"{{output:x:}}", `main.md:1:1: {{output:x:}}: "" does not say which part`, "write last_50_lines"},
		{"{{output:x:last_0_lines}}", `main.md:1:1: {{output:x:last_0_lines}}: "last_0_lines" does not say`, "write last_50_lines"},
		{"{{output:x:.a..b}}", `main.md:1:1: {{output:x:.a..b}}: the JSON path ".a..b" cannot be read at "..b"`, "keys follow a dot"},
		{"{{include: }}", "main.md:1:1: {{include: }} names no file", "write {{include: path}}"},
		{"x {{include: nosuch}}", "main.md:1:3: the file nosuch.md, which is included here, is not there", "relative to the file that includes"},
		{"{{include: a}}", "b.md:1:1: the file includes itself: a.md → b.md → a.md", ""},
		{"{{include: self}}", "self.md:1:1: the file includes itself: self.md → self.md", ""},
		{"{{include: bad}}", "bad.md:2:1: {{output:UPPER}}: ", ""},
		{"{{include: deep1}}", "deep10.md:1:1: includes go deeper than 10 files: main.md → deep1.md → ", ""},
		{"{{include: large}}\n{{include: large}}", "main.md:2:1: the prompt is larger than 4 MB with large.md", ""},
		{strings.Repeat("x", MaxPrompt+1), "main.md: the prompt is larger than 4 MB", ""},
		{strings.Repeat("\x00", MaxPrompt/3+1), "main.md: the prompt is larger than 4 MB", ""}, // each becomes three
	} {
		_, _, err := Parse(Source{File: "main.md", Text: []byte(c.text)}, files.include)
		if err == nil || !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%.40q\ngot  %v\nwant %s", c.text, err, c.err)
			continue
		}
		if swarm.ExitCode(err) != swarm.ExitBadInput {
			t.Errorf("%.40q: exit code %d", c.text, swarm.ExitCode(err))
		}
		if e := err.(*swarm.Error); !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%.40q: hint %q", c.text, e.Hint)
		}
	}
	if _, _, err := Parse(Source{File: "main.md", Text: []byte("{{include: deep3}}")}, files.include); err != nil {
		t.Errorf("ten files inside each other: %v", err)
	}
	if _, _, err := Parse(Source{File: "x", Text: []byte("{{include: a}}")}, nil); err == nil {
		t.Error("an include without a folder passed")
	}
}

// Ten files that include each other ten times would be ten billion texts. Parse stops when 4 MB are
// read.
func TestParseStopsAnIncludeBomb(t *testing.T) {
	files, reads := folder{"bomb9.md": ""}, 0
	for i := range 9 {
		files[fmt.Sprintf("bomb%d.md", i)] = strings.Repeat(fmt.Sprintf("{{include: bomb%d}}", i+1), 10)
	}
	_, _, err := Parse(Source{File: "main.md", Text: []byte("{{include: bomb0}}")}, func(from, rel string) (string, []byte, error) {
		reads++
		return files.include(from, rel)
	})
	if err == nil || !strings.Contains(err.Error(), "larger than 4 MB") {
		t.Errorf("%v", err)
	}
	if reads > MaxPrompt/10 {
		t.Errorf("%d files were read", reads)
	}
}

func TestParseKeepsTheReasonOfAnInclude(t *testing.T) {
	refuse := func(from, rel string) (string, []byte, error) {
		return "", nil, swarm.Errorf(swarm.BadInput, "%s leads out of the prompt folders", rel).WithHint("move it there")
	}
	_, _, err := Parse(Source{File: "main.md", Text: []byte("a\n{{include: ../../etc/passwd}}")}, refuse)
	e, ok := err.(*swarm.Error)
	if !ok || e.Error() != "main.md:2:1: ../../etc/passwd.md cannot be included: ../../etc/passwd.md leads out of the prompt folders" || e.Hint != "move it there" {
		t.Errorf("%v, hint %q", err, e.Hint)
	}
}

func TestParseCountsFromWhereATextBegins(t *testing.T) {
	tpl, warnings, err := Parse(Source{File: "swarm.yaml", Text: []byte("a {{output:x}}\n{{outptu:x}}"), Line: 7, Column: 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Ref{{Kind: KindOutput, Name: "x", File: "swarm.yaml", Line: 7, Column: 22}}
	if got := tpl.Refs(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if len(warnings) != 1 || warnings[0].Line != 8 || warnings[0].Column != 1 {
		t.Errorf("%v", warnings)
	}
}

func TestTemplateIsStored(t *testing.T) {
	tpl, _, err := Parse(Source{File: "a<b>.md", Text: []byte("a \xff <b> \u2028 {{output:x:.a}} {{STDIN}}")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := tpl.Marshal()
	again, err := Unmarshal(stored)
	if err != nil || !reflect.DeepEqual(again, tpl) {
		t.Errorf("%v\n%s", err, stored)
	}
	if got := string(Template{}.Marshal()); got != `{"parts":[]}` {
		t.Errorf("an empty one is %s", got)
	}
	for _, bad := range []string{"", "[]", `{"parts":[{"kind":"retry"}]}`} {
		if _, err := Unmarshal([]byte(bad)); swarm.KindOf(err) != swarm.Storage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{nil, ""},
		{[]string{"", "\n", "\r\n"}, ""},
		{[]string{"a\n", "\n\nb\n\n", "c"}, "a\n\nb\n\nc"},
		{[]string{"", "a", "\n", "b"}, "a\n\nb"},
		{[]string{"  a", "\n{{output:x}}\n", "b"}, "  a\n\n{{output:x}}\n\nb"},
	} {
		var ts []Template
		for _, text := range c.texts {
			tpl, _, err := Parse(Source{Text: []byte(text)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ts = append(ts, tpl)
		}
		var got strings.Builder
		for _, p := range Join(ts...).Parts {
			got.WriteString(p.String())
		}
		if got.String() != c.want {
			t.Errorf("%q: got %q", c.texts, got.String())
		}
	}
}

func TestMaxBytesIsEnough(t *testing.T) {
	tpl, _, err := Parse(Source{Text: []byte("a {{output:x}} b {{input:y}}{{STDIN}}")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1000
	text := []byte(strings.Repeat("x", size))
	p, err := Build(Turn{
		Text: tpl, Stdin: text, Inputs: map[string]string{"y": strings.Repeat("y", swarm.MaxName)},
		Output: func(string) (Output, bool) { return Output{Text: text}, true },
	})
	if most := tpl.MaxBytes(size); err != nil || int64(len(p.Text)) > most || most > int64(len(p.Text))+20 {
		t.Errorf("%d bytes at most, %d there, %v", most, len(p.Text), err)
	}
}
