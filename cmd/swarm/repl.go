package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/excerpt"
	"swarm/internal/line"
	"swarm/internal/process"
	"swarm/internal/providerkind"
	"swarm/internal/repl"
	"swarm/internal/run"
	"swarm/internal/session"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) replCommand() *cobra.Command {
	var (
		src       source
		resume    string
		ephemeral bool
	)
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Talk to the agents, line by line",
		Long: `Talk to the agents of swarm/swarm.yaml, line by line. In a terminal, "swarm" alone does the same.
/help explains how to write lines. Without the file, the coding agents in your PATH are the agents:
@claude, @codex, @gemini, @opencode, and the roles of .claude/agents.

A session is a run: it survives its process. --resume continues one that was left or cut, with its
outputs and with what the agents remember. swarm cancel ends it for good.`,
		Example: "  swarm repl\n  swarm repl --resume @last",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.talk(talk{src: &src, resume: resume, ephemeral: ephemeral, in: a.stdin, typed: a.typed()})
		},
	}
	talkFlags(cmd, &src, &ephemeral)
	cmd.Flags().StringVar(&resume, "resume", "", "continue a `session`: an id, the beginning of one, or @last")
	return cmd
}

func talkFlags(cmd *cobra.Command, src *source, ephemeral *bool) {
	f := cmd.Flags()
	f.StringVar(&src.file, "file", "", "the compose `file` (default swarm/swarm.yaml)")
	f.StringVar(&src.provider, "provider", "", "the `provider` of agents that name none (or SWARM_PROVIDER)")
	f.StringArrayVar(&src.set, "set", nil, "change a `value` of the compose file, as in max_parallel=4")
	f.BoolVar(ephemeral, "ephemeral", false, "delete the session's run and its outputs at the end")
}

// typed reports whether a person types the input in a terminal.
func (a *app) typed() bool { return !a.json && xterm.IsTerminal(int(a.stdin.Fd())) && a.onTerminal() }

// A talk is the input of a session and how it is read.
type talk struct {
	src         *source
	resume      string
	ephemeral   bool
	in          io.Reader
	line        string // the only line of the input; "" = lines are read
	typed       bool   // a person types it, in a terminal
	numbered    bool   // errors name the number of their line
	ends        bool   // the run ends with the input; else it can be resumed
	stopOnError bool
}

// talk runs a session to its end.
func (a *app) talk(t talk) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	if t.typed {
		a.browser = startOpener() // before the first program starts
		defer a.browser.close()
	}
	team, o, err := a.team(t)
	if err != nil {
		return err
	}
	colored, err := a.paints()
	if err != nil {
		return err
	}
	stop := stopSignals()
	defer stop.end()
	s, err := a.openSession(stop.ctx, h, t, team, o)
	if err != nil {
		return err
	}
	stop.killing(func() { process.Kill(s.ID()) })
	var page *shownPage
	defer func() { page.close() }()
	s.OpenPage = func() (string, error) {
		if page == nil {
			var err error
			if page, err = a.openPage(s.ID(), s.Log()); err != nil {
				return "", err
			}
		}
		return page.invite(), nil
	}
	spoken := s.Face(stop.ctx)
	width, height := 0, 0
	if t.typed {
		width, height, _ = xterm.GetSize(int(a.stdin.Fd()))
	}
	ro := repl.Options{Terminal: term.Terminal{In: t.in, Out: a.out(stop, t.typed), Color: colored, Now: time.Now}, Greeting: greeting(s.ID(), t, foundAgents(team, o)),
		History: h.History(), Remember: remember(h, t.typed), Prompt: t.typed, Numbered: t.numbered, StopOnError: t.stopOnError, Recall: s.Recall}
	if !t.typed {
		ro.Err = a.stderr
	}
	var events *eventWriter
	if a.json {
		events = &eventWriter{run: s.ID(), out: json.NewEncoder(term.EscapeJSON(ro.Out))}
		ro.Out, ro.Outcome = io.Discard, a.outcomes(events, t.numbered)
	}
	v := view.New(s.ID())
	face := repl.New(spoken, v, width, height, ro)
	spoken.Trouble = func(err error) { face.Notice(err.Error()) }
	if a.json {
		spoken.Trouble = a.complain
	}
	if t.typed {
		stop.instead(face.Interrupt) // Ctrl-C stops the running line; a second one leaves
	}
	var seen run.Observer = face
	if events != nil {
		seen = both{a.warned(events), face}
	}
	s.Drive(stop.ctx, run.Options{Engine: local.Run, Serve: a.serveTools, Observer: seen, View: v, Telemetry: a.runTelemetry()})
	go func() { // when the run is over, because it was stopped or its log failed, the prompt ends at once
		<-s.Over()
		_ = face.Close() // the call below returns the same error
	}()
	left, err := face.Run()
	stop.instead(nil)
	if left == repl.ByInterrupt {
		stop.interrupt()
	}
	p, ended := a.endSession(stop.ctx, s, t.ends || t.ephemeral)
	interrupted := stop.ctx.Err() != nil && p.Status == swarm.Interrupted
	if closed := face.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = ended
	}
	a.exit = worst(p, face, t.typed, interrupted)
	if t.ephemeral && err == nil {
		return h.Delete(s.ID(), time.Now())
	}
	if unused := t.typed && t.resume == "" && len(p.Tasks) == 0; unused && err == nil { // it would hide the run before it from @last
		if err = h.Delete(s.ID(), time.Now()); err == nil {
			_, err = fmt.Fprintln(a.stdout, "session left · it ran no line, so it is not kept")
		}
		return err
	}
	if t.typed && err == nil {
		_, err = fmt.Fprintln(a.stdout, farewell(p, interrupted))
	}
	return err
}

// outcomes writes the results of lines as JSON. The answer of a command goes among the events. The
// reason why a line was refused goes to standard error.
func (a *app) outcomes(events *eventWriter, numbered bool) func(int, repl.Entered, error) {
	return func(number int, done repl.Entered, err error) {
		if !numbered {
			number = 0
		}
		if err != nil {
			a.complain(lineProblem(err, number))
			return
		}
		if done.Answer != "" || len(done.Notices) > 0 {
			events.write(struct {
				Line    int      `json:"line,omitempty"`
				Answer  string   `json:"answer,omitempty"`
				Notices []string `json:"notices,omitempty"`
			}{number, done.Answer, done.Notices})
		}
	}
}

// lineProblem is the error of a refused line, with the number of the line as its position.
func lineProblem(err error, number int) error {
	e := &swarm.Error{Kind: swarm.BadInput, Msg: err.Error(), Line: number}
	var known *swarm.Error
	var refused *repl.Refused
	switch {
	case errors.As(err, &refused):
		e.Hint = refused.Hint
	case errors.As(err, &known):
		e.Msg, e.Hint = known.Text(), known.Hint
	}
	return e
}

// both passes a run's updates to two observers.
type both struct{ one, other run.Observer }

func (b both) Event(e *swarm.Event) {
	b.one.Event(e)
	b.other.Event(e)
}

func (b both) Delta(task string, d swarm.Delta) {
	b.one.Delta(task, d)
	b.other.Delta(task, d)
}

// out is the writer for a session's output. A closed pipe stops the run. A terminal is not wrapped,
// because the prompt needs it as a file.
func (a *app) out(stop *stops, typed bool) io.Writer {
	if typed {
		return a.stdout
	}
	return stop.watched(a.stdout)
}

func (a *app) openSession(ctx context.Context, h *statedir.Home, t talk, team session.Team, o compose.Options) (*session.Session, error) {
	caller := control.FindCaller(h, swarm.HowREPL)
	team.Actor, team.OneLine = caller.Actor(), t.line != ""
	if t.resume == "" {
		return session.Start(ctx, h, swarm.RunStart{Dir: o.Dir, File: o.File, NoFile: o.Source == nil, Set: o.Set, Provider: o.Provider, Sources: team.Sources,
			Args: os.Args[1:], Version: version, Parent: caller.Parent(), Time: time.Now()}, team)
	}
	_, id, err := a.steerable(t.resume)
	if err != nil {
		return nil, err
	}
	return session.Resume(ctx, h, id, team)
}

// endSession waits for turns in the background, unless the user has interrupted the session. With
// ends, the run has ended then. Otherwise it can be resumed.
func (a *app) endSession(ctx context.Context, s *session.Session, ends bool) (view.Picture, error) {
	if ctx.Err() != nil || !ends {
		return s.Leave(ctx)
	}
	return s.Close(ctx)
}

// worst is the exit code of a session: the first that applies of interrupted, bad input, budget and
// failure. In a terminal it is 0 unless interrupted, because the person has seen the failures.
func worst(p view.Picture, face repl.Face, typed, interrupted bool) int {
	lines, _ := face.(*repl.Plain)
	switch {
	case interrupted:
		return swarm.ExitInterrupted
	case typed:
		return swarm.ExitDone
	case lines != nil && lines.Refusals() > 0:
		return swarm.ExitBadInput
	case p.Status == swarm.Interrupted:
		return leftExit(p)
	}
	return p.Exit
}

// leftExit is the exit code of a session that was left: no end of the run says it. A person cancels a
// line on purpose, so the other lines decide. A line that still waits is not done.
func leftExit(p view.Picture) int {
	cancelled := 0
	for _, t := range p.Tasks {
		switch t.Status {
		case swarm.Completed, swarm.Skipped:
		case swarm.Cancelled:
			cancelled++
		default:
			return swarm.ExitFailed
		}
	}
	if cancelled > 0 && cancelled == len(p.Tasks) {
		return swarm.ExitFailed
	}
	return swarm.ExitDone
}

// greeting is the first line of a session in a terminal. It names agents that no file names.
func greeting(id swarm.RunID, t talk, found []string) string {
	if !t.typed {
		return ""
	}
	text := "session " + string(id) + " · "
	if len(found) > 0 {
		text += excerpt.List(found, 8) + " · "
	}
	return text + "/help explains how to write lines, Ctrl-D leaves, swarm repl --resume @last continues"
}

// farewell is the last line of a session in a terminal. It says how to continue the session or look
// at it.
func farewell(p view.Picture, interrupted bool) string {
	id := string(p.ID)
	switch {
	case interrupted:
		return "session " + id + " interrupted · to continue: " + p.ResumeCommand()
	case p.Status == swarm.Interrupted:
		return "session " + id + " left · to continue: " + p.ResumeCommand()
	}
	return "session " + id + " ended · to see it: swarm show " + id
}

// foundAgents returns the agents of a session that no file names, as lines write them.
func foundAgents(team session.Team, o compose.Options) (names []string) {
	for _, agent := range team.Agents {
		if o.Found != nil && agent.Name != line.Notify {
			names = append(names, "@"+agent.Name)
		}
	}
	return names
}

func remember(h *statedir.Home, typed bool) func(string) {
	if !typed {
		return nil
	}
	return h.Remember
}

// team compiles the agents of a session: those of the file, or the default ones, and @notify, which
// notifies a person.
func (a *app) team(t talk) (session.Team, compose.Options, error) {
	o, p, err := a.singleOptions(t.src)
	if err != nil {
		return session.Team{}, o, err
	}
	defer p.Close()
	b, err := compose.CompileTeam(o)
	if err != nil {
		return session.Team{}, o, err
	}
	a.warn(b.Warnings)
	h, err := a.home()
	if err != nil {
		return session.Team{}, o, err
	}
	needed := t.needed(b, o)
	ready := control.Begin{Bundle: needed, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider, Waiting: a.waiting(), Confirm: a.asker(h)}
	if err := ready.Ready(h); err != nil {
		return session.Team{}, o, err
	}
	if t.line == "" {
		needed = b
	}
	a.printConfinement(&needed.Plan)
	team := sessionTeam(b)
	if len(o.Source) > 0 {
		team.Absent = absentPrograms(o.File)
	}
	return team, o, nil
}

// absentPrograms says of each coding agent how it becomes an agent of a compose file. Without a file,
// those in PATH are agents.
func absentPrograms(file string) map[string]string {
	absent := map[string]string{}
	for _, kind := range providerkind.Presets() {
		if name := providerkind.Of(kind).Program.Name; name != "" {
			absent[name] = fmt.Sprintf("the agents are those of %s; to add this one, write there: agents: {%s: {provider: %s}}", file, name, kind)
		}
	}
	return absent
}

// needed returns the agents that must be reachable before the session begins. All agents of a file
// must be. Of the programs found in PATH, only those that the line addresses must be: an installed
// program need not be signed in.
func (t talk) needed(b *compose.Bundle, o compose.Options) *compose.Bundle {
	if o.Found == nil || o.Provider != "" {
		return b
	}
	text := t.line + " "
	if t.line != "" && t.line[0] != '@' && len(b.Plan.Agents) > 0 { // the line goes to the default agent
		text = "@" + b.Plan.Agents[0].Name + " " + text
	}
	needed := *b
	needed.Plan.Providers = slices.DeleteFunc(slices.Clone(b.Plan.Providers), func(p swarm.ProviderSpec) bool {
		return !slices.ContainsFunc(b.Plan.Agents, func(agent swarm.Agent) bool {
			return agent.Uses(p.Name) && strings.Contains(text, "@"+agent.Name+" ")
		})
	})
	return &needed
}

// sessionTeam returns the agents of a session: those of a compiled file, and @notify.
func sessionTeam(b *compose.Bundle) session.Team {
	t := session.Team{Plan: b.Plan, Bodies: b.Bodies, Sources: b.Sources, Default: b.Settings.DefaultAgent, WaitTimeout: b.Settings.WaitTimeout, NoRefs: os.Getenv("SWARM_ENABLE_AGENT_REFS") == "0"}
	if t.Default == "" && len(t.Agents) > 0 {
		t.Default = t.Agents[0].Name
	}
	notify := swarm.ProviderSpec{Name: line.Notify, Kind: providerkind.Notify} // the terminal's bell
	if t.Notify != nil {
		notify = *t.Notify
	}
	t.Agents = append(t.Agents, swarm.Agent{Name: line.Notify, Provider: line.Notify})
	t.Providers = append(t.Providers, notify)
	return t
}

// runLines runs the line in args, or with "-" the lines of standard input.
func (a *app) runLines(args []string, src *source, ephemeral, stopOnError bool) error {
	t := talk{src: src, ephemeral: ephemeral, in: a.stdin, numbered: true, ends: true, stopOnError: stopOnError}
	if len(args) != 1 || args[0] != "-" {
		text := strings.TrimSpace(strings.Join(args, " "))
		switch {
		case text == "":
			return swarm.Errorf(swarm.BadInput, "the line is empty").WithHint("write @agent and its instructions")
		case text[0] == '#' && strings.Contains(text, "\n"): // joined into one line, all of it would be a comment
			return swarm.Errorf(swarm.BadInput, "a comment is one line, and this has several").WithHint("pass lines on standard input: swarm run - < FILE")
		}
		text = strings.ReplaceAll(text, "\n", " ")
		t.in, t.line, t.numbered = strings.NewReader(text+"\n"), text, false
	}
	return a.talk(t)
}
