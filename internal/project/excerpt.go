package project

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// excerpt is a document by its headings: each with what stands first below it. A section has so many bytes at most, and all of them; cut says
// that there would have been more sections.
func excerpt(text string, section, most int) (short string, cut bool) {
	var b strings.Builder
	var para strings.Builder // what stands first below the last heading
	open, code := true, false
	flush := func() {
		if para.Len() > 0 {
			b.WriteString(begin(para.String(), section) + "\n")
		}
		para.Reset()
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if fenced := strings.HasPrefix(strings.TrimSpace(line), "```"); fenced {
			code = !code
		}
		switch {
		case !code && strings.HasPrefix(line, "#"):
			flush()
			b.WriteString(line + "\n")
			open = true
		case line == "" && para.Len() > 0:
			open = false
		case line != "" && open && para.Len() <= section:
			if para.Len() > 0 {
				para.WriteByte('\n')
			}
			para.WriteString(line)
		}
		if b.Len() > most {
			break
		}
	}
	flush()
	whole := strings.TrimRight(b.String(), "\n")
	return begin(whole, most), len(whole) > most
}

// begin is the beginning of a text, at most so many bytes.
func begin(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if at := strings.LastIndexAny(text[:n], " \n"); at > n/2 {
		n = at
	}
	return strings.TrimRightFunc(text[:n], unicode.IsSpace) + " …"
}

const summaryBytes = 160

// summary is a line about a file: a document's title and what it says first, the first remark of a program, or its first line.
func summary(name, text string) string {
	if isDoc(name) || path.Ext(name) == "" || path.Ext(name) == ".txt" {
		title := Title([]byte(text))
		if said := first(text, title); said != "" {
			title += ": " + said
		}
		return begin(oneLine(title), summaryBytes)
	}
	const lines = 40 // in which a program says what it is
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n++; n > lines {
			break
		}
		said := strings.TrimSpace(strings.TrimLeft(line, "/*#;-\"'! "))
		switch {
		case said == "" || strings.HasPrefix(line, "#!"):
		case !isRemark(line):
			return begin(oneLine(line), summaryBytes)
		case strings.Contains(said, " ") && !legal(said):
			return begin(oneLine(said), summaryBytes)
		}
	}
	return ""
}

// isRemark says whether a line of a program is a remark, in one of the usual languages.
func isRemark(line string) bool {
	for _, mark := range []string{"//", "/*", "*", "# ", "--", ";", `"""`, "'''", "<!--"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// legal says whether a remark is not about what the program does.
func legal(said string) bool {
	said = strings.ToLower(said)
	for _, word := range []string{"copyright", "spdx", "license", "go:build", "+build", "eslint", "@ts-", "use strict", "coding:", "code generated"} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

// first is what a document says first below its title.
func first(text, title string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.Contains(line, title) || !unicode.IsLetter(firstRune(line)) {
			continue
		}
		return line
	}
	return ""
}

func firstRune(line string) rune {
	r, _ := utf8.DecodeRuneInString(line)
	return r
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
