// Package project is the user's folder: the compose file in it, and the texts that the compose file names. It reads, and only
// `swarm init` and `swarm prompts new` write, and never over anything.
//
// What is read must be a regular file of at most 4 MB that lies where it is allowed to lie, links followed. All of that is
// checked before the first byte is read, so a pipe, a device or a file of a gigabyte is refused at once.
package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"swarm"
)

// MaxFile is how large a file may be that a person wrote: a compose file, a prompt, standard input.
const MaxFile = 4 << 20

// Where things are in a project.
const (
	Folder     = "swarm"
	File       = "swarm.yaml"
	promptsDir = "prompts"
)

// A Project is where a compose file is, and which folders its texts come from. It is used by one goroutine.
type Project struct {
	Dir  string // the folder that holds swarm/, or the compose file when that is elsewhere; absolute
	file string // the compose file; absolute; it may not exist
	cwd  string
	// prompts are the folders with prompts, in the order in which they are searched.
	prompts []*folder
	all     *folder // the project's, for the other files
}

// Open is the project of the folder cwd, which is absolute. Its compose file is swarm/swarm.yaml, or file if that is not "". shared
// is the folder with the prompts for every project. Nothing is read yet.
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
	for _, path := range []string{filepath.Join(dir, promptsDir), filepath.Join(own, promptsDir), shared} {
		if path != "" && p.promptFolder(path) == nil {
			p.prompts = append(p.prompts, &folder{path: path})
		}
	}
	return p
}

func (p *Project) promptFolder(path string) *folder {
	for _, f := range p.prompts {
		if f.path == path {
			return f
		}
	}
	return nil
}

// Close lets the folders go.
func (p *Project) Close() {
	for _, f := range append(p.prompts, p.all) {
		f.close()
	}
}

// Name is the compose file as it is shown to the user.
func (p *Project) Name() string { return p.shown(p.file) }

// Compose reads the compose file. The path is for messages.
func (p *Project) Compose() (path string, text []byte, err error) {
	path = p.shown(p.file)
	text, err = readFile(p.file)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, &swarm.Error{Kind: swarm.NotFound, Msg: "there is no " + path, Hint: p.insteadOfFile()}
	}
	if errors.Is(err, errTooLarge) {
		return path, nil, &swarm.Error{Kind: swarm.BadInput, Msg: path + " is larger than 4 MB", Hint: "put long texts into files: prompt, prompt-file"}
	}
	if err != nil {
		return path, nil, refused(path, err)
	}
	return path, text, nil
}

// insteadOfFile says what to do without a compose file.
func (p *Project) insteadOfFile() string {
	for _, near := range []string{"swarm/swarm.yml", "swarm.yaml", "swarm.yml"} {
		if near != p.Name() && isFile(filepath.Join(p.cwd, near)) {
			return "there is a " + near + ": use -f " + near
		}
	}
	for dir := filepath.Dir(p.cwd); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if file := filepath.Join(dir, Folder, File); isFile(file) {
			return "there is one in " + dir + ": go there, or use -f; `swarm init` writes one here"
		}
	}
	return "`swarm init` writes one; -f FILE takes another file"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// shown is a path as the user would write it: relative to where he is, unless that climbs out.
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
