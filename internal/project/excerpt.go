package project

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// excerpt shortens a document to its headings, each with the first paragraph below it. A paragraph
// has at most section bytes, and the result at most most bytes. cut reports that sections are
// missing at the end.
func excerpt(text string, section, most int) (short string, cut bool) {
	var b strings.Builder
	var para strings.Builder // the first paragraph below the last heading
	open, code := true, false
	flush := func() {
		if para.Len() > 0 {
			b.WriteString(truncate(para.String(), section) + "\n")
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
	return truncate(whole, most), len(whole) > most
}

// truncate returns the beginning of a text, at most `most` bytes, and prefers to cut between words.
func truncate(text string, most int) string {
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

// summarize returns one line about a file. For a document that is its title and its first sentence,
// for a program its first comment, or else its first line.
func summarize(name, text string) string {
	if isDoc(name) || path.Ext(name) == "" || path.Ext(name) == ".txt" {
		title := Title([]byte(text))
		if said := firstText(text, title); said != "" {
			title += ": " + said
		}
		return truncate(oneLine(title), summaryBytes)
	}
	const lines = 40 // a program describes itself within these
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if n++; n > lines {
			break
		}
		said := strings.TrimSpace(strings.TrimLeft(line, "/*#;-\"'! "))
		switch {
		case said == "" || strings.HasPrefix(line, "#!"):
		case !isComment(line):
			return truncate(oneLine(line), summaryBytes)
		case strings.Contains(said, " ") && !isBoilerplate(said):
			return truncate(oneLine(said), summaryBytes)
		}
	}
	return ""
}

// isComment reports whether a line is a comment in one of the common languages.
func isComment(line string) bool {
	for _, mark := range []string{"//", "/*", "*", "# ", "--", ";", `"""`, "'''", "<!--"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// isBoilerplate reports whether a comment says nothing about what the program does.
func isBoilerplate(said string) bool {
	said = strings.ToLower(said)
	for _, word := range []string{
		"copyright", "spdx", "license", "go:build", "+build", "eslint", "@ts-", "use strict", "coding:", "code generated",
	} {
		if strings.Contains(said, word) {
			return true
		}
	}
	return false
}

// firstText returns the first line of text below a document's title.
func firstText(text, title string) string {
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
