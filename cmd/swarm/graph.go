package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/prompt"
)

func (a *app) graphCommand() *cobra.Command {
	var (
		src    source
		format string
	)
	cmd := &cobra.Command{
		Use:   "graph [PIPELINE | TASK…]",
		Short: "Draw who waits for whom and who reads whom, as Mermaid or DOT",
		Long: `Draw the plan. An arrow is a dependency, with its condition; a dotted one is an output that a prompt reads without waiting for it: what it reads is of
the iteration before.`,
		Example: "  swarm graph >> README.md\n  swarm graph --format dot | dot -Tsvg > plan.svg",
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "mermaid" && format != "dot" {
				return swarm.Errorf(swarm.BadInput, "--format %s is not known", format).WithHint("%s", swarm.DidYouMean(format, []string{"mermaid", "dot"}))
			}
			o, err := src.options(a, args)
			if err != nil {
				return err
			}
			o.Stdin = func() ([]byte, error) { return nil, nil }
			b, err := compose.Compile(o)
			if err != nil {
				return err
			}
			arrows, err := arrowsOf(b)
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
	cmd.Flags().StringVar(&format, "format", "mermaid", "mermaid or dot")
	return cmd
}

// An arrow leads from a task to one that waits for it, or reads it.
type arrow struct {
	From      string          `json:"from"`
	To        string          `json:"to"`
	Condition swarm.Condition `json:"condition,omitempty"` // of a dependency
	Reads     bool            `json:"reads"`               // its prompt holds the output
}

func arrowsOf(b *compose.Bundle) ([]arrow, error) {
	texts := map[swarm.Hash][]byte{}
	for _, body := range b.Bodies {
		texts[swarm.HashOf(body)] = body
	}
	known := map[string]bool{}
	for _, t := range b.Plan.Tasks {
		known[t.Name] = true
	}
	all := []arrow{}
	for _, t := range b.Plan.Tasks {
		reads, err := readsOf(&t, texts, known)
		if err != nil {
			return nil, err
		}
		waits := map[string]bool{}
		for _, d := range t.DependsOn {
			waits[d.Task] = true
			all = append(all, arrow{d.Task, t.Name, d.Condition, slices.Contains(reads, d.Task)})
		}
		for _, from := range reads {
			if !waits[from] {
				all = append(all, arrow{From: from, To: t.Name, Reads: true})
			}
		}
	}
	return all, nil
}

// readsOf lists the tasks whose outputs the task's prompt holds, each once.
func readsOf(t *swarm.Task, texts map[swarm.Hash][]byte, known map[string]bool) (reads []string, err error) {
	tpl, err := prompt.Unmarshal(texts[t.Prompt])
	if err != nil {
		return nil, err
	}
	for _, ref := range tpl.Refs() {
		from := ref.Name
		if ref.Kind == "input" {
			from = t.Inputs[from]
		}
		if copied := fmt.Sprintf("%s.%d", from, t.Copy); t.Copy > 0 && known[copied] {
			from = copied
		}
		if known[from] && !slices.Contains(reads, from) {
			reads = append(reads, from)
		}
	}
	return reads, nil
}

func taskNames(p *swarm.Plan) (names []string) {
	for _, t := range p.Tasks {
		names = append(names, t.Name)
	}
	return names
}

// mermaid names nodes by their number, because some names mean something in Mermaid.
func mermaid(p *swarm.Plan, arrows []arrow) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	id := map[string]string{}
	for i, t := range p.Tasks {
		id[t.Name] = fmt.Sprintf("t%d", i+1)
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", id[t.Name], label(&t))
	}
	for _, x := range arrows {
		switch {
		case x.Condition == "":
			fmt.Fprintf(&b, "  %s -.->|reads| %s\n", id[x.From], id[x.To])
		case x.Condition == swarm.OnAny:
			fmt.Fprintf(&b, "  %s --> %s\n", id[x.From], id[x.To])
		default:
			fmt.Fprintf(&b, "  %s -->|%s| %s\n", id[x.From], x.Condition, id[x.To])
		}
	}
	return b.String()
}

func dot(p *swarm.Plan, arrows []arrow) string {
	var b strings.Builder
	b.WriteString("digraph plan {\n  node [shape=box];\n")
	for _, t := range p.Tasks {
		fmt.Fprintf(&b, "  %q [label=%q];\n", t.Name, label(&t))
	}
	for _, x := range arrows {
		switch {
		case x.Condition == "":
			fmt.Fprintf(&b, "  %q -> %q [style=dotted, label=reads];\n", x.From, x.To)
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
