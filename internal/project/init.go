package project

import (
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"swarm"
)

// templates are the projects that `swarm init` writes: a folder each, with the files of swarm/.
//
//go:embed template
var templates embed.FS

// A Template is a project that `swarm init` can write. All of them work without a key: a script plays
// the agents until their provider is changed.
type Template struct {
	Name  string   `json:"name"`
	About string   `json:"about"`
	Try   []string `json:"try"` // commands that run it
}

// Templates are what `swarm init` can write. The first is the default.
var Templates = []Template{
	{"start", "three agents for a pipeline, a team and lines", []string{
		"swarm up",
		`swarm team "Greet people by name"`,
		"swarm run '@planner Plan it -> @coder Write $planner'",
	}},
	{"pipeline", "tasks in iterations: one agent writes, one tests", []string{"swarm up"}},
	{"team", "a lead and two agents that hand work to each other", []string{`swarm team "Write a program that prints Roman numerals"`}},
	{"repl", "agents to talk to, line by line", []string{"swarm", "swarm run - < swarm/lines.txt"}},
	{"review", "three reviews of a git diff at the same time, and a summary", []string{"git diff | swarm up"}},
	{"research", "a swarm that divides a question and answers with references", []string{`swarm solve "What is in this folder?"`}},
}

// FindTemplate returns a template by its name. "" means the default.
func FindTemplate(name string) (Template, error) {
	var names []string
	for _, t := range Templates {
		if t.Name == cmp.Or(name, Templates[0].Name) {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, swarm.Errorf(swarm.BadInput, "there is no template %s", swarm.Quote(name)).
		WithHint("%s; `swarm init --list` says what each is for", swarm.DidYouMean(name, names))
}

// schemaFile is the schema's path in the compose file's first line, where editors look for it.
const schemaFile = "swarm.schema.json"

// Init writes a template into dir, with the schema of its compose file. It returns the paths of the
// files, relative to dir. If any of them exists, it writes none.
func (t Template) Init(dir string, schema []byte) (files []string, err error) {
	files = []string{filepath.Join(Folder, schemaFile)}
	texts := map[string][]byte{files[0]: schema}
	from := path.Join("template", t.Name)
	err = fs.WalkDir(templates, from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		rel = filepath.Join(Folder, rel)
		files = append(files, rel)
		texts[rel], err = templates.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	// The compose file is written last, so a crash leaves no project that looks complete but is
	// not.
	compose := filepath.Join(Folder, File)
	files = append(slices.DeleteFunc(files, func(f string) bool { return f == compose }), compose)
	for i := len(files) - 1; i >= 0; i-- {
		if _, err := os.Lstat(filepath.Join(dir, files[i])); !errors.Is(err, fs.ErrNotExist) {
			return nil, alreadyThere(files[i], err)
		}
	}
	for i, rel := range files {
		if err := writeNew(filepath.Join(dir, rel), texts[rel]); err != nil {
			for _, written := range files[:i] {
				_ = os.Remove(filepath.Join(dir, written))
			}
			return nil, alreadyThere(rel, err)
		}
	}
	return files, nil
}

func alreadyThere(rel string, err error) error {
	if err == nil || errors.Is(err, fs.ErrExist) {
		return &swarm.Error{Kind: swarm.BadInput, Msg: rel + " exists already", Hint: "nothing was changed; to see what it does: swarm plan"}
	}
	return &swarm.Error{Kind: swarm.BadInput, Msg: rel + " cannot be written", Err: swarm.WithoutPath(err)}
}
