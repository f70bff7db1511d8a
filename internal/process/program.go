package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"swarm"
)

// A Program is the program of a provider, as the user named it. A name is searched in PATH. A path
// is relative to the working folder of the task.
type Program struct {
	Name     string
	Provider string
	Title    string // name for people; "" = Name
	Install  string // hint when the program is missing; "" = a general hint
}

func (p Program) title() string {
	if p.Title != "" {
		return p.Title
	}
	return p.Name
}

// IsPath reports whether the user gave a path, not just a name.
func (p Program) IsPath() bool { return strings.ContainsRune(p.Name, filepath.Separator) }

// Find returns the path that a task in this folder would run.
func (p Program) Find(dir string) (string, *swarm.Error) {
	name := p.Name
	if p.IsPath() && dir != "" && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, exec.ErrDot):
		const msg = "the program %q is in the current folder only, where PATH is not meant to find it"
		return "", swarm.Errorf(swarm.NotFound, msg, name).WithHint("write ./%s", name)
	case errors.Is(err, fs.ErrPermission):
		return "", p.notExecutable()
	}
	return "", p.notThere()
}

func (p Program) notThere() *swarm.Error {
	e := swarm.Errorf(swarm.NotFound, "the program %q of the provider %q is not there", p.Name, p.Provider)
	switch {
	case p.IsPath():
		return e.WithHint("correct its path, which is taken from the folder in which the task works, or put the program there")
	case p.Install != "":
		return e.WithHint("%s", p.Install)
	}
	return e.WithHint("install it, or write its path; it was looked for in PATH")
}

func (p Program) notExecutable() *swarm.Error {
	return swarm.Errorf(swarm.NotFound, "the program %q of the provider %q may not be executed", p.Name, p.Provider).
		WithHint("chmod +x %s, or name what runs it first: command: [bash, %s]", p.Name, p.Name)
}

// StartError explains why the program could not be started in this folder.
func (p Program) StartError(dir string, err error) *swarm.Error {
	if dir != "" {
		if info, e := os.Stat(dir); e != nil || !info.IsDir() {
			return swarm.Errorf(swarm.NotFound, "the folder %s, in which the task works, is not there", dir).
				WithHint("make it, or correct `workdir`")
		}
	}
	if explained, ok := errors.AsType[*swarm.Error](err); ok {
		return explained
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if path, missing := p.Find(dir); missing == nil {
			return swarm.Errorf(swarm.NotFound, "%s is there, but what its first line (#!) names is not", path).
				WithHint("correct its first line, or install what it names")
		}
		return p.notThere()
	case errors.Is(err, fs.ErrPermission):
		return p.notExecutable()
	case errors.Is(err, syscall.ENOEXEC):
		return swarm.Errorf(swarm.BadInput, "%s is not a program: it has no first line like #!/bin/sh", p.Name).
			WithHint("give it one, or name what runs it first: command: [bash, %s]", p.Name)
	case errors.Is(err, syscall.E2BIG):
		const msg = "the arguments and the environment of %s are longer than the system allows"
		return swarm.Errorf(swarm.BadInput, msg, p.title()).WithHint("shorten `tools` and `env`")
	}
	return &swarm.Error{Kind: swarm.Other, Msg: "the program " + p.title() + " could not be started", Err: err}
}
