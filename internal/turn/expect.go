package turn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/schema"
)

// examine checks the result of a turn against its task's `expect`, part by part, the cheap parts
// first.
func (r *Runner) examine(ctx context.Context, w *work, output []byte) []swarm.Verdict {
	x := w.task.Expect
	var verdicts []swarm.Verdict
	part := func(name, asked string, look func() error) {
		if asked == "" || ctx.Err() != nil {
			return
		}
		v := swarm.Verdict{Part: name, OK: true}
		if err := look(); err != nil {
			v.OK, v.Reason = false, clip(r.clean(err.Error()))
		}
		verdicts = append(verdicts, v)
	}
	dir := r.workdir(w)
	part("file", x.File, func() error { return isThere(dir, x.File) })
	part("matches", x.Matches, func() error { return inTime(ctx, func() error { return matches(x.Matches, output) }) })
	part("schema", string(x.Schema), func() error { return inTime(ctx, func() error { return r.conforms(x, dir, output) }) })
	part("command", x.Command, func() error { return r.commandEndsWell(ctx, w, x.Command) })
	return verdicts
}

// judge returns an error that lists the failed parts of a task's `expect`.
func judge(verdicts []swarm.Verdict) error {
	return listFailed(verdicts, func(v swarm.Verdict) string { return "expect." + v.Part + ": " + v.Reason })
}

// judgeGoal is judge for the goal of a team. Its command may come from a flag, and speaks for itself.
func judgeGoal(verdicts []swarm.Verdict) error {
	return listFailed(verdicts, func(v swarm.Verdict) string {
		if v.Part == "command" {
			return v.Reason
		}
		return "expect." + v.Part + ": " + v.Reason
	})
}

func listFailed(verdicts []swarm.Verdict, describe func(swarm.Verdict) string) error {
	var wrong []string
	for _, v := range verdicts {
		if !v.OK {
			wrong = append(wrong, describe(v))
		}
	}
	if wrong == nil {
		return nil
	}
	return swarm.Errorf(swarm.Unexpected, "%s", strings.Join(wrong, "\n"))
}

// Limits of the checks. Agents make the files and outputs under check, and may be hostile.
const (
	maxExpectedFile = 16 << 20
	maxVerdict      = 10 * time.Second // without the command, which has the task's own timeout
	maxReason       = 4 << 10
)

// inTime abandons a check that takes too long, or whose turn was cut. The goroutine goes on until
// the check ends: neither regular expressions nor schemas can be stopped.
func inTime(ctx context.Context, look func() error) error {
	ctx, stop := context.WithTimeoutCause(ctx, maxVerdict, fmt.Errorf("it takes more than %v to find out", maxVerdict))
	defer stop()
	verdict := make(chan error, 1)
	go func() { verdict <- look() }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-verdict:
		return err
	}
}

// clip shortens a reason. It keeps the beginning, which says what was expected, and the end, where
// programs print what is wrong.
func clip(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	head, tail := reason[:maxReason/8], reason[len(reason)-maxReason*7/8:]
	return strings.ToValidUTF8(head, "") + "…" + strings.ToValidUTF8(tail, "")
}

func isThere(dir, name string) error {
	f, err := openExpected(dir, name)
	if err != nil {
		return err
	}
	return f.Close()
}

func readExpected(dir, name string) ([]byte, error) {
	f, err := openExpected(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxExpectedFile+1))
	if len(text) > maxExpectedFile {
		return nil, fmt.Errorf("%s is larger than %d MB", name, maxExpectedFile>>20)
	}
	return text, err
}

// openExpected opens a regular file inside the folder. Links that lead out of the folder are
// refused. O_NONBLOCK keeps it from blocking on a named pipe.
func openExpected(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return f, nil
}

func matches(pattern string, output []byte) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	if !re.Match(output) {
		return fmt.Errorf("the output does not match %s", pattern)
	}
	return nil
}

// conforms checks the output, or the expected file, against a schema.
func (r *Runner) conforms(x *swarm.Expect, dir string, output []byte) error {
	source, err := r.Log.Body(x.Schema)
	if err != nil {
		return err
	}
	s, err := schema.Parse(source)
	if err != nil {
		return fmt.Errorf("%s: %w", x.SchemaFile, err)
	}
	text, what := output, "the output"
	if x.File != "" {
		what = x.File
		if text, err = readExpected(dir, x.File); err != nil {
			return fmt.Errorf("there is nothing to hold against %s", x.SchemaFile)
		}
	}
	value, err := schema.Value(text)
	if err != nil {
		return fmt.Errorf("%s is not JSON: %w", what, err)
	}
	if err := s.Check(value); err != nil {
		return fmt.Errorf("%s does not fit %s: %w", what, x.SchemaFile, err)
	}
	return nil
}

// commandEndsWell runs the user's command in a shell, as the turn's program runs: same folder,
// environment, process group, timeout and sandbox. What it runs, such as a test, the agent may have
// written.
func (r *Runner) commandEndsWell(ctx context.Context, w *work, command string) error {
	spec := swarm.ProviderSpec{Name: "expect", Command: []string{"sh", "-c", command}, Sandbox: w.spec.Sandbox}
	p, err := provider.OpenCommand(spec, r.Options)
	if err != nil {
		return err
	}
	result := r.plainRequest(w)
	result.Prompt = ""
	reply, err := p.Turn(ctx, result, func(swarm.Delta) {})
	if err == nil {
		return nil
	}
	output, stderr := reply.Ends()
	said := strings.TrimSpace(lastLines(output, 20) + "\n" + lastLines(stderr, 20))
	if said != "" {
		said = "\n" + said
	}
	return fmt.Errorf("%s ended with %d%s", command, reply.Exit, said)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
