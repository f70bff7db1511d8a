package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) approveCommand() *cobra.Command {
	var edit string
	cmd := a.answerCommand("approve", "Approve what an agent asks for", `
A request for a new agent or a new edge, and the plan of a swarm, can be changed before it is
approved. --edit opens it in $VISUAL or $EDITOR. --edit=FILE reads the changed request from a file,
and --edit=- from standard input, as one JSON object.

In the plan of a swarm, a subtask with a known id stays with its agent, one that is taken out is not
worked on, and one with a new id gets a new agent.`,
		func(c *control.Control, q control.Question) (run.Decision, error) {
			d := run.Decision{OK: true}
			var err error
			if edit != "" {
				d.Edit, err = a.edited(c, q, edit)
			}
			return d, err
		})
	cmd.Example += "\n  swarm approve planner/1/1/5c0e --edit\n  swarm approve planner/1/1/5c0e --edit=- < wish.json"
	cmd.Flags().StringVar(&edit, "edit", "", "approve the request in `FILE` instead; without FILE, open an editor")
	cmd.Flags().Lookup("edit").NoOptDefVal = inEditor
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var reason string
	cmd := a.answerCommand("deny", "Deny what an agent asks for", `
The agent gets the text of --reason.`,
		func(*control.Control, control.Question) (run.Decision, error) {
			return run.Decision{Reason: reason}, nil
		})
	cmd.Example += "\n  swarm deny planner/1/1/5c0e --reason 'coder can do that'"
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a few `words`")
	return cmd
}

func (a *app) answerCommand(word string, short, more string, decide func(*control.Control, control.Question) (run.Decision, error)) *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   word + " [ID]",
		Short: short,
		Long: short + `: the use of a tool, a new agent, or a new edge.

An agent that asks for a tool waits for the answer. One that asks for an agent or an edge continues,
and gets the answer by mail.

Without ID, list the open approvals of this folder's runs. The beginning of an ID is enough. Two runs
may use the same ID; then name the run with --run. The first answer counts, and is on disk when this
command returns.
` + more,
		Example: fmt.Sprintf("  swarm %s\n  swarm %s code/1/1/7abaf349e9a746ca\n  swarm %s code/1/1 --run @last", word, word, word),
		Args: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags().Lookup("edit"); f != nil && f.Changed && len(args) == 2 {
				return swarm.Errorf(swarm.BadInput, "--edit and its file are one word").WithHint("write --edit=%s", args[1])
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.control()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				asked, err := c.Questions(ref)
				if err != nil {
					return err
				}
				return a.listQuestions(asked)
			}
			q, err := c.Choose(ref, args[0], word)
			if err == nil {
				err = c.MayAnswer(q.Run) // before an editor is opened
			}
			if err != nil {
				return err
			}
			d, err := decide(c, q)
			if err != nil {
				return err
			}
			result, err := c.Answer(cmd.Context(), q.Run, q.ID, d)
			if err != nil {
				return err
			}
			return a.printCommand(c, result)
		},
		ValidArgsFunction: a.completeQuestion,
	}
	cmd.Flags().StringVar(&ref, "run", "", "the `run` whose agent asks")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

func (a *app) listQuestions(asked []control.Question) error {
	if a.json {
		return a.print(asked)
	}
	if len(asked) == 0 {
		_, err := fmt.Fprintln(a.stdout, "no approvals are open")
		return err
	}
	t := term.NewTable("ID", "RUN", "AGENT", "FOR", "WANTS TO")
	for _, q := range asked {
		t.Row(q.ID, string(q.Run), "@"+q.Agent, term.Duration(time.Since(q.Asked)), view.DescribeApproval(q.Approval.Approval))
	}
	return a.table(t)
}
