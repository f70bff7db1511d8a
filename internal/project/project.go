// Package project reads the user's folder: the compose file, and the files that the compose file
// names. Only `swarm init` and `swarm prompts new` write there, and they never overwrite a file.
//
// [Open] finds the project of a folder. Its methods read the compose file, prompts, includes and
// other files. Survey describes the folder to agents in a context pack.
//
// A file is read only if it is a regular file of at most 4 MB. This is checked before the first byte
// is read, so pipes, devices and huge files are refused at once. Files that the compose file names are
// read through os.Root, so neither a link nor ".." leads out of their folder.
package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarm"
	"swarm/internal/agentfile"
)

// MaxFile is the size limit of files that people write: a compose file, a prompt, standard input.
const MaxFile = 4 << 20

// Names in a project.
const (
	Folder     = "swarm"
	File       = "swarm.yaml"
	promptsDir = "prompts"
)

// A Project is the place of a compose file and the folders of its texts. It has no mutex: one
// goroutine uses it.
type Project struct {
	Dir  string // the folder that holds swarm/, or the compose file when that is elsewhere; absolute
	file string // the compose file; absolute; it may not exist
	cwd  string
	// prompts are the prompt folders, in the order of the search.
	prompts []*folder
	agents  *folder  // .claude/agents of the home folder
	all     *folder  // the whole project, for files that are not prompts
	within  *folder  // the compose file must be in it; nil = it may be anywhere
	choices []string // names of prompts, for hints: thousands may be missing, and each gets one
}

// Open returns the project of the absolute folder cwd. Its compose file is `file`, or
// swarm/swarm.yaml if file is "". shared is the folder of prompts for all projects. Open reads
// nothing yet.
func Open(cwd, file, shared string) *Project {
	p := &Project{cwd: filepath.Clean(cwd)}
	own := filepath.Join(p.cwd, Folder)
	p.file = filepath.Join(own, File)
	if file != "" {
		p.file = p.abs(file)
	}
	dir := filepath.Dir(p.file)
	p.Dir = dir
	if filepath.Base(dir) == Folder {
		p.Dir = filepath.Dir(dir)
	}
	p.all = &folder{path: p.Dir}
	p.agents = &folder{}
	if home, err := os.UserHomeDir(); err == nil {
		p.agents.path = filepath.Join(home, agentfile.Folder)
	}
	for _, path := range []string{filepath.Join(dir, promptsDir), filepath.Join(own, promptsDir), shared} {
		if path != "" && p.promptFolder(path) == nil {
			p.prompts = append(p.prompts, &folder{path: path})
		}
	}
	return p
}

// Confine makes [Project.Compose] refuse a file outside of a folder, for paths that others name. A
// link must not lead out of it either.
func (p *Project) Confine(dir string) { p.within = &folder{path: dir} }

func (p *Project) promptFolder(path string) *folder {
	for _, f := range p.prompts {
		if f.path == path {
			return f
		}
	}
	return nil
}

// Close closes the open folders.
func (p *Project) Close() {
	for _, f := range append(p.prompts, p.all, p.agents) {
		f.close()
	}
	if p.within != nil {
		p.within.close()
	}
}

// Name returns the compose file's path as shown to the user.
func (p *Project) Name() string { return p.shown(p.file) }

// Compose reads the compose file. The path is for messages.
func (p *Project) Compose() (path string, text []byte, err error) {
	path = p.shown(p.file)
	if p.within == nil {
		text, err = readFile(p.file)
	} else {
		rel, _ := filepath.Rel(p.within.path, p.file) // both are absolute
		text, err = p.within.read(rel)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, &swarm.Error{Kind: swarm.NotFound, Msg: "there is no " + path, Hint: p.insteadOfFile()}
	}
	if errors.Is(err, errTooLarge) {
		return path, nil, &swarm.Error{
			Kind: swarm.BadInput, Msg: path + " is larger than 4 MB",
			Hint: "put long texts into files: prompt, prompt-file",
		}
	}
	if err != nil {
		return path, nil, refused(path, err)
	}
	return path, text, nil
}

// insteadOfFile returns the hint for a missing compose file.
func (p *Project) insteadOfFile() string {
	for _, near := range []string{"swarm/swarm.yml", "swarm.yaml", "swarm.yml"} {
		if near != p.Name() && isFile(filepath.Join(p.cwd, near)) {
			return "there is a " + near + ": use -f " + near
		}
	}
	if main := filepath.Join(p.cwd, Folder, File); p.file != main && isFile(main) {
		return "leave out -f for " + p.shown(main)
	}
	for dir := filepath.Dir(p.cwd); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if file := filepath.Join(dir, Folder, File); isFile(file) {
			return "there is one in " + dir + ": go there, or use -f; `swarm init` writes one here"
		}
	}
	if p.file != filepath.Join(p.cwd, Folder, File) {
		return "leave out -f for " + filepath.Join(Folder, File) + ", which `swarm init` writes"
	}
	return "`swarm init` writes one; -f FILE takes another file"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shown returns a path as users write it: relative to the current folder, unless it is outside of
// that.
func (p *Project) shown(path string) string {
	rel, err := filepath.Rel(p.cwd, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return path
	}
	return rel
}

// abs is the inverse of shown.
func (p *Project) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.cwd, path)
}
