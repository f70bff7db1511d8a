package line

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// picture draws the position of an error as two lines: the text, and carets below it. It cuts long
// lines around the position, and replaces characters that could move the cursor.
func (e *Error) picture(text string) string {
	const around = 60 // bytes on each side
	start := max(0, min(e.Start, len(text)))
	end := max(start, min(e.End, len(text)))
	from := strings.LastIndexAny(text[:start], "\r\n") + 1
	to := len(text)
	if n := strings.IndexAny(text[start:], "\r\n"); n >= 0 {
		to = start + n
	}
	end = min(max(end, start), to)
	before, behind := "", ""
	if start-from > around {
		from, before = start-around, "…"
	}
	if end-start > around {
		end = start + around
	}
	if to-end > around {
		to, behind = end+around, "…"
	}
	shown := before + plain(text[from:start])
	place, rest := plain(text[start:end]), plain(text[end:to])
	return shown + place + rest + behind + "\n" + strings.Repeat(" ", width(shown)) + strings.Repeat("^", max(1, width(place)))
}

// plain replaces tabs by blanks, and unprintable or cut characters by U+FFFD.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// width returns the number of terminal columns of a text: two for East Asian letters and emoji,
// none for combining marks.
func width(text string) (n int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
			r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
			n += 2
		default:
			n++
		}
	}
	return n
}
