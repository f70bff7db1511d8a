package term

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// Lines print a run one line after the other: what agents say, and what becomes of their tasks, each with the task's name in
// front. A line is written at once and whole, however many agents speak. Nothing is left out but the ends of huge lines, so a
// reader that stops reading stops the agents.
type Lines struct {
	w     io.Writer
	paint Paint

	mu     sync.Mutex // guards what follows
	run    *view.Run
	voices map[string]*voice
	colors Palette
	width  int // of the names' column
	err    error
	out    bytes.Buffer
}

// A voice is what a task says.
type voice struct {
	number  int
	text    partial // output
	errors  partial // standard error
	running bool    // its turn has begun
	early   []swarm.Delta
	bytes   int                   // of early
	waited  map[plan.WaitFor]bool // what was said about its waiting, in this iteration
	before  swarm.Usage           // what it had used when this iteration began

	prefixes map[string]string // by what stands between the name and the text
}

// A partial is a line whose end has not come yet: its head, and how much more of it there was.
type partial struct {
	head []byte
	more int
	any  bool
}

const (
	maxLine   = 16 << 10 // what is printed of a line
	maxEarly  = 64 << 10 // what is kept of a turn whose start has not been told
	maxNames  = 24       // the widest column for names
	fewTasks  = 50       // up to so many tasks it is said who waits for whom
	runsLabel = "swarm"  // stands for the run where a task's name would be
)

// NewLines prints to w from where the run's fold stands. The fold belongs to the lines from then on.
func NewLines(run *view.Run, w io.Writer, color bool) *Lines {
	l := &Lines{w: w, paint: Paint(color), run: run, voices: map[string]*voice{}, colors: Palette{}, width: len(runsLabel)}
	l.meet()
	return l
}

// meet gets to know the tasks that are new.
func (l *Lines) meet() {
	for i := range l.run.Len() {
		t := l.run.At(i)
		if l.voices[t.Name] == nil {
			l.colors.Of(t.Name)
			l.voices[t.Name] = &voice{number: i, running: t.Status == swarm.Running, waited: map[plan.WaitFor]bool{}}
			l.width = max(l.width, min(len(t.Name), maxNames))
		}
	}
	for _, v := range l.voices {
		v.prefixes = nil // the column may have become wider
	}
}

// Event prints what the next event of the run's log changes.
func (l *Lines) Event(e *swarm.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.run.Apply(e); err != nil {
		l.say(runsLabel, l.paint.With(Yellow, oneLine(err.Error())))
	}
	v := l.voices[e.Task]
	if v == nil {
		l.runEvent(e)
	} else {
		l.taskEvent(v, e)
	}
	switch e.Kind {
	case swarm.PlanAdded, swarm.TaskStarted, swarm.TaskRetrying, swarm.RunPausing:
		l.sayWaits()
	}
	l.flush()
}

func (l *Lines) taskEvent(v *voice, e *swarm.Event) {
	t, _ := l.run.Task(e.Task)
	told, difference := apart(t.Kind, view.Tell(e))
	text := reason(told)
	switch e.Kind {
	case swarm.TaskStarted:
		v.before = t.Usage
		text = l.paint.Status(swarm.Running, text)
	case swarm.TurnStarted:
		text = l.paint.With(Yellow, text)
		if text == "" && t.Attempt > 1 {
			text = l.paint.Status(swarm.Running, fmt.Sprintf("attempt %d started", t.Attempt))
		}
	case swarm.TurnEnded:
		l.catchUp(t.Name, v)
		l.endLines(t.Name, v)
		v.running = false
	case swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		text = l.paint.Status(t.Status, text+v.cost(t))
		clear(v.waited)
	default:
		text = l.paint.With(Yellow, text)
	}
	if text != "" {
		l.say(t.Name, text)
	}
	for line := range strings.Lines(difference) {
		l.say(t.Name, "  "+l.paint.change(Escape(strings.TrimSuffix(line, "\n"))))
	}
	if e.Kind == swarm.TurnStarted {
		v.running = true
		l.catchUp(t.Name, v)
	}
}

// cost is what a task took in this iteration.
func (v *voice) cost(t view.Task) string {
	if t.Started.IsZero() {
		return ""
	}
	u := t.Usage
	u.InputTokens, u.OutputTokens = u.InputTokens-v.before.InputTokens, u.OutputTokens-v.before.OutputTokens
	return inBrackets(Duration(t.Ended.Sub(t.Started)), SomeTokens(u))
}

func inBrackets(parts ...string) string {
	var said []string
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// apart takes the difference from the reason of a turn that is not as it was recorded: its lines mean something.
func apart(kind swarm.ErrorKind, text string) (told, difference string) {
	if told, difference, ok := strings.Cut(text, ":\n"); ok && kind == swarm.Mismatch {
		return told, difference
	}
	return text, ""
}

// brief is why a task failed, in one line.
func brief(t *view.Task) string {
	told, _ := apart(t.Kind, t.Reason)
	return reason(told)
}

// reason is text in one line that is not too long.
func reason(text string) string {
	const most = 500
	text = oneLine(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

func (l *Lines) runEvent(e *swarm.Event) {
	r := l.run
	switch e.Kind {
	case swarm.RunStarted, swarm.IterationStarted: // the plan and its tasks tell of them
		return
	case swarm.PlanAdded:
		first := len(l.voices) == 0
		l.meet()
		if first {
			l.say(runsLabel, fmt.Sprintf("run %s: %s%s", oneLine(r.ID), unit(oneLine(r.Name), ", "), plural(int64(r.Len()), Noun(r.Kind))))
		}
		return
	}
	text := reason(view.Tell(e))
	switch {
	case text == "":
		return
	case e.Kind == swarm.RunEnded:
		text = l.paint.Status(r.Status, text+inBrackets(Duration(r.Ended.Sub(r.Started)), SomeTokens(r.Usage), USD(r.Usage.USD)))
	case e.Kind != swarm.RunUnpaused:
		text = l.paint.With(Yellow, text)
	}
	l.say(runsLabel, text)
}

// sayWaits tells who waits for whom, once for each kind of wait and iteration.
func (l *Lines) sayWaits() {
	if l.run.Len() > fewTasks {
		return
	}
	for i := range l.run.Len() {
		t := l.run.At(i)
		v := l.voices[t.Name]
		if v == nil || t.Status != swarm.Waiting || v.waited[t.Waits[0].For] || t.Waits[0].For == plan.ForRetry || t.Waits[0].For == plan.ForPerson || t.Waits[0].For == plan.ForMail {
			continue
		}
		v.waited[t.Waits[0].For] = true
		l.say(t.Name, l.paint.With(Dim, "waiting for "+oneLine(view.Waiting(t.Waits))))
	}
}

// Delta prints what a task's turn says. Until the turn's start has been told it is kept, so that nobody speaks before he begins.
func (l *Lines) Delta(task string, d swarm.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.voices[task]
	if v == nil {
		v = &voice{number: len(l.voices), waited: map[plan.WaitFor]bool{}}
		l.voices[task] = v
	}
	if !v.running {
		v.early, v.bytes = append(v.early, d), v.bytes+len(d.Text)
		if v.bytes <= maxEarly {
			return
		}
		l.catchUp(task, v)
	} else {
		l.speak(task, v, d)
	}
	l.flush()
}

func (l *Lines) catchUp(task string, v *voice) {
	for _, d := range v.early {
		l.speak(task, v, d)
	}
	v.early, v.bytes = nil, 0
}

func (l *Lines) speak(task string, v *voice, d swarm.Delta) {
	switch d.Kind {
	case swarm.DeltaText:
		l.add(task, v, &v.text, " | ", d.Text)
	case swarm.DeltaStderr:
		l.add(task, v, &v.errors, " ! ", d.Text)
	case swarm.DeltaTool:
		if d.Tool != nil {
			l.out.WriteString(l.prefix(task, v, " > ") + l.paint.With(Dim, toolLine(d.Tool.Name+" "+string(d.Tool.Input))) + "\n")
		}
	case swarm.DeltaToolDone:
		if d.Tool != nil && d.Tool.Failed {
			l.out.WriteString(l.prefix(task, v, " ! ") + toolLine(d.Tool.Name+": "+d.Tool.Output) + "\n")
		}
	}
}

// toolLine is the use of a tool, or what came of it, in one line.
func toolLine(text string) string {
	const most = 200
	text = oneLine(text)
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// add prints the lines that text ends, and keeps what it begins.
func (l *Lines) add(task string, v *voice, p *partial, bar, text string) {
	for text != "" {
		end := strings.IndexByte(text, '\n')
		piece := text
		if end >= 0 {
			piece = text[:end]
		}
		p.any = true
		take := min(len(piece), max(0, maxLine-len(p.head)))
		p.head = append(p.head, piece[:take]...)
		p.more += len(piece) - take
		if end < 0 {
			return
		}
		l.line(task, v, p, bar)
		text = text[end+1:]
	}
}

// line prints a line that has ended.
func (l *Lines) line(task string, v *voice, p *partial, bar string) {
	l.out.WriteString(l.prefix(task, v, bar))
	head := strings.TrimSuffix(string(p.head), "\r")
	if p.more > 0 {
		head = wholeRunes(head)
	}
	l.out.WriteString(Escape(head))
	if p.more > 0 {
		l.out.WriteString(l.paint.With(Dim, fmt.Sprintf("… (the line goes on for %s)", Bytes(int64(p.more)))))
	}
	l.out.WriteByte('\n')
	p.head, p.more, p.any = p.head[:0], 0, false
}

// wholeRunes drops a rune at the end that was cut.
func wholeRunes(text string) string {
	for cut := range min(utf8.UTFMax, len(text)) {
		if r, n := utf8.DecodeLastRuneInString(text[:len(text)-cut]); r != utf8.RuneError || n > 1 {
			return text[:len(text)-cut]
		}
	}
	return text
}

// endLines prints lines that will not be ended any more, and lets go what was kept for more: of the many tasks of a run few
// speak at a time.
func (l *Lines) endLines(task string, v *voice) {
	if v.text.any {
		l.line(task, v, &v.text, " | ")
	}
	if v.errors.any {
		l.line(task, v, &v.errors, " ! ")
	}
	v.text, v.errors = partial{}, partial{}
}

// say prints one line about a task or the run.
func (l *Lines) say(label, text string) {
	if v := l.voices[label]; v != nil {
		l.out.WriteString(l.prefix(label, v, "   "))
	} else {
		l.out.WriteString(l.paint.With(Bold, label) + strings.Repeat(" ", max(0, l.width-len(label))) + "   ")
	}
	l.out.WriteString(text + "\n")
}

// prefix is what stands in front of a task's lines. It is made once, since there may be millions of them.
func (l *Lines) prefix(task string, v *voice, bar string) string {
	if v.prefixes == nil {
		v.prefixes = map[string]string{}
	}
	made, ok := v.prefixes[bar]
	if !ok {
		name := oneLine(task)
		made = l.paint.With(l.colors.Of(task), name+strings.Repeat(" ", max(0, l.width-len(name)))+bar[:2]) + bar[2:]
		v.prefixes[bar] = made
	}
	return made
}

func (l *Lines) flush() {
	if l.out.Len() > 0 && l.err == nil {
		_, l.err = l.w.Write(l.out.Bytes())
	}
	l.out.Reset()
}

// Close prints the lines that were begun and returns the first error of writing.
func (l *Lines) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(l.voices), func(a, b string) int { return l.voices[a].number - l.voices[b].number })
	for _, name := range names {
		l.catchUp(name, l.voices[name])
		l.endLines(name, l.voices[name])
	}
	l.flush()
	return l.err
}
