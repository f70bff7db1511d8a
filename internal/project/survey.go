package project

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"swarm/internal/pack"
)

// How much a survey takes along. What of it has no room in a prompt is left out later.
const (
	mostNames = 2000 // of a folder's entries that are looked at
	mostDocs  = 40
	mostFiles = 30
	mostNamed = 20 // files that a goal names
)

const docsFolder = "docs"

// Survey is what the folder in which agents will work tells of itself: its docs with excerpts, facts about the repository, and the files to
// look at first, before all those that the goal names. Files that may hold secrets are not looked at, nor is anything behind a link.
func (p *Project) Survey(goal string) pack.Pack {
	s := surveyor{folder: &folder{path: p.cwd}}
	defer s.folder.close()
	s.names = s.list(".")
	var found pack.Pack
	found.DocRefs = s.docs(goal)
	if slices.ContainsFunc(found.DocRefs, func(d pack.Doc) bool { return strings.HasPrefix(d.Path, docsFolder+"/") }) {
		found.DocsRoot = docsFolder
	}
	found.RepoFacts = s.facts()
	found.RelevantFiles = s.files(goal, found.DocRefs)
	return found
}

// A surveyor looks at a folder.
type surveyor struct {
	folder *folder
	names  []string // what is in the folder itself
}

// list is the names in a folder below, in order. One that cannot be read has none.
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
	names, _ = f.Readdirnames(mostNames) // what was read is what there is
	slices.Sort(names)
	return names
}

// linked says whether a link stands somewhere in a path.
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

// has says whether there is a regular file that may be looked at.
func (s *surveyor) has(name string) bool {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") || hidesSecrets(name) || s.linked(name) {
		return false
	}
	info, err := s.folder.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// read is the text of a file; "" when it cannot be read or is none.
func (s *surveyor) read(name string) string {
	if !s.has(name) {
		return ""
	}
	b, err := s.folder.read(name)
	if err != nil {
		return ""
	}
	if b, err = text(b); err != nil {
		return ""
	}
	return string(b)
}

// here is the file of the folder itself that has one of these names, in any case; "" = there is none.
func (s *surveyor) here(names ...string) string {
	for _, want := range names {
		for _, name := range s.names {
			if strings.EqualFold(name, want) && s.has(name) {
				return name
			}
		}
	}
	return ""
}

// docs are the documents, the most important first.
func (s *surveyor) docs(goal string) (docs []pack.Doc) {
	add := func(name string, section, most int) {
		if name == "" || len(docs) == mostDocs || slices.ContainsFunc(docs, func(d pack.Doc) bool { return d.Path == name }) {
			return
		}
		if text := s.read(name); text != "" {
			docs = append(docs, pack.Doc{Path: name, Excerpt: excerpt(text, section, most)})
		}
	}
	for _, name := range s.named(goal) {
		if isDoc(name) {
			add(name, 600, 4000)
		}
	}
	inDocs := s.list(docsFolder)
	below := func(want string) string {
		for _, name := range inDocs {
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
	for _, name := range inDocs {
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

// named are the files that a goal names, as far as they are there.
func (s *surveyor) named(goal string) (names []string) {
	for _, word := range strings.FieldsFunc(goal, func(c rune) bool { return strings.ContainsRune(" \t\r\n\"'`()[]{}<>,;|=", c) }) {
		word = strings.TrimPrefix(strings.TrimRight(word, ".:!?"), "./")
		word, _, _ = strings.Cut(word, ":") // file:line
		if len(names) < mostNamed && strings.ContainsAny(word, "./") && !slices.Contains(names, word) && s.has(word) {
			names = append(names, word)
		}
	}
	return names
}

// files are what to look at first, with a line about each.
func (s *surveyor) files(goal string, docs []pack.Doc) (files []pack.File) {
	names := s.named(goal)
	names = append(names, s.here("README.md", "README", "README.rst", "README.txt"))
	names = append(names, s.entries()...)
	for _, name := range names {
		known := name == "" || len(files) == mostFiles || slices.ContainsFunc(docs, func(d pack.Doc) bool { return d.Path == name }) ||
			slices.ContainsFunc(files, func(f pack.File) bool { return f.Path == name })
		if !known && s.has(name) {
			files = append(files, pack.File{Path: name, Summary: summary(name, s.read(name))})
		}
	}
	return files
}

// entryPoints are where programs usually begin.
var entryPoints = []string{"main.go", "src/main.go", "src/main.rs", "src/lib.rs", "src/index.ts", "src/index.tsx", "src/index.js", "src/main.ts", "src/main.tsx",
	"src/main.js", "src/app.ts", "src/app.py", "src/main.py", "index.ts", "index.js", "index.html", "main.py", "app.py", "manage.py", "main.ts", "main.js", "app.js", "main.c", "src/main.c",
	"main.cpp", "src/main.cpp"}

func (s *surveyor) entries() (names []string) {
	const commands = 5
	for _, main := range s.mains() {
		names = append(names, strings.TrimPrefix(path.Clean(main), "./"))
	}
	for _, name := range entryPoints {
		if s.has(name) {
			names = append(names, name)
		}
	}
	for i, dir := range s.list("cmd") {
		if i < commands {
			names = append(names, "cmd/"+dir+"/main.go")
		}
	}
	return names
}

// hidesSecrets says whether a file's name tells that it may hold keys or passwords.
func hidesSecrets(name string) bool {
	parts := strings.Split(strings.ToLower(name), "/")
	for _, dir := range parts[:len(parts)-1] {
		if slices.Contains([]string{".ssh", ".aws", ".gnupg", ".git", ".kube", ".docker", ".azure", ".gcloud"}, dir) {
			return true
		}
	}
	base := parts[len(parts)-1]
	switch base {
	case ".netrc", "_netrc", ".npmrc", ".yarnrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".dockercfg", ".vault-token", "kubeconfig":
		return true
	}
	switch path.Ext(base) {
	case ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".gpg", ".ppk", ".tfvars", ".tfstate":
		return true
	case ".json", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".txt", ".csv", "":
		for _, word := range []string{"secret", "credential", "password", "token", "service-account"} {
			if strings.Contains(base, word) {
				return true
			}
		}
	}
	return strings.HasPrefix(base, ".env") || strings.HasPrefix(base, "id_") && path.Ext(base) == ""
}
