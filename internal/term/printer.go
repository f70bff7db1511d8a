package term

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
)

// A Printer turns the output of many agents into whole lines with a name in front. Lines are
// buffered until [Printer.Take] takes them, so that a caller writes many at once. One goroutine at
// a time may use it.
type Printer struct {
	Paint  Paint
	nameOf func(task string) string

	out      bytes.Buffer
	colors   Palette
	column   int                    // the width of the column of names
	prefixes map[[2]string]string   // by name and bar, because a run prints millions of lines
	outputs  map[string]*turnOutput // by task, of turns that have output
}

// keptPrefixes is how many prefixes are kept. A run may have 100,000 tasks, and few speak at a time.
const keptPrefixes = 4096

// A turnOutput is the output of a task's turn.
type turnOutput struct {
	text, errors lineStream
}

// A lineStream is one stream of a turn's output, with its unfinished line.
type lineStream struct {
	LineSplitter
	line []byte
	open bool
}

// The text between a name and a line says what kind of line it is.
const (
	barText  = " | "
	barError = " ! "
	barTool  = " > "
	barThink = " ~ "
	barNone  = "   "
)

const (
	maxLine  = 16 << 10 // a longer line is printed as several
	maxNames = 24       // the widest column of names
)

// NewPrinter makes a printer. nameOf returns the name in front of a task's lines; nil means the
// task's own name.
func NewPrinter(paint Paint, nameOf func(task string) string) *Printer {
	if nameOf == nil {
		nameOf = func(task string) string { return task }
	}
	return &Printer{
		Paint:    paint,
		nameOf:   nameOf,
		colors:   Palette{},
		prefixes: map[[2]string]string{},
		outputs:  map[string]*turnOutput{},
	}
}

// Meet gives names their colours, and room in the column of names.
func (p *Printer) Meet(names ...string) {
	for _, name := range names {
		if _, known := p.colors[name]; !known {
			p.colors.Of(name)
			p.widen(name)
		}
	}
}

// widen makes room for a name, up to a limit. A name beyond the limit moves only its own lines.
func (p *Printer) widen(name string) {
	if w := min(ansi.StringWidth(OneLine(name)), maxNames); w > p.column {
		p.column = w
		clear(p.prefixes)
	}
}

// Style returns the colour of a name.
func (p *Printer) Style(name string) Style {
	p.Meet(name)
	return p.colors.Of(name)
}

// Take returns what was printed since the last call. It is valid until something else is printed.
func (p *Printer) Take() []byte {
	lines := p.out.Bytes()
	p.out.Reset()
	return lines
}

// Print prints a line as it is.
func (p *Printer) Print(line string) {
	p.out.WriteString(line)
	p.out.WriteByte('\n')
}

// Label prints a text with a name in front. The text must be safe. A name without a colour stands
// for the run.
func (p *Printer) Label(name, bar, text string) { p.Print(p.prefix(name, bar) + text) }

// prefix returns what stands in front of a line.
func (p *Printer) prefix(name, bar string) string {
	made, ok := p.prefixes[[2]string{name, bar}]
	if !ok {
		made = PadRight(OneLine(name), p.column)
		if color, known := p.colors[name]; known {
			made = p.Paint.With(color, made+bar[:2]) + bar[2:]
		} else {
			made = p.Paint.With(Bold, made) + bar
		}
		if len(p.prefixes) >= keptPrefixes {
			clear(p.prefixes)
		}
		p.prefixes[[2]string{name, bar}] = made
	}
	return made
}

// EndTurn prints the unfinished lines of a turn and forgets the turn. A run has thousands of tasks,
// and few speak at a time.
func (p *Printer) EndTurn(task string) {
	v := p.outputs[task]
	if v == nil {
		return
	}
	p.endStream(task, &v.text, barText)
	p.endStream(task, &v.errors, barError)
	delete(p.outputs, task)
}

// breakLine prints the unfinished line of a task, because another line about the task follows: words
// come before the tool call that they announce.
func (p *Printer) breakLine(task string) {
	v := p.outputs[task]
	if v == nil {
		return
	}
	if v.text.open {
		p.endLine(task, &v.text, barText)
	}
	if v.errors.open {
		p.endLine(task, &v.errors, barError)
	}
}

// EndAll is EndTurn for every turn that has output.
func (p *Printer) EndAll() {
	for _, task := range slices.Sorted(maps.Keys(p.outputs)) {
		p.EndTurn(task)
	}
}

// Delta prints a delta of a task's turn.
func (p *Printer) Delta(task string, d swarm.Delta) {
	v := p.outputs[task]
	if v == nil {
		v = &turnOutput{}
		p.outputs[task] = v
	}
	switch d.Kind {
	case swarm.DeltaText:
		v.text.Add(d.Text, func(part string, ends bool) { p.extend(task, &v.text, barText, part, ends) })
	case swarm.DeltaStderr:
		v.errors.Add(d.Text, func(part string, ends bool) { p.extend(task, &v.errors, barError, part, ends) })
	case swarm.DeltaTool:
		if d.Tool != nil {
			p.breakLine(task)
			p.label(task, barTool, p.Paint.With(Dim, ToolLine(d.Tool)))
		}
	case swarm.DeltaToolDone:
		if d.Tool != nil && d.Tool.Failed {
			p.breakLine(task)
			p.label(task, barError, FailedToolLine(d.Tool))
		}
	}
}

// extend adds to a line, and prints it when it ends or is full.
func (p *Printer) extend(task string, t *lineStream, bar, part string, ends bool) {
	for {
		n := excerpt.CutAt(part, maxLine-len(t.line))
		t.line, t.open = append(t.line, part[:n]...), true
		if part = part[n:]; part == "" {
			break
		}
		p.endLine(task, t, bar)
	}
	if ends {
		p.endLine(task, t, bar)
	}
}

// endLine prints the line of a stream with its prefix.
func (p *Printer) endLine(task string, t *lineStream, bar string) {
	name := p.nameOf(task)
	p.Meet(name)
	p.out.WriteString(p.prefix(name, bar))
	p.out.Write(t.line)
	p.out.WriteByte('\n')
	t.line, t.open = t.line[:0], false
}

// endStream prints what is left of a stream.
func (p *Printer) endStream(task string, t *lineStream, bar string) {
	t.End(func(part string, ends bool) { p.extend(task, t, bar, part, ends) })
	if t.open {
		p.endLine(task, t, bar)
	}
}

// label prints a line about what a task does.
func (p *Printer) label(task, bar, text string) {
	name := p.nameOf(task)
	p.Meet(name)
	p.Label(name, bar, strings.TrimRight(text, " "))
}
