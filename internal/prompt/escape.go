package prompt

import (
	"strings"
	"unicode/utf8"
	"unsafe"
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

// guarded are the beginnings of our fences' lines: a needle to look for, and what stands before and after it. The needles begin
// with capital letters, because these are rarer in most texts than newlines, dashes and brackets.
var guarded = []struct {
	needle string
	heads  []opening
}{
	{"Output ", []opening{{"--- ", "from task"}, {"[", "from @"}, {"--- ", "already sent"}}},
	{"End ", []opening{{"--- ", "output from task"}, {"--- ", "---"}, {"--- ", "message"}, {"--- ", "context pack"}}},
	{"Why attempt", []opening{{"--- ", ""}}},
	{"Message ", []opening{{"--- ", ""}}}, // of mail
	{"Context pack ", []opening{{"--- ", ""}}},
	{"Shared Findings", []opening{{"## ", ""}}},
}

type opening struct{ before, after string }

// escape puts `\` in front of each line that begins like one of our fences.
func escape(text string) string {
	if strings.IndexByte(text, '-') < 0 && strings.IndexByte(text, '[') < 0 && strings.IndexByte(text, '#') < 0 {
		return text // most short ones
	}
	for _, g := range guarded {
		text = guard(text, g.needle, g.heads)
	}
	return text
}

func guard(text, needle string, heads []opening) string {
	var b strings.Builder
	done := 0 // how much of text is in b
	for i := 0; ; i += len(needle) {
		next := strings.Index(text[i:], needle)
		if next < 0 {
			break
		}
		i += next
		for _, h := range heads {
			start := i - len(h.before)
			if strings.HasSuffix(text[:i], h.before) && strings.HasPrefix(text[i+len(needle):], h.after) && beginsLine(text, start) {
				b.WriteString(text[done:start])
				b.WriteByte('\\')
				done = start
			}
		}
	}
	if b.Len() == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
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

// view is text as a string that shares its bytes, which nobody changes any more: a prompt file belongs to its template, and an
// output stands still until Build has copied it. Copies of both would double the work.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
