package project

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/contextpack"
)

// surveyed returns the survey of a folder with these files.
func surveyed(t *testing.T, goal string, files map[string]string) contextpack.Pack {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	p := Open(dir, "", "")
	defer p.Close()
	found, left := p.Survey(goal)
	if len(left) > 0 {
		t.Errorf("it left out %+v", left)
	}
	return found
}

func facts(p contextpack.Pack) string {
	out, err := json.Marshal(p.RepoFacts)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func TestSurveyTellsAFolder(t *testing.T) {
	got := surveyed(t, "Mend `pkg/sum.go:12`, see notes.md.", map[string]string{
		"go.mod":            "module example.org/sum\n\ngo 1.26\n",
		"README.md":         "# Sum\n\n[![badge](x)](y)\nAdds numbers.\n",
		"notes.md":          "# Notes\n\nIt overflows.\n",
		"docs/PLAN.md":      "# Plan\n\nTwo steps.\n\nMore about them.\n\n## First\n- find it\n- mend it\n\n```\n# no heading\n```\n## Second\nTest it.\n",
		"docs/zebra.md":     "# Zebras\n\nStriped.\n",
		"pkg/sum.go":        "// Copyright somebody\n\n// Package sum adds.\npackage sum\n",
		"main.go":           "package main\n",
		"cmd/tool/main.go":  "#!/bin/x\n// Command tool prints.\npackage main\n",
		"swarm/swarm.yaml":  "agents: {a: {}}\n",
		"docs/picture.png":  "\x89PNG",
		"docs/deep/more.md": "# More\n",
	})
	want := contextpack.Pack{DocsRoot: "docs",
		DocRefs: []contextpack.Doc{
			{Path: "notes.md", Excerpt: "# Notes\nIt overflows."},
			{Path: "docs/PLAN.md", Excerpt: "# Plan\nTwo steps.\n## First\n- find it\n- mend it\n## Second\nTest it."},
			{Path: "docs/zebra.md", Excerpt: "# Zebras\nStriped."},
		},
		RepoFacts: contextpack.Notes{contextpack.Text("language", "go"), contextpack.Text("name", "example.org/sum"), contextpack.Text("packageManager", "go modules"), contextpack.Text("testCommand", "go test ./...")},
		RelevantFiles: []contextpack.File{
			{Path: "pkg/sum.go", Summary: "Package sum adds."},
			{Path: "README.md", Summary: "Sum: Adds numbers."},
			{Path: "main.go", Summary: "package main"},
			{Path: "cmd/tool/main.go", Summary: "Command tool prints."},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", got.JSON(), want.JSON())
	}
}

func TestSurveyKnowsLanguages(t *testing.T) {
	for want, files := range map[string]map[string]string{
		`{"language":"typescript","name":"app","packageManager":"pnpm","testCommand":"pnpm test"}`: {
			"package.json": `{"name":"app","scripts":{"test":"vitest"},"devDependencies":{"typescript":"5"}}`, "pnpm-lock.yaml": "x"},
		`{"language":"javascript","name":"app","packageManager":"yarn"}`: {"package.json": `{"name":"app","packageManager":"yarn@4.1.0","scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`},
		`{"language":"python","name":"tool","packageManager":"uv","testCommand":"pytest"}`: {
			"pyproject.toml": "[project]\nname = \"tool\"\n[dependency-groups]\ndev = [\"pytest\"]\n", "uv.lock": "x"},
		`{"language":"rust","name":"crab","packageManager":"cargo","testCommand":"make test"}`:                      {"Cargo.toml": "[package]\nname = \"crab\"\n", "Makefile": "all: test\ntest: build\n\tcargo test\n"},
		`{"language":"go, javascript","name":"m","packageManager":"go modules, npm","testCommand":"go test ./..."}`: {"go.mod": "module m\n", "package.json": "{}"},
		`{"language":"java","packageManager":"maven","testCommand":"mvn test"}`:                                     {"pom.xml": "<project/>"},
		`{}`: {"notes.txt": "x", "package.json": "{broken"},
	} {
		if got := facts(surveyed(t, "x", files)); got != want {
			t.Errorf("%v\ngives %s\nnot   %s", files, got, want)
		}
	}
}

// A survey opens no file that may hold a secret and none outside of the folder, even if the goal
// names it.
func TestSurveyKeepsOut(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	write(t, base, map[string]string{
		"outside.md":                "outside-canary",
		"work/.env":                 "KEY=env-canary",
		"work/config/.env.local":    "KEY=env-canary",
		"work/id_rsa":               "key-canary",
		"work/server.pem":           "pem-canary",
		"work/secrets.yaml":         "yaml-canary",
		"work/.ssh/config":          "ssh-canary",
		"work/docs/real.md":         "# Real",
		"work/internal/secret/s.go": "// Package secret hides things.\npackage secret\n",
	})
	for link, to := range map[string]string{"README.md": ".env", "docs/PLAN.md": "../../outside.md", "main.go": "../outside.md", "AGENTS.md": "secrets.yaml", "elsewhere": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	huge, err := os.Create(filepath.Join(dir, "huge.txt"))
	must(t, err)
	must(t, huge.Truncate(MaxFile+1))
	must(t, huge.Close())
	p := Open(dir, "", "")
	defer p.Close()
	got, left := p.Survey("Look at .env config/.env.local ./id_rsa server.pem secrets.yaml .ssh/config ../outside.md /etc/passwd elsewhere/outside.md huge.txt internal/secret/s.go a\\b ..")
	text := string(got.JSON())
	if strings.Contains(text, "canary") {
		t.Errorf("a secret got out: %s", text)
	}
	want := []contextpack.File{{Path: "huge.txt"}, {Path: "internal/secret/s.go", Summary: "Package secret hides things."}}
	if !reflect.DeepEqual(got.RelevantFiles, want) || len(got.DocRefs) != 1 || got.DocRefs[0].Path != "docs/real.md" {
		t.Error(text)
	}
	var omitted []string
	for _, l := range left {
		omitted = append(omitted, l.Part+" "+l.Name+" "+l.How+": "+l.Why)
	}
	wantLeft := []string{
		"relevantFiles .env dropped: " + maySecret, "relevantFiles config/.env.local dropped: " + maySecret, "relevantFiles server.pem dropped: " + maySecret,
		"relevantFiles secrets.yaml dropped: " + maySecret, "relevantFiles .ssh/config dropped: " + maySecret, "docRefs ../outside.md dropped: " + isOutside,
		"docRefs elsewhere/outside.md dropped: " + isLinked, "docRefs docs/PLAN.md dropped: " + isLinked, "docRefs AGENTS.md dropped: " + isLinked,
		"docRefs README.md dropped: " + isLinked, "relevantFiles main.go dropped: " + isLinked,
	}
	if !slices.Equal(omitted, wantLeft) {
		t.Errorf("it left out\n%s\nnot\n%s", strings.Join(omitted, "\n"), strings.Join(wantLeft, "\n"))
	}
	if empty, left := Open(filepath.Join(base, "nosuch"), "", "").Survey("x"); !empty.Bare() || left != nil {
		t.Errorf("a folder that is not there tells %s, %v", empty.JSON(), left)
	}
}

// A survey reports what it has no room for, and counts what is too much to name.
func TestSurveyTellsWhatItHasNoRoomFor(t *testing.T) {
	files := map[string]string{"docs/PLAN.md": strings.Repeat("## A step\n\nTo be done.\n\n", 1000), "docs/a.md": "\xff\xfe", "docs/b.md": ""}
	for n := range 100 {
		files[fmt.Sprintf("docs/note-%03d.md", n)] = "# A note\n"
	}
	dir := t.TempDir()
	write(t, dir, files)
	p := Open(dir, "", "")
	defer p.Close()
	got, left := p.Survey("x")
	if len(got.DocRefs) != mostDocs || len(got.DocRefs[0].Excerpt) > 4100 {
		t.Errorf("%d docs", len(got.DocRefs))
	}
	const many = "there are more than 40 docs"
	if len(left) != 2+mostLeft+1 || left[0] != (swarm.LeftOut{Part: inDocs, Name: "docs/PLAN.md", How: contextpack.Shortened, Why: "its excerpt has 4000 bytes at most"}) ||
		left[1] != (swarm.LeftOut{Part: inDocs, Name: "docs/a.md", How: contextpack.Dropped, Why: noText}) ||
		left[2] != (swarm.LeftOut{Part: inDocs, Name: "docs/note-039.md", How: contextpack.Dropped, Why: many}) ||
		left[22] != (swarm.LeftOut{Part: inDocs, Name: "41 more", How: contextpack.Dropped, Why: many}) {
		t.Errorf("it left out %+v", left)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("# A\n\ntext\n```\n# b\n```\n", 10, 20)
	f.Add("\xff\n#\n\u2028", 0, 3)
	f.Fuzz(func(t *testing.T, text string, section, most int) {
		section, most = section&0xfff, most&0xfff
		if got, _ := excerpt(text, section, most); len(got) > most+len(" …") {
			t.Errorf("%d bytes of %d", len(got), most)
		}
		summarize("a.go", text)
		if s := summarize("a.md", text); strings.ContainsAny(s, "\n") {
			t.Errorf("%q", s)
		}
	})
}
