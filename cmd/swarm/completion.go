package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/providerkind"
	"swarm/internal/run"
)

const keepOrder = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder

// completeAll gives a command, and the commands below it, completions for its arguments and flags
// by what the usage line and the flags are called. A command's own completions stay.
func (a *app) completeAll(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeAll(sub)
	}
	names := argumentNames(cmd)
	switch {
	case len(names) > 0 && strings.HasPrefix(names[0], "[PIPELINE"):
		cmd.ValidArgsFunction = a.completePlan
	case len(names) == 0 && cmd.ValidArgsFunction == nil && !cmd.HasSubCommands():
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	values := map[string]cobra.CompletionFunc{
		"color":    cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp),
		"format":   cobra.FixedCompletions([]string{"mermaid", "dot"}, cobra.ShellCompDirectiveNoFileComp),
		"strategy": cobra.FixedCompletions(swarm.Strategies, cobra.ShellCompDirectiveNoFileComp),
		"provider": a.completeProvider,
		"turn":     a.completeOfRun(offerTurns),
		"from":     a.completeOfRun(offerTasks),
		"to":       a.completeAgentsOfFile,
		"agent":    a.completeAgentsOfFile,
		"resume":   a.completeRunFlag,
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := values[f.Name]
		if some, ok := f.Value.(*choice); ok {
			complete = cobra.FixedCompletions(some.values, cobra.ShellCompDirectiveNoFileComp)
		}
		if complete != nil && f.Value.Type() != "bool" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // an error means that the command has its own
		}
	})
}

// completeRunAnd completes the arguments [RUN] and what comes after it: tasks and agents.
func (a *app) completeRunAnd(names []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ref, named := a.runToOffer(cmd, args)
		after := len(args) // how many arguments come after the run
		if named {
			after--
		}
		var offers []string
		how := keepOrder
		if after < len(names) || len(names) > 0 && strings.HasSuffix(strings.TrimRight(names[len(names)-1], "]"), "…") {
			switch name := names[min(after, len(names)-1)]; {
			case strings.Contains(name, "FILE"):
				how = cobra.ShellCompDirectiveDefault
			case strings.Contains(name, "TASK"):
				offers, _ = a.offerOf(ref, begun, offerTasksAndAgents)
			default:
				offers, _ = a.offerOf(ref, begun, offerAgents)
			}
		}
		if len(args) == 0 {
			runs, _ := a.completeRun(cmd, args, begun)
			offers = append(offers, runs...)
		}
		return offers, how
	}
}

// completeOfRun completes a flag with names from the run of the first argument, or the newest.
func (a *app) completeOfRun(all func(*run.Reader) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ref, _ := a.runToOffer(cmd, args)
		return a.offerOf(ref, begun, all)
	}
}

// runToOffer returns the run whose names a command takes: that of its first argument, or the one that the
// command is about without RUN. "" = the one that openMeant finds.
func (a *app) runToOffer(cmd *cobra.Command, args []string) (ref string, named bool) {
	if len(args) > 0 {
		if _, _, err := a.find(args[0]); err == nil {
			return args[0], true
		}
	}
	if cmd.Flags().Lookup("run") != nil { // it reads RUN itself
		return "", false
	}
	a.steering = cmd.Annotations[steers] != ""
	c, err := a.control()
	if err != nil {
		return "", false
	}
	command := cmd.Name()
	if command != "retry" {
		command = "" // as in addRun
	}
	newest, err := newestRunOf(c, command)
	if err != nil {
		return "", false
	}
	return string(newest.ID), false
}

func offerTasks(l *run.Reader) (offers []string, err error) {
	p, err := l.Picture()
	for _, t := range p.Tasks {
		offers = append(offers, t.Name+"\t"+string(t.Status))
	}
	return offers, err
}

func offerTasksAndAgents(l *run.Reader) (offers []string, err error) {
	offers, err = offerTasks(l)
	if err != nil {
		return nil, err
	}
	agents, err := offerAgents(l)
	return append(offers, agents...), err
}

func offerTurns(l *run.Reader) (offers []string, err error) {
	d, err := l.Details()
	for _, t := range d.Turns {
		offers = append(offers, string(t.ID)+"\t"+string(t.Status))
	}
	return offers, err
}

// fileOf compiles all of the compose file that a command is about, without starting anything. provider
// is that of agents that name none; "" = the file's.
func (a *app) fileOf(cmd *cobra.Command, provider string) (*compose.Bundle, error) {
	file := ""
	if f := cmd.Flags().Lookup("file"); f != nil {
		file = f.Value.String()
	}
	o, p, err := (&source{file: file, provider: provider}).read(a, nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	o = o.ReadOnce()
	o.Stdin = func() ([]byte, error) { return nil, nil }
	return compose.CompileAll(o)
}

// completePlan offers the pipelines and tasks of the compose file. A pipeline is named alone.
func (a *app) completePlan(cmd *cobra.Command, args []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
	b, err := a.fileOf(cmd, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	offer := func(name, about string) {
		if strings.HasPrefix(name, begun) {
			offers = append(offers, name+"\t"+about)
		}
	}
	if len(args) == 0 {
		for _, name := range b.Settings.Pipelines {
			offer(name, "a pipeline")
		}
	}
	for _, t := range b.Plan.Tasks {
		offer(t.Name, "a task of @"+t.Agent)
	}
	return offers, keepOrder
}

// completeAgentsOfFile offers the agents of the compose file.
func (a *app) completeAgentsOfFile(cmd *cobra.Command, _ []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
	b, err := a.fileOf(cmd, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, ag := range b.Plan.Agents {
		if strings.HasPrefix(ag.Name, strings.TrimPrefix(begun, "@")) {
			offers = append(offers, ag.Name+"\t"+ag.Provider)
		}
	}
	return offers, keepOrder
}

// completeProvider offers the providers that every file has, and those that the compose file declares.
func (a *app) completeProvider(cmd *cobra.Command, _ []string, begun string) (offers []string, _ cobra.ShellCompDirective) {
	names := providerkind.Presets()
	if b, err := a.fileOf(cmd, names[0]); err == nil { // without a file the presets remain
		names = append(b.Settings.Providers, names...)
	}
	for i, name := range names {
		if strings.HasPrefix(name, begun) && !slices.Contains(names[:i], name) {
			offers = append(offers, name)
		}
	}
	return offers, keepOrder
}
