package project

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/contextpack"
)

// Limits of a survey. A context pack is cut to its own size later.
const (
	mostNames = 2000 // entries read of one folder
	mostDocs  = 40
	mostFiles = 30
	mostNamed = 20 // files that a goal names
)

const docsFolder = "docs"

// Survey describes the folder in which agents will work. The pack has its docs with excerpts, facts
// about the repository, and the files to read first. Files that the goal names come before all
// others. Survey opens neither files that may hold secrets nor anything behind a link. It returns
// what it left out, with the reasons.
func (p *Project) Survey(goal string) (contextpack.Pack, []swarm.LeftOut) {
	s := surveyor{folder: &folder{path: p.cwd}}
	defer s.folder.close()
	s.names = s.list(".")
	s.goal = s.named(goal)
	var found contextpack.Pack
	found.DocRefs = s.docs()
	if slices.ContainsFunc(found.DocRefs, func(d contextpack.Doc) bool { return strings.HasPrefix(d.Path, docsFolder+"/") }) {
		found.DocsRoot = docsFolder
	}
	found.RepoFacts = s.facts()
	found.RelevantFiles = s.files(found.DocRefs)
	return found, s.omitted()
}

// A surveyor reads one folder for one survey.
type surveyor struct {
	folder *folder
	names  []string // entries of the folder itself
	goal   []string // files that the goal names
	left   []swarm.LeftOut
}

// list returns the sorted names in a subfolder. A folder that cannot be read counts as empty.
func (s *surveyor) list(dir string) (names []string) {
	root, err := s.folder.open()
	if err != nil || s.linked(dir) {
		return nil
	}
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ = f.Readdirnames(mostNames + 1) // after an error, the names read so far count
	if len(names) > mostNames {
		names = names[:mostNames]
		s.omit(inFiles, dir, contextpack.Shortened, fmt.Sprintf("it has more than %d entries", mostNames))
	}
	slices.Sort(names)
	return names
}

// linked reports whether any element of a path is a link.
func (s *surveyor) linked(name string) bool {
	root, err := s.folder.open()
	if err != nil {
		return true
	}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := root.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// has reports whether a regular file exists that may be read.
func (s *surveyor) has(name string) bool {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") || hidesSecrets(name) || s.linked(name) {
		return false
	}
	info, err := s.folder.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// read returns the text of a file; "" = it cannot be read, or is not text.
func (s *surveyor) read(name string) string {
	if !s.has(name) {
		return ""
	}
	b, err := s.folder.read(name)
	if err != nil {
		return ""
	}
	if b, err = decodeText(b); err != nil {
		return ""
	}
	return string(b)
}

// empty reports whether a file has no content.
func (s *surveyor) empty(name string) bool {
	info, err := s.folder.root.Lstat(name)
	return err == nil && info.Size() == 0
}

// here returns the first file of the folder itself that has one of these names, in upper or lower
// case; "" = none.
func (s *surveyor) here(names ...string) string {
	for _, want := range names {
		for _, name := range s.names {
			switch {
			case !strings.EqualFold(name, want):
			case s.has(name):
				return name
			default:
				s.omitBarred(partOf(name), name)
			}
		}
	}
	return ""
}

// docs returns the documents, the most important first.
func (s *surveyor) docs() (docs []contextpack.Doc) {
	add := func(name string, section, most int) {
		if name == "" || slices.ContainsFunc(docs, func(d contextpack.Doc) bool { return d.Path == name }) {
			return
		}
		text := s.read(name)
		switch {
		case !s.has(name):
			s.omitBarred(inDocs, name)
		case len(docs) == mostDocs:
			s.omit(inDocs, name, contextpack.Dropped, fmt.Sprintf("there are more than %d docs", mostDocs))
		case text != "":
			short, cut := excerpt(text, section, most)
			docs = append(docs, contextpack.Doc{Path: name, Excerpt: short})
			if cut {
				s.omit(inDocs, name, contextpack.Shortened, fmt.Sprintf("its excerpt has %d bytes at most", most))
			}
		case !s.empty(name):
			s.omit(inDocs, name, contextpack.Dropped, noText)
		}
	}
	for _, name := range s.goal {
		if isDoc(name) {
			add(name, 600, 4000)
		}
	}
	s.omitBarred(inDocs, docsFolder)
	there := s.list(docsFolder)
	below := func(want string) string {
		for _, name := range there {
			if strings.EqualFold(name, want) {
				return docsFolder + "/" + name
			}
		}
		return ""
	}
	add(below("PLAN.md"), 600, 4000)
	add(s.here("PLAN.md"), 600, 4000)
	add(s.here("AGENTS.md"), 400, 2000)
	add(below("README.md"), 300, 1200)
	for _, name := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		add(below(name), 200, 800)
		add(s.here(name), 200, 800)
	}
	for _, name := range there {
		if isDoc(name) {
			add(docsFolder+"/"+name, 120, 200)
		}
	}
	return docs
}

func isDoc(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".rst", ".adoc":
		return true
	}
	return false
}

// named returns the existing files that a goal names.
func (s *surveyor) named(goal string) (names []string) {
	const separators = " \t\r\n\"'`()[]{}<>,;|="
	words := strings.FieldsFunc(goal, func(c rune) bool { return strings.ContainsRune(separators, c) })
	for _, word := range words {
		word = strings.TrimPrefix(strings.TrimRight(word, ".:!?"), "./")
		word, _, _ = strings.Cut(word, ":") // file:line
		switch {
		case !strings.ContainsAny(word, "./") || slices.Contains(names, word):
		case strings.HasPrefix(word, "../") && path.Ext(word) != "":
			s.omit(partOf(word), word, contextpack.Dropped, isOutside)
		case !s.has(word):
			s.omitBarred(partOf(word), word)
		case len(names) == mostNamed:
			s.omit(partOf(word), word, contextpack.Dropped, fmt.Sprintf("the goal names more than %d files", mostNamed))
		default:
			names = append(names, word)
		}
	}
	return names
}

// files returns the files to read first, with a line about each.
func (s *surveyor) files(docs []contextpack.Doc) (files []contextpack.File) {
	names := append(slices.Clone(s.goal), s.here("README.md", "README", "README.rst", "README.txt"))
	for _, name := range append(names, s.entries()...) {
		known := name == "" || slices.ContainsFunc(docs, func(d contextpack.Doc) bool { return d.Path == name }) ||
			slices.ContainsFunc(files, func(f contextpack.File) bool { return f.Path == name })
		switch {
		case known:
		case !s.has(name):
			s.omitBarred(inFiles, name)
		case len(files) == mostFiles:
			s.omit(inFiles, name, contextpack.Dropped,
				fmt.Sprintf("there are more than %d files to begin with", mostFiles))
		default:
			files = append(files, contextpack.File{Path: name, Summary: summarize(name, s.read(name))})
		}
	}
	return files
}

// entryPoints are the usual main files of programs.
var entryPoints = []string{
	"main.go", "src/main.go", "src/main.rs", "src/lib.rs", "src/index.ts", "src/index.tsx", "src/index.js",
	"src/main.ts", "src/main.tsx", "src/main.js", "src/app.ts", "src/app.py", "src/main.py", "index.ts", "index.js",
	"index.html", "main.py", "app.py", "manage.py", "main.ts", "main.js", "app.js", "main.c", "src/main.c", "main.cpp",
	"src/main.cpp",
}

// entries returns candidates for main files, which may not exist: those of package.json, the usual
// ones, and the first commands below cmd/.
func (s *surveyor) entries() (names []string) {
	const commands = 5
	for _, main := range s.mains() {
		names = append(names, strings.TrimPrefix(path.Clean(main), "./"))
	}
	names = append(names, entryPoints...)
	for i, dir := range s.list("cmd") {
		if i < commands {
			names = append(names, "cmd/"+dir+"/main.go")
		}
	}
	return names
}
