package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/telemetry"
	"swarm/internal/term"
)

// version is set by the linker.
var version = "dev"

// An app is one call of the program: its standard streams and the state that all commands share.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	json           bool
	color          string
	plain          bool                   // lines instead of the board
	quiet          bool                   // only the results of a run, its errors and what needs a person
	streamed       bool                   // the one output of the run was shown while it arrived
	said           func(task string) bool // the output of a task was printed while it arrived; nil = it is printed at the end
	answerTo       string                 // the file that gets the answer of a swarm; "" = standard output
	anywhere       bool
	open           bool    // show the run in a browser
	browser        *opener // opens addresses in a browser
	server         personServer
	steering       bool // the command steers runs: it finds only those that its caller may steer

	file      string   // the compose file that the command line names; "" = swarm/swarm.yaml
	sets      []string // what the command line changes in it
	storeFrom string   // where the address of a shared store is from

	opened   *statedir.Home
	exporter func() *telemetry.Exporter // opened when it is first needed
	exit     int                        // the exit code of a command that returned no error
}

// execute runs the program and returns its exit code.
func execute(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	a.exporter = sync.OnceValue(func() *telemetry.Exporter { return telemetry.Open(os.Getenv, version) })
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		a.complain(err)
		return swarm.ExitCode(err)
	}
	return a.exit
}

const about = `swarm runs teams of AI agents that talk to each other.

  swarm init   write a small working swarm/swarm.yaml
  swarm up     run its pipeline
  swarm show   see what every agent was asked and what it said
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "swarm",
		Short:         "Run teams of AI agents that talk to each other",
		Long:          about,
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if f := cmd.Flags().Lookup("file"); f != nil {
				a.file = f.Value.String()
			}
			a.sets, _ = cmd.Flags().GetStringArray("set") // other commands have none
			_, err := a.paints()                          // a bad --color is refused before a run starts
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.typed() {
				return a.talk(talk{src: &source{}, in: a.stdin, typed: true})
			}
			return cmd.Help()
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		cmd.SetOut(&text)
		help(cmd, args)
		cmd.SetOut(a.stdout)
		fmt.Fprint(a.stdout, term.Reflow(text.String(), a.width()))
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "write JSON: results to standard output, errors to standard error")
	flags.StringVar(&a.color, "color", "auto", "`when` to use colours: auto, always or never (NO_COLOR is respected)")
	flags.BoolVarP(&a.anywhere, "global", "g", false, "act on the runs of every folder, not only this one's")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return swarm.Errorf(swarm.BadInput, "%w", err).WithHint("`%s --help` lists the flags", cmd.CommandPath())
	})
	cobra.EnableCommandSorting = false
	for _, group := range []string{toRun, toPrepare, toLook, toControl, toWrite, forAgents, toKeep, forSystems} {
		root.AddGroup(&cobra.Group{ID: group, Title: group})
	}
	root.SetHelpCommandGroupID(forSystems)
	root.SetCompletionCommandGroupID(forSystems)
	root.AddCommand(a.commands()...)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	badArguments(root)
	a.completeAll(root)
	return root
}

// knownCommand refuses an unknown command, and suggests the nearest one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if cmd.Name() == "help" {
		cmd, args, _ = cmd.Root().Find(args)
	}
	if len(args) == 0 {
		return nil
	}
	missing := swarm.Errorf(swarm.BadInput, "there is no command %q", args[0])
	if same := otherNames[args[0]]; same != "" && !cmd.HasParent() {
		return missing.WithHint("%s", same)
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return missing.WithHint("%s", swarm.DidYouMean(args[0], names))
}

// badArguments puts cobra's errors about arguments into our words, for a command and all commands
// below it. A command that only groups others gets the check for unknown commands.
func badArguments(cmd *cobra.Command) {
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE = knownCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if cmd.Name() == "help" {
		cmd.Args = knownCommand
	}
	if cmd.Args != nil {
		cmd.Args = inOurWords(cmd.Args)
	}
	for _, sub := range cmd.Commands() {
		badArguments(sub)
	}
}

// complain prints an error and its hint.
func (a *app) complain(err error) {
	e, ok := err.(*swarm.Error)                                   //nolint:errorlint // the text of a wrapping error says more; only the hint is taken from the cause
	if !ok && (!errors.As(err, &e) || e.Error() != err.Error()) { // A joined error of one has the text of that one.
		e = &swarm.Error{Msg: err.Error(), Hint: swarm.HintOf(err)}
	}
	if a.json {
		_ = json.NewEncoder(term.EscapeJSON(a.stderr)).Encode(problemOf(e)) // there is no other place to report it
		return
	}
	paint := a.errorPaint()
	fmt.Fprintf(a.stderr, "%s %s\n", rank(paint, "error:"), term.Escape(e.Error()))
	if e.Hint != "" {
		fmt.Fprintf(a.stderr, "%s %s\n", rank(paint, "hint:"), term.Escape(e.Hint))
	}
}

// print writes a result as JSON.
func (a *app) print(v any) error {
	enc := json.NewEncoder(term.EscapeJSON(a.stdout))
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// home opens the state folder when it is first needed.
func (a *app) home() (*statedir.Home, error) {
	if a.opened == nil {
		store, err := a.chooseStore()
		if err != nil {
			return nil, err
		}
		h, err := statedir.Open(store)
		if err != nil {
			return nil, err
		}
		h.Summarize = run.Summarize
		a.opened = h
		if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "__complete") { // a completion changes nothing
			run.Sweep(h)
		}
	}
	return a.opened, nil
}

// control makes a Control over the runs of this folder, or of all folders. It acts for the caller
// of this program: a person, or the agent whose turn started it.
func (a *app) control() (*control.Control, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	c := &control.Control{Home: h, Dir: dir, Anywhere: a.anywhere, Caller: control.FindCaller(h, swarm.HowTerminal), Steering: a.steering}
	c.GoOn = func(_ context.Context, id swarm.RunID) error { return a.goOn(h, id, "", "") }
	return c, nil
}

// runTelemetry is the telemetry of every run that this process drives. It is nil, not an interface
// that holds a nil pointer, when no exporter is configured.
func (a *app) runTelemetry() run.Telemetry {
	if x := a.exporter(); x != nil {
		return x
	}
	return nil
}

// dir is the folder that the program was started in.
func (a *app) dir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", &swarm.Error{Kind: swarm.NotFound, Msg: "the current folder is gone", Hint: "change to an existing folder: cd"}
	}
	return filepath.Clean(dir), nil
}
