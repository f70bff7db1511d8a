package tool

import (
	"html"
	"slices"
	"strings"
)

var (
	// hiddenElements have no content for readers.
	hiddenElements = []string{"script", "style", "noscript", "template", "svg", "head"}
	// blockElements begin a new line.
	blockElements = []string{
		"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form", "h1",
		"h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title",
		"tr", "ul",
	}
)

// plain converts HTML to text: without tags, comments and hidden elements. It is a simple scanner
// on purpose, and leaves what it does not understand.
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
			b.WriteByte('<') // a plain less-than sign
			source = rest
			continue
		}
		source = afterTag(rest)
		opened, isEnd := strings.CutPrefix(name, "/")
		switch {
		case !isEnd && slices.Contains(hiddenElements, name):
			source = afterElement(source, name)
		case slices.Contains(blockElements, opened):
			b.WriteByte('\n')
		case opened == "td" || opened == "th":
			b.WriteByte('\t')
		}
	}
	return tidy(b.String())
}

// tagName returns the name at the beginning of a tag in lower case, with a leading / for an end
// tag.
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

// afterTag returns the text after a tag. A > in quotes does not end the tag.
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
	// The quotes do not match, so they are ignored.
	_, rest, _ := strings.Cut(s, ">")
	return rest
}

// afterElement returns the text after the end of an element.
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

// tidy joins blanks, and keeps at most one empty line between two others.
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
