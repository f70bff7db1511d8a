package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/sandbox"
)

// A command is a provider whose agents are programs. Each turn is one process. The prompt goes to
// its standard input, or into an argument that has {prompt}. Its standard output is the turn's
// output.
type command struct {
	name     string
	argv     []string
	byArg    bool // an argument has {prompt}
	template bool // some argument has a placeholder
	dir      string
	env      *process.Environment
	grace    time.Duration
	box      *sandbox.Box
	path     sync.Map // of the program, by its name; found once
}

// maxArgument is the longest argument of a program: the kernel's limit of 128 KB includes the NUL
// at its end.
const maxArgument = 131_071

const (
	promptHere = "{prompt}"
	modelHere  = "{model}"
)

// newCommand checks the command once, so that no turn fails because of it.
func newCommand(spec swarm.ProviderSpec, opt Options) (*command, error) {
	switch {
	case len(spec.Command) == 0 || spec.Command[0] == "":
		return nil, swarm.Errorf(swarm.BadInput, "the provider %q has no command", spec.Name).
			WithHint("write the program and its arguments as a list: command: [bash, agent.sh]")
	case hasPlaceholder(spec.Command[0]):
		return nil, swarm.Errorf(swarm.BadInput, "the program of the provider %q cannot be %s", spec.Name, spec.Command[0]).
			WithHint("write the program first and placeholders as arguments: command: [my-agent, --model, %q]", modelHere)
	}
	if err := CheckCommand(spec); err != nil {
		return nil, err
	}
	env, err := process.NewEnvironment(opt.Environ, spec.Env)
	if err != nil {
		return nil, err
	}
	args := spec.Command[1:]
	return &command{
		name:     spec.Name,
		argv:     spec.Command,
		byArg:    slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, promptHere) }),
		template: slices.ContainsFunc(args, hasPlaceholder),
		dir:      opt.Dir,
		env:      env,
		grace:    opt.Grace,
		box:      NewSandbox(spec, opt),
	}, nil
}

// CheckCommand refuses arguments that no program can get.
func CheckCommand(spec swarm.ProviderSpec) error {
	if slices.ContainsFunc(spec.Command, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		return swarm.Errorf(swarm.BadInput, "the command of the provider %q holds a NUL byte", spec.Name).
			WithHint("no program can be given one; take it out")
	}
	return nil
}

// hasPlaceholder says whether an argument is to be filled in for each turn.
func hasPlaceholder(arg string) bool {
	return strings.Contains(arg, promptHere) || strings.Contains(arg, modelHere)
}

// Check reports whether the program is there.
func (c *command) Check(context.Context) Health {
	if _, err := c.program().Find(c.dir); err != nil {
		return Health{Problem: err.Msg, Hint: err.Hint}
	}
	return Health{Found: true}
}

// Turn runs the program once.
func (c *command) Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error) {
	if ctx.Err() != nil {
		return Reply{}, swarm.CutError(ctx)
	}
	dir := r.Dir
	if dir == "" {
		dir = c.dir
	}
	argv, err := c.arguments(r)
	if err != nil {
		return Reply{}, err
	}
	env, err := c.env.Of(r.Mark(), r.Env, dir)
	if err != nil {
		return Reply{}, err
	}
	if r.Desk {
		argv = c.besideDesk(argv)
	}
	path, missing := c.resolve(argv[0], dir)
	if missing != nil {
		return Reply{}, missing
	}
	if path, argv, err = c.box.Wrap(path, argv, r.Workspace(dir)); err != nil {
		return Reply{}, c.startError(dir, err)
	}
	job := process.Job{Path: path, Argv: argv, Dir: dir, Env: env, Grace: c.grace, Run: r.Run, Turn: string(r.Turn)}
	if live != nil {
		job.Stdout = func(text string) { live(swarm.Delta{Kind: swarm.DeltaText, Text: text}) }
		job.Stderr = func(text string) { live(swarm.Delta{Kind: swarm.DeltaStderr, Text: text}) }
	}
	if !c.byArg {
		job.Input = &r.Prompt
	}
	p, err := job.Start()
	if err != nil {
		c.path.Delete(c.argv[0]) // it may have moved
		return Reply{}, c.startError(dir, err)
	}
	status, cut, err := p.Wait(ctx)
	reply := Reply{Output: p.Stdout().Bytes(), Bytes: p.Stdout().Len(), Stderr: p.Stderr().Bytes()}
	if err != nil {
		return reply, &swarm.Error{Kind: swarm.Other, Msg: "it is unknown how " + c.argv[0] + " ended", Err: err}
	}
	reply.Exit = process.ExitCode(status)
	switch {
	case cut:
		return reply, swarm.CutError(ctx)
	case reply.Exit != 0:
		return reply, Ended("", status, process.LastWords(reply.Stderr))
	}
	return reply, nil
}

// arguments fills in the placeholders. Only the user's command is searched: a prompt that has
// {model} in it keeps it.
func (c *command) arguments(r Request) ([]string, error) {
	if !c.template {
		return c.argv, nil
	}
	if c.byArg && strings.ContainsRune(r.Prompt, 0) {
		return nil, swarm.Errorf(swarm.BadPrompt, "the prompt of %s holds a NUL byte and cannot be an argument", r.Turn).
			WithHint("%s", c.useStdin())
	}
	fill := strings.NewReplacer(promptHere, r.Prompt, modelHere, r.Model)
	argv := slices.Clone(c.argv)
	for i, arg := range argv[1:] {
		filled := fill.Replace(arg)
		if len(filled) > maxArgument {
			return nil, swarm.Errorf(swarm.BadPrompt, "the prompt of %s has %d bytes, and an argument has room for 128 KB (%d bytes)", r.Turn, len(r.Prompt), maxArgument).
				WithHint("%s", c.useStdin())
		}
		argv[i+1] = filled
	}
	return argv, nil
}

// useStdin is the hint for a prompt that does not fit into an argument.
func (c *command) useStdin() string {
	return fmt.Sprintf(
		"take %s out of the command of the provider %q: the prompt then goes to standard input, of any length",
		promptHere, c.name)
}

// besideDesk makes the paths of files in the folder of the run absolute. The author of the command has
// written them for that folder, and the program starts in a desk.
func (c *command) besideDesk(argv []string) []string {
	argv = slices.Clone(argv)
	for i, arg := range argv {
		if i == 0 && !c.program().IsPath() || !filepath.IsLocal(arg) {
			continue
		}
		// Joined by hand: filepath.Join would take "sh ../../x.sh", a script for sh -c, for the file x.sh.
		file := c.dir + string(filepath.Separator) + arg
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			argv[i] = filepath.Clean(file)
		}
	}
	return argv
}

// resolve returns the program's path. A name without a folder is searched in PATH, once.
func (c *command) resolve(name, dir string) (string, *swarm.Error) {
	program := process.Program{Name: name, Provider: c.name}
	if program.IsPath() {
		return program.Name, nil // relative to the turn's folder; starting it shows whether it exists
	}
	if path, ok := c.path.Load(program.Name); ok {
		return path.(string), nil
	}
	path, err := program.Find(dir)
	if err == nil {
		c.path.Store(program.Name, path)
	}
	return path, err
}

// startError explains why no process could be started.
func (c *command) startError(dir string, err error) error {
	e := c.program().StartError(dir, err)
	if errors.Is(err, syscall.E2BIG) {
		e.Kind = swarm.BadPrompt
		return e.WithHint("%s", c.useStdin())
	}
	return e
}

func (c *command) program() process.Program {
	return process.Program{Name: c.argv[0], Provider: c.name}
}
