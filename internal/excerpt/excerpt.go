// Package excerpt shortens texts for messages: to their beginning, to one line, to the first names of a list.
//
// Lengths are in bytes, and a text is never cut within a character.
package excerpt

import (
	"fmt"
	"strings"
)

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
