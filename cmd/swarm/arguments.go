package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/view"
)

// argumentNames returns the arguments that the usage line of a command names, such as
// "[RUN]" and "TASK | @AGENT".
func argumentNames(cmd *cobra.Command) (names []string) {
	depth := 0
	for i, word := range strings.Fields(cmd.Use)[1:] {
		if depth > 0 || i > 0 && (word == "|" || strings.HasSuffix(names[len(names)-1], "|")) {
			names[len(names)-1] += " " + word
		} else {
			names = append(names, word)
		}
		depth += strings.Count(word, "[") + strings.Count(word, "(") - strings.Count(word, "]") - strings.Count(word, ")")
	}
	return names
}

// inOurWords makes a check of arguments say what is missing, or which argument is too many. Checks
// of cobra only count.
func inOurWords(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var ours *swarm.Error
		if err == nil || errors.As(err, &ours) {
			return err
		}
		e := swarm.Errorf(swarm.BadInput, "%w", err)
		var required []string
		for _, name := range argumentNames(cmd) {
			if !strings.HasPrefix(name, "[") || name == "[RUN]" { // runOptional adds it
				name, _, _ = strings.Cut(strings.Trim(name, "()…"), " |")
				required = append(required, name)
			}
		}
		if len(args) < len(required) {
			e = swarm.Errorf(swarm.BadInput, "%s is missing", required[len(args)])
		} else {
			for n := len(args) - 1; n >= 0; n-- {
				if check(cmd, args[:n]) == nil {
					e = swarm.Errorf(swarm.BadInput, "%s is one argument too many", swarm.Quote(args[n]))
					break
				}
			}
		}
		return e.WithHint("usage: %s", cmd.UseLine())
	}
}

// runOptional lets people leave out RUN if it is a command's first argument. Then the newest run is
// meant, and the command gets its id.
func (a *app) runOptional(cmd *cobra.Command) {
	names := argumentNames(cmd)
	if cmd.Flags().Lookup("run") != nil { // it reads RUN itself
		return
	}
	if len(names) == 0 || names[0] != "RUN" && names[0] != "[RUN]" {
		return
	}
	cmd.Use = strings.Replace(cmd.Use, " RUN", " [RUN]", 1)
	names = names[1:]
	if len(names) > 0 && strings.HasPrefix(names[0], "[--") {
		names = nil // they come after --
	}
	cmd.ValidArgsFunction = a.completeRunAnd(names)
	check, act := inOurWords(cmd.Args), cmd.RunE
	cmd.Args = cobra.ArbitraryArgs // checked when the run is known
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		args, err := a.addRun(cmd, args, names, check)
		if err != nil {
			return err
		}
		return act(cmd, args)
	}
}

// addRun returns the arguments with the run in front. A first argument that names no run is a task
// or an agent of the newest run. names are the arguments that the command takes after RUN.
func (a *app) addRun(cmd *cobra.Command, args, names []string, check cobra.PositionalArgs) ([]string, error) {
	c, err := a.control()
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		if arg == "" || arg == "@" { // an unset variable of a shell must not mean the whole run
			return nil, swarm.Errorf(swarm.BadInput, "%s names no run, task or agent", swarm.Quote(arg)).WithHint("usage: %s", cmd.UseLine())
		}
	}
	if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
		_, err := c.Home.Find(args[0], c.Dir, c.Anywhere)
		if kind := swarm.KindOf(err); err == nil || kind != swarm.NotFound && kind != swarm.BadInput {
			return args, check(cmd, args) // it is a run, or the command says what is wrong with it
		}
		command := cmd.Name()
		if command != "retry" {
			command = "" // the name says which of the runs that go on is meant
		}
		newest, failed := newestRunOf(c, command)
		switch {
		case failed != nil && swarm.KindOf(failed) != swarm.NotFound:
			return nil, failed // an agent may not steer it
		case failed != nil || len(names) == 0:
			return nil, err
		}
		more := append([]string{string(newest.ID)}, args...)
		if wrong := check(cmd, more); wrong != nil {
			if unfit := check(cmd, args); unfit != nil {
				return nil, unfit
			}
			return nil, err
		}
		return more, nameOf(c, newest.ID, args[0], names[0], err)
	}
	newest, err := newestRunOf(c, cmd.Name())
	if err != nil {
		return nil, err
	}
	args = append([]string{string(newest.ID)}, args...)
	return args, check(cmd, args)
}

// namesRun reports whether a word is meant as a run: @last, or the beginning of an id, which is a date.
func namesRun(word string) bool {
	return word == "@last" || word != "" && word[0] >= '0' && word[0] <= '9'
}

// oneRun returns the run of a command that takes RUN and, as it did before, --run.
func oneRun(arg, flag string) (string, error) {
	if flag != "" && flag != arg {
		return "", swarm.Errorf(swarm.BadInput, "%s and --run %s name different runs", swarm.Quote(arg), flag).WithHint("name one of them")
	}
	return arg, nil
}

// newestRunOf returns the run that a command without RUN is about: the newest run of this folder. If
// that run has ended, a command that steers is about the newest run that a process drives. Inside an
// agent's turn, commands that only read are about the agent's own run.
func newestRunOf(c *control.Control, command string) (swarm.RunSummary, error) {
	inside := c.Home.Exists(c.Caller.Run)
	if inside && !c.Steering {
		return c.Meant("")
	}
	if !inside {
		newest, err := c.Find("@last")
		if err != nil || !c.Steering || !newest.Status.Ended() || command == "retry" {
			return newest, err
		}
	}
	ref, err := c.Newest()
	if err != nil {
		return swarm.RunSummary{}, err
	}
	s, err := c.Find(ref)
	if err == nil && !inside && ref != "@last" && (command == "cancel" || command == "close") {
		return s, swarm.Errorf(swarm.BadInput, "the newest run of this folder has ended").WithHint("to %s the run that goes on: swarm %s %s", command, command, s.ID)
	}
	return s, err
}

// nameOf checks that a word that names no run is a task or an agent of the newest one, if the
// command takes these. The command itself says what is wrong with an @AGENT.
func nameOf(c *control.Control, id swarm.RunID, word, takes string, missing error) error {
	if !strings.Contains(takes, "TASK") && !strings.Contains(takes, "AGENT") || strings.HasPrefix(word, "@") {
		return nil
	}
	p, err := c.Picture(id)
	if err != nil {
		return err
	}
	task, _, _ := strings.Cut(word, "/") // also turns, as in code/2/1
	names := namesIn(p)
	for _, name := range names {
		if name == task {
			return nil
		}
	}
	if namesRun(word) || swarm.KindOf(missing) != swarm.NotFound || len(names) == 0 {
		return missing
	}
	return swarm.Errorf(swarm.NotFound, "there is no run %s, and run %s has no task or agent of that name", swarm.Quote(word), id).
		WithHint("%s; `swarm ls` lists the runs of this folder", swarm.DidYouMean(word, names))
}

// namesIn returns the names of a run's tasks, of what its tasks are copies of, and of its agents.
func namesIn(p view.Picture) (names []string) {
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, t := range p.Tasks {
		add(t.Name)
		add(t.Base)
		if t.Subtask != nil {
			add(t.Subtask.ID)
		}
	}
	for _, agent := range p.Agents {
		add(agent.Name)
	}
	return names
}
