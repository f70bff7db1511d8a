package yamlfile

import (
	"fmt"
	"strings"
	"testing"
)

// The parser would take gigabytes or hours for these files, so it must not see them.
func TestCostlyTextIsRefusedUnparsed(t *testing.T) {
	var tags strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&tags, "%%TAG !%d! x\n", i)
	}
	for name, src := range map[string]string{
		"anchors in one line": strings.Repeat("&a ", MaxFile/3),
		"aliases in one line": "[" + strings.Repeat("*a ", MaxFile/4),
		"tags in one line":    strings.Repeat("!a ", MaxFile/3),
		"texts in one line":   strings.Repeat(`"" `, MaxFile/3),
		"words in one line":   strings.Repeat(`'' `, MaxFile/3),
		"directives":          tags.String(),
		"keys":                strings.Repeat("k:\n", maxItems+1),
	} {
		if _, _, msg, hint := badText([]byte(src)); msg == "" || hint == "" {
			t.Errorf("%s: the parser would see them", name)
		}
	}
	if _, _, msg, _ := badText([]byte("%YAML 1.2\n---\ntasks: {a: {prompt-string: x}}\n")); msg != "" {
		t.Error(msg)
	}
}

// The tests of compose files cover Parse. This test covers what holds for all files.
func TestParse(t *testing.T) {
	for src, want := range map[string]string{
		"":                       "f.yaml:1: the file says nothing",
		"# nothing\n":            "f.yaml:1: the file says nothing",
		"a: [1\n":                "f.yaml:1:6: the file stops in the middle: ",
		"a:\n\tb: 1\n":           "f.yaml:2:1: a tab is used as indentation",
		"-\ta: 1\n\tb: 1\n":      "f.yaml:1:2: a tab is used as indentation",
		"a: 1\n---\nb: 1\n":      "f.yaml:2:1: a second document begins here",
		"a: \xff\n":              "f.yaml:1:4: the byte 0xff is not UTF-8",
		"a: \x07\n":              "f.yaml:1:4: the control character U+0007 is not allowed",
		strings.Repeat("[", 100): "f.yaml:1:65: more than 64 levels deep",
	} {
		_, err := Parse("f.yaml", []byte(src), "write something")
		if err == nil || !strings.HasPrefix(err.Error(), want) || err.Hint == "" {
			t.Errorf("%q: %v (%s)", src, err, err.Hint)
		}
	}
	n, err := Parse("f.yaml", []byte("\ufeffa: 1\r\nb: 2\r\n"), "")
	if err != nil || len(n.Content) != 4 || n.Content[2].Line != 2 {
		t.Errorf("%v, %v", n, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range []string{"a: [1, {b: 'c'}]\n", "- &a x\n- *a\n", "%YAML 1.2\n---\na: |\n  b\n", "a:\n\tb"} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if n, err := Parse("f", src, "hint"); (n == nil) == (err == nil) {
			t.Fatalf("%v, %v", n, err)
		}
	})
}
