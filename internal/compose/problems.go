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
	"swarm/internal/yamlfile"
)

// maxProblems is the number of problems that are shown.
const maxProblems = 1000

// problems collects errors and warnings, each with its place.
type problems struct {
	file        string
	sets        []string // the --set options; a node with line -1 comes from the first
	errs        []*swarm.Error
	warns       []*swarm.Error
	guesses     int                   // names compared so far to guess what was meant
	missingErrs map[*swarm.Error]bool // errors about something that is not in the file
	last        int                   // the file's last line
	whole       bool                  // the file ends with a newline
}

// expectEnd remembers how the file ends. A file that was cut has errors far above its end, about
// things that are missing.
func (p *problems) expectEnd(src []byte) {
	p.last = yamlfile.Lines(src)
	p.whole = bytes.HasSuffix(src, []byte("\n"))
}

// mayBeCut adds to an error about a missing thing where the file ends. Without a final newline the
// file was probably cut. With one, only a name that resembles no other may have been lost.
func (p *problems) mayBeCut(e *swarm.Error) {
	strange := strings.HasPrefix(e.Hint, "choose one of")
	if !p.missingErrs[e] || p.whole && !strange || e.Line == p.last && e.File == p.file || p.isSet(e) {
		return
	}
	end := fmt.Sprintf("%s ends in line %d", p.file, p.last)
	if !p.whole {
		end += " without a newline"
	}
	if end += ": is all of it there?"; !strings.HasSuffix(e.Hint, end) {
		e.Hint = strings.TrimPrefix(e.Hint+"; "+end, "; ")
	}
}

// isSet says whether an error is about a --set.
func (p *problems) isSet(e *swarm.Error) bool { return strings.HasPrefix(e.File, "--set ") }

// setName returns the --set of a node, which stands for a file's name.
func (p *problems) setName(n *yaml.Node) string { return "--set " + clip(p.sets[-n.Line-1]) }

// at makes an error at a node.
func (p *problems) at(n *yaml.Node, kind swarm.ErrorKind, format string, args []any) *swarm.Error {
	e := &swarm.Error{Kind: kind, File: p.file, Msg: fmt.Sprintf(format, args...)}
	switch {
	case n == nil:
	case n.Line < 0:
		e.File = p.setName(n)
	default:
		e.Line, e.Column = n.Line, n.Column
	}
	return e
}

// fail notes an error at a node; nil means the whole file.
func (p *problems) fail(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.at(n, swarm.BadInput, format, args)
	p.errs = append(p.errs, e)
	return e
}

// missing notes an error about something that is not in the file.
func (p *problems) missing(n *yaml.Node, format string, args ...any) *swarm.Error {
	e := p.fail(n, format, args...)
	if p.missingErrs == nil {
		p.missingErrs = map[*swarm.Error]bool{}
	}
	p.missingErrs[e] = true
	return e
}

// where describes a node's place.
func (p *problems) where(n *yaml.Node) string {
	if n.Line < 0 {
		return "by " + p.setName(n)
	}
	return fmt.Sprintf("in line %d", n.Line)
}

// failWith notes an error from elsewhere. If it has no place, it gets the node's.
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

// didYouMean guesses what was meant. After many guesses it stops: each one compares all names, and
// a file may have thousands of wrong ones.
func (p *problems) didYouMean(name string, choices []string) string {
	const enough = 100_000
	if p.guesses += len(choices); p.guesses > enough+len(choices) {
		return ""
	}
	return swarm.DidYouMean(name, choices)
}

func (p *problems) failed() bool { return len(p.errs) > 0 }

// enough says that there are more errors than are shown, so the rest of the file need not be read.
func (p *problems) enough() bool { return len(p.errs) > maxProblems }

func (p *problems) firstError() error { return p.sortedErrors()[0] }

// sortedErrors returns the errors in order of place, with hints about a file that may be cut.
func (p *problems) sortedErrors() []*swarm.Error {
	errs := p.sorted(p.errs)
	for _, e := range errs {
		p.mayBeCut(e)
	}
	if len(errs) > maxProblems {
		errs = append(errs[:maxProblems], p.at(nil, swarm.BadInput, "and more errors", nil))
	}
	return errs
}

// sortedWarnings returns the warnings in order of place.
func (p *problems) sortedWarnings() []*swarm.Error {
	warns := p.sorted(p.warns)
	if more := len(warns) - maxProblems; more > 0 {
		warns = append(warns[:maxProblems], p.at(nil, Notice, "and %d more warnings", []any{more}))
	}
	return warns
}

// sorted orders errors by place, --set and the compose file before other files, and removes
// duplicates.
func (p *problems) sorted(list []*swarm.Error) []*swarm.Error {
	rank := func(e *swarm.Error) int {
		switch {
		case p.isSet(e):
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
