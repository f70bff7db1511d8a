package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/term"
)

func (a *app) configCommand() *cobra.Command {
	var src source
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the settings in force and where they come from",
		Example: "  swarm config\n  swarm config --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := a.configuration(&src)
			if err != nil {
				return err
			}
			if a.json {
				return a.print(c)
			}
			table := term.NewTable("SETTING", "VALUE", "FROM")
			for _, s := range c {
				table.Row(s.Name, s.Value, s.From)
			}
			return a.table(table)
		},
	}
	src.flags(cmd)
	return cmd
}

// A setting is a value in force and where it comes from.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (a *app) configuration(src *source) ([]setting, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	from := "default"
	if os.Getenv("SWARM_HOME") != "" {
		from = "SWARM_HOME"
	}
	all := []setting{{"home", h.Dir(), from}}
	if store, ok := h.Store.(swarm.SharedStore); ok {
		all = append(all, setting{"store", store.Name(), a.storeFrom})
	}
	o, err := src.options(a, nil)
	s := compose.Defaults()
	switch {
	case swarm.KindOf(err) == swarm.NotFound && src.file == "":
		s.Provider, o.File = o.Provider, ""
	case err != nil:
		return nil, err
	default:
		all = append(all, setting{"file", o.File, "found"})
		o.Stdin = func() ([]byte, error) { return nil, nil }
		read, err := compose.ReadSettings(o)
		if err != nil {
			return nil, err
		}
		s = *read
	}
	if s.Provider != "" {
		from = o.File
		switch {
		case src.provider != "":
			from = "--provider"
		case o.Provider != "":
			from = "SWARM_PROVIDER"
		}
		all = append(all, setting{"provider", s.Provider, from})
	}
	return append(all, settingsOf(s, compose.Defaults(), o.File)...), nil
}

// settingsOf lists settings. A value that differs from the default comes from the file.
func settingsOf(s, defaults compose.Settings, file string) (all []setting) {
	rows := func(s compose.Settings) []setting {
		return []setting{
			{Name: "default_agent", Value: s.DefaultAgent}, {Name: "max_parallel", Value: fmt.Sprint(s.MaxParallel)},
			{Name: "wait_timeout", Value: s.WaitTimeout.String()}, {Name: "reply_timeout", Value: s.ReplyTimeout.String()},
			{Name: "approvals.spawn", Value: s.Approvals.Spawn}, {Name: "approvals.tools", Value: s.Approvals.Tools},
			{Name: "swarm.max_agents", Value: fmt.Sprint(s.Swarm.MaxAgents)}, {Name: "swarm.max_iterations_per_agent", Value: fmt.Sprint(s.Swarm.MaxIterationsPerAgent)},
			{Name: "swarm.agent_timeout_seconds", Value: fmt.Sprint(int(s.Swarm.AgentTimeout.Seconds()))},
			{Name: "swarm.max_messages_per_agent", Value: fmt.Sprint(s.Swarm.MaxMessagesPerAgent)},
			{Name: "swarm.workspace_snippet_chars", Value: fmt.Sprint(s.Swarm.WorkspaceSnippetChars)}, {Name: "swarm.workspace_max_entries", Value: fmt.Sprint(s.Swarm.WorkspaceMaxEntries)},
			{Name: "swarm.strategy", Value: string(s.Swarm.Strategy)},
			{Name: "swarm.replan", Value: fmt.Sprint(s.Swarm.Replan)},
		}
	}
	usual := rows(defaults)
	for i, r := range rows(s) {
		r.From = "default"
		if r.Value != usual[i].Value {
			r.From = file
		}
		if r.Value != "" {
			all = append(all, r)
		}
	}
	return all
}
