package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"swarm"
)

// An Output is the last output of a task.
type Output struct {
	Text []byte
	Turn string // the turn that said it
}

// A Failure is the reason why an earlier attempt at a task failed.
type Failure struct {
	Attempt int
	Reason  string
}

// A Turn holds everything that a prompt is made of, in the order of the prompt. Empty sections are
// left out.
type Turn struct {
	Task, Agent   string
	Iteration, Of int
	Role          Template
	Mode          string    // the instructions of the run's mode
	Packs         []Pack    // context that came with the mail
	Findings      []Finding // what the team has published
	Inbox         string    // the mail that this turn consumes
	Text          Template  // the task's text, with prefix and suffix
	Failures      []Failure
	Sent          []string // messages that an interrupted start of this turn had already sent

	// Output finds the last output of a task, at each reference; false = the task has never run.
	Output func(task string) (Output, bool)
	Good   func(agent, task string) (Output, bool)
	Inputs map[string]string // the task that {{input:x}} stands for
	Stdin  []byte
}

// A Pack is a context pack that came with mail.
type Pack struct {
	Refs string       // of the packs that it is made of, separated by blanks
	Seen swarm.TurnID // the turn in which the agent's session got it; "" = it is new
	Text string
}

// A Finding is an entry that an agent or a person has published for the whole team.
type Finding struct {
	Agent string       // its author
	Turn  swarm.TurnID // the turn that published it
	Topic string
	Text  string
	Known bool // an earlier turn gave it to the agent's session
}

// A Prompt is the full effective prompt.
type Prompt struct {
	Text  string
	Spans []swarm.Span // the origin of its bytes, in order and without gaps
}

// The origins of a prompt's bytes, beside KindText, KindOutput, KindInput and KindStdin. The fence
// around an output belongs to the output.
const (
	FromIDs       = "ids"
	FromRole      = "role" // Name is the file, as with KindText
	FromMode      = "mode"
	FromPack      = "pack"    // Name is the refs, Turn is the turn in which the session got it
	FromFinding   = "finding" // Name is the topic, Turn the one that published it
	FromInbox     = "inbox"
	FromRetry     = "retry"
	FromSent      = "sent"
	FromEdit      = "edit"      // a person has written the whole prompt, for a fork
	FromSeparator = "separator" // the empty lines between sections
)

// Build makes the prompt of a turn. Sections are separated by one empty line, and the prompt ends
// with a newline.
func Build(t Turn) (Prompt, error) {
	a := assembly{turn: &t}
	a.add(FromIDs, ids(&t))
	a.add(FromRole, t.Role.Parts)
	a.add(FromMode, plain(t.Mode))
	for _, p := range t.Packs {
		a.add(FromPack, []Part{{Kind: KindText, Text: clean(p.Text), File: p.Refs, Task: string(p.Seen)}})
	}
	a.add(FromFinding, findings(t.Findings))
	a.add(FromInbox, plain(t.Inbox))
	a.add(KindText, t.Text.Parts)
	for _, f := range t.Failures {
		a.add(FromRetry, []Part{{Kind: FromRetry, Name: strconv.Itoa(f.Attempt), Text: f.Reason}})
	}
	if len(t.Sent) > 0 {
		sent := make([]string, len(t.Sent))
		for i, text := range t.Sent {
			sent[i] = data(text)
		}
		a.add(FromSent, []Part{{Kind: FromSent, Text: listItems(sent)}})
	}
	page := pages.Get().(*[]byte)
	defer func() {
		if *page = a.text[:0]; cap(*page) <= keptPage {
			pages.Put(page)
		}
	}()
	a.text = *page
	if err := a.write(); err != nil {
		return Prompt{}, err
	}
	return Prompt{string(a.text), a.spans}, nil
}

// Edited returns a prompt that a person has written in the place of another, with the sections of a turn that
// came later: mail, and why earlier attempts failed. A system part that they left as it was stays one.
func (p Prompt) Edited(text string, later Turn) (Prompt, error) {
	rest, err := Build(later)
	if err != nil {
		return Prompt{}, err
	}
	if rest.Text != "" {
		text = strings.TrimRight(text, newlines)
	}
	edited := Prompt{text, []swarm.Span{{From: FromEdit, End: len(text)}}}
	if system, _ := p.SplitSystem(); system != "" && len(text) > len(system) && strings.HasPrefix(text, system) {
		edited.Spans = []swarm.Span{{From: FromSystem, End: len(system)}, {From: FromEdit, Start: len(system), End: len(text)}}
	}
	if rest.Text == "" {
		return edited, nil
	}
	edited.Spans = append(edited.Spans, swarm.Span{From: FromSeparator, Start: len(text), End: len(text) + len(emptyLine)})
	edited.Text += emptyLine
	for _, s := range rest.Spans {
		s.Start, s.End = s.Start+len(edited.Text), s.End+len(edited.Text)
		edited.Spans = append(edited.Spans, s)
	}
	edited.Text += rest.Text
	return edited, nil
}

// pages is a pool of buffers in which prompts are assembled. A prompt grows piece by piece, and its
// size is known only at the end. A used buffer has the room already, so a prompt costs one copy and
// no growth.
var pages = sync.Pool{New: func() any { return new([]byte) }}

const keptPage = 1 << 20 // a larger buffer is not returned to the pool

func ids(t *Turn) []Part {
	var b strings.Builder
	if t.Task != "" {
		fmt.Fprintf(&b, "Your SWARM_TASK_ID is %s.\n", t.Task)
	}
	if t.Agent != "" {
		fmt.Fprintf(&b, "Your SWARM_AGENT_ID is %s.\n", t.Agent)
	}
	if t.Iteration > 0 {
		fmt.Fprintf(&b, "You are on iteration %d of %d.\n", t.Iteration, max(t.Of, t.Iteration))
	}
	return plain(b.String())
}

// HeadBytes returns the size of what stands before the own text of a task's prompt: the ids, and the
// empty line after them.
func HeadBytes(task, agent string, iterations int) int64 {
	n := 0
	for _, p := range ids(&Turn{Task: task, Agent: agent, Iteration: iterations, Of: iterations}) {
		n += len(p.Text)
	}
	return int64(n + len("\n"))
}

// findings makes a heading and one list item for each finding. The text of a finding is data. Every
// continuation line is indented, whatever a reader takes for the end of a line. So no finding looks
// like two findings, or like a line of ours.
func findings(all []Finding) []Part {
	if len(all) == 0 {
		return nil
	}
	parts := []Part{{Kind: KindText, Text: findingsHeading + "\n", Known: all[len(all)-1].Known}}
	for _, f := range all {
		text := unifyLineEnds(data(f.Text)) + " (topic: " + f.Topic + ")"
		parts = append(parts, Part{Kind: KindText, Text: listItem(f.Agent + ": " + text), File: f.Topic, Task: string(f.Turn), Known: f.Known})
	}
	return parts
}

// findingsHeading stands before the findings.
const findingsHeading = "## Shared Findings"

// unifyLineEnds replaces everything else that a common reader takes for the end of a line by a newline.
// Most texts have nothing else, and are returned as they are.
func unifyLineEnds(text string) string {
	for _, r := range text {
		if r != '\n' && endsLine(r) {
			return lineEnds.Replace(text)
		}
	}
	return text
}

// lineEnds has the line ends of endsLine.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n", "\x1e", "\n",
	"\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// listItems writes a list. Continuation lines are indented, so that no item looks like two.
func listItems(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(listItem(t))
	}
	return b.String()
}

func listItem(text string) string {
	return "- " + strings.ReplaceAll(strings.TrimRight(text, newlines), "\n", "\n  ") + "\n"
}

func plain(text string) []Part { return []Part{{Kind: KindText, Text: clean(text)}} }

// An assembly is a prompt under construction: its sections, and the text so far.
type assembly struct {
	turn     *Turn
	sections []section
	parts    int // the number of parts of all sections

	text   []byte
	last   byte // the last byte that stands before the next piece
	fenced bool // the last piece is the closing line of a fence, and its newline is not written yet
	apart  bool // an empty line is due before the next piece
	spans  []swarm.Span
}

type section struct {
	from  string
	parts []Part
}

func (a *assembly) add(from string, parts []Part) {
	if parts = core(parts); len(parts) > 0 {
		a.sections = append(a.sections, section{from, parts})
		a.parts += len(parts)
	}
}

// An injection is data that is put into a prompt, in a fence or in place.
type injection struct {
	origin
	fence *fence
	body  string
}

// An origin is a span without its place.
type origin struct {
	from, name, turn string
	known            bool
}

// write lays out all pieces. It stops as soon as they are larger than MaxPrompt, so that a prompt
// which is refused costs no more than one that is not.
func (a *assembly) write() error {
	a.spans = make([]swarm.Span, 0, a.parts+len(a.sections))
	for _, s := range a.sections {
		a.apart = len(a.text) > 0
		if err := a.section(s); err != nil {
			return err
		}
	}
	if a.apart = false; len(a.text) > 0 {
		a.put(origin{from: FromSeparator}, "\n")
	}
	return nil
}

// section lays out one section. Blanks around a fence are dropped, because its lines stand alone.
func (a *assembly) section(s section) error {
	var err error
	var next injection // the injection for the next part that is no text
	found := false     // next is set already
	for i := range s.parts {
		p := &s.parts[i]
		if p.Kind == KindText {
			text := edge(s.parts, i)
			if a.fenced {
				text = trimLeftBlanks(text)
			}
			if i+1 < len(s.parts) && s.parts[i+1].Kind != KindText {
				if next, err = a.find(&s.parts[i+1]); err != nil {
					return err
				}
				if found = true; next.fence != nil {
					text = trimRightBlanks(text)
				}
			}
			a.put(origin{s.from, p.File, p.Task, p.Known}, text)
		} else {
			if !found {
				if next, err = a.find(p); err != nil {
					return err
				}
			}
			a.inject(&next)
			found = false
		}
		if len(a.text) > MaxPrompt {
			return a.tooLarge(p)
		}
	}
	return nil
}

// find returns the injection for a part.
func (a *assembly) find(p *Part) (injection, error) {
	switch p.Kind {
	case FromRetry:
		return injection{origin{from: FromRetry, name: p.Name}, &retryFence, data(p.Text)}, nil
	case FromSent:
		return injection{origin{from: FromSent}, &sentFence, trimRightNewlines(p.Text)}, nil
	case KindStdin:
		return injection{origin{from: KindStdin}, nil, data(view(a.turn.Stdin))}, nil
	case KindAgent:
		return a.findGood(p)
	}
	task := p.Name
	if p.Kind == KindInput {
		var ok bool
		if task, ok = a.turn.Inputs[p.Name]; !ok {
			names := slices.Sorted(maps.Keys(a.turn.Inputs))
			return injection{}, bad(p, "task %q has no input %q", a.turn.Task, p.Name).WithHint("%s", swarm.DidYouMean(p.Name, names))
		}
	}
	from := origin{from: p.Kind, name: task}
	if a.turn.Output == nil {
		return injection{from, nil, placeholder(task)}, nil
	}
	out, ran := a.turn.Output(task)
	if !ran {
		return injection{from, nil, placeholder(task)}, nil
	}
	from.turn = out.Turn
	text := out.Text
	if p.Selector != "" {
		var err error
		if text, err = Select(text, p.Selector); err != nil {
			return injection{}, place{p.File, p.Line, p.Column}.in(err, p.String()+" cannot be taken from the output of task "+strconv.Quote(task))
		}
	}
	return injection{from, &outputFence, data(view(text))}, nil
}

// findGood returns the injection for an agent's output in a line: in place, after a label.
func (a *assembly) findGood(p *Part) (injection, error) {
	if a.turn.Good != nil {
		if out, ok := a.turn.Good(p.Name, p.Task); ok {
			return injection{origin{from: KindAgent, name: p.Name, turn: out.Turn}, nil, "[Output from @" + p.Name + "]: " + data(view(out.Text))}, nil
		}
	}
	return injection{}, bad(p, "Agent @%s has no output to reference. Run a task for @%s first.", p.Name, p.Name)
}

// data prepares text for injection: it escapes the text, and drops the newlines at its end.
func data(text string) string { return escape(trimRightNewlines(text)) }

func bad(p *Part, format string, args ...any) *swarm.Error {
	e := place{p.File, p.Line, p.Column}.errorf(format, args...)
	e.Kind = swarm.BadPrompt
	return e
}

func (a *assembly) tooLarge(p *Part) error {
	e := bad(p, "the prompt of task %q is larger than 4 MB", a.turn.Task)
	if p.Kind == KindOutput || p.Kind == KindInput {
		return e.WithHint("take less of it, for example {{%s:%s:last_50_lines}}", p.Kind, p.Name)
	}
	return e
}

// inject adds data. The lines of a fence hold no other text.
func (a *assembly) inject(in *injection) {
	if in.fence == nil {
		a.put(in.origin, in.body)
		return
	}
	a.separate()
	start := len(a.text)
	if start > 0 && a.last != '\n' {
		a.text = append(a.text, '\n')
	}
	a.text = append(append(append(a.text, in.fence.open...), in.name...), in.fence.opened...)
	if in.body != "" {
		a.text = append(append(a.text, in.body...), '\n')
	}
	a.text = append(a.text, in.fence.shut...)
	if in.fence.closed != "" {
		a.text = append(append(a.text, in.name...), in.fence.closed...)
	}
	a.last, a.fenced = '-', true
	a.span(in.origin, start)
}

// put adds text. After a fence it begins on a new line.
func (a *assembly) put(from origin, text string) {
	if text == "" {
		return
	}
	a.separate()
	if a.fenced && text[0] != '\n' && !strings.HasPrefix(text, "\r\n") {
		a.text = append(a.text, '\n')
		a.spans[len(a.spans)-1].End++
	}
	start := len(a.text)
	a.text = append(a.text, text...)
	a.last, a.fenced = text[len(text)-1], false
	a.span(from, start)
}

// separate begins a section. The empty line before it is written only when the section has text.
func (a *assembly) separate() {
	if a.apart {
		a.apart = false
		a.put(origin{from: FromSeparator}, emptyLine)
	}
}

// span notes the origin of the bytes since start.
func (a *assembly) span(from origin, start int) {
	if n := len(a.spans); n > 0 {
		if last := &a.spans[n-1]; last.Name == from.name && last.From == from.from && string(last.Turn) == from.turn && last.Known == from.known {
			last.End = len(a.text)
			return
		}
	}
	a.spans = append(a.spans, swarm.Span{From: from.from, Name: from.name, Turn: swarm.TurnID(from.turn), Known: from.known, Start: start, End: len(a.text)})
}
