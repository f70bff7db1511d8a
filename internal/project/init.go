package project

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"swarm"
)

// template is the project that `swarm init` writes: the folder swarm/ and its files.
//
//go:embed template
var template embed.FS

// schemaFile is the schema's path in the compose file's first line, where editors look for it.
const schemaFile = "swarm.schema.json"

// Init writes a small working project into dir, with the schema of its compose file. It returns the
// paths of the files, relative to dir. If any of them exists, it writes none.
func Init(dir string, schema []byte) (files []string, err error) {
	files = []string{filepath.Join(Folder, schemaFile)}
	texts := map[string][]byte{files[0]: schema}
	err = fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel("template", path)
		if err != nil {
			return err
		}
		rel = filepath.Join(Folder, rel)
		files = append(files, rel)
		texts[rel], err = template.ReadFile(path)
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
		return &swarm.Error{Kind: swarm.BadInput, Msg: rel + " exists already", Hint: "nothing was changed; `swarm up` runs it"}
	}
	return &swarm.Error{Kind: swarm.BadInput, Msg: rel + " cannot be written", Err: swarm.WithoutPath(err)}
}
