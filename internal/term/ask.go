package term

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/view"
)

// A question has to stand on the board for this long before a key answers it: who presses a key has seen what he answers, and a key
// that is held down does not answer the question that comes next.
const settledAfter = 500 * time.Millisecond

// open are the questions of a task that nobody has answered, or of all tasks, the oldest first.
func (f Frame) open(task string) (open []view.Approval) {
	for _, a := range f.Approvals {
		if !f.Answered[a.ID] && (task == "" || a.Task == task) {
			open = append(open, a)
		}
	}
	return open
}

// blocking are those of a task's questions that its turn waits for: who has a growth request goes on without it.
func (f Frame) blocking(task string) []view.Approval {
	return slices.DeleteFunc(f.open(task), func(a view.Approval) bool { return a.Growth != nil })
}

// question is the one that keys answer: the oldest, if there are keys, and room to show it.
func (f Frame) question() (q view.Approval, of int) {
	if open := f.open(""); len(open) > 0 && f.Answers && !f.Over && f.Height > 4 {
		return open[0], len(open)
	}
	return view.Approval{}, 0
}

// ask is the question that keys answer, in as many lines as it needs and the terminal has.
func (f Frame) ask() []string {
	q, of := f.question()
	if of == 0 {
		return nil
	}
	number := ""
	if of > 1 {
		number = fmt.Sprintf("1 of %d: ", of)
	}
	const indent = "  "
	room := f.Width - len(indent)
	text := middle(OneLine(number+"may "+q.Task+" "+view.DescribeApproval(q.Approval)+"?"), room*min(3, max(1, f.Height/6)))
	lines := strings.Split(ansi.Hardwrap(text, room, true), "\n")
	for i := range lines {
		lead := indent
		if i == 0 {
			lead = "? "
		}
		lines[i] = Paint(f.Color).With(Yellow, lead+lines[i])
	}
	return lines
}

// waitsForYou is what a task asks, and by which command it is answered where there is room for both.
func (f Frame) waitsForYou(t *view.Task, width int) string {
	open := f.blocking(t.Name)
	lead := "waits for you: "
	if len(open) > 1 {
		lead = fmt.Sprintf("waits for you, %d times: ", len(open))
	}
	request := OneLine(strings.TrimPrefix(view.DescribeApproval(open[0].Approval), "use "))
	command := " — swarm approve " + OneLine(open[0].ID)
	const enough = 30 // of what is asked
	if room := width - ansi.StringWidth(lead+command); room >= min(enough, ansi.StringWidth(request)) {
		return lead + middle(request, room) + command
	}
	return lead + middle(request, width-len(lead))
}

// middle leaves out the middle of a line that is wider than it may be: what matters may stand at either end.
func middle(text string, width int) string {
	w := ansi.StringWidth(text)
	if w <= width || width < 6 {
		return ansi.Truncate(text, max(0, width), "…")
	}
	tail := width / 3
	return ansi.Truncate(ansi.Truncate(text, width-tail-1, "")+"…"+ansi.TruncateLeft(text, w-tail, ""), width, "…")
}

// answer passes on what a person says to a question.
func (b *Board) answer(id string, ok bool) {
	b.mu.Lock()
	b.answered[id] = true
	b.mu.Unlock()
	go func() {
		if err := b.o.Answer(id, ok); err != nil {
			b.mu.Lock()
			delete(b.answered, id)
			b.trouble = swarm.Errorf("", "the answer did not reach the run: %w", err).Msg
			b.mu.Unlock()
			b.window.Change(false)
		}
	}()
}

// answer answers the question that stands on the board, and has stood there long enough to be read.
func (d *boardDrawer) answer(ok bool) {
	if d.asked != "" && d.board.o.Now().Sub(d.since) >= settledAfter {
		d.board.answer(d.asked, ok)
	}
}

// asks notes the question that is shown.
func (d *boardDrawer) asks(id string) {
	if id != d.asked {
		d.asked, d.since = id, d.board.o.Now()
	}
}
