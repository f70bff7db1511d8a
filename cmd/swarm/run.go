package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/project"
	"swarm/internal/registry"
)

func (a *app) runCommand() *cobra.Command {
	var (
		src                         source
		ephemeral, stopOnError      bool
		name, file, text, agent     string
		record, replay, composeFile string
	)
	cmd := &cobra.Command{
		Use:   "run (LINE | - | -p NAME | -f FILE | -s TEXT)",
		Short: "Run a line, or one prompt",
		Long: `Run a line with the syntax of the REPL: agents in a chain that refer to each other. With -, run the
lines of standard input one after the other. Errors name the number of their line, and the other
lines still run. Lines cannot be recorded or replayed.

Or run one prompt by itself: a prompt by its name, a file, or a text. {{STDIN}} in it is the text
from standard input. {{output:x}} is a placeholder, because no other task runs.

On a terminal, the agent's output is shown while it arrives. A pipe gets the output and nothing else.

Agents and providers come from swarm/swarm.yaml, if it exists. Without it, the coding agents in your
PATH are the agents, by the names of their programs: @claude, @codex, @gemini, @opencode. So are the
roles of .claude/agents: @tester is .claude/agents/tester.md. With --provider NAME, the agents are @pm,
@ba, @builder-1, @builder-2, @reviewer and @writer.`,
		Example: `  swarm run -p reviewer
  git diff | swarm run -s 'Review this: {{STDIN}}'
  swarm run -f notes.md --agent writer
  swarm run '@claude Fix the failing test -> @codex Review $claude'
  swarm run '@pm Plan a small tool -> @builder-1 Build $pm' --provider claude-code
  swarm run - < session.txt`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			src.file = composeFile
			return a.lineAgents(&src, args), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, f := range []string{"prompt", "prompt-file", "prompt-string"} {
				if cmd.Flags().Changed(f) {
					given++
				}
			}
			if len(args) > 0 && given == 0 {
				if record != "" || replay != "" { // lines are commands of a person, which no loop decides again
					return swarm.Errorf(swarm.BadInput, "a line cannot be recorded or replayed").
						WithHint("run one prompt: swarm run -s TEXT --agent NAME --record FILE; or a pipeline: swarm up --record FILE")
				}
				src.file = composeFile
				return a.runLines(args, &src, ephemeral, stopOnError)
			}
			if given != 1 || len(args) > 0 {
				return swarm.Errorf(swarm.BadInput, "there is no prompt, or more than one").WithHint("write a line, or exactly one of -p NAME, -f FILE and -s TEXT")
			}
			src.file = composeFile
			o, p, err := a.singleOptions(&src)
			if err != nil {
				return err
			}
			defer p.Close()
			s := compose.Single{Task: "run", Agent: strings.TrimPrefix(agent, "@"), File: "-s", Text: []byte(text)}
			switch {
			case name != "":
				s.Task = taskNamed(name)
				s.File, s.Text, err = p.Prompt(name)
			case file != "":
				s.Task = taskNamed(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
				s.File, s.Text, err = p.Text(file)
			}
			if err != nil {
				return err
			}
			b, err := compose.CompileSingle(o, s)
			if err != nil {
				return err
			}
			if s.File != "-s" {
				b.Sources = append(b.Sources, s.File)
			}
			a.warn(b.Warnings)
			a.plain, a.streamed, a.quiet = true, true, !a.json && !a.onTerminal()
			return a.begin(begin{Begin: &control.Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider, Args: os.Args[1:],
				Replay: replay}, record: record})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&name, "prompt", "p", "", "a prompt by its `name`")
	f.StringVarP(&file, "prompt-file", "f", "", "a prompt in a `file`")
	f.StringVarP(&text, "prompt-string", "s", "", "a prompt as `text`")
	f.StringVar(&agent, "agent", "", "the `agent` that runs the prompt")
	f.StringVar(&composeFile, "file", "", "the compose `file` (default swarm/swarm.yaml)")
	f.StringVar(&src.provider, "provider", "", "the `provider` of agents that name none (or SWARM_PROVIDER)")
	f.StringArrayVar(&src.set, "set", nil, "change a `value` of the compose file, as in max_parallel=4")
	f.BoolVar(&ephemeral, "ephemeral", false, "with lines: delete the run and its outputs at the end")
	f.BoolVar(&stopOnError, "stop-on-error", false, "with lines: stop after the first that is refused or fails")
	recordFlags(cmd, &record, &replay)
	for _, flag := range []string{"record", "replay"} {
		f.Lookup(flag).Usage = "with -p, -f or -s: " + f.Lookup(flag).Usage
	}
	return cmd
}

// taskNamed makes the name of a task from the name of a prompt. It is "run" if that is not valid.
func taskNamed(prompt string) string {
	name := strings.ToLower(filepath.Base(prompt))
	if swarm.CheckTaskName(name) != nil {
		return "run"
	}
	return name
}

// singleOptions makes compile options without tasks. The compose file is optional: without it, the
// agents are the programs in PATH and the roles of .claude/agents.
func (a *app) singleOptions(src *source) (compose.Options, *project.Project, error) {
	o, p, err := src.read(a, nil)
	if swarm.KindOf(err) == swarm.NotFound && src.file == "" {
		o.Source, err = nil, nil
		o.Found = &compose.Found{Programs: registry.Installed(), Roles: p.AgentFiles()}
	}
	return o, p, err
}

// lineAgents returns the agents that a line may begin with, for completion.
func (a *app) lineAgents(src *source, args []string) (names []string) {
	o, p, err := a.singleOptions(src)
	if err != nil || len(args) > 0 {
		return nil
	}
	defer p.Close()
	b, err := compose.CompileTeam(o)
	if err != nil {
		return nil
	}
	for _, agent := range b.Plan.Agents {
		names = append(names, "@"+agent.Name)
	}
	return names
}
