package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// Check says whether the program is there and which one it is: by its greeting, or, where there is a cheaper way, by that.
func (h *host) Check(ctx context.Context) provider.Health {
	path, missing := h.program().Find(h.dir)
	if missing != nil {
		return provider.Health{Problem: missing.Msg, Hint: missing.Hint}
	}
	health := provider.Health{Found: true, Path: path}
	mark := process.Mark{Run: "check", Turn: rand.Text()} // its own: what one check leaves behind is ended, and no other
	env, err := h.env.Of(mark, nil, h.dir)
	if err != nil {
		health.Problem = err.Error()
		return health
	}
	ctx, stop := context.WithTimeout(ctx, provider.CheckTime)
	defer stop()
	job := process.Job{Path: path, Argv: h.arguments(provider.Request{}), Dir: h.dir, Env: env, Grace: h.grace, Run: mark.Run, Turn: mark.Turn}
	if h.preset.signed == nil {
		err = h.meet(ctx, job, &health)
	} else {
		job.Env = append(job.Env, h.preset.quick)
		err = h.look(ctx, job, &health)
	}
	var e *swarm.Error
	byHand := "start it by hand and see: " + strings.Join(job.Argv, " ")
	switch {
	case ctx.Err() != nil && err != nil:
		health.Problem, health.Hint = "it does not answer", byHand
	case errors.As(err, &e) && (e.Kind == swarm.Exited || e.Kind == swarm.Crashed): // in no turn, so no log has more of it
		health.Problem, health.Hint = e.Text(), byHand
	case errors.As(err, &e):
		health.Problem, health.Hint = e.Text(), e.Hint
	case err != nil:
		health.Problem = err.Error()
	}
	return health
}

// meet starts the program, has it say who it is, and ends it.
func (h *host) meet(ctx context.Context, job process.Job, health *provider.Health) error {
	g := newGuest(h, "", job.Env)
	job.Talk = true
	if err := g.start(job); err != nil {
		return h.program().StartError(h.dir, err)
	}
	err := g.greet(ctx)
	g.end()
	health.Version = strings.TrimSpace(g.hello.Info.Name + " " + g.hello.Info.Version)
	if err != nil {
		return g.explain(err, g.proc.Stderr().Bytes())
	}
	return nil
}

// look asks the program for its version, and finds out whether its user is signed in.
func (h *host) look(ctx context.Context, job process.Job, health *provider.Health) error {
	job.Argv = append(h.argv[:len(h.argv):len(h.argv)], "--version")
	p, err := job.Start()
	if err != nil {
		return h.program().StartError(h.dir, err)
	}
	status, cut, err := p.Wait(ctx)
	switch {
	case err != nil || cut:
		return errors.Join(err, ctx.Err())
	case process.ExitCode(status) != 0:
		return swarm.Errorf(swarm.Exited, "%s does not say which version it is%s", h.kind.Program.Title, process.LastWords(p.Stderr().Bytes())).
			WithHint("start it by hand and see: %s", strings.Join(job.Argv, " "))
	}
	health.Version = strings.TrimSpace(string(p.Stdout().Bytes()))
	lookup := func(name string) string {
		value, _ := process.Lookup(job.Env, name)
		return value
	}
	if health.Signed, health.With = "yes", h.preset.signed(lookup); health.With == "" {
		health.Signed, health.Problem, health.Hint = "no", h.kind.Program.Title+" is not signed in", h.kind.Program.SignIn
	}
	return nil
}

// signedInGemini says what Gemini CLI is signed in with, or "".
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
