package main

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/httpd"
)

func (a *app) forkCommand() *cobra.Command {
	var at, edit, message string
	cmd := &cobra.Command{
		Use:   "fork [RUN] --at TURN",
		Short: "Start a new run from a turn of another, with an edited prompt or message",
		Long: `Start a new run that begins where a turn of another run began. Every turn that ended before is carried
over, with its output, mail, topics and artifacts, and with the agents that had joined. Everything
else is done again. Files are as they are now. Lines cannot be forked.

TURN is TASK/ITERATION/ATTEMPT as swarm show lists it. A task alone is its last turn.

--edit FILE is the whole prompt of that turn; --edit - reads it from standard input. Mail that comes
after the prompt was written stands behind it.

--message ID --edit FILE changes the text of a message instead, which no turn before TURN has read,
and leaves out its structured part. swarm mail lists the ids; the goal of a team is "goal".

` + newestRun,
		Example: "  swarm fork @last --at code/2/1\n  swarm show @last --turn code --prompt > p.md\n  swarm fork @last --at code --edit p.md\n  echo 'Write it in Go' | swarm fork @last --at pm/1/1 --message goal --edit -",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if at == "" {
				return swarm.Errorf(swarm.BadInput, "no turn is named").WithHint("name the turn that the new run begins with: swarm fork %s --at TURN", args[0])
			}
			c, id, err := a.find(args[0])
			if err != nil {
				return err
			}
			text, err := a.editedText(edit)
			if err != nil {
				return err
			}
			b, err := c.Fork(id, at, text, message)
			if err != nil {
				return err
			}
			b.Args = os.Args[1:]
			return a.begin(begin{Begin: b})
		},
	}
	cmd.Flags().Var((*something)(&at), "at", "begin with this `turn`")
	cmd.Flags().Var((*something)(&edit), "edit", "the `file` with the prompt of that turn, or the message; - is standard input")
	cmd.Flags().Var((*something)(&message), "message", "the `id` of the message whose text is edited")
	a.showFlags(cmd)
	a.openFlag(cmd)
	return cmd
}

// editedText reads the prompt or message that a person has edited; nil = there is none.
func (a *app) editedText(from string) (*string, error) {
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
		return nil, swarm.Errorf(swarm.BadInput, "the edited text cannot be read: %w", err).WithHint("--edit FILE reads a file, --edit - standard input")
	case len(b) > httpd.MaxBody:
		return nil, swarm.Errorf(swarm.BadInput, "the edited text is larger than %d bytes", httpd.MaxBody).
			WithHint("put the large part into a file, and name the file in the text")
	}
	text := string(b)
	return &text, nil
}
