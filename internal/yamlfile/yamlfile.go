// Package yamlfile parses the YAML files that people write: compose files and scripts.
//
// The YAML parser trusts its input. So Parse first checks size, depth, number of items and
// characters, and refuses a file that would be expensive to parse. It translates the parser's
// errors, with line and column, and tells when a file is truncated.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"swarm"
)

// Limits of a file. The parser needs about 500 bytes for every item. It keeps all tokens of a line
// before it understands one, and compares each directive with all others. So their number is
// checked before the parser runs.
const (
	MaxFile         = 4 << 20
	maxDepth        = 64
	maxItems        = 200_000
	maxItemsPerLine = 20_000
	maxDirectives   = 16
)

// Parse parses a file. The hint is for the error about an empty file.
func Parse(file string, src []byte, hint string) (*yaml.Node, *swarm.Error) {
	fail := func(line, column int, format string, args ...any) *swarm.Error {
		msg := fmt.Sprintf(format, args...)
		return &swarm.Error{Kind: swarm.BadInput, File: file, Line: line, Column: column, Msg: msg}
	}
	if len(src) > MaxFile {
		return nil, fail(0, 0, "the file is larger than 4 MB").WithHint("move long texts to files of their own")
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if line, column, msg, hint := badText(src); msg != "" {
		return nil, fail(line, column, "%s", msg).WithHint("%s", hint)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(src), yaml.WithPlugin(shallow{}))
	if err != nil {
		return nil, fail(0, 0, "the file cannot be read: %v", err)
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&doc):
		return nil, fail(max(1, Lines(src)), 0, "the file says nothing").WithHint("%s", hint)
	case err != nil:
		return nil, syntaxError(file, src, err)
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, fail(second.Line, second.Column, "a second document begins here").
			WithHint("a file is one document: remove the `---`")
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(file, src, err)
	}
	return doc.Content[0], nil
}

func isEmpty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].Tag == "!!null"
}

// shallow limits the depth. It allows aliases, because the caller decides whether to follow them.
type shallow struct{}

func (shallow) CheckDepth(depth int, _ *yaml.DepthContext) error {
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels deep", maxDepth)
	}
	return nil
}

func (shallow) CheckAlias(int, int) error { return nil }

// badText finds text that no file may hold, before the parser sees it.
func badText(src []byte) (line, column int, msg, hint string) {
	line, column = 1, 0
	items, inLine, directives := 0, 0, 0
	start := true // only blanks so far in this line
	for i := 0; i < len(src); {
		r, size := rune(src[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(src[i:])
		}
		column++
		switch {
		case r == '\n':
			line, column, inLine = line+1, 0, 0
		case r == utf8.RuneError && size == 1:
			return line, column, fmt.Sprintf("the byte 0x%02x is not UTF-8", src[i]), "save the file as UTF-8"
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r >= 0x80 && r < 0xa0 && r != 0x85:
			return line, column, fmt.Sprintf("the control character U+%04X is not allowed", r),
				`write it as an escape in double quotes, such as "\t"`
		case r == ',' || r == '[' || r == '{':
			inLine++
			items++
		case r == ':' || r == '?' || r == '-' && start:
			items++
		case strings.ContainsRune("&*!\"'", r):
			inLine++
		case r == '%' && column == 1:
			directives++
		}
		if items > maxItems || inLine > maxItemsPerLine {
			const format = "at most %d in all and %d in one line; move long texts to files of their own"
			return line, column, "the file holds too many items", fmt.Sprintf(format, maxItems, maxItemsPerLine)
		}
		if directives > maxDirectives {
			return line, column, fmt.Sprintf("the file holds more than %d directives", maxDirectives),
				"remove the lines that begin with %: none is needed"
		}
		start = r == '\n' || start && (r == ' ' || r == '-')
		i += size
	}
	return 0, 0, "", ""
}

// Lines returns the number of lines. A newline at the end begins no further line.
func Lines(src []byte) int {
	n := bytes.Count(src, []byte("\n"))
	if len(src) > 0 && src[len(src)-1] != '\n' {
		n++
	}
	return n
}

// Line returns the text of a line, counted from 1, without its newline.
func Line(src []byte, line int) string {
	for ; line > 1; line-- {
		i := bytes.IndexByte(src, '\n')
		if i < 0 {
			return ""
		}
		src = src[i+1:]
	}
	text, _, _ := bytes.Cut(src, []byte("\n"))
	return strings.TrimSuffix(string(text), "\r")
}

// syntaxError translates an error of the parser.
func syntaxError(file string, src []byte, err error) *swarm.Error {
	var bad *yaml.LoadError
	if !errors.As(err, &bad) {
		return &swarm.Error{Kind: swarm.BadInput, File: file, Msg: "this is not YAML: " + err.Error()}
	}
	line, column := bad.Mark.Line, bad.Mark.Column
	if line == 0 {
		line, column = bad.ContextMark.Line, bad.ContextMark.Column
	}
	e := &swarm.Error{
		Kind: swarm.BadInput, File: file, Line: line, Column: column, Msg: "this is not YAML: " + bad.Message,
	}
	where := strings.TrimPrefix(strings.TrimPrefix(bad.ContextMsg, "while parsing "), "while scanning ")
	if bad.ContextMark.Line > 0 && bad.ContextMark.Line != line && where != "the next token" {
		e.Msg += fmt.Sprintf(" in %s that begins in line %d", where, bad.ContextMark.Line)
	}
	if last := Lines(src); line > last || line == last && column > utf8.RuneCountInString(Line(src, last)) {
		// The parser's position is behind the last line. People look at the last line itself.
		e.Line, e.Column = last, utf8.RuneCountInString(Line(src, last))+1
		e.Msg = "the file stops in the middle: " + strings.TrimPrefix(e.Msg, "this is not YAML: ")
		e.Hint = "close what is still open: a quote, a bracket, or a key without its value"
		return e
	}
	text := Line(src, line)
	indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
	switch {
	case strings.Contains(indent, "\t"):
		e.Column = strings.Index(indent, "\t") + 1
		e.Msg, e.Hint = "a tab is used as indentation", "indent with spaces"
	case strings.Contains(bad.Message, "levels deep"):
		e.Msg, e.Hint = bad.Message, "ten are enough"
	case strings.Contains(bad.Message, "mapping values are not allowed"):
		e.Hint = "is the line indented as the one before it? text with `: ` in it must stand in quotes"
	case column > 0 && column <= utf8.RuneCountInString(text) && []rune(text)[column-1] == '\t':
		e.Msg, e.Hint = "a tab is used as indentation", "indent with spaces"
	case strings.Contains(bad.Message, "cannot start any token"):
		e.Hint = "text that begins with @, ` or % must stand in quotes"
	case strings.Contains(bad.Message, "did not find expected key"), strings.Contains(bad.Message, "block collection"):
		e.Hint = "is the line indented as those beside it?"
	case strings.Contains(bad.Message, "unknown anchor"):
		e.Hint = "text that begins with * must stand in quotes"
	}
	return e
}
