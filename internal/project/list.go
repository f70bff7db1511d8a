package project

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// PromptInfo is the entry of one prompt in a list.
type PromptInfo struct {
	Name   string `json:"name"`
	Path   string `json:"path"`             // relative to the current folder, unless outside of it
	Hidden bool   `json:"hidden,omitempty"` // an earlier prompt folder has a prompt of the same name
}

// List returns all prompts of the prompt folders, sorted by name. Among prompts of the same name,
// the one in use comes first. Folders that cannot be read count as empty.
func (p *Project) List() []PromptInfo {
	var all []PromptInfo
	seen := map[string]bool{}
	for _, f := range p.prompts {
		root, err := f.open()
		if err != nil {
			continue
		}
		var here []string
		_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				if entry != nil && entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			name, ok := strings.CutSuffix(path, ".md")
			if !ok || checkPromptName(name) != nil {
				return nil
			}
			if info, err := root.Stat(path); err == nil && info.Mode().IsRegular() { // follows links to files
				here = append(here, name)
			}
			return nil
		})
		for _, name := range here {
			path := filepath.Join(f.path, filepath.FromSlash(name)+".md")
			all = append(all, PromptInfo{name, p.shown(path), seen[name]})
		}
		for _, name := range here {
			seen[name] = true
		}
	}
	slices.SortStableFunc(all, func(a, b PromptInfo) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Title returns the first line with text in it, without the marks of a heading.
func Title(text []byte) string {
	for line := range bytes.Lines(text) {
		if title := strings.TrimSpace(strings.TrimLeft(string(bytes.TrimSpace(line)), "# ")); title != "" {
			return title
		}
	}
	return ""
}

// NewPrompt writes a prompt into the project's prompt folder and returns its path as shown. It
// never overwrites a file.
func (p *Project) NewPrompt(name string, text []byte) (string, error) {
	if err := checkPromptName(name); err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".md")
	path := filepath.Join(p.prompts[0].path, filepath.FromSlash(name)+".md")
	if err := writeNew(path, text); err != nil {
		return "", p.unwritten(path, err)
	}
	return p.shown(path), nil
}

func (p *Project) unwritten(path string, err error) error {
	e := &swarm.Error{Kind: swarm.BadInput, Msg: p.shown(path) + " cannot be written", Err: swarm.WithoutPath(err)}
	if errors.Is(err, fs.ErrExist) {
		e.Msg, e.Err = p.shown(path)+" exists already", nil
		e.Hint = "nothing was changed; choose another name, or edit the file"
	}
	return e
}

// writeNew creates a file and its folders. It fails if the file exists.
func writeNew(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
