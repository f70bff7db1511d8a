package line

import (
	"strings"
	"unicode/utf8"
)

// A Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Text        Kind = iota
	Agent            // with the @, where it has one; Known = the agent exists
	Comma            // between agents
	Flag             // --model
	Value            // of a flag
	Escape           // a backslash and the character that it makes ordinary
	Reference        // with the $; Known = the agent exists
	Arrow            // ->
	Background       // the & at the end
	CommandWord      // with the /; Known = the command exists
	Argument         // of a command
	Comment          // a whole line that begins with #
	Wrong            // a misplaced arrow, & or flag
)

var kinds = [...]string{
	"text", "agent", "comma", "flag", "value", "escape", "reference", "arrow", "background", "command", "argument",
	"comment", "wrong",
}

func (k Kind) String() string { return kinds[k] }

// A Token is a piece of a line.
type Token struct {
	Kind       Kind
	Start, End int  // bytes in the line
	Known      bool // for an Agent, a Reference and a CommandWord
}

// Scan splits a line into tokens without gaps. It takes linear time and never fails: unknown names
// and misplaced signs are tokens too.
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
	s.textUpTo(len(text))
	return s.tokens
}

// A scanner scans one line. It only moves forward, apart from bounded lookahead for arrows, so the
// time is linear.
type scanner struct {
	text   string
	team   *Team
	end    int // end of the content; only blanks and the last & follow
	first  int // start of the content
	from   int // start of the text that is in no token yet
	tokens []Token
}

// textUpTo makes a token of the pending text before i.
func (s *scanner) textUpTo(i int) {
	if s.from < i {
		s.tokens = append(s.tokens, Token{Kind: Text, Start: s.from, End: i})
		s.from = i
	}
}

// add adds a token, after the pending text before it, and returns its end.
func (s *scanner) add(kind Kind, start, end int, known bool) int {
	s.textUpTo(start)
	s.tokens = append(s.tokens, Token{kind, start, end, known})
	s.from = end
	return end
}

// chain scans a chain of stages. The trailing & is taken off first, because it belongs to the line
// and not to the last task.
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

// takeBackground moves s.end before the trailing &, and returns how many there are.
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

// agents scans @a,b and returns its end.
func (s *scanner) agents(i int) int {
	end := s.nameEnd(i + 1)
	i = s.add(Agent, i, end, s.team.reaches(s.text[i+1:end]))
	for i < s.end && s.text[i] == ',' {
		i = s.add(Comma, i, i+1, false)
		if end = s.nameEnd(i); end > i || i < s.end && s.text[i] == ',' {
			i = s.add(Agent, i, end, s.team.reaches(s.text[i:end]))
		}
	}
	return i
}

// nameEnd returns the end of the name that begins at i: before a comma, a blank or an arrow.
func (s *scanner) nameEnd(i int) int {
	for i < s.end && s.text[i] != ',' && blankAt(s.text, i) == 0 && s.arrow(i) == Text {
		i++
	}
	return i
}

const modelFlag = "--model"

// flagAt reports whether the flag is at i, and returns its end.
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

// flags scans --model NAME behind the agents and returns the start of the task.
func (s *scanner) flags(i int) int {
	i = min(skipBlanks(s.text, i), s.end)
	end, ok := s.flagAt(i)
	if ok {
		i = s.add(Flag, i, end, false)
		if s.text[i-1] != '=' {
			i = min(skipBlanks(s.text, i), s.end)
		}
		if end = s.valueEnd(i); end > i {
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

// valueEnd returns the end of the value that begins at i: before a blank or an arrow. A single & is
// not a value.
func (s *scanner) valueEnd(i int) int {
	if i < s.end && s.text[i] == '&' && s.alone(i, i) {
		return i
	}
	for i < s.end && blankAt(s.text, i) == 0 && s.arrow(i) == Text {
		i++
	}
	return i
}

// task scans text and references up to the next stage. It returns the start of that stage, and
// whether there is one.
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

// escape scans a backslash with the character behind it.
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

// alone reports whether the & at i has blanks around it. start is the position of its backslash, or
// i.
func (s *scanner) alone(start, i int) bool {
	return (i+1 == s.end || blankAt(s.text, i+1) > 0) && s.blankBefore(start)
}

func (s *scanner) blankBefore(i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s.text[:i])
	return i == 0 || isBlank(r)
}

// reference scans one or more dollar signs. Two in a row never begin a reference, and a name does
// not end in -.
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

// arrow returns the kind of what is at i: Arrow, Wrong or Text.
func (s *scanner) arrow(i int) Kind {
	if s.text[i] != '-' || i > 0 && s.text[i-1] == '\\' {
		return Text
	}
	return s.arrowAt(i, i)
}

// arrowAt returns the kind of a `->` at i; start is the position of its backslash, or i. Before @
// it is an arrow. At the beginning or end it was probably meant as one, so it is wrong. Otherwise
// it is text, like longer arrows.
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

// isBlank reports whether r separates words. Pasted text often holds no-break spaces and byte order
// marks, which are invisible, so they count.
func isBlank(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\u00a0' || r == '\ufeff'
}

// blankAt returns the length of the blank at i in bytes; 0 = none.
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

// skipBlanks returns the position of the first non-blank from i on.
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

// trimmedLen returns the length of text without trailing blanks.
func trimmedLen(text string) int { return len(strings.TrimRightFunc(text, isBlank)) }

// wordLen returns the length of the first word of text.
func wordLen(text string) int {
	i := 0
	for i < len(text) && blankAt(text, i) == 0 {
		i++
	}
	return i
}
