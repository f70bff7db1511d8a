package prompt

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
)

// A Source is the text of a prompt and the place where it is written.
type Source struct {
	File         string
	Text         []byte // Parse keeps it, so the caller must not change it afterwards
	Line, Column int    // where the text begins in File; 0 = 1
}

// An Include reads the file that a prompt includes. rel is the name as it is written in from, with
// `.md` added if it has no extension. Include returns the path under which the file is known. It is
// responsible for keeping includes inside the prompt folders. Parse keeps the text.
type Include func(from, rel string) (path string, text []byte, err error)

const (
	maxDepth    = 10   // includes inside each other
	maxWarnings = 100  // warnings of one prompt
	maxErrors   = 20   // errors of one prompt
	maxGuess    = 4096 // parts for which room is made before they are seen
)

// Parse reads a prompt and its includes. It warns of everything in double braces that is no
// directive, and leaves it as it is. If directives are wrong, the error has all of them, see [Errors],
// and the template has the rest.
func Parse(src Source, inc Include) (Template, []*swarm.Error, error) {
	text := strings.TrimPrefix(clean(view(src.Text)), byteOrderMark)
	p := parser{include: inc, files: []string{src.File}, read: len(text)}
	if p.read > MaxPrompt {
		return Template{}, nil, &swarm.Error{Kind: swarm.BadInput, File: src.File, Msg: tooLarge}
	}
	p.parse(text, place{src.File, max(src.Line, 1), max(src.Column, 1)})
	if len(p.errs) == 1 {
		return Template{p.parts}, p.warnings, p.errs[0]
	}
	return Template{p.parts}, p.warnings, errors.Join(p.errs...)
}

// Errors returns the errors of [Parse], each with its place.
func Errors(err error) (all []*swarm.Error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok { // Parse joins them
		for _, one := range many.Unwrap() {
			all = append(all, Errors(one)...)
		}
		return all
	}
	if e, ok := errors.AsType[*swarm.Error](err); ok {
		all = append(all, e)
	}
	return all
}

const (
	byteOrderMark = "\uFEFF"
	tooLarge      = "the prompt is larger than 4 MB"
)

type parser struct {
	include  Include
	parts    []Part
	warnings []*swarm.Error
	errs     []error  // one for each directive that is wrong
	files    []string // the files that are being read, each included by the one before it
	read     int      // bytes of all texts so far; bounds nested includes
}

// A place is a position in a file.
type place struct {
	file         string
	line, column int
}

// after returns the place after a text that begins here.
func (at place) after(text string) place {
	if n := strings.Count(text, "\n"); n > 0 {
		at.line += n
		at.column = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	at.column += utf8.RuneCountInString(text)
	return at
}

func (at place) errorf(format string, args ...any) *swarm.Error {
	e := swarm.Errorf(swarm.BadInput, format, args...)
	e.File, e.Line, e.Column = at.file, at.line, at.column
	return e
}

// in adds the place to an error that has none.
func (at place) in(err error, what string) *swarm.Error {
	e := at.errorf("%s", what)
	var known *swarm.Error
	if !errors.As(err, &known) {
		e.Err = err
		return e
	}
	e.Kind, e.Hint, e.Err = known.Kind, known.Hint, known.Err
	e.Msg += ": " + known.Msg
	return e
}

// parse splits one text into parts, from one pair of braces to the next. The parts share the bytes
// of the text.
func (p *parser) parse(text string, at place) {
	file, placed := at.file, 0 // at is the place of text[placed]
	taken, next := 0, 0        // text[:taken] is in parts; the search continues at next
	for {
		open := strings.Index(text[next:], "{{")
		if open < 0 {
			p.text(file, text[taken:])
			return
		}
		open += next
		if open > taken && text[open-1] == '\\' {
			p.text(file, text[taken:open-1])
			taken, next = open, open+2
			continue
		}
		for strings.HasPrefix(text[open+1:], "{{") {
			open++ // {{{output:x}}} is a reference in braces
		}
		inside, closed := between(text[open+2:])
		next = open + 2
		at, placed = at.after(text[placed:open]), open
		if !closed {
			p.unclosed(inside, at)
			continue
		}
		part, known, err := directive(inside, at)
		if err != nil {
			p.errs = append(p.errs, err)
		}
		if len(p.errs) > maxErrors {
			return
		}
		if err != nil {
			p.text(file, text[taken:open])
			taken = open + 2 + len(inside) + 2
			next = taken
			continue
		}
		if !known {
			p.unknown(inside, at)
			continue
		}
		if n := len(p.parts); n > 8 && n+2 > cap(p.parts) {
			p.parts = slices.Grow(p.parts, min(n*(len(text)-open)/open, maxGuess)*9/8+8) // room for as many parts as there are if the rest is like the beginning
		}
		p.text(file, text[taken:open])
		taken = open + 2 + len(inside) + 2
		next = taken
		if part.Kind != kindInclude {
			p.parts = append(p.parts, part)
		} else if err := p.file(part.Name, at); err != nil {
			p.errs = append(p.errs, err)
		}
	}
}

// kindInclude is a part that Parse replaces by the file that it names.
const kindInclude = "include"

func (p *parser) text(file, text string) {
	if text != "" {
		p.parts = append(p.parts, Part{Kind: KindText, Text: text, File: file})
	}
}

// between returns the text between the opening braces and the closing ones. The closing braces must
// be in the same line, and before the next opening ones. If there are none, inside is the text that
// stands there instead.
func between(text string) (inside string, closed bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '}' && strings.HasPrefix(text[i+1:], "}"):
			return text[:i], true
		case c == '\n', c == '{' && strings.HasPrefix(text[i+1:], "{"):
			return text[:i], false
		}
	}
	return text, false
}

// directive reads the text between double braces. known is false if it is no directive of ours.
func directive(inside string, at place) (part Part, known bool, err error) {
	if inside == "STDIN" {
		return Part{Kind: KindStdin, File: at.file, Line: at.line, Column: at.column}, true, nil
	}
	kind, rest, _ := strings.Cut(inside, ":")
	switch {
	case len(kind) == len(inside):
		return Part{}, false, nil
	case kind == kindInclude:
		name := strings.TrimSpace(rest)
		if name == "" {
			return Part{}, false, at.errorf("{{%s}} names no file", inside).WithHint("write {{include: path}}")
		}
		return Part{Kind: kindInclude, Name: name}, true, nil
	case kind != KindOutput && kind != KindInput:
		return Part{}, false, nil
	}
	name, selector, selects := strings.Cut(rest, ":")
	name, selector = strings.TrimSpace(name), strings.TrimSpace(selector)
	if err := checkRef(name); err != nil {
		return Part{}, false, at.in(err, short(inside))
	}
	if selects {
		if _, err := parseSelector(selector); err != nil {
			e := at.in(err, short(inside))
			e.Kind = swarm.BadInput
			return Part{}, false, e
		}
	}
	return Part{Kind: kind, Name: name, Selector: selector, File: at.file, Line: at.line, Column: at.column}, true, nil
}

// checkRef checks the name in a reference: a task, or a copy of one.
func checkRef(name string) error {
	if base, copied, ok := strings.Cut(name, "."); ok {
		if n, good := number(copied); good && n > 0 && copied[0] != '0' {
			name = base
		}
	}
	return swarm.CheckTaskName(name)
}

// file reads an included file. The newlines at its end are dropped, because the line that includes
// it has one.
func (p *parser) file(name string, at place) error {
	if path.Ext(name) == "" {
		name += ".md"
	}
	if p.include == nil {
		return at.errorf("%s cannot be included: this prompt is in no folder", name)
	}
	file, raw, err := p.include(at.file, name)
	if errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*swarm.Error)) {
		return at.errorf("the file %s, which is included here, is not there", cut(name)).WithHint("paths are relative to the file that includes")
	}
	if err != nil {
		return at.in(err, cut(name)+" cannot be included")
	}
	if i := slices.Index(p.files, file); i >= 0 {
		return at.errorf("the file includes itself: %s", strings.Join(append(slices.Clone(p.files[i:]), file), " → "))
	}
	if len(p.files) > maxDepth {
		return at.errorf("includes go deeper than %d files: %s", maxDepth, strings.Join(append(slices.Clone(p.files), file), " → "))
	}
	text := strings.TrimPrefix(clean(view(raw)), byteOrderMark)
	if p.read += len(text); p.read > MaxPrompt {
		return at.errorf("%s with %s", tooLarge, cut(name)).WithHint("include less")
	}
	p.files = append(p.files, file)
	p.parse(strings.TrimRight(text, newlines), place{file, 1, 1})
	p.files = p.files[:len(p.files)-1]
	return nil
}

// unknown warns of text between double braces that is no directive.
func (p *parser) unknown(inside string, at place) {
	hint := `directives are {{include: path}}, {{output:task}}, {{input:name}} and {{STDIN}}; \{{ is written for braces that mean nothing`
	if meant := nearest(inside); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	p.warn(at.errorf("%s is no directive and stays as it is", short(inside)), hint)
}

// unclosed warns of opening braces that look like a directive and have no end. Other lone braces
// are ordinary text.
func (p *parser) unclosed(inside string, at place) {
	if meant := nearest(strings.TrimRight(inside, "} \t\r")); meant != "" && strings.Contains(inside, ":") {
		p.warn(at.errorf("{{%s has no }} in its line and stays as it is", cut(inside)), "did you mean "+meant+"?")
	}
}

func (p *parser) warn(w *swarm.Error, hint string) {
	switch n := len(p.warnings); {
	case n < maxWarnings:
		w.Hint = hint
		p.warnings = append(p.warnings, w)
	case n == maxWarnings:
		w.Msg = "from here on nothing more is said about unknown directives"
		p.warnings = append(p.warnings, w)
	}
}

// nearest returns the directive that was probably meant, or "".
func nearest(inside string) string {
	word, rest, colon := strings.Cut(inside, ":")
	word = strings.TrimSpace(word)
	if !colon {
		word, rest, _ = strings.Cut(word, " ")
	}
	rest = strings.TrimSpace(rest)
	switch kind := swarm.Nearest(word, []string{kindInclude, KindOutput, KindInput, "STDIN"}); kind {
	case "":
		return ""
	case "STDIN":
		return "{{STDIN}}"
	case kindInclude:
		return "{{include: " + orElse(cut(rest), "path") + "}}"
	default:
		return "{{" + kind + ":" + orElse(cut(rest), "name") + "}}"
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// short shortens a directive, so that a message stays one line.
func short(inside string) string { return "{{" + cut(inside) + "}}" }

func cut(s string) string {
	s = excerpt.Head(s, 60)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
}
