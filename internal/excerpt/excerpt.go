// Package excerpt shortens texts for messages: to their beginning, to one line, to the first names
// of a list.
//
// Lengths are in bytes, and a text is never cut within a character.
package excerpt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CutAt returns the last place, after at most so many bytes, where a text can be cut between two
// characters. Text that is not UTF-8 is cut exactly there.
func CutAt[T string | []byte](text T, most int) int {
	for at := most; at < len(text) && at >= 0 && at > most-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return min(most, len(text))
}

// RestOfRune returns the number of bytes at the beginning of a text that belong to a character
// which began before it.
func RestOfRune[T string | []byte](text T) int {
	n := 0
	for n < len(text) && n < utf8.UTFMax-1 && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}

// WholeRunes returns how much of a text can be passed on while its last character may be
// incomplete.
func WholeRunes[T string | []byte](text T) int {
	for at := len(text) - 1; at >= 0 && at > len(text)-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			if utf8.FullRuneInString(string(text[at:])) {
				break
			}
			return at
		}
	}
	return len(text)
}

// Head returns the first bytes of a text, with an ellipsis if there are more.
func Head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// HeadWithSize is Head, with the length of a text that was cut.
func HeadWithSize(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s (%d bytes)", Head(text, most), len(text))
}

// OneLine joins the words of a text with single blanks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Reason returns a colon and the reason, to follow a sentence, or "" without a reason.
func Reason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Said is Reason for the output of another program, which may be long, have many lines, or be no
// text at all.
func Said(said string) string {
	return Reason(Head(OneLine(strings.ToValidUTF8(said, "\uFFFD")), 300))
}

// List joins names by commas, and counts those beyond a limit.
func List(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
