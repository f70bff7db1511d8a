package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/growth"
)

// inEditor is what --edit is without a file.
const inEditor = "$EDITOR"

// maxEdit is more than any growth request has.
const maxEdit = 1 << 20

// edited is what is granted instead of what was asked, as a person has written it.
func (a *app) edited(q control.Question, from string) ([]byte, error) {
	switch {
	case q.Growth == nil && q.Retry == nil:
		return nil, swarm.Errorf(swarm.BadInput, "the use of a tool can be approved or denied, and not edited").WithHint("deny it, and write to @%s what to do instead", q.Agent)
	case from == inEditor && q.Retry != nil:
		return a.openEditor(retryText(*q.Retry))
	case from == inEditor:
		return a.openEditor(growth.Text(*q.Growth))
	case from == "-":
		return io.ReadAll(io.LimitReader(a.stdin, maxEdit))
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "%w", err).WithHint("--edit=FILE reads a file, --edit=- standard input, and --edit alone opens an editor")
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxEdit))
}

// retryText is what the next attempt of a task is given, as a person edits it.
func retryText(r swarm.RetryRequest) []byte {
	text, _ := json.MarshalIndent(struct { // of strings it always can be made
		Inputs map[string]string `json:"inputs"`
		Note   string            `json:"note"`
	}{r.Inputs, ""}, "", "  ")
	return append(text, '\n')
}

// openEditor has a person write in an editor, and returns what came of it.
func (a *app) openEditor(text []byte) (_ []byte, err error) {
	words := strings.Fields(os.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(os.Getenv("EDITOR"))
	}
	if len(words) == 0 {
		return nil, swarm.Errorf(swarm.BadInput, "there is no editor: VISUAL and EDITOR are empty").WithHint("set EDITOR, or write the request into a file: --edit=FILE")
	}
	dir, err := os.MkdirTemp("", "swarm-edit-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "request.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	editor := exec.Command(words[0], append(words[1:], file)...) //nolint:gosec // it is the user's own
	editor.Stdin, editor.Stdout, editor.Stderr = a.stdin, a.stderr, a.stderr
	if a.onTerminal() {
		editor.Stdout = a.stdout
	}
	if err := editor.Run(); err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the editor %s: %w", words[0], err).WithHint("nothing was answered")
	}
	return os.ReadFile(file)
}

// completeAsked offers what is asked.
func (a *app) completeAsked(cmd *cobra.Command, args []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
	ref, _ := cmd.Flags().GetString("run")
	c, err := a.control()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	asked, _ := c.Questions(ref) // without them there is nothing to offer
	for _, q := range asked {
		if strings.HasPrefix(q.ID, begun) {
			offers = append(offers, q.ID+"\t@"+q.Agent+": "+q.What)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
