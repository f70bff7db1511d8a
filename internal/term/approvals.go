package term

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// settledAfter is the time that a question stands on the board before a key answers it. The person
// has then seen the question, and a key that is held down does not answer the next one.
const settledAfter = 500 * time.Millisecond

// openApprovals returns the unanswered questions of a task, or of all tasks, oldest first.
func (f Frame) openApprovals(task string) (open []view.Approval) {
	for _, a := range f.Approvals {
		if !f.Answered[a.ID] && (task == "" || a.Task == task) {
			open = append(open, a)
		}
	}
	return open
}

// blockingApprovals returns the questions of a task for which its turn waits. An agent that asks
// for growth goes on without the answer.
func (f Frame) blockingApprovals(task string) []view.Approval {
	return slices.DeleteFunc(f.openApprovals(task), func(a view.Approval) bool { return a.Growth != nil })
}

// question returns the question that keys answer: the oldest, if keys answer questions and there is
// room to show it.
func (f Frame) question() (q view.Approval, of int) {
	if open := f.openApprovals(""); len(open) > 0 && f.Answers && f.Height > 4 {
		return open[0], len(open)
	}
	return view.Approval{}, 0
}

// askLines shows what a person has to answer: the approval that keys answer, or else the oldest question
// of an agent. It takes up to half of the height; the lines above the board have all of it.
func (f Frame) askLines() []string {
	if f.Height <= 4 {
		return nil
	}
	text, command := "", ""
	switch q, of := f.question(); {
	case of > 1:
		text = fmt.Sprintf("1 of %d: ", of) + view.AskApproval(q.Task, q.Approval)
	case of > 0:
		text = view.AskApproval(q.Task, q.Approval)
	default:
		t, w := f.personsReply()
		if w == nil {
			return nil
		}
		text, command = "@"+t.Agent+" asks you: "+w.Question, "swarm reply "+OneLine(w.Reason)+` "…"`
	}
	const indent = "  "
	room := f.Width - len(indent)
	lines := wrapWords(cutMiddle(OneLine(text), room*max(1, f.Height/2-3)), room)
	if command != "" {
		lines = append(lines, wrapWords(command, room)...)
	}
	for i := range lines {
		lead := indent
		if i == 0 {
			lead = Sign(swarm.Blocked) + " "
		}
		lines[i] = Paint(f.Color).With(Yellow, lead+lines[i])
	}
	return lines
}

// personsReply returns the first task that waits for a person's reply, and that wait; nil = none does.
func (f Frame) personsReply() (*view.Task, *view.Wait) {
	for i := range f.Tasks {
		for k := range f.Tasks[i].Waits {
			if w := &f.Tasks[i].Waits[k]; w.For == plan.ForReply && w.Question != "" {
				return &f.Tasks[i], w
			}
		}
	}
	return nil, nil
}

// approvalDetail shows what a task asks. Where there is room, the command that answers it follows.
func (f Frame) approvalDetail(t *view.Task, width int) string {
	open := f.blockingApprovals(t.Name)
	lead := "waits for you: "
	if len(open) > 1 {
		lead = fmt.Sprintf("waits for you, %d times: ", len(open))
	}
	request := OneLine(strings.TrimPrefix(view.DescribeApproval(open[0].Approval), "use "))
	command := " — swarm approve " + OneLine(open[0].ID)
	const enough = 30 // columns of the question
	if room := width - ansi.StringWidth(lead+command); room >= min(enough, ansi.StringWidth(request)) {
		return lead + cutMiddle(request, room) + command
	}
	return lead + cutMiddle(request, width-len(lead))
}

// cutMiddle shortens a line by its middle, because either end may matter.
func cutMiddle(text string, width int) string {
	w := ansi.StringWidth(text)
	if w <= width || width < 6 {
		return ansi.Truncate(text, max(0, width), "…")
	}
	tail := width / 3
	return ansi.Truncate(ansi.Truncate(text, width-tail-1, "")+"…"+ansi.TruncateLeft(text, w-tail, ""), width, "…")
}

// sendAnswer passes on a person's answer. The question disappears at once and comes back if the
// answer cannot be stored.
func (b *Board) sendAnswer(id string, ok bool) {
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

// answer answers the question on the board, if it has stood there long enough to be read.
func (d *boardDrawer) answer(ok bool) {
	if d.asked != "" && d.board.o.Now().Sub(d.since) >= settledAfter {
		d.board.sendAnswer(d.asked, ok)
	}
}

// noteQuestion notes the question that is shown, and since when.
func (d *boardDrawer) noteQuestion(id string) {
	if id != d.asked {
		d.asked, d.since = id, d.board.o.Now()
	}
}
