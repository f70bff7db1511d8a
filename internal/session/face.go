package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"swarm/internal/line"
	"swarm/internal/repl"
	"swarm/internal/view"
)

// A Face is a session as a screen sees it.
type Face struct {
	*Session
	ctx context.Context
	// Trouble gets the errors of actions that have no caller to return them to.
	Trouble func(error)

	mu         sync.Mutex
	foreground []string // the tasks that the user waits for
}

// Face returns the session for a screen, until ctx ends.
func (s *Session) Face(ctx context.Context) *Face {
	return &Face{Session: s, ctx: ctx, Trouble: func(error) {}}
}

// Team returns the agents that a person can speak to.
func (f *Face) Team() repl.Team {
	t := f.Lang()
	return repl.Team{Agents: t.Agents, Default: t.Default}
}

// tokenKinds maps the tokens of the line language to those of a screen.
var tokenKinds = map[line.Kind]repl.TokenKind{
	line.Agent: repl.AgentToken, line.Reference: repl.ReferenceToken, line.CommandWord: repl.CommandToken, line.Arrow: repl.ArrowToken,
	line.Background: repl.BackgroundToken, line.Flag: repl.FlagToken, line.Escape: repl.EscapeToken, line.Comment: repl.CommentToken, line.Wrong: repl.WrongToken,
}

func tokenOf(t line.Token) (repl.Token, bool) {
	kind := tokenKinds[t.Kind]
	if named := t.Kind == line.Agent || t.Kind == line.Reference || t.Kind == line.CommandWord; named && !t.Known {
		kind = repl.WrongToken
	}
	return repl.Token{Kind: kind, Start: t.Start, End: t.End}, kind != 0
}

// Preview returns what Enter would do with a text. It changes nothing.
func (f *Face) Preview(text string) repl.Preview {
	var p repl.Preview
	lang := f.Lang()
	for _, t := range line.Scan(text, lang) {
		if shown, ok := tokenOf(t); ok {
			p.Tokens = append(p.Tokens, shown)
		}
	}
	l, err := line.Parse(text, lang)
	if e, ok := errors.AsType[*line.Error](err); ok && e.Unfinished { // a person is typing it
		p.Plan = e.Hint
		return p
	}
	if err != nil {
		p.Problem = refused(err)
		return p
	}
	switch {
	case l.Command != nil:
		p.AtOnce = l.Command.Name != "retry"
		return p
	case l.Comment:
		p.Plan = `a comment: \# in its place sends it`
		return p
	}
	fragment, err := f.fragment(l)
	if err != nil {
		p.Problem = refused(err)
		return p
	}
	p.Plan = describe(fragment, l.Background)
	return p
}

// refused returns an error with its position, if it has one.
func refused(err error) *repl.Refused {
	if e, ok := errors.AsType[*line.Error](err); ok {
		return &repl.Refused{Msg: e.Msg, Hint: e.Hint, Start: e.Start, End: e.End}
	}
	return &repl.Refused{Msg: err.Error()}
}

// describe returns a plan in one line: @pm → @builder-1 (waits for @pm).
func describe(f *line.Fragment, background bool) string {
	var words []string
	for _, t := range f.Plan.Tasks {
		var waits []string
		for _, d := range t.DependsOn {
			agent, _, _ := strings.Cut(d.Task, "_")
			waits = append(waits, "@"+agent)
		}
		for _, a := range t.Awaits {
			waits = append(waits, "@"+a+" (no output yet)")
		}
		word := "@" + t.Agent
		if len(waits) > 0 {
			word += " after " + strings.Join(waits, ", ")
		}
		words = append(words, word)
	}
	plan := strings.Join(words, " · ")
	if background {
		plan += ", in the background"
	}
	return plan
}

// Complete returns the completions of the word at the cursor.
func (f *Face) Complete(text string, cursor int) []repl.Candidate {
	var all []repl.Candidate
	for _, c := range line.Complete(text, cursor, f.Lang(), line.CommandNames()) {
		all = append(all, repl.Candidate{Text: c.Text, Start: c.Start, End: c.End})
	}
	return append(all, f.questions(text, cursor)...)
}

// questions returns the ids that can complete /approve and /deny.
func (f *Face) questions(text string, cursor int) (all []repl.Candidate) {
	word, rest, more := strings.Cut(text[:max(0, min(cursor, len(text)))], " ")
	if !more || word != "/approve" && word != "/deny" {
		return nil
	}
	p, err := f.Picture()
	if err != nil {
		return nil
	}
	begun := strings.TrimLeft(rest, " ")
	for _, q := range p.Approvals {
		if strings.HasPrefix(q.ID, begun) && begun != "@" {
			all = append(all, repl.Candidate{Text: q.ID, Start: cursor - len(begun), End: cursor, Note: view.DescribeApproval(q.Approval)})
		}
	}
	return all
}

// Enter takes a line or a command.
func (f *Face) Enter(text string) (repl.Entered, error) {
	e, err := f.Session.Enter(f.ctx, text)
	if err != nil {
		if _, ok := errors.AsType[*line.Error](err); ok {
			return repl.Entered{}, refused(err)
		}
		return repl.Entered{}, err
	}
	if !e.Background && len(e.Tasks) > 0 {
		f.mu.Lock()
		f.foreground = e.Tasks
		f.mu.Unlock()
	}
	return e, nil
}

// Interrupt cancels the line in the foreground, and nothing else.
func (f *Face) Interrupt(int) {
	f.mu.Lock()
	tasks := f.foreground
	f.mu.Unlock()
	if err := f.Cancel(f.ctx, tasks...); err != nil {
		f.Trouble(fmt.Errorf("the line could not be cancelled: %w", err))
	}
}
