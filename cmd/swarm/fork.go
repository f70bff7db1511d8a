package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/httpd"
)

func (a *app) forkCommand() *cobra.Command {
	var at, edit string
	cmd := &cobra.Command{
		Use:   "fork [RUN] --at TURN",
		Short: "Start a new run from a turn of another, with an edited prompt",
		Long: `Start a new run that begins where a turn of another run began. Every turn that ended before is carried
over, with its output, mail, topics and artifacts. Everything else is done again. Files are as they
are now. Swarms and lines cannot be forked.

TURN is TASK/ITERATION/ATTEMPT as swarm show lists it. A task alone is its last turn.

--edit FILE is the whole prompt of that turn; --edit - reads it from standard input.

` + newestRun,
		Example: "  swarm fork @last --at code/2/1\n  swarm show @last --turn code --prompt > p.md\n  swarm fork @last --at code --edit p.md",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if at == "" {
				return swarm.Errorf(swarm.BadInput, "no turn is named").WithHint("name the turn that the new run begins with: swarm fork %s --at TURN", args[0])
			}
			c, id, err := a.find(args[0])
			if err != nil {
				return err
			}
			text, err := a.editedPrompt(edit)
			if err != nil {
				return err
			}
			b, err := c.Fork(id, at, text)
			if err != nil {
				return err
			}
			b.Args = os.Args[1:]
			return a.begin(begin{Begin: b})
		},
	}
	cmd.Flags().Var((*something)(&at), "at", "begin with this `turn`")
	cmd.Flags().Var((*something)(&edit), "edit", "the `file` with the prompt of that turn; - is standard input")
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// editedPrompt reads the prompt that a person has edited; nil = there is none.
func (a *app) editedPrompt(from string) (*string, error) {
	if from == "" {
		return nil, nil
	}
	in := a.stdin
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "%w", err).WithHint("--edit FILE reads a file, --edit - standard input")
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, httpd.MaxBody+1)) // the API takes as much
	switch {
	case err != nil:
		return nil, swarm.Errorf(swarm.BadInput, "the edited prompt cannot be read: %w", err).WithHint("--edit FILE reads a file, --edit - standard input")
	case len(b) > httpd.MaxBody:
		return nil, swarm.Errorf(swarm.BadInput, "the edited prompt is larger than %d bytes", httpd.MaxBody).
			WithHint("put the large part into a file, and name the file in the prompt")
	}
	text := string(b)
	return &text, nil
}
