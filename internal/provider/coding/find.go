package coding

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// find looks for the program as a turn in this folder would.
func (a *agent) find(dir string) (string, *swarm.Error) {
	name := a.argv[0]
	inFolder := strings.ContainsRune(name, filepath.Separator)
	if inFolder && dir != "" && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	missing := swarm.Errorf(swarm.NotFound, "the program %q of the provider %q is not there", a.argv[0], a.spec.Name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		missing.Msg = strings.Replace(missing.Msg, "is not there", "may not be executed", 1)
		return "", missing.WithHint("chmod +x %s", a.argv[0])
	case inFolder:
		return "", missing.WithHint("correct its path, or leave `command` out: %s is then looked for in PATH", a.facts.program)
	}
	return "", missing.WithHint("install %s: npm install -g %s; or write where it is: command: [/path/to/%s]", a.facts.title, a.facts.pack, a.facts.program)
}

// startError says why no process could be made.
func (a *agent) startError(dir string, err error) error {
	if dir != "" {
		if info, e := os.Stat(dir); e != nil || !info.IsDir() {
			return swarm.Errorf(swarm.NotFound, "the folder %s, in which the task works, is not there", dir).WithHint("make it, or correct `workdir`")
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return swarm.Errorf(swarm.NotFound, "%s is there, but what its first line (#!) names is not", a.argv[0]).WithHint("install what it names: %s needs Node.js", a.facts.title)
	case errors.Is(err, syscall.ENOEXEC):
		return swarm.Errorf(swarm.BadInput, "%s is not a program", a.argv[0]).WithHint("name what runs it first: command: [node, %s]", a.argv[0])
	case errors.Is(err, syscall.E2BIG):
		return swarm.Errorf(swarm.BadInput, "the arguments and the environment of %s are longer than the system allows", a.facts.title).WithHint("shorten `tools` and `env`")
	}
	return &swarm.Error{Kind: swarm.Other, Msg: a.facts.title + " could not be started", Err: err}
}

// Check says whether the program is there, which one it is, and whether its user is signed in.
func (a *agent) Check(ctx context.Context) provider.Health {
	path, missing := a.find(a.dir)
	if missing != nil {
		return provider.Health{Problem: missing.Msg, Hint: missing.Hint}
	}
	ctx, stop := context.WithTimeout(ctx, checkingTime)
	defer stop()
	mark := process.Mark{Run: "check", Turn: newID()} // its own: what one check leaves behind is ended, and no other
	env, err := a.env.Of(mark, nil, a.dir)
	if err != nil {
		return provider.Health{Found: true, Problem: err.Error()}
	}
	ask := func(ctx context.Context, args ...string) (string, int) {
		return a.ask(ctx, path, mark, env, args)
	}
	version, exit := ask(ctx, "--version")
	health := provider.Health{Found: true, Path: path, Version: versionIn(version)}
	if exit != 0 {
		health.Problem = a.facts.title + " does not say which version it is"
		health.Hint = "run it by hand: " + strings.Join(a.argv, " ") + " --version"
		return health
	}
	lookup := func(name string) string {
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}
	if with, ok := a.vendor.signed(ctx, lookup, ask); ok {
		health.Signed, health.With = "yes", with
		return health
	}
	health.Signed, health.Problem, health.Hint = "no", a.facts.title+" is not signed in", a.facts.login
	return health
}

// ask runs the program for a moment; what it says is short.
func (a *agent) ask(ctx context.Context, path string, mark process.Mark, env, args []string) (said string, exit int) {
	job := process.Job{Path: path, Argv: append(append([]string{}, a.argv...), args...), Dir: a.dir, Env: env, Grace: a.grace, Run: mark.Run, Turn: mark.Turn}
	p, err := job.Start()
	if err != nil {
		return "", -1
	}
	state, cut, err := p.Wait(ctx)
	if err != nil || cut {
		return "", -1
	}
	return string(p.Stdout().Bytes()) + string(p.Stderr().Bytes()), state.ExitCode()
}

// versionIn is the word of a text that begins with a digit.
func versionIn(text string) string {
	for _, word := range strings.Fields(text) {
		if c := word[0]; c >= '0' && c <= '9' {
			return word
		}
	}
	return ""
}
