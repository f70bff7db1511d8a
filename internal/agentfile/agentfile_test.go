package agentfile

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Role
	}{
		"usual": {"---\nname: reviewer\ndescription: Reviews changes\ntools: Read, Grep\n---\n\nYou review.\n",
			Role{"reviewer", "Reviews changes", "You review.\n", 7}},
		"a description that is no YAML": {"---\nname: reviewer\ndescription: Use it after changes. Examples: <example>user: \"x\"</example>\n---\nYou review.",
			Role{"reviewer", `Use it after changes. Examples: <example>user: "x"</example>`, "You review.", 5}},
		"a long description": {"---\r\nname: 'a b'\r\ndescription: >\r\n  One\r\n  two\r\n---\r\n# Role\r\n---\r\nmore",
			Role{"a b", "One two", "# Role\n---\nmore", 7}},
	} {
		if got, err := Parse("f.md", []byte(c.text)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for text, want := range map[string]string{
		"You review.\n":                         "f.md:1:1: the file has no front matter",
		"---\nname: reviewer\nYou review.\n":    "f.md:1:1: the front matter that begins here has no end",
		"---\n---\nYou review.":                 "f.md:1: the file says nothing",
		"---\ndescription: d\n---\nYou review.": `f.md:1:1: the front matter has no "name"`,
		"---\nname: r\n---\n \n":                "f.md:3:1: there is no text",
		"---\nname: r\n---":                     "f.md:3:1: there is no text",
		"---\n\nname: [a]\n---\nYou review.":    "f.md:3:7: this must be a text: name",
		"---\n- a\n---\nYou review.":            "f.md:2:1: the front matter has no keys",
		"---\na: b: c\n---\nYou review.":        "f.md:2:5: this is not YAML",
	} {
		_, err := Parse("f.md", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
