package repl

import (
	"fmt"
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
	p.asking, p.leaving, p.entering = false, false, l.err == nil
	switch {
	case l.err != nil && p.o.Prompt:
		p.print("\n") // the user's end of input ended no line
	case l.err == nil && p.o.Echo && strings.TrimSpace(l.text) != "":
		quiet := p.undisturbed
		p.echo(l.text)
		p.flush()
		p.undisturbed = quiet
	}
}

// echo shows a line that was entered.
func (p *Plain) echo(text string) {
	p.say(p.paint.With(term.Bold, prompt+strings.ReplaceAll(show(text), "\n", "\n  ")))
}

// refuse says why a line was refused, and where. The line stands right above if it could be seen and nothing was printed since.
func (p *Plain) refuse(text string, number int, err error) (left Left) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entering, p.stops = false, 0
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
			_, _ = p.o.Err.Write(p.out.Bytes()) // there is nobody else to tell
			p.out.Reset()
		}()
	} else {
		defer p.flush()
	}
	r, placed := refused(err)
	if placed && text != "" {
		const columns = 76
		if p.undisturbed && (p.o.Prompt || p.o.Echo) && !strings.Contains(text, "\n") && width(text) < columns {
			p.say("  " + p.paint.With(term.Wrong, caretUnder(text, r.Start, r.End)))
		} else {
			part, carets := excerpt(text, r.Start, r.End, columns)
			p.say("  " + part)
			p.say("  " + p.paint.With(term.Wrong, carets))
		}
	}
	msg := show(r.Msg)
	if p.o.Numbered {
		msg = fmt.Sprintf("line %d: %s", number, msg)
	}
	p.say(p.paint.With(term.Red, msg))
	if r.Hint != "" {
		p.say(p.paint.With(term.Dim, "  "+strings.ReplaceAll(show(r.Hint), "\n", "\n  ")))
	}
}

// Notice says something to the user that no event tells.
func (p *Plain) Notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(p.paint.With(term.Yellow, "! "+oneLine(text)))
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
			p.speak(e.Task, p.voice(e.Task), swarm.Delta{Kind: swarm.DeltaText, Text: output})
		}
	}
	if e.Kind == swarm.TurnEnded {
		p.hush(e.Task)
	}
	over, agent, err := p.roster.apply(e)
	if agent != "" {
		p.shown[agent] = "idle"
		p.say(p.status(agent, over.ending(), over.status))
	}
	if text := told(e); text != "" {
		p.say(p.paint.With(term.Yellow, "! "+text))
	}
	if err != nil {
		p.say(p.paint.With(term.Red, oneLine(err.Error())))
	}
	for _, a := range p.roster.states(p.team) {
		if a.Words != p.shown[a.Name] && a.Words != starting {
			p.shown[a.Name] = a.Words
			if a.Status != swarm.Idle {
				p.say(p.status(a.Name, a.Words, a.Status))
			}
		}
	}
	if e.Kind == swarm.TurnStarted {
		v := p.voice(e.Task)
		v.running = true
		p.catchUp(e.Task, v)
	}
	p.flush()
	nudge(p.wake)
}

// status is the line that says where an agent stands.
func (p *Plain) status(agent, words string, s swarm.Status) string {
	return p.paint.With(p.meet(agent), "@"+agent) + ": " + p.paint.Status(s, words)
}

// Delta prints what a task's turn says. Until the turn's start has been told it is kept, so that nobody speaks before he begins.
func (p *Plain) Delta(task string, d swarm.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roster.delta(task, d)
	v := p.voice(task)
	if !v.running {
		v.early, v.bytes = append(v.early, d), v.bytes+len(d.Text)
		if v.bytes <= maxEarly {
			return
		}
		p.catchUp(task, v)
	} else {
		p.speak(task, v, d)
	}
	p.flush()
}

func (p *Plain) voice(task string) *plainVoice {
	v := p.voices[task]
	if v == nil {
		v = &plainVoice{}
		p.voices[task] = v
	}
	return v
}

func (p *Plain) catchUp(task string, v *plainVoice) {
	for _, d := range v.early {
		p.speak(task, v, d)
	}
	v.early, v.bytes = nil, 0
}

func (p *Plain) speak(task string, v *plainVoice, d swarm.Delta) {
	switch d.Kind {
	case swarm.DeltaText:
		v.tones[0].add(d.Text, p.teller(task, v, 0))
	case swarm.DeltaStderr:
		v.tones[1].add(d.Text, p.teller(task, v, 1))
	case swarm.DeltaTool:
		if d.Tool != nil {
			p.line(task, " > ", p.paint.With(term.Dim, toolLine(d.Tool)))
		}
	case swarm.DeltaToolDone:
		if d.Tool != nil && d.Tool.Failed {
			p.line(task, " ! ", failedLine(d.Tool))
		}
	}
}

// teller puts the parts of lines together, and prints them when they end or become too long.
func (p *Plain) teller(task string, v *plainVoice, tone int) func(string, bool) {
	return func(part string, ends bool) {
		b := &v.lines[tone]
		b.WriteString(part)
		v.begun[tone] = true
		if ends || b.Len() > maxLine {
			p.line(task, []string{" | ", " ! "}[tone], b.String())
			b.Reset()
			v.begun[tone] = false
		}
	}
}

// hush ends the lines of a turn that is over.
func (p *Plain) hush(task string) {
	v := p.voices[task]
	if v == nil {
		return
	}
	p.catchUp(task, v)
	for tone := range v.tones {
		tell := p.teller(task, v, tone)
		v.tones[tone].end(tell)
		if v.begun[tone] {
			tell("", true)
		}
	}
	delete(p.voices, task)
}

// meet is an agent's colour; the column of names is as wide as those of whom it has met.
func (p *Plain) meet(agent string) term.Style {
	p.names = max(p.names, min(maxNames, len(agent)))
	return p.colors.Of(agent)
}

// line prints a line of an agent.
func (p *Plain) line(task, bar, text string) {
	agent := p.roster.agent(task)
	color := p.meet(agent)
	p.say(p.paint.With(color, pad(fit(agent, p.names), p.names)+bar[:2]) + bar[2:] + text)
}

// tell prints a text of several lines.
func (p *Plain) tell(text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		p.say(show(text))
	}
}

// say prints a line, with the next flush.
func (p *Plain) say(text string) {
	p.out.WriteString(strings.TrimRight(text, " ") + "\n")
}

// flush prints what there is to print. Where a line can be typed, the prompt stands below it again.
func (p *Plain) flush() {
	if p.out.Len() == 0 {
		return
	}
	text := p.out.String()
	p.out.Reset()
	p.undisturbed = false
	if p.asking {
		text = p.erase + text + prompt
	}
	p.print(text)
}

func (p *Plain) print(text string) {
	if p.err == nil {
		_, p.err = p.o.Out.Write([]byte(text))
	}
}
