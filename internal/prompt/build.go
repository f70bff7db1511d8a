package prompt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"swarm"
)

// An Output is what a task said last.
type Output struct {
	Text []byte
	Turn string // the turn that said it
}

// A Failure is why an earlier attempt at a task failed.
type Failure struct {
	Attempt int
	Reason  string
}

// A Turn is everything that a prompt is made of, in the order in which it stands there. What is empty is left out.
type Turn struct {
	Task, Agent   string
	Iteration, Of int
	Role          Template
	Mode          string   // what the mode of the run tells its agents
	Pack          string   // context that came with the work
	Inbox         string   // the mail that this turn consumes
	Text          Template // the task's, with prefix and suffix
	Failures      []Failure
	Sent          []string // what a start of this turn that was cut had already sent

	Output func(task string) (Output, bool) // the last output of a task; false = it has never run
	Inputs map[string]string                // the task that {{input:x}} stands for
	Stdin  []byte
}

// A Prompt is the full effective prompt.
type Prompt struct {
	Text  string
	Spans []swarm.Span // where its bytes came from, without gaps
}

// Where the bytes of a prompt can come from, beside KindText, KindOutput, KindInput and KindStdin. The fence around an output
// belongs to the output.
const (
	FromIDs       = "ids"
	FromRole      = "role" // Name is the file, as with KindText
	FromMode      = "mode"
	FromPack      = "pack"
	FromInbox     = "inbox"
	FromRetry     = "retry"
	FromSent      = "sent"
	FromSeparator = "separator" // the empty lines between sections
)

// Build makes the prompt of a turn. Sections are separated by one empty line, and the prompt ends with a newline.
func Build(t Turn) (Prompt, error) {
	a := assembly{turn: &t, known: map[reference]injection{}}
	a.add(FromIDs, ids(&t))
	a.add(FromRole, t.Role.Parts)
	a.add(FromMode, plain(t.Mode))
	a.add(FromPack, plain(t.Pack))
	a.add(FromInbox, plain(t.Inbox))
	a.add(KindText, t.Text.Parts)
	for _, f := range t.Failures {
		a.add(FromRetry, []Part{{Kind: FromRetry, Name: strconv.Itoa(f.Attempt), Text: f.Reason}})
	}
	if len(t.Sent) > 0 {
		a.add(FromSent, []Part{{Kind: FromSent, Text: items(t.Sent)}})
	}
	if err := a.resolve(); err != nil {
		return Prompt{}, err
	}
	measured := writer{measuring: true}
	if err := a.write(&measured); err != nil {
		return Prompt{}, err
	}
	w := writer{spans: make([]swarm.Span, 0, a.parts+2*len(a.sections))}
	w.text.Grow(measured.size)
	err := a.write(&w)
	return Prompt{w.text.String(), w.spans}, err
}

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

// items writes a list; what is not the first line of an item is indented, so that no item looks like two.
func items(texts []string) string {
	var b strings.Builder
	for _, t := range texts {
		b.WriteString("- " + strings.ReplaceAll(strings.TrimRight(t, newlines), "\n", "\n  ") + "\n")
	}
	return b.String()
}

func plain(text string) []Part { return []Part{{Kind: KindText, Text: clean(text)}} }

// An assembly is a prompt on its way from its sections to its text.
type assembly struct {
	turn       *Turn
	sections   []section
	parts      int         // of all sections
	injections []injection // what stands for each part that is no text, in order
	known      map[reference]injection
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

// An injection is data that is put into a prompt, with a fence around it or in place.
type injection struct {
	origin
	fence *fence
	body  string
}

// An origin is a span without its place.
type origin struct{ from, name, turn string }

// A reference is what two parts have in common that stand for the same.
type reference struct{ kind, name, selector string }

// resolve finds what stands for each reference. It gives up as soon as the sum is too large, so that a prompt which cannot be
// made costs no more memory than one that can.
func (a *assembly) resolve() error {
	a.injections = make([]injection, 0, a.parts)
	size := 0
	for _, s := range a.sections {
		for i := range s.parts {
			p := &s.parts[i]
			if p.Kind == KindText {
				size += len(p.Text)
				continue
			}
			in, err := a.inject(p)
			if err != nil {
				return err
			}
			a.injections = append(a.injections, in)
			if size += len(in.body); size > MaxPrompt {
				return a.tooLarge(p)
			}
		}
	}
	return nil
}

func (a *assembly) inject(p *Part) (injection, error) {
	switch p.Kind {
	case FromRetry:
		return injection{origin{from: FromRetry, name: p.Name}, &retryFence, data(p.Text)}, nil
	case FromSent:
		return injection{origin{from: FromSent}, &sentFence, data(p.Text)}, nil
	}
	ref := reference{p.Kind, p.Name, p.Selector}
	in, ok := a.known[ref]
	if !ok {
		var err error
		if in, err = a.find(p); err != nil {
			return injection{}, err
		}
		a.known[ref] = in
	}
	return in, nil
}

// find is what a reference stands for.
func (a *assembly) find(p *Part) (injection, error) {
	if p.Kind == KindStdin {
		return injection{origin{from: KindStdin}, nil, data(a.turn.Stdin)}, nil
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
	return injection{from, &outputFence, data(text)}, nil
}

// data is injected text: escaped, and without the newlines at its end.
func data[T string | []byte](text T) string {
	return strings.TrimRight(Escape(text), newlines)
}

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

// write puts everything in its place. It runs twice: once to measure, and once into a text of that size.
func (a *assembly) write(w *writer) error {
	rest := a.injections
	for k, s := range a.sections {
		if k > 0 {
			w.put(origin{from: FromSeparator}, emptyLine)
		}
		for i := range s.parts {
			p := &s.parts[i]
			if p.Kind != KindText {
				w.inject(&rest[0])
				rest = rest[1:]
			} else {
				text := edge(s.parts, i)
				if w.fenced {
					text = strings.TrimLeft(text, blanks)
				}
				if i+1 < len(s.parts) && s.parts[i+1].Kind != KindText && rest[0].fence != nil {
					text = strings.TrimRight(text, blanks)
				}
				w.put(origin{from: s.from, name: p.File}, text)
			}
			if w.measuring && w.size > MaxPrompt {
				return a.tooLarge(p)
			}
		}
	}
	if len(a.sections) > 0 {
		w.put(origin{from: FromSeparator}, "\n")
	}
	return nil
}

// A writer is a prompt as far as it is written, or measured.
type writer struct {
	measuring bool
	size      int
	last      byte // the last one written
	fenced    bool // it ends with a fence's closing line, whose newline is still to come
	text      strings.Builder
	spans     []swarm.Span
	from      origin // of the last span
}

// inject writes data; a fence's lines have no other text on them.
func (w *writer) inject(in *injection) {
	if in.fence == nil {
		w.put(in.origin, in.body)
		return
	}
	if w.size > 0 && w.last != '\n' {
		w.put(in.origin, "\n")
	}
	w.fenced = false
	f := in.fence
	w.append(in.origin, f.open)
	w.append(in.origin, in.name)
	w.append(in.origin, f.opened)
	w.append(in.origin, "\n")
	if in.body != "" {
		w.append(in.origin, in.body)
		w.append(in.origin, "\n")
	}
	w.append(in.origin, f.shut)
	if f.closed != "" {
		w.append(in.origin, in.name)
		w.append(in.origin, f.closed)
	}
	w.fenced = true
}

// put writes text, on a new line if a fence stands before it.
func (w *writer) put(from origin, text string) {
	if text == "" {
		return
	}
	if w.fenced && text[0] != '\n' && !strings.HasPrefix(text, "\r\n") {
		w.append(w.from, "\n")
	}
	w.fenced = false
	w.append(from, text)
}

func (w *writer) append(from origin, text string) {
	if text == "" {
		return
	}
	start := w.size
	w.size += len(text)
	w.last = text[len(text)-1]
	if w.measuring {
		return
	}
	w.text.WriteString(text)
	if n := len(w.spans); n > 0 && w.from == from {
		w.spans[n-1].End = w.size
		return
	}
	w.from = from
	w.spans = append(w.spans, swarm.Span{From: from.from, Name: from.name, Turn: from.turn, Start: start, End: w.size})
}
