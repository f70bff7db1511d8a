// Package repl is the face of a session in a terminal: lines are typed in, and what the agents do with them is seen. A [Screen] is
// split: what was typed and said above, where every agent stands below it, and the line that is being typed at the end, with
// what it would do. Where there is no room or no terminal for that, [Plain] says and asks the same in lines.
//
// A face knows nothing of runs and of what a line means. It asks a [Session], and is fed with the run's events and with what its
// agents say while they say it, as every screen is. Where agents stand is the fold of these events and nothing else.
//
// What agents write, and what is pasted, is text of strangers: no control code of it reaches the terminal.
package repl

import (
	"errors"
	"io"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/view"
)

// A Session is what lines are entered into. A face calls it without holding a lock, so it may feed the face at any time.
type Session interface {
	// Team is who can be spoken to.
	Team() Team
	// Preview says what Enter would make of a text while it is typed. It is asked with every key.
	Preview(text string) Preview
	// Complete says what the word at the cursor, a place in bytes, could become.
	Complete(text string, cursor int) []Candidate
	// Enter takes a line or a command, and does not wait for what it starts. A text that cannot be used is a *Refused.
	Enter(text string) (Entered, error)
	// Interrupt cancels the line in the foreground; it is called again, with 2, 3, …, when the user asks again while it runs.
	Interrupt(times int)
}

// A Team is who can be spoken to.
type Team struct {
	Agents  []string // in the file's order
	Default string   // who gets a text that names nobody
}

// A Preview is what Enter would make of a text.
type Preview struct {
	Tokens  []Token  // what the text consists of, in order; what is between them is plain text
	Plan    string   // what would be done, in one line of words
	Problem *Refused // why it would be refused, or nil
	AtOnce  bool     // it need not wait for the line in the foreground: a command that looks or cancels
}

// A Token is a piece of a text that means something.
type Token struct {
	Kind       TokenKind
	Start, End int // bytes of the text
}

// A TokenKind says what a piece of a text means.
type TokenKind int

// What a piece of a text can mean.
const (
	AgentToken      TokenKind = iota + 1 // @pm, of an agent that there is
	ReferenceToken                       // $pm, of an agent that there is
	WrongToken                           // a name that nobody bears, and whatever else is wrong
	ArrowToken                           // ->
	BackgroundToken                      // &
	CommandToken                         // /status
	FlagToken                            // --model
	EscapeToken                          // \$
	CommentToken                         // # and the rest of the line
)

// A Candidate is what a piece of a text could become.
type Candidate struct {
	Text       string // what stands there then
	Start, End int    // the piece that it takes the place of, in bytes
	Note       string // a word about it
}

// Entered is what became of a text.
type Entered struct {
	Tasks      []string // that it made
	Background bool     // nobody waits for them
	Notices    []string // what the user should know about them
	Answer     string   // what a command says
	Quit       bool     // the session is to be left
}

// Refused says why a text cannot be used, and where.
type Refused struct {
	Msg        string
	Hint       string
	Start, End int // bytes of the text; End <= Start is a place between two
}

func (r *Refused) Error() string { return r.Msg }

// refused is any error of Enter in this form; only a Refused has a place.
func refused(err error) (r *Refused, placed bool) {
	if errors.As(err, &r) {
		return r, true
	}
	return &Refused{Msg: err.Error(), Hint: swarm.HintOf(err)}, false
}

// Left says why a face was left.
type Left string

// Why a face is left.
const (
	ByCommand   Left = "command"      // /quit
	ByEnd       Left = "end of input" // Ctrl-D, or there is nothing more to read
	ByInterrupt Left = "interrupt"    // Ctrl-C, and again
	ByRefusal   Left = "refusal"      // a line was refused, and Options.StopOnError
	ByFailure   Left = "failure"      // a line failed, and Options.StopOnError
	ByClose     Left = "close"        // Close was called
)

const (
	leastColumns = 80       // what a split screen needs
	leastRows    = 12       //
	maxEntry     = 1 << 20  // a longer text is not even looked at
	maxPreview   = 64 << 10 // and one longer than this not with every key
)

// A Face is a session in a terminal.
type Face interface {
	term.Screen
	// Run reads what is typed until the user leaves, and says how. The face can be fed before, meanwhile and after.
	Run() (Left, error)
	// Interrupt is what Ctrl-C is where it comes as a signal and not as a key.
	Interrupt()
	// Notice says something to the user that no event tells.
	Notice(text string)
}

// Options are what a face needs to know.
type Options struct {
	term.Terminal
	Greeting string            // what stands at the beginning
	History  []string          // what was entered in earlier sessions, the oldest first
	Remember func(text string) // keeps what is entered for later sessions; nil = nobody does
	// Recall is, of an event that was there before the session was resumed, the line that was typed or what an agent said; nil = it
	// was not.
	Recall func(e *swarm.Event) (typed, said string)

	Prompt      bool // Plain: somebody types; show him when he can
	Echo        bool // Plain: show each line that is read: nobody has seen it
	Numbered    bool // Plain: what is refused is named by the number of its line
	StopOnError bool // Plain: leave after a line that is refused or fails

	Err     io.Writer                                 // Plain: where it is said why a line was refused; nil = Out
	Outcome func(number int, done Entered, err error) // Plain: is told what became of a line, which is not printed then; nil = nobody
}

// Fits says whether a terminal is large enough for a Screen.
func Fits(width, height int) bool { return width >= leastColumns && height >= leastRows }

// New is the face that suits a terminal of this size; 0 columns are none. The fold belongs to the face from then on.
func New(s Session, run *view.Run, width, height int, o Options) Face {
	if Fits(width, height) {
		return NewScreen(s, run, o)
	}
	return NewPlain(s, run, o)
}
