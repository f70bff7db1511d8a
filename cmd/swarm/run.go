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
		Long: `Run a line, as the REPL takes it: agents in a chain, that refer to each other. With - lines are read from standard input, one after the other; a
bad line is named by its number, and the others run.

Or run one prompt by itself: one of the prompt folders by its name, a file, or a text. {{STDIN}} in it is what comes from a pipe; {{output:x}} is the
placeholder, because no other task runs.

On a terminal what the agent says is shown while it says it. Into a pipe goes its output, and nothing else.

The agents and providers are those of swarm/swarm.yaml, if there is one.`,
		Example: `  swarm run -p reviewer
  git diff | swarm run -s 'Review this: {{STDIN}}'
  swarm run -f notes.md --agent writer
  swarm run '@pm Plan a small tool -> @builder-1 Build $pm'
  swarm run - < session.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, f := range []string{"prompt", "prompt-file", "prompt-string"} {
				if cmd.Flags().Changed(f) {
					given++
				}
			}
			if len(args) > 0 && given == 0 {
				src.file = composeFile
				return a.runLines(args, &src, ephemeral, stopOnError)
			}
			if given != 1 || len(args) > 0 {
				return swarm.Errorf(swarm.BadInput, "there is no prompt, or more than one").WithHint("give a line, or exactly one of -p NAME, -f FILE and -s TEXT")
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
			a.warn(b.Warnings)
			a.plain = true
			return a.begin(begin{Begin: &control.Begin{Bundle: b, File: o.File, Dir: o.Dir, Args: os.Args[1:], Replay: replay}, record: record,
				quiet: !a.json && !a.onTerminal()})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&name, "prompt", "p", "", "a prompt by its `name`")
	f.StringVarP(&file, "prompt-file", "f", "", "a prompt in a `file`")
	f.StringVarP(&text, "prompt-string", "s", "", "a prompt as `text`")
	f.StringVar(&agent, "agent", "", "the `agent` that does it")
	f.StringVar(&composeFile, "file", "", "the compose file (default swarm/swarm.yaml)")
	f.StringVar(&src.provider, "provider", "", "provider of an agent that names none (or SWARM_PROVIDER)")
	f.StringArrayVar(&src.set, "set", nil, "change a value of the compose file")
	f.BoolVar(&ephemeral, "ephemeral", false, "of lines: delete the run, with its outputs, at the end")
	f.BoolVar(&stopOnError, "stop-on-error", false, "of lines: stop after one that cannot be used, or fails")
	recordFlags(cmd, &record, &replay)
	return cmd
}

// taskNamed is a task's name made from a prompt's, or "run" when that cannot be one.
func taskNamed(prompt string) string {
	name := strings.ToLower(filepath.Base(prompt))
	if swarm.CheckTaskName(name) != nil {
		return "run"
	}
	return name
}

// singleOptions are the options without what is to run. A compose file need not be there.
func (a *app) singleOptions(src *source) (compose.Options, *project.Project, error) {
	o, p, err := src.read(a, nil)
	if swarm.KindOf(err) == swarm.NotFound && src.file == "" {
		o.Source, err = nil, nil
	}
	return o, p, err
}
