package coding

import (
	"context"
	"errors"
	"strings"

	"swarm/internal/process"
	"swarm/internal/provider"
)

// programSpec describes the program for error messages: its name, its provider, and how to install
// it.
func (a *agent) programSpec() process.Program {
	return process.Program{Name: a.argv[0], Provider: a.spec.Name, Title: a.facts.Title, Install: a.facts.Install()}
}

var errNoVersion = errors.New("the program does not say its version")

// Check reports whether the program is installed, its version, and whether its user is signed in.
func (a *agent) Check(ctx context.Context) provider.Health {
	path, missing := a.programSpec().Find(a.dir)
	if missing != nil {
		return provider.Health{Problem: missing.Msg, Hint: missing.Hint}
	}
	ctx, stop := context.WithTimeout(ctx, provider.CheckTime)
	defer stop()
	// Each check has its own mark, so that it ends its own leftover processes and no others.
	mark := process.Mark{Run: "check", Turn: newID()}
	env, err := a.env.Of(mark, nil, a.dir)
	if err != nil {
		return provider.Health{Found: true, Problem: err.Error()}
	}
	ask := func(ctx context.Context, args ...string) (string, int) {
		return a.ask(ctx, path, mark, env, args)
	}
	version, err := provider.AskVersion(a.versions, path, a.argv, a.dir, func() (string, error) {
		said, exit := ask(ctx, "--version")
		if exit != 0 {
			return said, errNoVersion
		}
		return said, nil
	})
	health := provider.Health{Found: true, Path: path, Version: versionIn(version)}
	if err != nil {
		health.Problem = a.facts.Title + " does not say which version it is"
		health.Hint = "run it by hand: " + strings.Join(a.argv, " ") + " --version"
		return health
	}
	lookup := func(name string) string {
		value, _ := process.Lookup(env, name)
		return value
	}
	if with, ok := a.vendor.signedIn(ctx, lookup, ask); ok {
		health.Signed, health.With = "yes", with
		return health
	}
	health.Signed, health.Problem, health.Hint = "no", a.facts.Title+" is not signed in", a.facts.SignIn
	return health
}

// ask runs the program to its end and returns what it printed. Its output is short.
func (a *agent) ask(ctx context.Context, path string, mark process.Mark, env, args []string) (said string, exit int) {
	path, argv, err := a.box.Wrap(path, append(append([]string{}, a.argv...), args...), provider.Request{}.Workspace(a.dir))
	if err != nil {
		return "", -1
	}
	job := process.Job{
		Path:  path,
		Argv:  argv,
		Dir:   a.dir,
		Env:   env,
		Grace: a.grace,
		Run:   mark.Run,
		Turn:  mark.Turn,
	}
	p, err := job.Start()
	if err != nil {
		return "", -1
	}
	status, cut, err := p.Wait(ctx)
	if err != nil || cut {
		return "", -1
	}
	return string(p.Stdout().Bytes()) + string(p.Stderr().Bytes()), process.ExitCode(status)
}

// versionIn returns the first word of a text that begins with a digit.
func versionIn(text string) string {
	for _, word := range strings.Fields(text) {
		if c := word[0]; c >= '0' && c <= '9' {
			return word
		}
	}
	return ""
}
