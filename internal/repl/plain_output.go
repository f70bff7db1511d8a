package repl

import (
	"fmt"
	"io"
	"strings"

	"swarm"
	"swarm/internal/term"
)

// showPrompt shows that a line can be typed.
func (p *Plain) showPrompt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undisturbed = true
	if p.o.Prompt {
		p.flush()
		p.prompting = true
		p.print(prompt)
	}
}

// noteLine follows a line that was read.
func (p *Plain) noteLine(l lineRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompting, p.leaving = false, false
	entered := l.err == nil && strings.TrimSpace(l.text) != ""
	if entered {
		p.foreground.enter()
	}
	switch {
	case l.err != nil && p.o.Prompt:
		p.print("\n") // the end of input did not end the line of the prompt
	case entered && p.o.Echo:
		quiet := p.undisturbed
		p.echo(l.text)
		p.flush()
		p.undisturbed = quiet
	}
}

// echo shows a line that was entered.
func (p *Plain) echo(text string) {
	p.printLine(term.Bold, prompt+strings.ReplaceAll(safeText(text), "\n", "\n  "))
}

// refuse reports a line that was refused.
func (p *Plain) refuse(text string, number int, err error) (left Left) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.foreground.answer(Entered{}, err)
	p.refusals++
	p.report(number, text, err)
	if p.o.StopOnError {
		return ByRefusal
	}
	return ""
}

// report says what is wrong with a line: to Options.Outcome, to standard error, or between the
// other output. If the line is right above, the carets stand under it.
func (p *Plain) report(number int, text string, err error) {
	if p.o.Outcome != nil {
		p.o.Outcome(number, Entered{}, err)
		return
	}
	if p.o.Err != nil {
		p.flush() // earlier output comes first
		defer func() {
			_, _ = p.o.Err.Write(p.printer.Take()) // there is nowhere else to report this error
		}()
	} else {
		defer p.flush()
	}
	r, placed := refused(err)
	if placed && text != "" {
		const columns = 76
		if p.undisturbed && (p.o.Prompt || p.o.Echo) && !strings.Contains(text, "\n") && width(text) < columns {
			p.printLine(term.Wrong, "  "+caretUnder(text, r.Start, r.End))
		} else {
			part, carets := pointAt(text, r.Start, r.End, columns)
			p.printLine(term.Unstyled, "  "+part)
			p.printLine(term.Wrong, "  "+carets)
		}
	}
	msg := safeText(r.Msg)
	if p.o.Numbered {
		msg = fmt.Sprintf("line %d: %s", number, msg)
	}
	p.printLine(term.Red, msg)
	if r.Hint != "" {
		p.printLine(term.Dim, "  "+strings.ReplaceAll(safeText(r.Hint), "\n", "\n  "))
	}
}

// Notice shows the user something that no event reports.
func (p *Plain) Notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printNote(text)
	p.flush()
}

// Event prints what the next event of the run's log changes.
func (p *Plain) Event(e *swarm.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Recall != nil {
		line, output := p.o.Recall(e)
		if line != "" {
			p.echo(line)
		}
		if output != "" {
			p.printer.Delta(e.Task, swarm.Delta{Kind: swarm.DeltaText, Text: output})
		}
	}
	if e.Kind == swarm.TurnEnded {
		p.printer.EndTurn(e.Task)
	}
	over, agent, err := p.roster.apply(e)
	if agent != "" {
		p.shown[agent] = "idle"
		p.status(agent, over.describe(), over.status)
	}
	if text := describe(e); text != "" {
		p.printNote(text)
	}
	if err != nil {
		p.printLine(term.Red, term.OneLine(err.Error()))
	}
	for _, a := range p.roster.states(p.team) {
		if a.Words != p.shown[a.Name] && a.Words != starting {
			p.shown[a.Name] = a.Words
			if a.Status != swarm.Idle {
				p.status(a.Name, a.Words, a.Status)
			}
		}
	}
	p.flush()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// status prints the state of an agent.
func (p *Plain) status(agent, words string, s swarm.Status) {
	paint := p.printer.Paint
	p.printer.Print(paint.With(p.printer.Style(agent), "@"+agent) + ": " + paint.Status(s, words))
}

// Delta prints a delta of a task's turn.
func (p *Plain) Delta(task string, d swarm.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster.delta(task, d)
	p.printer.Delta(task, d)
	p.flush()
}

// printText prints a text of several lines.
func (p *Plain) printText(text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		p.printLine(term.Unstyled, safeText(text))
	}
}

// printNote prints something that the user should know.
func (p *Plain) printNote(text string) { p.printLine(term.Yellow, "! "+term.OneLine(text)) }

// printLine prints a line with the next flush. The text must be safe.
func (p *Plain) printLine(s term.Style, text string) { p.printer.Print(p.printer.Paint.With(s, text)) }

// flush writes the printed lines. If the prompt is shown, it stands below them again.
func (p *Plain) flush() {
	lines := string(p.printer.Take())
	if lines == "" {
		return
	}
	p.undisturbed = false
	if p.prompting {
		lines = p.erase + lines + prompt
	}
	p.print(lines)
}

func (p *Plain) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.o.Out, text)
	}
}
