package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

// showOptions select what to print of a run.
type showOptions struct {
	turn     string
	prompts  bool // the full prompt and output of every turn
	spans    bool // the origin of each part of the prompts
	messages bool // the messages of a turn of a model over HTTP
}

func (a *app) showCommand() *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show [RUN] [TASK | @AGENT]",
		Short: "Show what every agent was asked and what it said",
		Long: `Show a run: its tasks and its turns. With TASK or @AGENT, show its last turn.

With --turn, show one turn in full: its prompt, byte for byte as the agent got it, the origin of each
part of the prompt, and its output. With --turn and --prompt, print the prompt and nothing else. The
id of a turn is task/iteration/attempt; a task alone, or task/iteration, means its last turn. On a
terminal, control characters are made visible.

With --json the result is {run, tasks, agents, edges, turns, envelopes, topics, artifacts, usage}. Among
run are the actions: answers to approvals and commands, each with who gave it and how. With --prompt the
turns also have their texts: prompt_text, output_text, and if there are any sent_text, injected_text and
result_text, which is what the action of a swarm's iteration gave.
With --turn the result is that turn alone, with its texts.

A model over HTTP is sent its earlier turns again. With --turn and --messages, print what such a turn
added to its session: the calls of tools, their whole results, and what the model said.

` + newestRun,
		Example: "  swarm show\n  swarm show code\n  swarm show @last --turn code/2/1\n  swarm show @last --turn code --prompt > prompt.txt\n  swarm show @last --spans\n  swarm show @last --json | jq '.turns[].usage'",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, l, err := a.openReader(args[0])
			if err != nil {
				return err
			}
			defer l.Close()
			if len(args) > 1 && o.turn != "" {
				return swarm.Errorf(swarm.BadInput, "%s and --turn %s name different turns", args[1], o.turn).WithHint("name one of them")
			}
			if len(args) > 1 {
				if o.turn, err = turnMeant(l, args[1]); err != nil {
					return err
				}
			}
			return a.show(l, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.turn, "turn", "", "one turn in full: its `id`, or a task for its last one")
	f.BoolVar(&o.prompts, "prompt", false, "the full prompt and output of every turn; with --turn, only the prompt of that turn")
	f.BoolVar(&o.prompts, "prompts", false, "the same")
	_ = f.MarkHidden("prompts")
	f.BoolVar(&o.spans, "spans", false, "the origin of each part of the prompts")
	f.BoolVar(&o.messages, "messages", false, "with --turn, what a turn of a model over HTTP added to its session: calls, whole results and words")
	return cmd
}

// turnMeant returns the turn that an argument means: itself, or a task, or the last task of an agent.
func turnMeant(l *run.Reader, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	p, err := l.Picture()
	if err != nil {
		return "", err
	}
	t, err := task(p, name)
	return t.Name, err
}

func (a *app) show(l *run.Reader, o showOptions) error {
	if o.messages && o.turn == "" {
		return swarm.Errorf(swarm.BadInput, "--messages is for one turn").WithHint("write --turn TASK, or --turn TASK/ITERATION/ATTEMPT")
	}
	if o.turn != "" {
		t, err := l.Turn(o.turn)
		if err != nil {
			return err
		}
		return a.showTurn(l, t, o)
	}
	report, err := l.Report()
	if err != nil {
		return err
	}
	p, d := report.Picture, report.Details
	if a.json {
		return a.showJSON(l, report, o.prompts)
	}
	if err := a.showRun(p, d); err != nil {
		return err
	}
	if p.Unsourced {
		fmt.Fprintln(a.stdout, "\n"+namesNoSource)
	}
	if o.prompts || o.spans {
		return a.showEach(l, d, o)
	}
	a.hints(p, d)
	return nil
}

// showRun writes the head of a run and its tables: tasks, turns, mail, topics, artifacts, actions.
func (a *app) showRun(p view.Picture, d view.Details) error {
	a.showHead(p, len(d.Turns), time.Now())
	fmt.Fprintln(a.stdout)
	if err := a.showPlan(p); err != nil {
		return err
	}
	if err := a.table(term.TaskTable(p, nil)); err != nil {
		return err
	}
	a.remedies(a.stdout, p)
	if agents := term.AgentTable(p); agents.Len() > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.table(agents); err != nil {
			return err
		}
	}
	if len(d.Turns) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.table(turnTable(d.Turns, time.Now())); err != nil {
			return err
		}
	}
	if err := a.showDesks(p.ID, d.Turns); err != nil {
		return err
	}
	if len(d.Envelopes) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.table(mailTable(d.Envelopes)); err != nil {
			return err
		}
	}
	if len(d.Topics) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.table(topicTable(d.Topics)); err != nil {
			return err
		}
	}
	if len(d.Artifacts) > 0 {
		stored, err := artifactsOf(p.ID, d)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.stdout)
		if err := a.table(storedTable(stored)); err != nil {
			return err
		}
	}
	if known := knownActions(d.Actions); len(known) > 0 {
		fmt.Fprintln(a.stdout)
		if err := a.table(actionTable(known)); err != nil {
			return err
		}
	}
	for _, q := range p.Approvals {
		fmt.Fprintln(a.stdout, term.OneLine(view.NeedsAnswer(q.Agent, q.Approval)))
	}
	for _, n := range p.Notices {
		fmt.Fprintf(a.stdout, "note: %s\n", term.Escape(n.Reason))
	}
	return nil
}

// showPlan writes the subtasks of a swarm.
func (a *app) showPlan(p view.Picture) error {
	line := term.PlanLine(p.Swarm, p.Tasks)
	if line == "" {
		return nil
	}
	t := term.NewTable("AGENT", "SUBTASK", "ROLE", "AFTER", "DESCRIPTION").Cut(4)
	for _, task := range p.Tasks {
		if s := task.Subtask; s != nil && !task.Dropped {
			t.Row(task.Agent, s.ID, s.Role, strings.Join(s.DependsOn, ", "), s.Description)
		}
	}
	fmt.Fprintln(a.stdout, line)
	err := a.table(t)
	if vote := p.DescribeVote(); vote != "" {
		fmt.Fprintf(a.stdout, "vote: %s\n", term.Escape(vote))
	}
	fmt.Fprintln(a.stdout)
	if err != nil || len(p.Swarm.TaskList) == 0 {
		return err
	}
	list := term.NewTable("ADDED", "STATE", "BY", "AGENT", "AFTER", "DESCRIPTION").Cut(5)
	for _, e := range p.Swarm.TaskList {
		list.Row(e.ID, e.State, e.By, e.Agent, strings.Join(e.DependsOn, ", "), e.Description)
	}
	err = a.table(list)
	fmt.Fprintln(a.stdout)
	return err
}

func (a *app) showHead(p view.Picture, turns int, now time.Time) {
	name := p.Name
	if name == "" {
		name = string(p.Kind)
	}
	line := func(sep string, parts ...string) { fmt.Fprintln(a.stdout, term.Join(parts, sep, a.width())) }
	line(" · ", "run "+string(p.ID), term.Escape(name), string(p.Status)+excerpt.Reason(term.Escape(p.Reason)))
	parts := []string{"started " + ago(p.Started, now)}
	if p.Status.Ended() {
		parts = append(parts, "took "+term.Duration(p.Elapsed(p.Ended)))
	}
	parts = append(parts, term.Plural(len(p.Tasks), term.Noun(p.Kind)), term.Plural(turns, "turn"))
	if tokens := term.SomeTokens(p.Usage); tokens != "" {
		parts = append(parts, tokens)
	}
	if share := term.CoordinationShare(&p); share != "" {
		parts = append(parts, share)
	}
	if cached := term.Cached(p.Usage); cached != "" {
		parts = append(parts, cached+" of the input cached")
	}
	if usd := term.Dollars(p.Usage); usd != "" {
		parts = append(parts, usd+withoutPrice(p))
	}
	if p.Status.Ended() {
		parts = append(parts, "exit "+strconv.Itoa(p.Exit))
	}
	line(" · ", parts...)
	parts = []string{"in " + term.Escape(p.Dir)}
	switch {
	case p.File != "":
		parts = append(parts, "by "+term.Escape(p.File))
	case !p.Replay:
		parts = append(parts, "without a file")
	}
	if p.Owner.Host != "" && p.Status != swarm.Interrupted && !p.Status.Ended() {
		parts = append(parts, fmt.Sprintf("driven by process %d on %s", p.Owner.PID, term.Escape(p.Owner.Host)))
	}
	if p.From != "" {
		parts = append(parts, "begun from "+string(p.From))
	}
	if p.Key != "" {
		parts = append(parts, "begun by the MCP client "+term.Escape(p.Key))
	}
	line(", ", parts...)
	if p.Workspace != "" {
		fmt.Fprintf(a.stdout, "files of its agents in %s\n", term.Escape(p.Workspace))
	}
	if p.Report != "" {
		fmt.Fprintf(a.stdout, "reported: %s\n", term.Escape(p.Report))
	}
	for _, line := range p.Goal.Lines() {
		fmt.Fprintln(a.stdout, term.Escape(line))
	}
}

func turnTable(turns []view.Turn, now time.Time) *term.Table {
	t := term.NewTable("TURN", "STATUS", "AGENT", "PROVIDER", "MODEL", "TIME", "PROMPT", "OUTPUT", "TOKENS", "CACHED", "NOTE").Right(5, 6, 7, 8, 9).Cut(10)
	for _, turn := range turns {
		row := []string{string(turn.ID), string(turn.Status), turn.Agent, turn.Provider, turn.Model, "", "", "", term.Tokens(turn.Usage), term.Cached(turn.Usage), note(turn)}
		if turn.Prompt != "" {
			row[6] = term.Bytes(int64(turn.Bytes))
			if turn.Status != swarm.Interrupted { // when it was cut is not known
				row[5] = term.Duration(turn.Took(now))
			}
		}
		if turn.Output.Hash != "" {
			row[7] = term.Bytes(turn.Output.Bytes)
		}
		t.Row(row...)
	}
	return t
}

func mailTable(all []view.Envelope) *term.Table {
	t := term.NewTable("MAIL", "FROM", "TO", "RECEIPT", "TURN", "MESSAGE").Right(0).Cut(5)
	for i := range all {
		e := &all[i]
		state := e.Receipt.State
		if e.Receipt.Reason != "" {
			state += " (" + e.Receipt.Reason + ")"
		}
		t.Row(strconv.FormatInt(e.Receipt.Seq, 10), e.Sender(), e.ToNodeID, state, e.Receipt.Turn, view.FirstLine(e.Payload.Message))
	}
	return t
}

// topicTable lists the newest findings of each topic, as prompts have them.
func topicTable(all []view.Topic) *term.Table {
	t := term.NewTable("TOPIC", "FROM", "TURN", "FINDING").Cut(3)
	for _, topic := range all {
		for _, e := range topic.Entries {
			t.Row(topic.Topic, e.Agent, string(e.Turn), view.FirstLine(e.Text()))
		}
	}
	return t
}

// knownActions returns the actions whose actor is known. Logs of earlier versions do not name the
// actor of a command, and the end of a session's input is nobody's command.
func knownActions(all []view.Action) []view.Action {
	return slices.DeleteFunc(slices.Clone(all), func(a view.Action) bool { return a.By == "" })
}

func actionTable(all []view.Action) *term.Table {
	t := term.NewTable("ACTION", "ON", "BY", "TIME", "NOTE").Cut(4)
	for _, a := range all {
		t.Row(a.Verb, cmp.Or(a.Target, "the run"), a.Actor.String(), a.Time.Local().Format(time.TimeOnly), view.FirstLine(a.Reason))
	}
	return t
}

// note describes what is unusual about a turn.
func note(t view.Turn) string {
	var notes []string
	switch {
	case t.CarriedOver:
		notes = append(notes, "carried over from the run that this one retries")
	case t.Reason != "":
		notes = append(notes, t.Reason)
	case t.Action != nil:
		notes = append(notes, t.Did())
	}
	if t.Starts > 1 {
		notes = append(notes, "interrupted and run again: start "+strconv.Itoa(t.Starts))
	}
	if t.ActionStarts > 1 {
		notes = append(notes, "its action was interrupted and may have run twice: start "+strconv.Itoa(t.ActionStarts))
	}
	return strings.Join(notes, "; ")
}

// hints prints the commands that show more: a failed turn if there is one, an output, and the logs.
func (a *app) hints(p view.Picture, d view.Details) {
	if len(d.Turns) == 0 {
		return
	}
	ref := " " + string(p.ID)
	if a.isNewest(p.ID) {
		ref = ""
	}
	best, output := d.Turns[len(d.Turns)-1], ""
	for _, t := range d.Turns {
		if t.Status == swarm.Failed {
			best = t
		}
		if t.Output.Hash != "" {
			output = fmt.Sprintf("an output: swarm out%s %s\n", ref, t.Task)
		}
	}
	if p.Answer != "" {
		output = fmt.Sprintf("the answer: swarm out%s\n", ref)
	}
	fmt.Fprintf(a.stdout, "\na turn in full: swarm show%s %s\n%swhat was said: swarm logs%s\n", ref, best.ID, output, ref)
}

// isNewest reports whether commands without RUN are about this run.
func (a *app) isNewest(id swarm.RunID) bool {
	c, err := a.control()
	if err != nil {
		return false
	}
	newest, err := newestRunOf(c, "show")
	return err == nil && newest.ID == id
}

// remedies prints the hints of failed tasks. Tasks with the same hint share a line.
func (a *app) remedies(w io.Writer, p view.Picture) {
	const most = 3
	failed := map[string][]string{} // by hint
	var order []string
	for _, t := range p.Tasks {
		if t.Status != swarm.Failed || t.Hint == "" {
			continue
		}
		if failed[t.Hint] == nil {
			order = append(order, t.Hint)
		}
		failed[t.Hint] = append(failed[t.Hint], t.Name)
	}
	for _, hint := range order {
		names := failed[hint]
		if more := len(names) - most; more > 0 {
			names = append(names[:most], fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(w, "hint: %s: %s\n", strings.Join(names, ", "), term.Escape(hint))
	}
}

// showEach writes the prompts of all turns, or only the origin of their parts.
func (a *app) showEach(l *run.Reader, d view.Details, o showOptions) error {
	for i := range d.Turns {
		fmt.Fprintln(a.stdout)
		if o.prompts {
			if err := a.printTurn(l, &d.Turns[i]); err != nil {
				return err
			}
			continue
		}
		a.turnHead(l.ID, &d.Turns[i])
		a.printSpans(&d.Turns[i])
	}
	return nil
}

func (a *app) showJSON(l *run.Reader, r view.Report, texts bool) error {
	if !texts {
		return a.print(r)
	}
	turns := make([]run.FullTurn, 0, len(r.Turns))
	for _, t := range r.Turns {
		t, err := l.Full(t)
		if err != nil {
			return err
		}
		turns = append(turns, t)
	}
	return a.print(struct {
		view.Report
		Turns []run.FullTurn `json:"turns"`
	}{r, turns})
}

func (a *app) showTurn(l *run.Reader, t view.Turn, o showOptions) error {
	whole, err := l.Full(t)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.print(whole)
	case o.messages:
		a.printMessages(&whole)
		if len(whole.Messages) == 0 {
			fmt.Fprintln(a.stderr, noMessages(&t))
		}
		return nil
	case o.prompts:
		if text := historyText(t.History); text != "" { // the prompt is all that standard output gets
			fmt.Fprintln(a.stderr, text)
		}
		return a.printForeign([]byte(whole.PromptText))
	case o.spans:
		a.turnHead(l.ID, &t)
		a.printSpans(&t)
		return nil
	}
	return a.printTurn(l, &t)
}

// printTurn writes a turn in full.
func (a *app) printTurn(l *run.Reader, t *view.Turn) error {
	whole, err := l.Full(*t)
	if err != nil {
		return err
	}
	a.turnHead(l.ID, t)
	a.printSpans(t)
	if t.Prompt != "" {
		a.fence("prompt of "+string(t.ID), whole.PromptText)
	}
	for i, text := range whole.InjectedText {
		a.fence(fmt.Sprintf("given to %s beside the answer of %s", t.ID, term.Escape(t.Injected[i].Tool)), text)
	}
	if t.Output.Hash != "" {
		a.fence("output of "+string(t.ID), whole.OutputText)
	}
	if whole.ResultText != "" {
		a.fence("result of "+string(t.ID), whole.ResultText)
	}
	return nil
}

// noMessages says why a turn has no messages.
func noMessages(t *view.Turn) string {
	switch {
	case !t.Status.Ended():
		return "the turn has not ended: its messages are stored when it does"
	case t.Session != "":
		return "the agent's program keeps this session itself: only sessions of models over HTTP are in the log"
	}
	return "the turn has added nothing to a session of a model over HTTP"
}

// printMessages writes what a turn added to its session.
func (a *app) printMessages(t *run.FullTurn) {
	for _, m := range t.Messages {
		for _, r := range m.Results {
			a.fence("result of "+term.Escape(r.Call), r.Text)
		}
		if m.Text != "" {
			who := map[bool]string{true: "said by ", false: "told to "}[m.Role == swarm.RoleAssistant]
			a.fence(who+string(t.ID), m.Text)
		}
		for _, c := range m.Calls {
			a.fence("call "+term.Escape(c.ID)+" of "+term.Escape(c.Name), c.Args)
		}
	}
}

// leftOutText says what later requests of a turn had no room for, or "" if they had all.
func leftOutText(t *view.Turn) string {
	if t.Exchange == nil || t.Exchange.LeftOut == 0 {
		return ""
	}
	return fmt.Sprintf("results: the %d oldest of its tools were left out of its later requests", t.Exchange.LeftOut)
}

// historyText says how much of its session a turn was sent, or "" if it has none.
func historyText(h *swarm.History) string {
	if h == nil {
		return ""
	}
	text := fmt.Sprintf("history: ~%s tokens of earlier turns of the session: %d whole", term.Count(h.Tokens), h.Turns-h.Short)
	if n := h.Short - h.Dropped; n > 0 {
		text += fmt.Sprintf(", %d without the results of tools", n)
	}
	if h.Dropped > 0 {
		text += fmt.Sprintf(", %d as a summary after the first prompt", h.Dropped)
	}
	return text
}

// fence writes a text that an agent got or wrote between two marker lines.
func (a *app) fence(name, text string) {
	fmt.Fprintf(a.stdout, "--- %s ---\n", name)
	_, _ = io.WriteString(a.stdout, a.foreign([]byte(text)))
	if text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(a.stdout)
	}
	fmt.Fprintf(a.stdout, "--- end of %s ---\n", name)
}

func (a *app) turnHead(run swarm.RunID, t *view.Turn) {
	by := "by @" + t.Agent
	for _, more := range []string{t.Provider, t.Model} {
		if more != "" {
			by += ", " + more
		}
	}
	parts := []string{"turn " + string(t.ID), string(t.Status), by}
	if t.Prompt != "" && t.Status != swarm.Interrupted {
		parts = append(parts, term.Duration(t.Took(time.Now())))
	}
	if tokens := term.SomeTokens(t.Usage); tokens != "" {
		parts = append(parts, tokens)
	}
	if cached := term.Cached(t.Usage); cached != "" {
		parts = append(parts, cached+" of the input cached")
	}
	if t.Exit != 0 {
		parts = append(parts, "exit "+strconv.Itoa(t.Exit))
	}
	fmt.Fprintln(a.stdout, term.Join(parts, " · ", a.width()))
	if text := note(*t); text != "" {
		fmt.Fprintf(a.stdout, "  %s\n", term.Escape(text))
	}
	if t.Hint != "" {
		fmt.Fprintf(a.stdout, "  hint: %s\n", term.Escape(t.Hint))
	}
	for _, v := range t.Verdicts {
		verdict := "holds"
		if !v.OK {
			verdict = "does not hold" + excerpt.Reason(term.Escape(v.Reason))
		}
		fmt.Fprintf(a.stdout, "  expect %s: %s\n", v.Part, verdict)
	}
	if t.Session != "" {
		fmt.Fprintf(a.stdout, "  session %s\n", term.Escape(t.Session))
	}
	for _, text := range []string{historyText(t.History), leftOutText(t)} {
		if text != "" {
			fmt.Fprintf(a.stdout, "  %s\n", text)
		}
	}
	for _, u := range t.Tools {
		failed := ""
		if u.Failed {
			failed = ", which failed" + excerpt.Reason(term.Escape(view.FirstLine(u.Output)))
		}
		fmt.Fprintf(a.stdout, "  tool %s%s\n", term.Escape(u.Name), failed)
	}
	for _, f := range t.Findings {
		switch {
		case f.Kind == swarm.Unsent:
			fmt.Fprintf(a.stdout, "  it says that it wrote to @%s, but it did not: %s\n", term.Escape(f.About), term.Escape(f.Evidence))
		case f.Kind == swarm.Shared:
			fmt.Fprintf(a.stdout, "  changed against the phase, by this turn or by %s: %s\n", term.Escape(f.About), term.Escape(f.Evidence))
		case f.Times > 1:
			fmt.Fprintf(a.stdout, "  it did the same %d times in a row: %s\n", f.Times, term.Escape(f.Evidence))
		}
	}
	for _, in := range t.Injected {
		fmt.Fprintf(a.stdout, "  mail beside the answer of %s: %s, %d bytes\n", term.Escape(in.Tool), in.Text, in.Bytes)
	}
	for _, f := range t.Files {
		fmt.Fprintf(a.stdout, "  changed %s\n", term.Escape(f))
	}
	a.printDesk(run, t.Desk)
	if t.Output.Hash != "" {
		fmt.Fprintf(a.stdout, "  output %s, %d bytes\n", t.Output.Hash, t.Output.Bytes)
	}
}

// printSpans writes the origin of each part of a prompt.
func (a *app) printSpans(t *view.Turn) {
	if t.Prompt == "" {
		return
	}
	fmt.Fprintf(a.stdout, "  prompt %s, %d bytes\n", t.Prompt, t.Bytes)
	width := len(strconv.Itoa(t.Bytes))
	for _, s := range t.Spans {
		fmt.Fprintf(a.stdout, "    bytes %*d–%-*d  %s\n", width, s.Start, width, s.End, term.Escape(view.SpanOrigin(s)))
	}
}

// withoutPrice names the agents that count as nothing in the cost of a run, because it is not known
// what they cost.
func withoutPrice(p view.Picture) string {
	var names []string
	for _, agent := range p.Agents {
		if agent.Usage.Tokens() > 0 && agent.Usage.USD == 0 {
			names = append(names, "@"+agent.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " without " + excerpt.List(names, mostNamed)
}
