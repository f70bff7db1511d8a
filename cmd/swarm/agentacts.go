package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/term"
)

// The commands in this file are the tools of an agent, for programs that have a shell and no MCP.
// They work only inside a turn.

const onlyInside = `This command works only inside an agent's turn, where SWARM_URL and SWARM_AGENT_TOKEN are set. It
acts in the agent's name. It exists in teams and swarms.`

// inTurn calls do with a connection to the run of the calling agent. Outside a turn it fails, and
// instead is the hint: what a person types.
func (a *app) inTurn(ctx context.Context, instead string, do func(*visitor) error) error {
	caller := control.CallerFromEnv()
	if !caller.InTurn() {
		return swarm.Errorf(swarm.BadInput, "this is not an agent's turn: SWARM_URL and SWARM_AGENT_TOKEN are not set").WithHint("%s", instead)
	}
	v, err := a.visit(ctx, caller.Door)
	if err != nil {
		return err
	}
	defer v.close()
	return do(v)
}

func (a *app) doneCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "done TEXT",
		Short: "As an agent: report that the work is done",
		Long: `Report the result of the work (the tool report_done). The report takes effect when the turn ends,
and the last report of a turn counts. The lead's report ends the run, with TEXT as its result.
With - as TEXT, the text comes from standard input.

` + onlyInside,
		Example: "  swarm done \"The parser is twice as fast; BENCH.md has the figures\"\n  swarm done - < report.md",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inTurn(cmd.Context(), "a person ends a team with: swarm close", func(v *visitor) error {
				text, err := a.text(args[0])
				if err != nil {
					return err
				}
				var answer struct{}
				if err := v.call(cmd.Context(), "report_done", map[string]string{"response": text}, &answer); err != nil {
					return err
				}
				if a.json {
					return a.print(map[string]swarm.RunID{"run": v.run()})
				}
				_, err = fmt.Fprintf(a.stdout, "reported; takes effect when the turn ends, in run %s\n", v.run())
				return err
			})
		},
	}
}

func (a *app) askCommand() *cobra.Command {
	var skills []string
	cmd := &cobra.Command{
		Use:   "ask QUESTION",
		Short: "As an agent: ask a person for help",
		Long: `Ask a person for help (the tool request_help). The turn continues. The answer comes to the agent's
inbox, and gives it a turn. With - as QUESTION, the text comes from standard input.

` + onlyInside,
		Example: "  swarm ask \"Which of the two databases is the real one?\"\n  swarm ask \"May I delete the old table?\" --skill sql",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inTurn(cmd.Context(), "a person asks an agent with: swarm send @AGENT \"…\" --required", func(v *visitor) error {
				text, err := a.text(args[0])
				if err != nil {
					return err
				}
				help := struct {
					Description string   `json:"help_description"`
					Skills      []string `json:"help_skills,omitempty"`
				}{text, skills}
				return v.ask(cmd.Context(), "request_help", help, "the request for help")
			})
		},
	}
	cmd.Flags().StringSliceVar(&skills, "skill", nil, "a `skill` that the helper needs; may be given again")
	return cmd
}

func (a *app) spawnCommand() *cobra.Command {
	var role, provider string
	var edges []string
	cmd := &cobra.Command{
		Use:   "spawn NAME INSTRUCTIONS",
		Short: "As an agent: ask for another agent",
		Long: `Request a new agent for the team (the tool spawn_node). A person, or approvals.spawn of the compose
file, approves or denies the request. The answer comes to the agent's inbox.

The new agent gets INSTRUCTIONS, and both agents may message each other. With - as INSTRUCTIONS,
the text comes from standard input.

` + onlyInside + `
The agent needs permissions: {spawn: true}.`,
		Example: "  swarm spawn tester \"Write tests for parse.go, and tell me what fails\"\n  swarm spawn tester - --role tester --edges coder,reviewer < instructions.md",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inTurn(cmd.Context(), "a person writes the agent into swarm.yaml", func(v *visitor) error {
				text, err := a.text(args[1])
				if err != nil {
					return err
				}
				name := strings.TrimPrefix(args[0], "@")
				request := swarm.SpawnRequest{Name: name, Role: role, Provider: provider, Instructions: text, Edges: plainNames(edges)}
				return v.ask(cmd.Context(), "spawn_node", request, "the request for @"+name)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "a `role` that another agent of the team has")
	f.StringVar(&provider, "provider", "", "the `provider` of an agent of the team (default this agent's own)")
	f.StringSliceVar(&edges, "edges", nil, "other `agents` that the new one exchanges messages with")
	return cmd
}

func (a *app) waitForCommand() *cobra.Command {
	var timeout string
	cmd := &cobra.Command{
		Use:   "wait-for @AGENT,@AGENT…",
		Short: "As an agent: wait for other agents, and print their outputs",
		Long: `Wait inside the turn until other agents have handled their mail (the tool wait_for), and print their
outputs. The outputs of several agents each follow a line with the agent's name.

With --json the result is {outputs: [{agent, turn, output, bytes, ref?}]}. A long output is cut to
its beginning there, and ref names the whole.

` + onlyInside,
		Example:           "  swarm send @coder \"Write it\" && swarm wait-for @coder > code.txt\n  swarm wait-for @coder,@tester --timeout 20m",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inTurn(cmd.Context(), "a person waits for a run with: swarm wait RUN", func(v *visitor) error {
				return a.waitForAgents(cmd.Context(), v, args, timeout)
			})
		},
	}
	cmd.Flags().StringVar(&timeout, "timeout", "", "wait at most this `time`, as in 90s or 20m (default 10m, at most 1h)")
	return cmd
}

// waited is the answer of the tool wait_for.
type waited struct {
	Outputs []struct {
		Agent  string `json:"agent"`
		Turn   string `json:"turn"`
		Output string `json:"output"`
		Bytes  int    `json:"bytes"`
		Ref    string `json:"ref,omitempty"`
	} `json:"outputs"`
}

func (a *app) waitForAgents(ctx context.Context, v *visitor, lists []string, timeout string) error {
	var names []string
	for _, list := range lists {
		names = append(names, plainNames(strings.Split(list, ","))...)
	}
	args := map[string]any{"agents": names}
	if timeout != "" {
		d, err := span(timeout)
		if err != nil {
			return err
		}
		args["timeout"] = max(1, int(d/time.Second))
	}
	var w waited
	if err := v.call(ctx, "wait_for", args, &w); err != nil {
		return err
	}
	if a.json {
		return a.print(w)
	}
	for _, o := range w.Outputs {
		text := o.Output
		if o.Ref != "" {
			var err error
			if text, err = v.read(ctx, o.Ref); err != nil {
				return err
			}
		}
		if len(w.Outputs) > 1 {
			fmt.Fprintf(a.stdout, "--- @%s ---\n", o.Agent)
		}
		if _, err := fmt.Fprint(a.stdout, strings.TrimSuffix(a.foreign([]byte(text)), "\n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request that a person answers later, and confirms that it is stored. Label names the
// request in the confirmation.
func (v *visitor) ask(ctx context.Context, tool string, args any, label string) error {
	var answer struct{ Request swarm.RunID }
	if err := v.call(ctx, tool, args, &answer); err != nil {
		return err
	}
	if v.app.json {
		return v.app.print(map[string]swarm.RunID{"run": v.run(), "request": answer.Request})
	}
	_, err := fmt.Fprintf(v.app.stdout, "%s is stored as %s in run %s; the answer comes to your inbox\n",
		term.Escape(label), answer.Request, v.run())
	return err
}

// read reads a whole artifact, part by part.
func (v *visitor) read(ctx context.Context, ref string) (string, error) {
	var text strings.Builder
	for offset := int64(0); ; {
		var part struct {
			Content string
			Next    int64
		}
		if err := v.call(ctx, "read_artifact", map[string]any{"ref": ref, "offset": offset}, &part); err != nil {
			return "", err
		}
		text.WriteString(part.Content)
		if offset = part.Next; offset == 0 {
			return text.String(), nil
		}
	}
}

// plainNames removes the @ in front of names.
func plainNames(names []string) (plain []string) {
	for _, name := range names {
		if name = strings.TrimPrefix(strings.TrimSpace(name), "@"); name != "" {
			plain = append(plain, name)
		}
	}
	return plain
}
