package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
)

func (a *app) graphCommand() *cobra.Command {
	var (
		src    source
		format string
	)
	cmd := &cobra.Command{
		Use:   "graph [PIPELINE | TASK…]",
		Short: "Draw dependencies between tasks, or edges between agents, as Mermaid or DOT",
		Long: `Draw the plan. A solid arrow is a dependency, with its condition. An arrow "reads" is the output of a
task that is no direct dependency. If it is dotted, the task does not wait for it, and reads the
output of the previous iteration.

If the file has no tasks, draw the team. Then an arrow is an edge: the permission for one agent to
message another.`,
		Example: "  swarm graph >> README.md\n  swarm graph --format dot | dot -Tsvg > plan.svg",
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "mermaid" && format != "dot" {
				return swarm.Errorf(swarm.BadInput, "--format %s is not known", format).WithHint("%s", swarm.DidYouMean(format, []string{"mermaid", "dot"}))
			}
			b, err := src.compile(a, args)
			if err != nil {
				return err
			}
			if len(b.Plan.Tasks) == 0 {
				return a.graphTeam(&b.Plan, format)
			}
			arrows, err := b.Arrows()
			if err != nil {
				return err
			}
			if a.json {
				return a.print(map[string]any{"tasks": taskNames(&b.Plan), "arrows": arrows})
			}
			if format == "dot" {
				_, err = fmt.Fprint(a.stdout, dot(&b.Plan, arrows))
			} else {
				_, err = fmt.Fprint(a.stdout, mermaid(&b.Plan, arrows))
			}
			return err
		},
	}
	src.flags(cmd)
	src.selection(cmd)
	cmd.Flags().StringVar(&format, "format", "mermaid", "the `format`: mermaid or dot")
	return cmd
}

// graphTeam draws the agents and edges of a team.
func (a *app) graphTeam(p *swarm.Plan, format string) error {
	var b strings.Builder
	switch {
	case a.json:
		edges := p.Edges
		if edges == nil {
			edges = []swarm.Edge{}
		}
		var names []string
		for _, ag := range p.Agents {
			names = append(names, ag.Name)
		}
		return a.print(map[string]any{"agents": names, "edges": edges})
	case format == "dot":
		b.WriteString("digraph team {\n  node [shape=ellipse];\n")
		for _, ag := range p.Agents {
			fmt.Fprintf(&b, "  %q;\n", ag.Name)
		}
		for _, e := range p.Edges {
			both := ""
			if e.Both {
				both = " [dir=both]"
			}
			fmt.Fprintf(&b, "  %q -> %q%s;\n", e.From, e.To, both)
		}
		b.WriteString("}\n")
	default:
		b.WriteString("flowchart TD\n")
		id := map[string]string{}
		for i, ag := range p.Agents {
			id[ag.Name] = fmt.Sprintf("a%d", i+1)
			fmt.Fprintf(&b, "  %s([\"@%s\"])\n", id[ag.Name], ag.Name)
		}
		for _, e := range p.Edges {
			arrow := "-->"
			if e.Both {
				arrow = "<-->"
			}
			fmt.Fprintf(&b, "  %s %s %s\n", id[e.From], arrow, id[e.To])
		}
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

func taskNames(p *swarm.Plan) (names []string) {
	for _, t := range p.Tasks {
		names = append(names, t.Name)
	}
	return names
}

// mermaid draws tasks in Mermaid. Node ids are numbers, because some names are Mermaid keywords.
func mermaid(p *swarm.Plan, arrows []compose.Arrow) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	id := map[string]string{}
	for i, t := range p.Tasks {
		id[t.Name] = fmt.Sprintf("t%d", i+1)
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", id[t.Name], label(&t))
	}
	for _, x := range arrows {
		switch {
		case x.Previous:
			fmt.Fprintf(&b, "  %s -.->|reads| %s\n", id[x.From], id[x.To])
		case x.Condition == "":
			fmt.Fprintf(&b, "  %s -->|reads| %s\n", id[x.From], id[x.To])
		case x.Condition == swarm.OnAny:
			fmt.Fprintf(&b, "  %s --> %s\n", id[x.From], id[x.To])
		default:
			fmt.Fprintf(&b, "  %s -->|%s| %s\n", id[x.From], x.Condition, id[x.To])
		}
	}
	return b.String()
}

func dot(p *swarm.Plan, arrows []compose.Arrow) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	for _, t := range p.Tasks {
		fmt.Fprintf(&b, "  %q [label=%q];\n", t.Name, label(&t))
	}
	for _, x := range arrows {
		switch {
		case x.Previous:
			fmt.Fprintf(&b, "  %q -> %q [style=dotted, label=reads];\n", x.From, x.To)
		case x.Condition == "":
			fmt.Fprintf(&b, "  %q -> %q [label=reads];\n", x.From, x.To)
		case x.Condition == swarm.OnAny:
			fmt.Fprintf(&b, "  %q -> %q;\n", x.From, x.To)
		default:
			fmt.Fprintf(&b, "  %q -> %q [label=%q];\n", x.From, x.To, x.Condition)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func label(t *swarm.Task) string {
	if t.Agent == swarm.AgentOf(t.Name) {
		return t.Name
	}
	return t.Name + " @" + t.Agent
}
