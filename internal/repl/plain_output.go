package repl

import (
	"fmt"
	"io"
	"strings"

	"swarm"
	"swarm/internal/term"
)

// ask shows that a line can be typed.
func (p *Plain) ask() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undisturbed = true
	if p.o.Prompt {
		p.flush()
		p.asking = true
		p.print(prompt)
	}
}

// answered follows a line that was read.
func (p *Plain) answered(l lineRead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking, p.leaving = false, false
	entered := l.err == nil && strings.TrimSpace(l.text) != ""
	if entered {
		p.foreground.enter()
	}
	switch {
	case l.err != nil && p.o.Prompt:
		p.print("\n") // the user's end of input ended no line
	case entered && p.o.Echo:
		quiet := p.undisturbed
		p.echo(l.text)
		p.flush()
		p.undisturbed = quiet
	}
}

// echo shows a line that was entered.
func (p *Plain) echo(text string) {
	p.say(term.Bold, prompt+strings.ReplaceAll(show(text), "\n", "\n  "))
}

// refuse says why a line was refused, and where. The line stands right above if it could be seen and nothing was printed since.
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

// report says what is wrong with a line: to whoever wants to know, on standard error, or where everything else is said.
func (p *Plain) report(number int, text string, err error) {
	if p.o.Outcome != nil {
		p.o.Outcome(number, Entered{}, err)
		return
	}
	if p.o.Err != nil {
		p.flush() // what was said before it comes before it
		defer func() {
			_, _ = p.o.Err.Write(p.printer.Take()) // there is nobody else to tell
		}()
	} else {
		defer p.flush()
	}
	r, placed := refused(err)
	if placed && text != "" {
		const columns = 76
		if p.undisturbed && (p.o.Prompt || p.o.Echo) && !strings.Contains(text, "\n") && width(text) < columns {
			p.say(term.Wrong, "  "+caretUnder(text, r.Start, r.End))
		} else {
			part, carets := pointAt(text, r.Start, r.End, columns)
			p.say(term.Unstyled, "  "+part)
			p.say(term.Wrong, "  "+carets)
		}
	}
	msg := show(r.Msg)
	if p.o.Numbered {
		msg = fmt.Sprintf("line %d: %s", number, msg)
	}
	p.say(term.Red, msg)
	if r.Hint != "" {
		p.say(term.Dim, "  "+strings.ReplaceAll(show(r.Hint), "\n", "\n  "))
	}
}

// Notice says something to the user that no event tells.
func (p *Plain) Notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note(text)
	p.flush()
}

// Event says what the next event of the run's log changes.
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
		p.status(agent, over.ending(), over.status)
	}
	if text := describe(e); text != "" {
		p.note(text)
	}
	if err != nil {
		p.say(term.Red, term.OneLine(err.Error()))
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

// status prints where an agent stands.
func (p *Plain) status(agent, words string, s swarm.Status) {
	paint := p.printer.Paint
	p.printer.Print(paint.With(p.printer.Style(agent), "@"+agent) + ": " + paint.Status(s, words))
}

// Delta prints what a task's turn says.
func (p *Plain) Delta(task string, d swarm.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster.delta(task, d)
	p.printer.Delta(task, d)
	p.flush()
}

// tell prints a text of several lines.
func (p *Plain) tell(text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		p.say(term.Unstyled, show(text))
	}
}

// note prints what the user should know.
func (p *Plain) note(text string) { p.say(term.Yellow, "! "+term.OneLine(text)) }

// say prints a line, which is safe to print, with the next flush.
func (p *Plain) say(s term.Style, text string) { p.printer.Print(p.printer.Paint.With(s, text)) }

// flush prints what there is to print. Where a line can be typed, the prompt stands below it again.
func (p *Plain) flush() {
	lines := string(p.printer.Take())
	if lines == "" {
		return
	}
	p.undisturbed = false
	if p.asking {
		lines = p.erase + lines + prompt
	}
	p.print(lines)
}

func (p *Plain) print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.o.Out, text)
	}
}
