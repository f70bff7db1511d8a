package snapshot

import (
	"strings"
	"testing"
)

// With Firm, rules from before the first snapshot hide files, wherever they stand. Later rules hide
// nothing.
func TestRulesThatComeLater(t *testing.T) {
	for what, r := range map[string]*repo{"in a repository": newRepo(t), "alone": alone(t)} {
		t.Run(what, func(t *testing.T) {
			r.t = t
			r.write(".gitignore", "*.log\n/build/\n!keep.log\n")
			r.write("#first/.gitignore", "!wanted.log\n")
			r.write("sub/.gitignore", "# a comment\n*.o\n/only-here\ndeep/x.*\n!wanted.o\nfolder/\n\\#odd\n")
			r.write("venv/.gitignore", "*\n") // hides itself
			r.write("venv/lib/.gitignore", "!*\n")
			f := r.folder()
			f.Firm = true
			before := r.record(f)
			r.write("new/.gitignore", "*\n")
			r.write("new/evil.go", "evil\n")
			r.write("sub/.gitignore", "*\n")
			for _, hidden := range []string{"a.log", "deep/a.log", "build/a.txt", "sub/a.o", "sub/very/deep/a.o", "sub/only-here", "sub/deep/x.txt", "sub/a/folder/x.txt", "sub/#odd", "venv/x.txt", "venv/lib/x.txt"} {
				r.write(hidden, "hidden\n")
			}
			for _, seen := range []string{"keep.log", "sub/build/a.txt", "a.o", "sub/wanted.o", "sub/very/only-here", "sub/very/deep/x.txt", "sub/evil.go", "#first/wanted.log"} {
				r.write(seen, "seen\n")
			}
			const want = "#first/wanted.log a.o keep.log new/.gitignore new/evil.go sub/.gitignore sub/build/a.txt sub/evil.go sub/very/deep/x.txt sub/very/only-here sub/wanted.o"
			if got := strings.Join(r.compare(f, before, r.record(f), 1<<20).Files, " "); got != want {
				t.Errorf("seen:\n%s\nwanted:\n%s", got, want)
			}
		})
	}
}

// Without Firm, the current rules count, because an agent that builds a project also writes its
// .gitignore.
func TestRulesOfThePresent(t *testing.T) {
	r := newRepo(t).committed()
	before := r.snapshot()
	r.write(".gitignore", "node_modules/\n")
	r.write("node_modules/x/index.js", "x\n")
	if got := r.names(before.Hash, ""); got != "A .gitignore" {
		t.Errorf("seen: %q", got)
	}
}

// Files of an existing nested repository are recorded at any depth, under the rules of the outer
// one.
func TestNewFilesInRepositoriesInside(t *testing.T) {
	for _, firm := range []bool{false, true} {
		r := newRepo(t)
		r.write(".gitignore", "*.log\n")
		r.committed()
		for _, folder := range []string{"pkg", "pkg/deep/er"} {
			r.write(folder+"/x.txt", "x\n")
			r.git("init", "-q", folder)
		}
		f := r.folder()
		f.Firm = firm
		before := r.record(f)
		if again := r.record(f); again != before {
			t.Error("nothing was changed")
		}
		r.write("pkg/new.go", "x\n")
		r.write("pkg/deep/er/new.go", "x\n")
		r.write("pkg/deep/er/x.log", "x\n")
		r.write("another/x.go", "x\n")
		r.git("init", "-q", "another")
		if got := strings.Join(r.compare(f, before, r.record(f), 1<<20).Files, " "); got != "another/x.go pkg/deep/er/new.go pkg/new.go" {
			t.Errorf("firm: %v: seen: %s", firm, got)
		}
	}
}
