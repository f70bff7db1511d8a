package tool

import (
	"html"
	"slices"
	"strings"
)

var (
	// silent are elements whose content nobody reads.
	silent = []string{"script", "style", "noscript", "template", "svg", "head"}
	// breaking are elements that begin a line of their own.
	breaking = []string{"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
		"header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul"}
)

// plain is the text of HTML: without tags, comments, and what is meant for browsers. It is simple on purpose; what it does not
// understand it leaves as it is.
func plain(source string) string {
	var b strings.Builder
	for source != "" {
		text, rest, found := strings.Cut(source, "<")
		b.WriteString(html.UnescapeString(text))
		if !found {
			break
		}
		if comment, ok := strings.CutPrefix(rest, "!--"); ok {
			_, source, _ = strings.Cut(comment, "-->")
			continue
		}
		name := tagName(rest)
		if name == "" && !strings.HasPrefix(rest, "!") && !strings.HasPrefix(rest, "?") {
			b.WriteByte('<') // a sign of its own
			source = rest
			continue
		}
		source = afterTag(rest)
		opened, isEnd := strings.CutPrefix(name, "/")
		switch {
		case !isEnd && slices.Contains(silent, name):
			source = afterElement(source, name)
		case slices.Contains(breaking, opened):
			b.WriteByte('\n')
		case opened == "td" || opened == "th":
			b.WriteByte('\t')
		}
	}
	return tidy(b.String())
}

// tagName is the name at the beginning of a tag, in lower case, with / before it when it is an end.
func tagName(tag string) string {
	end := 0
	for end < len(tag) && end < 20 {
		c := tag[end] | 0x20
		if (c < 'a' || c > 'z') && (end == 0 || tag[end] < '0' || tag[end] > '9') && (end > 0 || tag[end] != '/') {
			break
		}
		end++
	}
	return strings.TrimSuffix(strings.ToLower(tag[:end]), "/")
}

// afterTag is what follows a tag; a > in quotes does not end it.
func afterTag(s string) string {
	const longest = 16 << 10
	var quote byte
	for i := range min(len(s), longest) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return s[i+1:]
		}
	}
	// The quotes do not match: without them then.
	_, rest, _ := strings.Cut(s, ">")
	return rest
}

// afterElement is what follows the end of an element.
func afterElement(s, name string) string {
	for rest := s; ; {
		_, tag, found := strings.Cut(rest, "</")
		if !found {
			return ""
		}
		if len(tag) >= len(name) && strings.EqualFold(tag[:len(name)], name) {
			return afterTag(tag)
		}
		rest = tag
	}
}

// tidy joins blanks, and leaves at most one line empty between two others.
func tidy(text string) string {
	var b strings.Builder
	empty := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n"[:min(2, 1+empty)])
		}
		b.WriteString(line)
		empty = 0
	}
	return b.String()
}
