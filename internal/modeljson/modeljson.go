// Package modeljson finds the JSON object in a model's answer. Models put prose and code fences
// around it, write comments in it, leave commas at the end of lists, or are cut off. Find mends what has one meaning only,
// and refuses everything else with words that the model can act on.
package modeljson

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/strictjson"
)

// maxBraces limits how many braces of an answer are tried as the beginning of an object.
const maxBraces = 100

// An Object is the JSON object that an answer holds.
type Object struct {
	Fields map[string]json.RawMessage // read strictly: no name twice, no bytes that are not UTF-8
	Closed bool                       // its last brackets were missing, so fields may be missing too
}

// Has says whether a field is given. null counts as missing, because models write it for what they
// leave out.
func (o Object) Has(name string) bool {
	value, ok := o.Fields[name]
	return ok && string(value) != "null"
}

// Find returns the one JSON object in an answer that has this field.
func Find(answer, field string) (Object, error) {
	if len(answer) > swarm.MaxOutput {
		return Object{}, swarm.Errorf(swarm.Unexpected, "the answer has %d bytes; %d are allowed", len(answer), swarm.MaxOutput)
	}
	text, closed, err := find(answer, field)
	if err != nil {
		return Object{}, err
	}
	strict, err := strictjson.ReadValue([]byte(text))
	if err != nil {
		return Object{}, swarm.Errorf(swarm.Unexpected, "the answer cannot be read: %w", err)
	}
	o := Object{Closed: closed}
	if err := json.Unmarshal(strict, &o.Fields); err != nil {
		return Object{}, swarm.Errorf(swarm.Unexpected, "the answer is no JSON object: %w", err)
	}
	return o, nil
}

// find returns the text of the one object. Prose before it or after it does not matter, nor do code
// fences and thoughts. An answer with two different ones has no one meaning, so it is refused. So is
// an object with prose on both sides: the model may only quote it.
func find(answer, field string) (object string, closed bool, err error) {
	answer = strings.TrimSpace(strings.TrimPrefix(answer, "\ufeff"))
	if strings.HasPrefix(answer, "{") && json.Valid([]byte(answer)) {
		return answer, false, nil
	}
	var found []string
	cut, before, after := false, false, false // prose before the first one, and after the last one
	comment := false                          // the one that breaks off does so in a comment
	rest := DropThoughts(answer)
	for range maxBraces {
		i := strings.IndexByte(rest, '{')
		place := i
		if i < 0 {
			place = len(rest)
		}
		if from, upto := findThoughts(rest, place); from >= 0 {
			after = after || isProse(rest[:from])
			rest = rest[upto:]
			continue
		}
		if i < 0 {
			break
		}
		after = after || isProse(rest[:i])
		rest = rest[i:]
		o := readObject(rest)
		switch {
		case !o.whole: // a brace in prose, or the answer breaks off within the object
			if names(o.text, field) {
				cut, comment = true, comment || o.comment
			}
			after = true
			rest = rest[1:]
			continue
		case !names(o.text, field):
			after = true
		default:
			if !slices.Contains(found, o.text) {
				found, closed = append(found, o.text), closed || o.closed
			}
			before, after = before || after, false
		}
		rest = rest[o.length:]
	}
	after = after || isProse(rest)
	switch {
	case len(found) == 1 && !cut && before && after:
		err = swarm.Errorf(swarm.Unexpected, "the answer has an object with the field %q in the middle of other text, so it may be a quotation", field)
	case len(found) == 1 && !cut:
		return found[0], closed, nil
	case len(found) > 1:
		err = swarm.Errorf(swarm.Unexpected, "the answer has %d objects with the field %q, and only one may be there", len(found), field)
	case cut && comment:
		err = swarm.Errorf(swarm.Unexpected, "the JSON object of the answer has a comment without an end").
			WithHint("return plain JSON: it has no comments")
	case cut:
		err = ErrCutOff
	case answer == "":
		err = swarm.Errorf(swarm.Unexpected, "the answer is empty")
	default:
		err = swarm.Errorf(swarm.Unexpected, "the answer has no object with the field %q%s", field, excerpt.Said(excerpt.Head(answer, 200)))
	}
	return "", false, err
}

// thoughtMark matches the marks that models put around what they think before they answer. The first
// group is the slash of a closing one.
var thoughtMark = regexp.MustCompile(`(?i)<\|?(/?)(?:think|thinking|thoughts?|scratchpad)\b[^<>{}]*>|\[(/?)think\]`)

// DropThoughts returns an answer without what the model thought before it. A closing mark may come
// without an opening one, which is then in the template of the model. Thoughts without an end go on to
// the end of the text: the model was cut off before it answered. Marks within an answer stay.
func DropThoughts(answer string) string {
	marks := thoughtMark.FindAllStringSubmatchIndex(answer, -1)
	switch {
	case len(marks) == 0:
	case isClosing(marks[0]):
		answer = answer[marks[0][1]:]
	case strings.TrimSpace(answer[:marks[0][0]]) == "":
		upto := len(answer)
		for _, m := range marks {
			if isClosing(m) {
				upto = m[1]
			}
		}
		answer = answer[upto:]
	}
	return strings.TrimSpace(answer)
}

func isClosing(mark []int) bool { return mark[2] < mark[3] || mark[4] < mark[5] }

// findThoughts returns where the first thoughts in front of a place begin, or -1, and where they end.
func findThoughts(text string, place int) (from, upto int) {
	m := thoughtMark.FindStringSubmatchIndex(text[:place])
	if m == nil || isClosing(m) {
		return -1, 0
	}
	for upto = m[1]; upto < len(text); {
		next := thoughtMark.FindStringSubmatchIndex(text[upto:])
		if next == nil {
			return m[0], len(text)
		}
		if upto += next[1]; isClosing(next) {
			break
		}
	}
	return m[0], upto
}

// callMarks stand around the object that some models return as a call of a tool.
var callMarks = strings.NewReplacer("<tool_call>", "", "</tool_call>", "")

// isProse says whether a text beside an object is more than blanks, a code fence and marks of a call.
func isProse(text string) bool {
	text = callMarks.Replace(text)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if fence, ok := strings.CutPrefix(line, "```"); !ok && line != "" || strings.ContainsAny(fence, " \t") {
			return true
		}
	}
	return false
}

// ErrCutOff is the error of an answer that breaks off.
var ErrCutOff = swarm.Errorf(swarm.Unexpected, "the answer breaks off in the middle of its JSON object").
	WithHint("return a shorter one, and put long texts into a file first")

// names says whether a text has the field's name as JSON writes it.
func names(object, field string) bool {
	_, after, ok := strings.Cut(object, `"`+field+`"`)
	return ok && strings.HasPrefix(strings.TrimSpace(after), ":")
}

// A foundObject is an object at the beginning of a text.
type foundObject struct {
	text    string // mended; if it is not whole, all of it that is there
	length  int    // in the text that it was found in
	whole   bool   // it is valid JSON
	closed  bool   // its last brackets were missing
	comment bool   // it is not whole, because a comment in it has no end
}

// readObject reads the object at the beginning of a text. It takes out comments and commas before a
// closing bracket, and escapes line breaks within strings. An object that only lacks closing brackets
// is whole, because all its values are. One that breaks off within a string, a word or a comment is
// not: the rest of the value is unknown.
func readObject(text string) foundObject {
	var out strings.Builder
	var open []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			n := copyString(&out, text[i:])
			if n < 0 {
				return foundObject{text: text}
			}
			i += n - 1
		case '{', '[':
			open = append(open, c+2) // the closing bracket stands two behind it in ASCII
			out.WriteByte(c)
		case '}', ']':
			if open[len(open)-1] != c {
				return foundObject{text: text}
			}
			out.WriteByte(c)
			if open = open[:len(open)-1]; len(open) == 0 {
				return foundObject{text: out.String(), length: i + 1, whole: json.Valid([]byte(out.String()))}
			}
		case ',':
			if !closes(text[i+1:]) {
				out.WriteByte(c)
			}
		case '/':
			n := commentLength(text[i:])
			if n < 0 {
				return foundObject{text: text, comment: true}
			}
			if n == 0 {
				out.WriteByte(c)
				continue
			}
			out.WriteByte(' ') // it separates what stands on both sides
			i += n - 1
		default:
			out.WriteByte(c)
		}
	}
	return closeAll(out.String(), open, len(text))
}

// closeAll adds the brackets that are missing at the end of an answer. A word or number at the very
// end may be cut, so only a string or a bracket may stand there. A code fence may close after it.
func closeAll(text string, open []byte, length int) foundObject {
	text = strings.TrimRight(text, "` \t\r\n")
	if text == "" || !strings.ContainsRune(`"}]`, rune(text[len(text)-1])) {
		return foundObject{text: text}
	}
	slices.Reverse(open)
	text += string(open)
	return foundObject{text: text, length: length, whole: json.Valid([]byte(text)), closed: true}
}

// closes says whether nothing but blanks and comments comes before a closing bracket or the end.
func closes(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		if n := commentLength(text); n > 0 {
			text = text[n:]
			continue
		}
		return text == "" || text[0] == '}' || text[0] == ']'
	}
}

// commentLength returns the length of the comment at the beginning of a text: // up to the end of the
// line, or /* up to */. It is 0 if there is none, and -1 if the comment has no end. A // that goes on to
// the end of the answer has none: the model may have written the rest of the object on that line.
func commentLength(text string) int {
	end := ""
	switch {
	case strings.HasPrefix(text, "//"):
		end = "\n"
	case strings.HasPrefix(text, "/*"):
		end = "*/"
	default:
		return 0
	}
	n := strings.Index(text[2:], end)
	if n < 0 {
		return -1
	}
	return 2 + n + len(end)
}

// copyString copies the JSON string at the beginning of a text and returns its length there, or -1
// if it has no end. Control characters are escaped, and \' becomes ': models write both.
func copyString(out *strings.Builder, text string) int {
	out.WriteByte('"')
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			out.WriteByte(c)
			return i + 1
		case c == '\\' && strings.HasPrefix(text[i:], `\'`):
			out.WriteByte('\'')
			i++
		case c == '\\' && i+1 < len(text):
			out.WriteString(text[i : i+2])
			i++
		case c < ' ':
			fmt.Fprintf(out, `\u%04x`, c)
		default:
			out.WriteByte(c)
		}
	}
	return -1
}
