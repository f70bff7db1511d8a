// Package modeljson finds the JSON object in a model's answer. Models put prose and code fences
// around it, leave commas at the end of lists, or are cut off. Find mends what has one meaning only,
// and refuses everything else with words that the model can act on.
package modeljson

import (
	"encoding/json"
	"fmt"
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
	rest := answer
	for range maxBraces {
		i := strings.IndexByte(rest, '{')
		if from, upto := findThoughts(rest); from >= 0 && (i < 0 || from < i) {
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
			cut, after = cut || names(o.text, field), true
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
	case cut:
		err = ErrCutOff
	case answer == "":
		err = swarm.Errorf(swarm.Unexpected, "the answer is empty")
	default:
		err = swarm.Errorf(swarm.Unexpected, "the answer has no object with the field %q%s", field, excerpt.Said(excerpt.Head(answer, 200)))
	}
	return "", false, err
}

// thoughts are the marks that models put around what they think before they answer.
var thoughts = [][2]string{{"<think>", "</think>"}, {"<thinking>", "</thinking>"}}

// findThoughts returns where the first thoughts in a text begin, or -1, and where they end. Thoughts
// without an end go on to the end of the text: the model was cut off before it answered.
func findThoughts(text string) (from, upto int) {
	from = -1
	for _, t := range thoughts {
		at := strings.Index(text, t[0])
		if at < 0 || from >= 0 && from < at {
			continue
		}
		if from, upto = at, len(text); strings.Contains(text[at:], t[1]) {
			upto = at + strings.Index(text[at:], t[1]) + len(t[1])
		}
	}
	return from, upto
}

// isProse says whether a text beside an object is more than blanks and a code fence.
func isProse(text string) bool {
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
	text   string // mended; if it is not whole, all of it that is there
	length int    // in the text that it was found in
	whole  bool   // it is valid JSON
	closed bool   // its last brackets were missing
}

// readObject reads the object at the beginning of a text. It takes out commas before a closing
// bracket, and escapes line breaks within strings. An object that only lacks closing brackets is
// whole, because all its values are. One that breaks off within a string or a word is not: nobody
// knows how the value goes on.
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

// closes says whether nothing but a closing bracket or the end follows.
func closes(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text == "" || text[0] == '}' || text[0] == ']'
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
