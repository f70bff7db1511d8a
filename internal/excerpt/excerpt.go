// Package excerpt shortens texts for messages: to their beginning, to one line, to the first names of a list.
//
// Lengths are in bytes, and a text is never cut within a character.
package excerpt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CutAt is the last place, after at most so many bytes, where a text can be cut between two characters. What is no UTF-8 is cut
// where it is.
func CutAt[T string | []byte](text T, most int) int {
	for at := most; at < len(text) && at >= 0 && at > most-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return min(most, len(text))
}

// RestOfRune is how many bytes at the beginning of a text belong to a character that began before it.
func RestOfRune[T string | []byte](text T) int {
	n := 0
	for n < len(text) && n < utf8.UTFMax-1 && !utf8.RuneStart(text[n]) {
		n++
	}
	return n
}

// WholeRunes is how much of a text can be passed on while its last character may not have come to its end.
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

// HeadWithSize is Head, and says of a text that it cuts how long it was.
func HeadWithSize(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s (%d bytes)", Head(text, most), len(text))
}

// OneLine joins the words of a text with single blanks.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Reason is what follows a sentence that has a reason: a colon and the reason, or nothing.
func Reason(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Said is Reason for what another program said, which may be long, of many lines, or no text at all.
func Said(said string) string {
	return Reason(Head(OneLine(strings.ToValidUTF8(said, "\uFFFD")), 300))
}

// List writes names in a row; of many only the first.
func List(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
