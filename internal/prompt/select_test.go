package prompt

import (
	"strings"
	"testing"

	"swarm"
)

func TestSelect(t *testing.T) {
	const lines = "one\ntwo\n\nfour\n\n"
	const data = ` {"a": {"b": [{"c": "hi\nthere"}, 1.50, 12345678901234567890, null, true]}, "x y": {"z.z": 1}, "html": "<&>"} `
	for _, c := range []struct{ text, selector, want string }{
		{lines, "last_1_lines", "four"},
		{lines, "last_2_lines", "\nfour"},
		{lines, "last_4_lines", "one\ntwo\n\nfour"},
		{lines, "last_99_lines", "one\ntwo\n\nfour"},
		{lines, "first_1_lines", "one"},
		{lines, "first_3_lines", "one\ntwo\n"},
		{lines, "first_99_lines", "one\ntwo\n\nfour"},
		{"", "last_1_lines", ""},
		{"", "first_1_lines", ""},
		{"a\r\nb\r\n", "last_1_lines", "b"},
		{data, ".a.b[0].c", "hi\nthere"},
		{data, ".a.b[1]", "1.50"},
		{data, ".a.b[2]", "12345678901234567890"},
		{data, ".a.b[3]", "null"},
		{data, ".a.b[4]", "true"},
		{data, ".a.b[0]", `{"c":"hi\nthere"}`},
		{data, `.["x y"]["z.z"]`, "1"},
		{data, `.html`, "<&>"},
		{`[[1, 2]]`, ".[0][1]", "2"},
		{`"text"`, ".", "text"},
		{` [1,
 2] `, ".", "[1,2]"},
	} {
		got, err := Select([]byte(c.text), c.selector)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.selector, got, err, c.want)
		}
	}
}

func TestSelectSaysWhatWasThere(t *testing.T) {
	const data = `{"result": {"files": ["a", "b"], "note": "fine"}}`
	for _, c := range []struct{ text, selector, err, hint string }{
		{data, ".resutl", `the output has no key "resutl": it has result`, `did you mean "result"?`},
		{data, ".result.file", `.result has no key "file": it has files, note`, `did you mean "files"?`},
		{data, ".result.zzzzzz", `.result has no key "zzzzzz": it has files, note`, "choose one of files, note"},
		{data, ".result.note.x", `.result.note has no key "x": it is "\"fine\""`, ""},
		{data, ".result.files.x", `.result.files has no key "x": it is a list`, ""},
		{data, ".result[0]", `.result is no list but an object`, ""},
		{data, ".result.files[2]", `.result.files has no place 2: it is a list of 2`, "counted from 0"},
		{"{}", ".a", `the output has no key "a": it has none`, ""},
		{"Sure! Here is it", ".a", `it is not JSON: invalid character 'S' looking for beginning of value; it begins "Sure! Here is it"`, "print JSON and nothing else"},
		{"", ".a", `it is not JSON: unexpected end of JSON input; it begins ""`, ""},
		{"{} {}", ".a", `it is not JSON`, ""},
		{data, "lines", `"lines" does not say which part of an output to take`, "write last_50_lines"},
		{data, "first_x_lines", `"first_x_lines" does not say`, ""},
		{data, "last_9999999999_lines", `"last_9999999999_lines" does not say`, ""},
		{data, "last_-1_lines", `"last_-1_lines" does not say`, ""},
		{data, ".a[x]", `the JSON path ".a[x]" cannot be read at "[x]"`, ""},
		{data, ".a[", `the JSON path ".a[" cannot be read at "["`, ""},
		{data, `.a["b]`, `the JSON path ".a[\"b]" cannot be read`, ""},
		{data, ".a]", `the JSON path ".a]" cannot be read at "]"`, ""},
	} {
		_, err := Select([]byte(c.text), c.selector)
		if err == nil || !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s: %v\nwant %s", c.selector, err, c.err)
			continue
		}
		if e := err.(*swarm.Error); e.Kind != swarm.BadPrompt || !strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: kind %s, hint %q", c.selector, e.Kind, e.Hint)
		}
	}
}

func FuzzSelect(f *testing.F) {
	f.Add("a\nb\n", "last_1_lines")
	f.Add(`{"a":[1,{"b":"x"}]}`, `.a[1]["b"]`)
	f.Add("[[]", ".[0]")
	f.Fuzz(func(t *testing.T, text, selector string) {
		got, err := Select([]byte(text), selector)
		if err == nil && strings.HasSuffix(selector, "_lines") && !strings.Contains(text, string(got)) {
			t.Errorf("%q of %q is %q", selector, text, got)
		}
	})
}
