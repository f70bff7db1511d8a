package line

import (
	"slices"
	"strings"

	"swarm"
)

// A Command is a line that begins with /. It addresses the session, not an agent.
type Command struct {
	Name  string   // without the /
	Args  []string // as typed
	Agent string   // the agent among the arguments, without the @
}

// A CommandSpec is the syntax and the help text of a command.
type CommandSpec struct {
	Name  string
	Usage string // its arguments; brackets mark optional ones
	Doc   string
}

// Commands is the table of all commands.
var Commands = []CommandSpec{
	{"help", "[TOPIC]", "how lines are written"},
	{"status", "", "who does what, and who waits for whom"},
	{"tasks", "", "the tasks of this session"},
	{"task", "ID", "one task: its prompt, its output, how it ended"},
	{"cancel", "ID|@AGENT|all", "cancel a task, what an agent has to do, or everything"},
	{"history", "[@AGENT]", "the lines of this session"},
	{"use", "@AGENT", "who gets text that names nobody"},
	{"model", "[@AGENT] [MODEL]", "which model is used, or which one an agent uses from now on: its name, or a tier"},
	{"reset", "@AGENT", "start a new session for an agent: it forgets earlier lines"},
	{"why", "@AGENT", "why an agent waits, or failed"},
	{"out", "@AGENT", "what an agent said last"},
	{"approve", "[QUESTION|@AGENT]", "let an agent do what it asks for; alone: what is asked"},
	{"deny", "[QUESTION|@AGENT]", "refuse what an agent asks for"},
	{"retry", "ID", "try a task again"},
	{"open", "", "show this session in your browser"},
	{"save", "FILE", "write this session as a file that swarm up runs"},
	{"quit", "", "leave the session; swarm repl --resume continues it"},
}

// CommandNames returns the names of all commands.
func CommandNames() []string {
	names := make([]string, len(Commands))
	for i, c := range Commands {
		names[i] = c.Name
	}
	return names
}

func findCommand(name string) *CommandSpec {
	i := slices.IndexFunc(Commands, func(c CommandSpec) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &Commands[i]
}

// String returns the usage line of the command.
func (c CommandSpec) String() string { return strings.TrimSpace("/" + c.Name + " " + c.Usage) }

// command scans a command.
func (s *scanner) command(i int) {
	end := i + wordLen(s.text[i:])
	i = s.add(CommandWord, i, end, findCommand(s.text[i+1:end]) != nil)
	for i = skipBlanks(s.text, i); i < s.end; i = skipBlanks(s.text, end) {
		end = i + wordLen(s.text[i:])
		if s.text[i] == '@' {
			s.add(Agent, i, end, s.team.reaches(s.text[i+1:end]))
		} else {
			s.add(Argument, i, end, false)
		}
	}
}

// command parses the tokens of a command.
func (p *parser) command() (*Command, error) {
	p.blanks()
	word, _ := p.next(CommandWord)
	spec := findCommand(p.of(word)[1:])
	if spec == nil {
		return nil, p.unknownCommand(word)
	}
	if i := strings.IndexAny(p.text[:trimmedLen(p.text)][word.End:], "\r\n"); i >= 0 {
		return nil, errorAt(word.End+i, word.End+i+1, "a command is one line").
			hint("enter what follows as a line of its own")
	}
	var args []Token
	for p.blanks(); p.at < len(p.tokens); p.blanks() {
		args = append(args, p.tokens[p.at])
		p.at++
	}
	c := &Command{Name: spec.Name}
	if len(args) > 0 && (spec.Name == "save" || spec.Name == "help") { // the rest of the line is one argument
		c.Args = []string{p.text[args[0].Start:args[len(args)-1].End]}
		return c, nil
	}
	for _, t := range args {
		c.Args = append(c.Args, p.of(t))
	}
	return c, p.arguments(spec, c, word, args)
}

func (p *parser) unknownCommand(word Token) error {
	name := p.of(word)[1:]
	e := errorAt(word.Start, word.End, "Unknown command: /%s", short(name))
	text := "to write it as text: \\/" + short(name)
	names := make([]string, len(Commands))
	for i, c := range Commands {
		names[i] = "/" + c.Name
	}
	switch near := swarm.Nearest(name, CommandNames()); {
	case name == "":
		e.Msg = "no command is named behind /"
		return e.hint("choose one of %s", strings.Join(names, ", "))
	case near != "":
		return e.hint("did you mean /%s?\n%s", near, text)
	case strings.Contains(name, "/"): // a path
		return e.hint("%s", text)
	}
	return e.hint("choose one of %s\n%s", strings.Join(names, ", "), text)
}

// arguments checks the arguments of a command, and finds the agent among them.
func (p *parser) arguments(spec *CommandSpec, c *Command, word Token, args []Token) error {
	wanted := strings.Fields(spec.Usage)
	if len(args) > len(wanted) {
		first := args[len(wanted)]
		return errorAt(first.Start, args[len(args)-1].End, "/%s takes %s", spec.Name, count(len(wanted))).
			hint("write %s", spec)
	}
	if len(args) == 0 && len(wanted) > 0 && !strings.HasPrefix(wanted[0], "[") {
		return errorAt(word.Start, word.End, "/%s needs an argument", spec.Name).hint("write %s", spec)
	}
	for i, t := range args {
		arg := p.of(t)
		switch want := strings.Trim(wanted[i], "[]"); {
		case t.Kind == Agent && !strings.Contains(want, "@"):
			return errorAt(t.Start, t.End, "/%s does not take an agent here", spec.Name).hint("write %s", spec)
		case t.Kind == Agent && !t.Known,
			want == "@AGENT" && t.Kind != Agent && !p.team.reaches(arg) && spec.Name != "model":
			return p.unknown(t, strings.TrimPrefix(arg, "@"), "@")
		case t.Kind == Agent, want == "@AGENT" && p.team.reaches(arg):
			c.Agent = strings.TrimPrefix(arg, "@")
		case spec.Name == "model" && i == 0 && len(args) > 1:
			return errorAt(t.Start, t.End, "/model takes the agent first").hint("write %s", spec)
		case strings.HasPrefix(want, "ID") && p.team.reaches(arg):
			return errorAt(t.Start, t.End, "%s is an agent, not a task", arg).
				hint("write a task such as %s_1; /tasks lists them", arg)
		}
	}
	return nil
}

func count(n int) string {
	switch n {
	case 0:
		return "no argument"
	case 1:
		return "one argument"
	}
	return "two arguments"
}
