package term

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/view"
)

// Escape makes untrusted text safe to print. Control codes, escape sequences, and characters that
// change the direction of text or hide it become visible text (`\x1b[2J`). Invalid UTF-8 becomes
// U+FFFD. Newlines and tabs stay; \r\n becomes a newline.
func Escape(text string) string {
	i := 0
	for i < len(text) && (text[i] >= ' ' && text[i] < 0x7f || text[i] == '\n' || text[i] == '\t') {
		i++
	}
	if i == len(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 32)
	b.WriteString(text[:i])
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\n', r == '\t':
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"):
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case deceptive(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case deceptive(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // U+FFFD for a byte that is not UTF-8
		}
		i += n
	}
	return b.String()
}

// deceptive says whether a character acts on a terminal or its reader instead of being seen: C1
// controls, direction marks, separators that break lines, tags, and other format characters. The
// joiners that emoji and scripts need are not deceptive.
func deceptive(r rune) bool {
	switch {
	case r < 0x80:
		return false
	case r <= 0x9f, r == 0x2028, r == 0x2029:
		return true
	case r == 0x200c, r == 0x200d, r == 0x00ad:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// EscapeJSON returns a writer of JSON that shows the characters that Escape does not let through,
// and other invisible ones, as \uXXXX: for a program the text is the same. Each write must hold
// whole characters.
func EscapeJSON(w io.Writer) io.Writer { return jsonEscaper{w} }

type jsonEscaper struct{ w io.Writer }

func (e jsonEscaper) Write(p []byte) (int, error) {
	hidden := func(r rune) bool { return r >= 0x7f && (r == 0x7f || deceptive(r) || unicode.Is(unicode.Cf, r)) }
	if bytes.IndexFunc(p, hidden) < 0 {
		return e.w.Write(p)
	}
	shown := make([]byte, 0, len(p)+32)
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if hidden(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				shown = fmt.Appendf(shown, `\u%04x`, unit)
			}
		} else {
			shown = append(shown, rest[:size]...)
		}
		rest = rest[size:]
	}
	if _, err := e.w.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// OneLine is Escape for a place that has one line.
func OneLine(text string) string {
	text = Escape(strings.TrimSpace(text))
	if !strings.ContainsAny(text, "\n\t") {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}

const maxTool = 200 // bytes of a tool call

// ToolLine shows a tool call in one line.
func ToolLine(u *swarm.ToolUse) string { return excerpt.Head(OneLine(view.DescribeTool(u)), maxTool) }

// FailedToolLine shows why a tool failed, in one line.
func FailedToolLine(u *swarm.ToolUse) string {
	return excerpt.Head(OneLine(view.ToolName(u.Name)+": "+u.Output), maxTool)
}

// Fit makes a text one line of at most so many columns.
func Fit(text string, columns int) string {
	return ansi.Truncate(OneLine(text), max(0, columns), "…")
}

// wrapWords wraps a line between words only, so that ids and commands stay whole. A word that is wider
// than a line is cut into several.
func wrapWords(line string, columns int) (lines []string) {
	at := ""
	for _, word := range strings.Fields(line) {
		switch {
		case at == "":
			at = word
		case ansi.StringWidth(at)+1+ansi.StringWidth(word) <= columns:
			at += " " + word
			continue
		default:
			lines, at = append(lines, at), word
		}
		if ansi.StringWidth(at) > columns {
			parts := strings.Split(ansi.Hardwrap(at, max(1, columns), true), "\n")
			lines, at = append(lines, parts[:len(parts)-1]...), parts[len(parts)-1]
		}
	}
	return append(lines, at)
}

// hangingLines wraps lines between words, so that a terminal does not cut a word. The rest of a line is
// indented. Blanks between words stay. A word that does not fit into a line is left to the terminal: it
// may be an address, which can be clicked and copied only if it is whole. So is a line with tabs, whose
// width is not known.
func hangingLines(text string, columns, indent int) string {
	if columns <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if len(line) <= columns || strings.Contains(line, "\t") || ansi.StringWidth(line) <= columns {
			b.WriteString(line)
			continue
		}
		body, end := strings.TrimRight(line, " \n"), ""
		if strings.HasSuffix(line, "\n") {
			end = "\n"
		}
		used := 0
		for rest := body; rest != ""; {
			word := strings.TrimLeft(rest, " ")
			gap := len(rest) - len(word)
			word, _, _ = strings.Cut(word, " ")
			switch width := ansi.StringWidth(word); {
			case used+gap+width <= columns, indent+width > columns:
				b.WriteString(rest[:gap+len(word)])
				used = (used+gap+width-1)%columns + 1
			default:
				b.WriteString("\n" + strings.Repeat(" ", indent) + word)
				used = indent + width
			}
			rest = rest[gap+len(word):]
		}
		b.WriteString(end)
	}
	return b.String()
}

// Join joins parts of a line, which must be safe to print. A part that does not fit into the width
// begins another line; 0 = all fit.
func Join(parts []string, sep string, width int) string {
	text, used := "", 0
	end := strings.TrimRight(sep, " ") // of a line that another one follows
	for i, part := range parts {
		w := ansi.StringWidth(part)
		room := width
		if i < len(parts)-1 {
			room -= ansi.StringWidth(end)
		}
		switch {
		case i == 0:
		case width > 0 && used+ansi.StringWidth(sep)+w > room:
			text, used = text+end+"\n", 0
		default:
			text, used = text+sep, used+ansi.StringWidth(sep)
		}
		text, used = text+part, used+w
	}
	return text
}

// columnsOf finds the second column of a line: what follows two blanks or more.
var columnsOf = regexp.MustCompile(`^ *\S+(?: \S+)*? {2,}`)

// Reflow fits a text of paragraphs and lists to a width; 0 = as it is. Lines of a paragraph are joined. An
// indented line with two columns continues in the second one. Other indented lines are commands to copy,
// and stay whole.
func Reflow(text string, width int) string {
	if width <= 0 || !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return ansi.StringWidth(line) > width }) {
		return text
	}
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, wrapWords(strings.Join(paragraph, " "), width)...)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != ' ' {
			paragraph = append(paragraph, line)
			continue
		}
		end()
		first := columnsOf.FindString(line)
		if first == "" || ansi.StringWidth(line) <= width {
			out = append(out, line)
			continue
		}
		indent := min(ansi.StringWidth(first), width/2)
		for i, part := range wrapWords(line[len(first):], width-indent) {
			lead := strings.Repeat(" ", indent)
			if i == 0 && ansi.StringWidth(first) == indent {
				lead = first
			} else if i == 0 {
				out = append(out, strings.TrimRight(first, " "))
			}
			out = append(out, lead+part)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// PadRight pads a text to a width. The text must be safe to print.
func PadRight(text string, columns int) string { return text + blanks(text, columns) }

// PadLeft is PadRight with the blanks in front.
func PadLeft(text string, columns int) string { return blanks(text, columns) + text }

func blanks(text string, columns int) string {
	return strings.Repeat(" ", max(0, columns-ansi.StringWidth(text)))
}
