package prompt

import (
	"strings"
	"unicode/utf8"
)

// Escape makes text safe to be put into a prompt as data: each line that begins like one of our fences gets a `\` in front.
// What is not UTF-8, and NUL, which no argument of a program can hold, becomes U+FFFD.
func Escape[T ~string | ~[]byte](text T) string {
	return escape(clean(string(text)))
}

// clean is text with U+FFFD for whatever is not UTF-8 and for NUL.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// escape looks for the few bytes that a fence begins with and then back for a line's beginning, not for lines: dashes and
// brackets are rarer than newlines.
func escape(text string) string {
	text = guard(text, "--- ", "--- Output from task", "--- End output from task", "--- Why attempt", "--- End ---", "--- Already sent")
	return guard(text, "[Output from @", "[Output from @")
}

// guard puts `\` in front of each line that begins with one of heads, which all begin with needle.
func guard(text, needle string, heads ...string) string {
	var b strings.Builder
	done := 0 // how much of text is in b
	for i := 0; ; i += len(needle) {
		next := strings.Index(text[i:], needle)
		if next < 0 {
			break
		}
		i += next
		if beginsLine(text, i) && beginsWithAny(text[i:], heads) {
			b.WriteString(text[done:i])
			b.WriteByte('\\')
			done = i
		}
	}
	if done == 0 && b.Len() == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

func beginsWithAny(text string, heads []string) bool {
	for _, h := range heads {
		if strings.HasPrefix(text, h) {
			return true
		}
	}
	return false
}

// beginsLine says whether somebody may take the byte at i for the first of a line. It counts everything that any common reader
// takes for a line's end: also what Unicode and Python do.
func beginsLine(text string, i int) bool {
	if i == 0 {
		return true
	}
	switch text[i-1] {
	case '\n', '\r', '\v', '\f', '\x1c', '\x1d', '\x1e':
		return true
	}
	switch r, _ := utf8.DecodeLastRuneInString(text[:i]); r {
	case '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}
