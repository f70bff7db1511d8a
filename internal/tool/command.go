package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/toolrule"
)

// Limits of a command.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	maxOutput      = 64 << 10 // bytes of its output; the middle is left out
)

func (b *Box) commandSpec() swarm.ToolSpec {
	var begins []string
	for _, r := range b.rules {
		if r.Tool == toolrule.Command {
			begins = append(begins, strings.Join(r.Words, " "))
		}
	}
	return swarm.ToolSpec{Name: toolrule.Command,
		Description: "Runs a program in your folder and answers with its exit code and what it said. " +
			"There is no shell: no pipes, no wildcards, no variables; each argument is one item of argv. " +
			"Allowed is what begins with: " + strings.Join(begins, "; ") + ".",
		Schema: object(`"argv":{"type":"array","items":{"type":"string"},"minItems":1,`+
			`"description":"the program and its arguments"},`+
			`"timeout":{"type":"number","minimum":1,"maximum":600,"description":"seconds; 120 unless given"}`, "argv")}
}

// command runs a program without a shell. A timeout is an answer, not an error: the model learns
// what the command printed until then.
func (b *Box) command(ctx context.Context, args json.RawMessage) (string, error) {
	var a struct {
		Argv    []string `json:"argv"`
		Timeout float64  `json:"timeout"`
	}
	if err := arguments(toolrule.Command, args, &a); err != nil {
		return "", err
	}
	if err := b.mayRun(a.Argv); err != nil {
		return "", err
	}
	timeout := defaultTimeout
	if a.Timeout > 0 {
		timeout = time.Duration(min(a.Timeout, maxTimeout.Seconds()) * float64(time.Second))
	}
	path := a.Argv[0]
	if !strings.Contains(path, "/") {
		var err error
		if path, err = exec.LookPath(path); err != nil {
			return "", notRun(a.Argv[0], err)
		}
	}
	mark := process.Mark{Run: b.o.Run, Agent: b.o.Agent, Turn: string(b.o.Turn), Iteration: b.o.Iteration, Attempt: b.o.Attempt, Trace: b.o.Trace}
	if mark.Turn == "" {
		mark.Turn = fmt.Sprintf("%s/command/%d", b.o.Agent, b.commands.Add(1))
	}
	env, err := b.environ(mark)
	if err != nil {
		return "", err
	}
	said := &cappedOutput{most: maxOutput}
	p, err := process.Job{
		Path: path, Argv: a.Argv, Dir: b.o.Root, Env: env, Grace: b.o.Grace, Run: mark.Run, Turn: mark.Turn,
		Stdout: said.add, Stderr: said.add,
	}.Start()
	if err != nil {
		return "", notRun(a.Argv[0], err)
	}
	late, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	status, cut, err := p.Wait(late)
	switch {
	case ctx.Err() != nil:
		return "", swarm.CutError(ctx)
	case err != nil:
		return "", swarm.Errorf(swarm.Other, "it is not known how %s ended", a.Argv[0])
	case cut:
		const format = "ended after %v, the time it had (timeout: up to %d seconds)\n%s"
		return fmt.Sprintf(format, timeout, int(maxTimeout.Seconds()), said), nil
	}
	if status.Signaled() {
		return fmt.Sprintf("ended by signal %d (%v)\n%s", int(status.Signal()), status.Signal(), said), nil
	}
	return fmt.Sprintf("exit code %d\n%s", status.ExitStatus(), said), nil
}

// mayRun returns an error if no rule allows the command.
func (b *Box) mayRun(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return swarm.Errorf(swarm.BadInput, "argv names no program").
			WithHint(`write the program and its arguments: {"argv": ["go", "test", "./..."]}`)
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return swarm.Errorf(swarm.BadInput, "an argument cannot hold a NUL byte")
		}
	}
	if slices.ContainsFunc(b.rules, func(r toolrule.Rule) bool { return r.Runs(argv) }) {
		return nil
	}
	var begins []string
	for _, r := range b.rules {
		if r.Tool == toolrule.Command {
			begins = append(begins, strings.Join(r.Words, " "))
		}
	}
	return swarm.Errorf(swarm.Denied, "the command %s is not allowed", swarm.Quote(strings.Join(argv, " "))).
		WithHint("allowed is what begins with one of these: %s", strings.Join(begins, ", "))
}

// notRun translates an error of starting a program. It names no path above the agent's folder.
func notRun(program string, err error) error {
	switch {
	case errors.Is(err, exec.ErrDot):
		return swarm.Errorf(swarm.Denied, "the program %s was found in the current folder only", swarm.Quote(program))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return swarm.Errorf(swarm.NotFound, "there is no program %s here", swarm.Quote(program))
	case errors.Is(err, fs.ErrPermission):
		return swarm.Errorf(swarm.NotFound, "the program %s may not be executed", swarm.Quote(program))
	case errors.Is(err, syscall.E2BIG):
		return swarm.Errorf(swarm.BadInput, "the arguments are longer than the system allows").WithHint("write them into a file")
	case errors.Is(err, syscall.ENOEXEC):
		return swarm.Errorf(swarm.BadInput, "%s is not a program: it has no first line like #!/bin/sh", swarm.Quote(program))
	}
	return swarm.Errorf(swarm.Other, "the program %s could not be started", swarm.Quote(program))
}

// cappedOutput keeps the beginning and the end of an output, so that errors at either end survive.
type cappedOutput struct {
	most int // bytes
	head strings.Builder
	tail process.Tail
}

// add fills the head first, and then the tail, which keeps only the newest bytes.
func (s *cappedOutput) add(piece string) {
	s.tail.Max = s.most / 2
	room := s.most/2 - s.head.Len()
	switch {
	case s.tail.Len() > 0 || room <= 0:
	case len(piece) <= room:
		s.head.WriteString(piece)
		return
	default:
		for room > 0 && piece[room]&0xC0 == 0x80 { // never in the middle of a rune
			room--
		}
		s.head.WriteString(piece[:room])
		piece = piece[room:]
	}
	_, _ = s.tail.Write([]byte(piece))
}

func (s *cappedOutput) String() string {
	tail := s.tail.Bytes()
	text := s.head.String()
	if left := s.tail.Len() - int64(len(tail)); left > 0 {
		text += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	text = strings.ToValidUTF8(text+string(tail), "\uFFFD")
	if text == "" {
		return "(it said nothing)"
	}
	return text
}

// environ makes the environment of a command.
func (b *Box) environ(m process.Mark) ([]string, error) {
	added := map[string]string{}
	for name, value := range b.o.Env {
		if !process.IsProviderKey(name) { // the agent's key, for its model only
			added[name] = value
		}
	}
	e, err := process.NewEnvironment(b.o.Environ, added)
	if err != nil {
		return nil, err
	}
	return e.Of(m, nil, b.o.Root)
}
