package toolrule

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/hostrule"
)

var servers = []string{"search", "search__deep", "docs"}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		entry string
		want  Rule
	}{
		{"file_read", Rule{Tool: FileRead}},
		{" file_list ", Rule{Tool: FileList}},
		{"file_write( ./docs/** )", Rule{Tool: FileWrite, Path: "docs/**"}},
		{"command(go test)", Rule{Tool: Command, Words: []string{"go", "test"}}},
		{"command( git )", Rule{Tool: Command, Words: []string{"git"}}},
		{"web_fetch(Example.ORG)", Rule{Tool: WebFetch, Host: hostrule.Rule{Host: "example.org"}}},
		{"web_fetch(*.example.org)", Rule{Tool: WebFetch, Host: hostrule.Rule{Host: "*.example.org"}}},
		{"web_fetch(localhost:08080)", Rule{Tool: WebFetch, Host: hostrule.Rule{Host: "localhost", Port: "8080"}}},
		{"web_fetch([::1]:8080)", Rule{Tool: WebFetch, Host: hostrule.Rule{Host: "::1", Port: "8080"}}},
		{"web_fetch(::ffff:10.0.0.1)", Rule{Tool: WebFetch, Host: hostrule.Rule{Host: "10.0.0.1"}}},
		{"search", Rule{Server: "search"}},
		{"search.find", Rule{Server: "search", Name: "find"}},
		{"search__find", Rule{Server: "search", Name: "find"}},
		{"search__deep", Rule{Server: "search__deep"}},
		{"search__deep__find", Rule{Server: "search__deep", Name: "find"}},
		{"docs.a.b", Rule{Server: "docs", Name: "a.b"}},
	} {
		got, err := Parse(c.entry, servers)
		if err != nil || got.String() != c.want.String() || got.Server != c.want.Server || got.Name != c.want.Name {
			t.Errorf("%q is %+v, %v", c.entry, got, err)
		}
	}
}

func TestParseSaysWhatToWrite(t *testing.T) {
	for entry, want := range map[string]string{
		"command":                     "command(go test)",
		"command()":                   "command(go test)",
		"web_fetch":                   "web_fetch(example.org)",
		"web_fetch( )":                "web_fetch(example.org)",
		"web_fetch(*)":                "name the hosts",
		"web_fetch(*.org)":            "name the hosts",
		"web_fetch(https://a.org/)":   "without http://",
		"web_fetch(a.org/path)":       "without http://",
		"web_fetch(bücher.example)":   "xn--",
		"web_fetch(a..org)":           "the host alone",
		"web_fetch(a.org:0)":          "with a port",
		"command(go test":             "write command(…)",
		"command(\"go test\")":        "with spaces between them",
		"command(*)":                  "one entry for each program",
		"command($SHELL)":             "one entry for each program",
		"file_write()":                "or which files: file_write(docs/**)",
		"file_write(../x)":            "relative to the root",
		"file_write(/etc/x)":          "relative to the root",
		"file_write(docs/)":           "write what is in it: file_write(docs/**)",
		"file_write(a[)":              "with * for any characters",
		"file_read(src)":              "its folder is the agent's root",
		"file_raed":                   `did you mean "file_read"?`,
		"comand":                      "command(go test)",
		"serch":                       `did you mean "search"?`,
		"serch.find":                  `did you mean "search"?`,
		"Bash":                        "choose one of file_read",
		"search.":                     "",
		"":                            "choose one of",
		"FILE_READ":                   `did you mean "file_read"?`,
		"docs(x)":                     "",
		strings.Repeat("x", 1_000_00): "choose one of",
	} {
		_, err := Parse(entry, servers)
		e, ok := err.(*swarm.Error)
		if !ok || e.Kind != swarm.BadInput || !strings.Contains(e.Hint, want) || len(e.Error()) > 300 {
			t.Errorf("%.30q: %v", entry, err)
		} else if e.Hint == "" {
			t.Errorf("%q has no hint", entry)
		}
	}
}

func TestRuns(t *testing.T) {
	r, _ := Parse("command(go test)", nil)
	for command, want := range map[string]bool{
		"go test": true, "go test ./...": true, "go": false, "go vet": false, "go testing": false, "/usr/bin/go test": false, "./go test": false,
		"Go test": false, "sh -c go test": false, "env go test": false, "": false,
	} {
		if got := r.Runs(strings.Fields(command)); got != want {
			t.Errorf("%q is %v", command, got)
		}
	}
	if r.Runs([]string{"go test"}) || r.Runs([]string{"go", "test;", "rm"}) {
		t.Error("words are not cut")
	}
}

// A parsed rule survives a round trip through String.
func FuzzParse(f *testing.F) {
	for _, entry := range []string{"command(go test)", "web_fetch(*.a.b:80)", "web_fetch([::1]:8080)", "search__deep.x", "file_read", "command((", "web_fetch(::1%eth0)"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		r, err := Parse(entry, servers)
		if err != nil {
			if e, ok := err.(*swarm.Error); !ok || e.Hint == "" {
				t.Errorf("%q: %v without a hint", entry, err)
			}
			return
		}
		r.Runs([]string{"a"})
		Hosts([]Rule{r}).AllowsHost("a", "80")
		again, err := Parse(r.String(), servers)
		if err != nil || again.String() != r.String() {
			t.Errorf("%q is %q, which is %q, %v", entry, r, again, err)
		}
	})
}

func TestPathPattern(t *testing.T) {
	for _, c := range []struct {
		pattern PathPattern
		literal string
		yes, no string
	}{
		{"a.md", "a.md", "a.md", "b.md,x/a.md,a.md/x"},
		{"docs/**", "docs", "docs/a,docs/a/b", "doc/a,x/docs/a"},
		{"**", "", "a,a/b", ""},
		{"**/a.go", "", "a.go,x/a.go,x/y/a.go", "b.go,x/a.go/b"},
		{"a/**/b/*.md", "a", "a/b/x.md,a/x/b/y.md,a/b/b/z.md", "a/x.md,a/b/c/x.md,b/x.md"},
		{"a/b*/c", "a", "a/b/c,a/bx/c", "a/x/c,a/b"},
	} {
		for want, list := range map[bool]string{true: c.yes, false: c.no} {
			for path := range strings.SplitSeq(list, ",") {
				if path != "" && c.pattern.Matches(path) != want {
					t.Errorf("%s and %s: %v", c.pattern, path, !want)
				}
			}
		}
		if got := c.pattern.Literal(); got != c.literal {
			t.Errorf("%s names %q", c.pattern, got)
		}
	}
}
