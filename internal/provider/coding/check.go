package coding

import (
	"context"
	"strings"

	"swarm/internal/process"
	"swarm/internal/provider"
)

// program is what the agent is.
func (a *agent) program() process.Program {
	return process.Program{Name: a.argv[0], Provider: a.spec.Name, Title: a.facts.Title, Install: a.facts.Install()}
}

// Check says whether the program is there, which one it is, and whether its user is signed in.
func (a *agent) Check(ctx context.Context) provider.Health {
	path, missing := a.program().Find(a.dir)
	if missing != nil {
		return provider.Health{Problem: missing.Msg, Hint: missing.Hint}
	}
	ctx, stop := context.WithTimeout(ctx, provider.CheckTime)
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
		health.Problem = a.facts.Title + " does not say which version it is"
		health.Hint = "run it by hand: " + strings.Join(a.argv, " ") + " --version"
		return health
	}
	lookup := func(name string) string {
		value, _ := process.Lookup(env, name)
		return value
	}
	if with, ok := a.vendor.signed(ctx, lookup, ask); ok {
		health.Signed, health.With = "yes", with
		return health
	}
	health.Signed, health.Problem, health.Hint = "no", a.facts.Title+" is not signed in", a.facts.SignIn
	return health
}

// ask runs the program for a moment; what it says is short.
func (a *agent) ask(ctx context.Context, path string, mark process.Mark, env, args []string) (said string, exit int) {
	job := process.Job{Path: path, Argv: append(append([]string{}, a.argv...), args...), Dir: a.dir, Env: env, Grace: a.grace, Run: mark.Run, Turn: mark.Turn}
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

// versionIn is the word of a text that begins with a digit.
func versionIn(text string) string {
	for _, word := range strings.Fields(text) {
		if c := word[0]; c >= '0' && c <= '9' {
			return word
		}
	}
	return ""
}
