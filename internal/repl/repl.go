// Package repl is the face of a session in a terminal: the user types lines and sees what the
// agents do with them. A [Screen] is split: the transcript above, the state of every agent below
// it, and the line being typed at the end, with what it would do. Where a terminal has no room for
// that, or there is none, [Plain] does the same line by line.
//
// A face knows nothing of runs or of what a line means. It asks a [Session], and is fed with the
// run's events and the deltas of its turns, as every screen is. The state of agents is the fold of
// these events and nothing else.
//
// Text of agents and pasted text are untrusted: none of their control codes reaches the terminal.
package repl

import (
	"errors"
	"io"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A Session takes lines. A face calls it without holding a lock, so it may feed the face at any
// time.
type Session interface {
	// Team returns the agents that can be addressed.
	Team() Team
	// Preview says what Enter would do with a text. A face calls it with every key.
	Preview(text string) Preview
	// Complete returns what the word at the cursor could become. cursor counts bytes.
	Complete(text string, cursor int) []Candidate
	// Enter takes a line or a command, and does not wait for what it starts. A text that cannot be
	// used is a *Refused.
	Enter(text string) (Entered, error)
	// Interrupt cancels the line in the foreground. It is called again, with 2, 3, …, when the user
	// repeats the request while the line runs.
	Interrupt(times int)
}

// A Team is the agents that can be addressed.
type Team struct {
	Agents  []string // in the file's order
	Default string   // gets a text that names no agent
}

// A Preview is what Enter would do with a text.
type Preview struct {
	Tokens  []Token  // in order; the text between them is plain
	Plan    string   // what would be done, in one line
	Problem *Refused // why it would be refused, or nil
	AtOnce  bool     // need not wait for the line in the foreground: a command that looks or cancels
}

// A Token is a piece of a text with a meaning.
type Token struct {
	Kind       TokenKind
	Start, End int // bytes of the text
}

// A TokenKind is the meaning of a piece of a text.
type TokenKind int

// The meanings of a piece of a text.
const (
	AgentToken      TokenKind = iota + 1 // @pm, of an agent that exists
	ReferenceToken                       // $pm, of an agent that exists
	WrongToken                           // an unknown name, or anything else that is wrong
	ArrowToken                           // ->
	BackgroundToken                      // &
	CommandToken                         // /status
	FlagToken                            // --model
	EscapeToken                          // \$
	CommentToken                         // # and the rest of the line
)

// A Candidate is what a piece of a text could become.
type Candidate struct {
	Text       string // the replacement
	Start, End int    // the piece that it replaces, in bytes
	Note       string // a word about it
}

// Entered is what became of a text.
type Entered struct {
	Tasks      []string // that it made
	Background bool     // the next line does not wait for them
	Notices    []string // for the user, about them
	Answer     string   // the output of a command
	Quit       bool     // the session is to be left
}

// Refused says why a text cannot be used, and where.
type Refused struct {
	Msg        string
	Hint       string
	Start, End int // bytes of the text; End <= Start is a place between two
}

func (r *Refused) Error() string { return r.Msg }

// refused converts any error of Enter. Only a Refused has a place.
func refused(err error) (r *Refused, placed bool) {
	if errors.As(err, &r) {
		return r, true
	}
	return &Refused{Msg: err.Error(), Hint: swarm.HintOf(err)}, false
}

// Left is the reason why a face was left.
type Left string

// The reasons for leaving.
const (
	ByCommand   Left = "command"      // /quit
	ByEnd       Left = "end of input" // Ctrl-D, or the input has ended
	ByInterrupt Left = "interrupt"    // Ctrl-C, twice
	ByRefusal   Left = "refusal"      // a line was refused, and Options.StopOnError
	ByFailure   Left = "failure"      // a line failed, and Options.StopOnError
	ByClose     Left = "close"        // Close was called
)

const (
	minColumns = 60 // a split screen needs these
	minRows    = 12
	maxEntry   = 1 << 20  // a longer text is refused unseen
	maxPreview = 64 << 10 // a longer text is not previewed with every key
)

// A Face is a session in a terminal.
type Face interface {
	term.Screen
	// Run reads what is typed until the user leaves, and returns why. The face can be fed before,
	// during and after.
	Run() (Left, error)
	// Interrupt is Ctrl-C where it comes as a signal and not as a key.
	Interrupt()
	// Notice shows the user something that no event reports.
	Notice(text string)
}

// Options configure a face.
type Options struct {
	term.Terminal
	Greeting string            // stands at the beginning
	History  []string          // texts of earlier sessions, the oldest first
	Remember func(text string) // keeps a text for later sessions; may be nil
	// Recall returns, for an event from before the session was resumed, the line that was typed or
	// the text of an agent. It may be nil.
	Recall func(e *swarm.Event) (typed, said string)

	Prompt      bool // Plain: a person types; show when they can
	Echo        bool // Plain: show each line that is read, because no terminal has
	Numbered    bool // Plain: name a refused line by its number
	StopOnError bool // Plain: leave after a line that is refused or fails

	Err io.Writer // Plain: for the reasons of refusals; nil = Out
	// Outcome, for Plain, gets what became of each line, which is not printed then. It may be nil.
	Outcome func(number int, done Entered, err error)
}

// Fits says whether a terminal is large enough for a Screen.
func Fits(width, height int) bool { return width >= minColumns && height >= minRows }

// New makes the face that suits a terminal of this size; 0 columns mean no terminal. The face owns
// the fold from then on.
func New(s Session, run *view.Run, width, height int, o Options) Face {
	if Fits(width, height) && !o.dumb() {
		return NewScreen(s, run, o)
	}
	return NewPlain(s, run, o)
}
