package main

import "github.com/spf13/cobra"

func (a *app) solveCommand() *cobra.Command {
	var (
		src            source
		agents, most   int
		plan           string
		detach         bool
		record, replay string
	)
	cmd := &cobra.Command{
		Use:   "solve QUERY",
		Short: "Have a swarm of agents divide a question, work on it and answer it",
		Long: `Have a swarm answer a question. The supervisor divides it into subtasks. An agent works on each of
them in iterations: it uses tools, shares what it finds, and writes to its teammates. When all have
ended, the supervisor makes one answer of their results.`,
		Example: `  swarm solve "Compare AI chip markets across US, Japan and South Korea"
  swarm solve "Which of our packages have no tests?" --agents 5
  swarm solve "Compare the three designs in docs/" --plan subtasks.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if detach {
				return a.detach()
			}
			r := src.request(a, nil)
			r.Query, r.Agents, r.Iterations, r.Subtasks, r.Replay = args[0], agents, most, plan, replay
			return a.plan(r, record)
		},
	}
	src.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&agents, "agents", 0, "how many agents work at the same time (default 3)")
	f.IntVar(&most, "iterations", 0, "how many iterations an agent has (default 25, or swarm.max_iterations_per_agent)")
	f.StringVar(&plan, "plan", "", "a JSON `file` with the subtasks, in the place of the supervisor's")
	f.BoolVarP(&detach, "detach", "d", false, "run in the background; see swarm attach and swarm wait")
	recordFlags(cmd, &record, &replay)
	return cmd
}
