package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"swarm"
	"swarm/internal/provider"
)

// examine holds what a turn made against its task's `expect`, part by part, the cheap ones first.
func (h *Hand) examine(ctx context.Context, w *work, output []byte) []swarm.Verdict {
	x := w.task.Expect
	var verdicts []swarm.Verdict
	part := func(name, asked string, look func() error) {
		if asked == "" || ctx.Err() != nil {
			return
		}
		v := swarm.Verdict{Part: name, OK: true}
		if err := look(); err != nil {
			v.OK, v.Reason = false, string(h.redact([]byte(err.Error())))
		}
		verdicts = append(verdicts, v)
	}
	dir := h.workdir(w)
	var file []byte
	part("file", x.File, func() (err error) {
		file, err = readExpected(dir, x.File)
		return err
	})
	part("matches", x.Matches, func() error { return matches(x.Matches, output) })
	part("schema", string(x.Schema), func() error {
		text, what := output, "the output"
		if x.File != "" {
			if file == nil {
				return fmt.Errorf("there is nothing to hold against %s", x.SchemaFile)
			}
			text, what = file, x.File
		}
		return h.conforms(x, text, what)
	})
	part("command", x.Command, func() error { return h.commandEndsWell(ctx, w, x.Command) })
	return verdicts
}

// judge says what is wrong when a verdict is bad.
func judge(verdicts []swarm.Verdict) error {
	var wrong []string
	for _, v := range verdicts {
		if !v.OK {
			wrong = append(wrong, "expect."+v.Part+": "+v.Reason)
		}
	}
	if wrong == nil {
		return nil
	}
	return swarm.Errorf(swarm.Unexpected, "%s", strings.Join(wrong, "\n"))
}

const maxExpectedFile = 16 << 20

func readExpected(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", name)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxExpectedFile))
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

func (h *Hand) conforms(x *swarm.Expect, text []byte, what string) error {
	source, err := h.Log.Body(x.Schema)
	if err != nil {
		return err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(source, &schema); err != nil {
		return fmt.Errorf("%s: %w", x.SchemaFile, err)
	}
	resolved, err := schema.Resolve(nil) // it reads no files and fetches nothing: a schema is what it says itself
	if err != nil {
		return fmt.Errorf("%s: %w", x.SchemaFile, err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("%s is not JSON: %w", what, jsonError(text, err))
	}
	if err := resolved.Validate(value); err != nil {
		return fmt.Errorf("%s does not fit %s: %w", what, x.SchemaFile, err)
	}
	return nil
}

func jsonError(text []byte, err error) error {
	var s *json.SyntaxError
	if errors.As(err, &s) {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(len(text), int(s.Offset))], []byte("\n")), err)
	}
	return err
}

// commandEndsWell runs a command of the user's own, by the shell, as the turn's program was run: same folder, environment,
// process group and end.
func (h *Hand) commandEndsWell(ctx context.Context, w *work, command string) error {
	p, err := provider.Open(swarm.ProviderSpec{Name: "expect", Kind: "command", Command: []string{"sh", "-c", command}}, provider.Options{})
	if err != nil {
		return err
	}
	r := h.request(w)
	r.Prompt = ""
	reply, err := p.Turn(ctx, r, func(provider.Delta) {})
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(lastLines(string(reply.Output), 20) + "\n" + lastLines(string(reply.Stderr), 20))
	if said != "" {
		said = "\n" + said
	}
	return fmt.Errorf("%s ended with %d%s", command, reply.Exit, said)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
