package line

import (
	"strings"
	"unicode/utf8"
)

// A Kind says what a piece of a line is.
type Kind uint8

// The kinds of tokens.
const (
	Text        Kind = iota
	Agent            // with the @, where it has one; Known says whether there is such an agent
	Comma            // between agents
	Flag             // --model
	Value            // of a flag
	Escape           // a backslash, and what it takes the meaning of
	Reference        // with the $; Known says whether there is such an agent
	Arrow            // ->
	Background       // the & at the end
	CommandWord      // with the /; Known says whether there is such a command
	Argument         // of a command
	Comment          // a whole line that begins with #
	Wrong            // an arrow, a & or a flag that cannot stand where it stands
)

var kinds = [...]string{"text", "agent", "comma", "flag", "value", "escape", "reference", "arrow", "background", "command", "argument", "comment", "wrong"}

func (k Kind) String() string { return kinds[k] }

// A Token is a piece of a line.
type Token struct {
	Kind       Kind
	Start, End int  // bytes in the line
	Known      bool // of an agent, a reference and a command
}

// Scan takes a line apart, from its first byte to its last. It takes time linear in the line's length and never fails: what is
// not known, or cannot be, is a token that says so.
func Scan(text string, team Team) []Token {
	s := scanner{text: text, team: &team, end: trimmedLen(text)}
	s.tokens = make([]Token, 0, 8+2*strings.Count(text, "$"))
	first := skipBlanks(text, 0)
	switch {
	case first < s.end && text[first] == '/':
		s.command(first)
	case first < s.end && text[first] == '#':
		s.add(Comment, first, s.end, false)
	default:
		s.chain(first)
	}
	s.upTo(len(text))
	return s.tokens
}

type scanner struct {
	text   string
	team   *Team
	end    int // of what stands in the line: blanks, and the last &, come behind it
	first  int // where it begins
	from   int // where the text begins that is in no token yet
	tokens []Token
}

// upTo makes a token of the text before i that is in none.
func (s *scanner) upTo(i int) {
	if s.from < i {
		s.tokens = append(s.tokens, Token{Kind: Text, Start: s.from, End: i})
		s.from = i
	}
}

// add adds a token that ends at end, and says where it ends.
func (s *scanner) add(kind Kind, start, end int, known bool) int {
	s.upTo(start)
	s.tokens = append(s.tokens, Token{kind, start, end, known})
	s.from = end
	return end
}

func (s *scanner) chain(first int) {
	s.first = first
	ampersands := s.takeBackground()
	i, more := first, true
	if i+1 < s.end && s.text[i] == '\\' && strings.IndexByte("@/#", s.text[i+1]) >= 0 {
		i, more = s.task(s.add(Escape, i, i+2, false))
	}
	for more {
		if i < s.end && s.text[i] == '@' {
			i = s.flags(s.agents(i))
		}
		i, more = s.task(i)
	}
	switch {
	case ampersands == 1:
		s.add(Background, s.end, s.end+1, false)
	case ampersands > 1:
		s.add(Wrong, s.end, s.end+ampersands, false)
	}
}

// takeBackground moves the end before the & with which the line ends, and says how many there are.
func (s *scanner) takeBackground() int {
	end := s.end
	for s.end > s.first && s.text[s.end-1] == '&' {
		s.end--
	}
	if s.end > s.first && s.end < end && s.text[s.end-1] == '\\' {
		s.end++
	}
	return end - s.end
}

// agents reads @a,b and says where it ends.
func (s *scanner) agents(i int) int {
	end := s.word(i + 1)
	i = s.add(Agent, i, end, s.team.reaches(s.text[i+1:end]))
	for i < s.end && s.text[i] == ',' {
		i = s.add(Comma, i, i+1, false)
		if end = s.word(i); end > i || i < s.end && s.text[i] == ',' {
			i = s.add(Agent, i, end, s.team.reaches(s.text[i:end]))
		}
	}
	return i
}

// word is where the name that begins at i ends: before a comma, a blank or an arrow.
func (s *scanner) word(i int) int {
	for i < s.end && s.text[i] != ',' && blankAt(s.text, i) == 0 && s.arrow(i) == Text {
		i++
	}
	return i
}

const modelFlag = "--model"

// flagAt says whether the flag stands at i, and where it ends.
func (s *scanner) flagAt(i int) (end int, ok bool) {
	if !strings.HasPrefix(s.text[i:s.end], modelFlag) {
		return i, false
	}
	switch end = i + len(modelFlag); {
	case end < s.end && s.text[end] == '=':
		return end + 1, true
	case end == s.end || blankAt(s.text, end) > 0 || s.arrow(end) != Text:
		return end, true
	}
	return i, false
}

// flags reads --model NAME behind the agents, and says where the task begins.
func (s *scanner) flags(i int) int {
	i = min(skipBlanks(s.text, i), s.end)
	end, ok := s.flagAt(i)
	if ok {
		i = s.add(Flag, i, end, false)
		if s.text[i-1] != '=' {
			i = min(skipBlanks(s.text, i), s.end)
		}
		if end = s.value(i); end > i {
			i = s.add(Value, i, end, false)
		}
		if i = min(skipBlanks(s.text, i), s.end); i < s.end {
			if end, twice := s.flagAt(i); twice {
				return s.add(Wrong, i, end, false)
			}
		}
	}
	if i < s.end && s.text[i] == '\\' {
		if _, ok := s.flagAt(i + 1); ok {
			return s.add(Escape, i, i+len(`\--`), false)
		}
	}
	return i
}

// value is where the value that begins at i ends: before a blank or an arrow. A & alone is none.
func (s *scanner) value(i int) int {
	if i < s.end && s.text[i] == '&' && s.alone(i, i) {
		return i
	}
	for i < s.end && blankAt(s.text, i) == 0 && s.arrow(i) == Text {
		i++
	}
	return i
}

// task reads text with references up to the next stage, and says where that begins and whether there is one.
func (s *scanner) task(i int) (next int, more bool) {
	for i < s.end {
		switch s.text[i] {
		case '\\':
			i = s.escape(i)
		case '$':
			i = s.reference(i)
		case '-':
			kind := s.arrow(i)
			if kind == Text {
				i++
				break
			}
			i = s.add(kind, i, i+2, false)
			if at := skipBlanks(s.text, i); at < s.end && s.text[at] == '@' {
				return at, true
			}
		case '&':
			if s.alone(i, i) {
				s.add(Wrong, i, i+1, false)
			}
			i++
		default:
			i++
		}
	}
	return i, false
}

// escape reads what stands at a backslash.
func (s *scanner) escape(i int) int {
	if i+1 == s.end {
		return i + 1
	}
	switch c := s.text[i+1]; {
	case c == '$' && !s.team.NoRefs:
		return s.add(Escape, i, i+2, false)
	case c == '&' && (s.alone(i, i+1) || i+2 == s.end):
		return s.add(Escape, i, i+2, false)
	case c == '-' && s.arrowAt(i+1, i) != Text:
		return s.add(Escape, i, i+len(`\->`), false)
	}
	return i + 1
}

// alone says whether the & at i, which is written from start on, has blanks around it.
func (s *scanner) alone(start, i int) bool {
	return (i+1 == s.end || blankAt(s.text, i+1) > 0) && s.blankBefore(start)
}

func (s *scanner) blankBefore(i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s.text[:i])
	return i == 0 || isBlank(r)
}

// reference reads what stands at a dollar sign. Two of them never begin a reference, and a name does not end in -.
func (s *scanner) reference(i int) int {
	end := i + 1
	for end < s.end && s.text[end] == '$' {
		end++
	}
	if end > i+1 || s.team.NoRefs || end == s.end || s.text[end] < 'a' || s.text[end] > 'z' {
		return end
	}
	for end < s.end && isNameByte(s.text[end]) {
		end++
	}
	for s.text[end-1] == '-' {
		end--
	}
	return s.add(Reference, i, end, s.team.has(s.text[i+1:end]))
}

func isNameByte(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' }

// arrow says what stands at i: an Arrow, one that is Wrong, or Text.
func (s *scanner) arrow(i int) Kind {
	if s.text[i] != '-' || i > 0 && s.text[i-1] == '\\' {
		return Text
	}
	return s.arrowAt(i, i)
}

// arrowAt says what `->` at i is, when it is written from start on. It is an arrow before @; where nothing is before or behind
// it, it was probably meant to be one; and otherwise it is text, as a longer arrow is.
func (s *scanner) arrowAt(i, start int) Kind {
	if !strings.HasPrefix(s.text[i:s.end], "->") || start > 0 && (s.text[start-1] == '-' || s.text[start-1] == '<') {
		return Text
	}
	switch next := min(skipBlanks(s.text, i+2), s.end); {
	case start == s.first, next == s.end, strings.HasPrefix(s.text[next:s.end], "->"):
		return Wrong
	case s.text[next] == '@':
		return Arrow
	}
	return Text
}

// isBlank says whether r separates words. A no-break space and a byte order mark come with what is pasted, and cannot be seen.
func isBlank(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\u00a0' || r == '\ufeff'
}

// blankAt is how many bytes the blank at i has; 0 when there is none.
func blankAt(text string, i int) int {
	switch c := text[i]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return 1
	case c < utf8.RuneSelf:
		return 0
	}
	if r, n := utf8.DecodeRuneInString(text[i:]); isBlank(r) {
		return n
	}
	return 0
}

// skipBlanks is where the first thing that is no blank stands, from i on.
func skipBlanks(text string, i int) int {
	for i < len(text) {
		n := blankAt(text, i)
		if n == 0 {
			break
		}
		i += n
	}
	return i
}

// trimmedLen is the length of text without the blanks at its end.
func trimmedLen(text string) int { return len(strings.TrimRightFunc(text, isBlank)) }

// wordLen is the length of the word with which text begins.
func wordLen(text string) int {
	i := 0
	for i < len(text) && blankAt(text, i) == 0 {
		i++
	}
	return i
}
