package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/growth"
)

// inEditor is the value of --edit without a file.
const inEditor = "$EDITOR"

// maxEdit is the size limit of an edited request, in bytes. It is more than any valid one needs.
const maxEdit = 1 << 20

// edited reads the request that a person approves instead of the agent's own.
func (a *app) edited(c *control.Control, q control.Question, from string) ([]byte, error) {
	switch {
	case q.Growth == nil && q.Retry == nil && !swarm.AsksAboutPlan(q.ID):
		return nil, swarm.Errorf(swarm.BadInput, "the use of a tool can be approved or denied, not edited").WithHint("deny it, and write to @%s what to do instead", q.Agent)
	case from == inEditor && swarm.AsksAboutPlan(q.ID):
		text, err := c.PlanText(q.Run, q.ID)
		if err != nil {
			return nil, err
		}
		return a.openEditor(text)
	case from == inEditor && q.Retry != nil:
		return a.openEditor(retryText(*q.Retry))
	case from == inEditor:
		return a.openEditor(growth.Text(*q.Growth))
	}
	text, err := a.readFile(from, maxEdit)
	if e, ok := errors.AsType[*swarm.Error](err); ok {
		return nil, e.WithHint("nothing was answered; --edit=FILE reads a file, --edit=- standard input, and --edit alone opens an editor")
	}
	return text, err
}

// retryText is the input of a task's next attempt, as the JSON that a person edits.
func retryText(r swarm.RetryRequest) []byte {
	text, _ := json.MarshalIndent(struct { // strings always have a JSON form
		Inputs map[string]string `json:"inputs"`
		Note   string            `json:"note"`
	}{r.Inputs, ""}, "", "  ")
	return append(text, '\n')
}

// editorCommand is the user's editor, or nil.
func editorCommand() []string {
	words := strings.Fields(os.Getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(os.Getenv("EDITOR"))
	}
	return words
}

// openEditor opens a text in the user's editor, and returns it as it was saved.
func (a *app) openEditor(text []byte) (_ []byte, err error) {
	words := editorCommand()
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
	editor := exec.Command(words[0], append(words[1:], file)...) //nolint:gosec // the user configures their own editor
	editor.Stdin, editor.Stdout, editor.Stderr = a.stdin, a.stderr, a.stderr
	if a.onTerminal() {
		editor.Stdout = a.stdout
	}
	if err := editor.Run(); err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the editor %s: %w", words[0], err).WithHint("nothing was answered")
	}
	edited, err := os.ReadFile(file)
	if len(edited) > maxEdit {
		err = swarm.Errorf(swarm.BadInput, "the edited request has more than %d bytes", maxEdit).WithHint("nothing was answered")
	}
	return edited, err
}

// completeQuestion offers the ids of open approvals.
func (a *app) completeQuestion(cmd *cobra.Command, args []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
	ref, _ := cmd.Flags().GetString("run")
	c, err := a.control()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	asked, _ := c.Questions(ref) // on an error there is nothing to offer
	for _, q := range asked {
		if strings.HasPrefix(q.ID, begun) {
			offers = append(offers, q.ID+"\t@"+q.Agent+": "+q.What)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}
