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
	cmd := a.answerCommand("approve", "Let an agent do what it asks for", `
A request for a new agent or a new edge can be granted otherwise than it was asked: with --edit it is opened in $VISUAL or $EDITOR; --edit=FILE reads
it from a file, --edit=- from standard input, written whole as one JSON object.`,
		func(q control.Question) (run.Decision, error) {
			d := run.Decision{OK: true, By: "swarm approve"}
			var err error
			if edit != "" {
				d.Edit, err = a.edited(q, edit)
			}
			return d, err
		})
	cmd.Example += "\n  swarm approve planner/1/1/5c0e --edit\n  swarm approve planner/1/1/5c0e --edit=- < wish.json"
	cmd.Flags().StringVar(&edit, "edit", "", "grant what `FILE` says instead; without FILE, an editor is opened")
	cmd.Flags().Lookup("edit").NoOptDefVal = inEditor
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var reason string
	cmd := a.answerCommand("deny", "Refuse what an agent asks for", `
The agent is told --reason.`,
		func(control.Question) (run.Decision, error) {
			return run.Decision{Reason: reason, By: "swarm deny"}, nil
		})
	cmd.Example += "\n  swarm deny planner/1/1/5c0e --reason 'coder can do that'"
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a few `words`")
	return cmd
}

func (a *app) answerCommand(word string, short, more string, decide func(control.Question) (run.Decision, error)) *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   word + " [ID]",
		Short: short,
		Long: short + `: a tool that it may not use by itself, another agent, another edge. Who asks for a tool waits until somebody answers; who asks
for an agent or an edge goes on, and gets the answer by mail. Without ID, what is asked in this folder's runs is listed; the beginning of an ID is
enough. Two runs may ask under the same ID; then --run says which one is meant. The first answer counts, and is on disk when this command returns.
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
				return a.listAsked(asked)
			}
			q, err := c.Choose(ref, args[0], word)
			if err == nil {
				err = c.Caller.Person(q.Run, "answering what an agent asks for") // before an editor is opened
			}
			if err != nil {
				return err
			}
			d, err := decide(q)
			if err != nil {
				return err
			}
			result, err := c.Answer(cmd.Context(), q, d)
			if err != nil {
				return err
			}
			return a.said(c, result)
		},
		ValidArgsFunction: a.completeAsked,
	}
	cmd.Flags().StringVar(&ref, "run", "", "the `run` whose agent asks")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

func (a *app) listAsked(asked []control.Question) error {
	if a.json {
		return a.print(asked)
	}
	if len(asked) == 0 {
		_, err := fmt.Fprintln(a.stdout, "nobody asks for anything")
		return err
	}
	t := term.NewTable("ID", "RUN", "AGENT", "FOR", "WANTS TO")
	for _, q := range asked {
		t.Row(q.ID, string(q.Run), "@"+q.Agent, term.Duration(time.Since(q.Asked)), view.DescribeApproval(q.Approval.Approval))
	}
	return a.table(t)
}
