package compose

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
)

// maxProblems is how many problems are told; nobody reads more.
const maxProblems = 1000

// problems collects what is wrong, each with its place.
type problems struct {
	file    string
	sets    []string // the --set options, by the negative lines of the nodes they made
	errs    []*swarm.Error
	warns   []*swarm.Error
	guesses int                   // names compared so far to guess what was meant
	lacks   map[*swarm.Error]bool // those about something that is not there
	cut     string                // said with these when the file looks cut off
	last    int                   // its last line
}

// expectEnd remembers how the file ends: one without a newline may have lost its end, and then an error far above it, about
// something that is not there, may have its cause in what is lost.
func (p *problems) expectEnd(src []byte) {
	if len(src) > 0 && !bytes.HasSuffix(src, []byte("\n")) {
		p.last = lines(src)
		p.cut = fmt.Sprintf("the file stops in line %d without a newline: is all of it there?", p.last)
	}
}

func (p *problems) at(n *yaml.Node, kind swarm.ErrorKind, format string, args []any) *swarm.Error {
	e := &swarm.Error{Kind: kind, File: p.file, Msg: fmt.Sprintf(format, args...)}
	switch {
	case n == nil:
	case n.Line < 0:
		e.File = "--set " + p.sets[-n.Line-1]
	default:
		e.Line, e.Column = n.Line, n.Column
	}
	return e
}

// fail notes an error at a node; nil is the file as a whole.
func (p *problems) fail(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.at(n, swarm.BadInput, format, args)
	p.errs = append(p.errs, e)
	return e
}

// missing notes an error about something that is not in the file.
func (p *problems) missing(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.fail(n, format, args...)
	if p.lacks == nil {
		p.lacks = map[*swarm.Error]bool{}
	}
	p.lacks[e] = true
	return e
}

// where is a node's place in words.
func (p *problems) where(n *yaml.Node) string {
	if n.Line < 0 {
		return "by --set " + p.sets[-n.Line-1]
	}
	return fmt.Sprintf("in line %d", n.Line)
}

// failWith notes an error that somebody else has found. Without a place of its own it gets the node's.
func (p *problems) failWith(n *yaml.Node, err error) {
	e := p.at(n, swarm.KindOf(err), "", nil)
	var have *swarm.Error
	switch {
	case !errors.As(err, &have):
		e.Kind, e.Msg = swarm.BadInput, err.Error()
	case have.File != "":
		e = have
	default:
		e.Msg, e.Hint, e.Err = have.Msg, have.Hint, have.Err
	}
	p.errs = append(p.errs, e)
}

// warn notes a warning.
func (p *problems) warn(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.at(n, Warning, format, args)
	p.warns = append(p.warns, e)
	return e
}

// notice notes a warning of low rank.
func (p *problems) notice(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.at(n, Notice, format, args)
	p.warns = append(p.warns, e)
	return e
}

// didYouMean guesses what was meant. A file of thousands of wrong names is told without guesses after a while: each guess
// looks at every name there is.
func (p *problems) didYouMean(name string, choices []string) string {
	const enough = 100_000
	if p.guesses += len(choices); p.guesses > enough+len(choices) {
		return ""
	}
	return swarm.DidYouMean(name, choices)
}

func (p *problems) failed() bool { return len(p.errs) > 0 }

func (p *problems) firstError() error { return p.sortedErrors()[0] }

func (p *problems) sortedErrors() []*swarm.Error {
	errs := p.sorted(p.errs)
	for _, e := range errs {
		if p.cut != "" && p.lacks[e] && e.Line != p.last && !strings.HasSuffix(e.Hint, p.cut) {
			e.Hint = strings.TrimPrefix(e.Hint+"; "+p.cut, "; ")
		}
	}
	if more := len(errs) - maxProblems; more > 0 {
		errs = append(errs[:maxProblems], p.at(nil, swarm.BadInput, "and %d more errors", []any{more}))
	}
	return errs
}

func (p *problems) sortedWarnings() []*swarm.Error {
	warns := p.sorted(p.warns)
	if more := len(warns) - maxProblems; more > 0 {
		warns = append(warns[:maxProblems], p.at(nil, Notice, "and %d more warnings", []any{more}))
	}
	return warns
}

// sorted orders by place, --set and the compose file before other files, and tells nothing twice.
func (p *problems) sorted(list []*swarm.Error) []*swarm.Error {
	rank := func(e *swarm.Error) int {
		switch {
		case strings.HasPrefix(e.File, "--set "):
			return 0
		case e.File == p.file:
			return 1
		}
		return 2
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *swarm.Error) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	type told struct {
		file         string
		line, column int
		msg          string
	}
	seen := make(map[told]bool, len(list))
	return slices.DeleteFunc(list, func(e *swarm.Error) bool {
		t := told{e.File, e.Line, e.Column, e.Error()}
		before := seen[t]
		seen[t] = true
		return before
	})
}
