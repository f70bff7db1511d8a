// Package line implements the line language, which is typed into a session or given to `swarm run`.
//
//	@pm Create a plan -> @builder-1,builder-2 Build what $ba asks for &
//
// A line is a chain of stages with arrows between them. A stage names its agents, which all get the
// same task. A task may refer to the last output of an agent.
//   - [Scan] splits a line into tokens, for highlighting while it is typed.
//   - [Parse] parses the same tokens, so the highlighting cannot differ from the meaning.
//   - [Complete] completes a word.
//   - [Line.Plan] makes tasks from a line and the state of its session. The scheduler runs them.
//
// A character is special only in certain places: `->` before `@`; `&` with blanks around it; `@`,
// `/` and `#` at the beginning; `$` before a name. In these places a `\` makes it ordinary.
// Everywhere else text stays as it was typed. Quotes have no meaning.
package line

import (
	"slices"
	"strings"

	"swarm"
	"swarm/internal/prompt"
)

// Limits of a line.
const (
	MaxLine   = 64 << 10 // bytes
	MaxStages = 50
	MaxRefs   = 10 // different agents that one task refers to
)

// Notify is the agent that notifies a person. It always exists, is not listed, and has no output to
// refer to.
const Notify = "notify"

// A Team is the set of agents that a line can address.
type Team struct {
	Agents  []string // in the file's order
	Default string   // gets text without an agent; "" = none
	NoRefs  bool     // $ is an ordinary character
	// Absent says, of names that are no agents here, how they become agents.
	Absent map[string]string
}

func (t *Team) has(name string) bool { return slices.Contains(t.Agents, name) }

func (t *Team) reaches(name string) bool { return name == Notify || t.has(name) }

// everybody returns all agents that can get a task, including Notify.
func (t *Team) everybody() []string { return append(slices.Clip(t.Agents), Notify) }

// A Line is a parsed line: a command, a comment, or a chain of stages.
type Line struct {
	Text       string // as entered; all positions are bytes of it
	Command    *Command
	Comment    bool // it begins with # and does nothing
	Stages     []Stage
	Background bool // it ends with &
}

// A Stage is one task for one agent, or for several at the same time.
type Stage struct {
	Agents []Name
	Model  string        // "" = the model of each agent
	Parts  []prompt.Part // the task: literal text, and a KindAgent for each reference
	Refs   []Name        // the references in order, with repetitions
}

// A Name is an agent's name and its position, including the sign before it.
type Name struct {
	Name       string
	Start, End int
}

// Parse parses a line. Its error is an *Error.
func Parse(text string, team Team) (*Line, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	p := parser{text: text, team: &team, tokens: Scan(text, team), line: &Line{Text: text}}
	first := skipBlanks(text, 0)
	switch {
	case first == len(text):
		return nil, errorAt(0, len(text), "the line is empty").hint("write @agent and what it is to do, or /help")
	case text[first] == '/':
		command, err := p.command()
		if err != nil {
			return nil, err
		}
		p.line.Command = command
		return p.line, nil
	case text[first] == '#':
		return p.comment()
	}
	for {
		more, err := p.stage()
		if err != nil {
			return nil, err
		}
		if !more {
			return p.line, nil
		}
	}
}

// comment parses a comment. A comment of several lines is refused, because it is probably pasted
// text that was meant to be sent.
func (p *parser) comment() (*Line, error) {
	text := p.text[:trimmedLen(p.text)]
	first := skipBlanks(text, 0)
	if i := strings.IndexAny(text[first:], "\r\n"); i >= 0 {
		i += first
		return nil, errorAt(i, i+1, "a comment is one line").
			hint("enter what follows as a line of its own, or begin with \\# to send all of it")
	}
	p.line.Comment = true
	return p.line, nil
}

// A parser walks over the tokens of a line.
type parser struct {
	text   string
	team   *Team
	tokens []Token
	at     int // index of the next token
	line   *Line
}

// next consumes the next token if it is of one of these kinds.
func (p *parser) next(kinds ...Kind) (Token, bool) {
	if p.at < len(p.tokens) && slices.Contains(kinds, p.tokens[p.at].Kind) {
		p.at++
		return p.tokens[p.at-1], true
	}
	return Token{}, false
}

func (p *parser) of(t Token) string { return p.text[t.Start:t.End] }

// blanks skips a token that holds only blanks.
func (p *parser) blanks() {
	if p.at == len(p.tokens) {
		return
	}
	if t := p.tokens[p.at]; t.Kind == Text && skipBlanks(p.of(t), 0) == t.End-t.Start {
		p.at++
	}
}

// stage parses one stage with the arrow behind it. more reports that there was an arrow.
func (p *parser) stage() (more bool, err error) {
	p.blanks()
	if len(p.line.Stages) == MaxStages {
		t := p.tokens[p.at]
		return false, errorAt(t.Start, t.End, "a line has at most %d stages", MaxStages).
			hint("enter the rest as a line of its own; $agent refers to what an agent said last")
	}
	var s Stage
	from := len(p.text) // start of the stage
	if p.at < len(p.tokens) {
		from = skipBlanks(p.text, p.tokens[p.at].Start)
	}
	if err := p.agents(&s); err != nil {
		return false, err
	}
	if err := p.model(&s); err != nil {
		return false, err
	}
	if more, err = p.task(&s); err != nil {
		return false, err
	}
	switch {
	case len(s.Agents) == 0 && len(s.Parts) == 0: // only a & is left here; other gaps gave errors before
		return false, errorAt(from, from+1, "there is nothing to run in the background").
			hint("write the task before the &, or \\& for the character itself")
	case len(s.Agents) == 0 && p.team.Default == "":
		end := from + wordLen(p.text[from:])
		return false, errorAt(from, end, "the line names no agent, and there is no default agent").
			hint("write @%s before it, or choose a default agent with /use @%s", p.anybody(), p.anybody())
	case len(s.Agents) == 0:
		s.Agents = []Name{{p.team.Default, from, from}}
	case len(s.Parts) == 0:
		first, last := s.Agents[0].Start, s.Agents[len(s.Agents)-1].End
		e := errorAt(first, last, "%s has no task", p.text[first:last]).hint("write what is to be done behind it")
		e.Unfinished = last == trimmedLen(p.text)
		return false, e
	}
	p.line.Stages = append(p.line.Stages, s)
	return more, nil
}

// anybody returns some agent's name, for an example.
func (p *parser) anybody() string {
	if len(p.team.Agents) > 0 {
		return p.team.Agents[0]
	}
	return "agent"
}

// agents parses the agents of a stage.
func (p *parser) agents(s *Stage) error {
	for {
		t, ok := p.next(Agent)
		if !ok {
			return nil
		}
		name := strings.TrimPrefix(p.of(t), "@")
		if len(s.Agents) > 0 {
			name = p.of(t)
		}
		if err := p.checkAgent(s, t, name); err != nil {
			return err
		}
		s.Agents = append(s.Agents, Name{name, t.Start, t.End})
		comma, ok := p.next(Comma)
		if !ok {
			return nil
		}
		if p.at == len(p.tokens) || p.tokens[p.at].Kind != Agent {
			return errorAt(comma.Start, comma.End, "no agent is named behind the comma").
				hint("write the names without blanks between them: @%s,NAME", s.Agents[0].Name)
		}
	}
}

func (p *parser) checkAgent(s *Stage, t Token, name string) error {
	switch {
	case name == "" && len(s.Agents) > 0:
		return errorAt(t.Start, t.End, "no agent is named between the commas").
			hint("write the names with one comma between them")
	case name == "":
		return errorAt(t.Start, t.End, "no agent is named behind @").
			hint("write @%s, or \\@ for the character itself", p.anybody())
	case slices.ContainsFunc(s.Agents, func(n Name) bool { return n.Name == name }):
		return errorAt(t.Start, t.End, "@%s is named twice", name).hint("name each agent once")
	case !t.Known:
		return p.unknownAgent(s, t, name)
	}
	return nil
}

// unknownAgent adds to the error how to write the text without naming an agent, because a pasted
// text may begin with @.
func (p *parser) unknownAgent(s *Stage, t Token, name string) error {
	switch bare := strings.TrimLeft(name, "@"); {
	case bare != name && len(s.Agents) > 0 && p.team.reaches(bare):
		return p.unknown(t, name, "").hint("one @ is enough for all: @%s,%s", s.Agents[0].Name, bare)
	case len(s.Agents) > 0:
		return p.unknown(t, name, "")
	}
	e := p.unknown(t, name, "@")
	switch {
	case p.team.Absent[name] != "":
		return e.hint("%s", p.team.Absent[name])
	case e.Hint != "":
		return e
	case len(p.line.Stages) == 0:
		return e.hint(`to write it as text: \@%s`, short(name))
	}
	return e.hint(`to write it as text: \-> @%s`, short(name))
}

// unknown returns the error for an unknown name. Its hint is the nearest name, with the sign before
// it.
func (p *parser) unknown(t Token, name, sign string) *Error {
	e := errorAt(t.Start, t.End, "Unknown agent: '%s'. Valid agents: %s", short(name), p.team.list())
	if near := swarm.Nearest(name, p.team.everybody()); near != "" {
		e.Hint = "did you mean " + sign + near + "?"
	}
	return e
}

// model parses the flag behind the agents.
func (p *parser) model(s *Stage) error {
	if len(s.Agents) == 0 {
		return nil
	}
	p.blanks()
	flag, ok := p.next(Flag)
	if !ok {
		return nil
	}
	p.blanks()
	value, ok := p.next(Value)
	if !ok {
		return errorAt(flag.Start, flag.End, "--model names no model").
			hint("write --model NAME, or \\--model for the text itself")
	}
	if s.Model = p.of(value); s.Agents[0].Name == Notify && len(s.Agents) == 1 {
		return errorAt(flag.Start, value.End, "@%s has no model", Notify).hint("leave --model out")
	}
	return nil
}

// task parses the text of a stage, up to and including the arrow behind it, or to the end of the
// line.
func (p *parser) task(s *Stage) (more bool, err error) {
	var lit literal // text that is not in Parts yet
	distinct := 0
	p.reserve(s)
	for ; p.at < len(p.tokens); p.at++ {
		switch t := p.tokens[p.at]; t.Kind {
		case Text:
			lit.add(p.of(t))
		case Escape:
			lit.add(p.of(t)[1:])
		case Reference:
			name := p.text[t.Start+1 : t.End]
			if !t.Known {
				return false, p.unknownReference(t, name)
			}
			if !refersTo(s, name) {
				if distinct++; distinct > MaxRefs {
					const msg = "a task refers to at most %d agents, and $%s is one more"
					return false, errorAt(t.Start, t.End, msg, MaxRefs, name).
						hint("let an agent put some of the outputs together first\nto write it as text: \\$%s", name)
				}
			}
			s.addText(lit.flush())
			s.Parts = append(s.Parts, prompt.Part{Kind: prompt.KindAgent, Name: name})
			s.Refs = append(s.Refs, Name{name, t.Start, t.End})
		case Arrow:
			p.at++
			s.addText(lit.flush())
			s.trimEnd()
			return true, nil
		case Background:
			p.line.Background = true
		default:
			return false, p.misplaced(t)
		}
	}
	s.addText(lit.flush())
	s.trimEnd()
	return false, nil
}

// reserve allocates Parts and Refs once: a task has at most one text around each reference.
func (p *parser) reserve(s *Stage) {
	refs := 0
	for _, t := range p.tokens[p.at:] {
		if t.Kind == Arrow {
			break
		}
		if t.Kind == Reference {
			refs++
		}
	}
	if s.Parts = make([]prompt.Part, 0, 2*refs+1); refs > 0 {
		s.Refs = make([]Name, 0, refs)
	}
}

// A literal collects pieces of text. A single piece, which is the common case, is not copied.
type literal struct {
	one string
	all []byte // used from the second piece on
}

func (l *literal) add(piece string) {
	if l.one == "" {
		l.one = piece
		return
	}
	if len(l.all) == 0 {
		l.all = append(l.all, l.one...)
	}
	l.all = append(l.all, piece...)
}

// flush returns the text and empties the literal.
func (l *literal) flush() string {
	text := l.one
	if len(l.all) > 0 {
		text = string(l.all)
	}
	l.one, l.all = "", l.all[:0]
	return text
}

func refersTo(s *Stage, name string) bool {
	return slices.ContainsFunc(s.Refs, func(n Name) bool { return n.Name == name })
}

// addText adds a text to the task. It converts line ends to \n, and removes blanks before the first
// text.
func (s *Stage) addText(text string) {
	if len(s.Parts) == 0 {
		text = text[skipBlanks(text, 0):]
	}
	if strings.IndexByte(text, '\r') >= 0 {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	if text != "" {
		s.Parts = append(s.Parts, prompt.Part{Kind: prompt.KindText, Text: text})
	}
}

// trimEnd removes the blanks at the end of the task.
func (s *Stage) trimEnd() {
	if len(s.Parts) == 0 || s.Parts[len(s.Parts)-1].Kind != prompt.KindText {
		return
	}
	last := &s.Parts[len(s.Parts)-1]
	if last.Text = last.Text[:trimmedLen(last.Text)]; last.Text == "" {
		s.Parts = s.Parts[:len(s.Parts)-1]
	}
}

func (p *parser) unknownReference(t Token, name string) error {
	hint := `to write it as text: \$` + short(name)
	if near := swarm.Nearest(name, p.team.Agents); near != "" {
		hint = "did you mean $" + near + "?\n" + hint
	}
	const msg = "Unknown agent reference: $%s. Valid agents: %s"
	return errorAt(t.Start, t.End, msg, short(name), p.team.list()).hint("%s", hint)
}

// misplaced returns the error for a token that cannot stand in a task.
func (p *parser) misplaced(t Token) error {
	switch text := p.of(t); {
	case text[0] == '&' && len(text) > 1:
		return errorAt(t.Start, t.End, "one & is enough").
			hint(`write one & at the end of the line, or \& for the character itself`)
	case text[0] == '&' && t.Start == skipBlanks(p.text, 0):
		return errorAt(t.Start, t.End, "& stands at the beginning").
			hint(`write it at the end of the line, or \& for the character itself`)
	case text[0] == '&':
		return errorAt(t.Start, t.End, "& stands in the middle of the line").
			hint(`write it at the end of the line, or \& for the character itself`)
	case text != "->":
		return errorAt(t.Start, t.End, "--model is given twice").hint(`write it once, or \--model for the text itself`)
	case t.Start == skipBlanks(p.text, 0):
		return errorAt(t.Start, t.End, "nothing stands before ->").
			hint(`write a task before it, or \-> for the text itself`)
	case strings.HasPrefix(p.text[skipBlanks(p.text, t.End):], "->"):
		return errorAt(t.Start, skipBlanks(p.text, t.End)+2, "there is no stage between -> and ->").
			hint(`write one ->, or \-> for the text itself`)
	}
	return errorAt(t.Start, t.End, "nothing stands behind ->").
		hint(`write @agent and what it is to do, or \-> for the text itself`)
}
