package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// Check reports whether the program is installed, and its version. It asks for the version where
// the preset knows a cheap way, and by the protocol's greeting otherwise.
func (h *host) Check(ctx context.Context) provider.Health {
	path, missing := h.programSpec().Find(h.dir)
	if missing != nil {
		return provider.Health{Problem: missing.Msg, Hint: missing.Hint}
	}
	health := provider.Health{Found: true, Path: path}
	// Each check has its own mark, so that it ends its own leftover processes and no others.
	mark := process.Mark{Run: "check", Turn: rand.Text()}
	env, err := h.env.Of(mark, nil, h.dir)
	if err != nil {
		health.Problem = err.Error()
		return health
	}
	ctx, stop := context.WithTimeout(ctx, provider.CheckTime)
	defer stop()
	job := process.Job{
		Path:  path,
		Argv:  h.arguments(provider.Request{}),
		Dir:   h.dir,
		Env:   env,
		Grace: h.grace,
		Run:   mark.Run,
		Turn:  mark.Turn,
	}
	ask := h.askGreeting
	if h.preset.signedIn != nil {
		ask = h.askVersion
	}
	health.Version, err = provider.AskVersion(h.known, path, h.argv, h.dir, func() (string, error) { return ask(ctx, job) })
	if h.preset.signedIn != nil && err == nil {
		h.checkSignedIn(env, &health)
	}
	byHand := "start it by hand and see: " + strings.Join(job.Argv, " ")
	switch {
	case ctx.Err() != nil && err != nil:
		health.Problem, health.Hint = "it does not answer", byHand
	case swarm.KindOf(err) == swarm.Exited || swarm.KindOf(err) == swarm.Crashed:
		// No turn, so there is no log that the usual hint could point to.
		health.Problem, health.Hint = err.Error(), byHand
	case err != nil:
		health.Problem, health.Hint = err.Error(), swarm.HintOf(err)
	}
	return health
}

// askGreeting starts the program, has it introduce itself, and ends it.
func (h *host) askGreeting(ctx context.Context, job process.Job) (version string, err error) {
	p := newAgentProgram(h, "", job.Env)
	job.Talk = true
	if err := p.start(job, provider.Request{}); err != nil {
		return "", h.programSpec().StartError(h.dir, err)
	}
	err = p.initialize(ctx)
	p.end()
	version = strings.TrimSpace(p.hello.Info.Name + " " + p.hello.Info.Version)
	if err != nil {
		return version, p.explain(err, p.proc.Stderr().Bytes())
	}
	return version, nil
}

// askVersion runs the program with --version.
func (h *host) askVersion(ctx context.Context, job process.Job) (version string, err error) {
	job.Env = append(slices.Clone(job.Env), h.preset.versionVar)
	job.Argv = append(h.argv[:len(h.argv):len(h.argv)], "--version")
	path, argv, err := h.box.Wrap(job.Path, job.Argv, provider.Request{}.Workspace(job.Dir))
	if err != nil {
		return "", h.programSpec().StartError(h.dir, err)
	}
	sealed := job // messages show the user's command
	sealed.Path, sealed.Argv = path, argv
	p, err := sealed.Start()
	if err != nil {
		return "", h.programSpec().StartError(h.dir, err)
	}
	status, cut, err := p.Wait(ctx)
	switch {
	case err != nil || cut:
		return "", errors.Join(err, ctx.Err())
	case process.ExitCode(status) != 0:
		return "", swarm.Errorf(swarm.Exited, "%s does not say which version it is%s", h.kind.Program.Title, process.LastWords(p.Stderr().Bytes())).
			WithHint("start it by hand and see: %s", strings.Join(job.Argv, " "))
	}
	return strings.TrimSpace(string(p.Stdout().Bytes())), nil
}

// checkSignedIn looks whether the program's user is signed in.
func (h *host) checkSignedIn(env []string, health *provider.Health) {
	lookup := func(name string) string {
		value, _ := process.Lookup(env, name)
		return value
	}
	if health.Signed, health.With = "yes", h.preset.signedIn(lookup); health.With == "" {
		health.Signed, health.Problem, health.Hint = "no", h.kind.Program.Title+" is not signed in", h.kind.Program.SignIn
	}
}

// signedInGemini returns what Gemini CLI is signed in with, or "".
func signedInGemini(env func(string) string) string {
	for _, key := range providerkind.Of(providerkind.Gemini).KeyVars {
		if env(key) != "" {
			return key
		}
	}
	if env("GOOGLE_GENAI_USE_VERTEXAI") == "true" {
		return "Vertex AI"
	}
	home := env("GEMINI_CLI_HOME")
	if home == "" {
		home = env("HOME")
	}
	if _, err := os.Stat(filepath.Join(home, ".gemini", "oauth_creds.json")); err == nil {
		return "a Google account"
	}
	return ""
}
