package line

import "strings"

// A Candidate is a completion of a word: Text replaces the bytes from Start to End.
type Candidate struct {
	Text       string
	Start, End int // bytes in the line
}

// Complete returns the completions of the word before the cursor: an agent where one can be named,
// a reference in a task, a command at the beginning. They replace only this word.
func Complete(text string, cursor int, team Team, commands []string) []Candidate {
	cursor = max(0, min(cursor, len(text)))
	tokens := Scan(text[:cursor], team)
	if len(tokens) == 0 {
		return nil
	}
	end := cursor
	for end < len(text) && isNameByte(text[end]) {
		end++
	}
	switch last := tokens[len(tokens)-1]; last.Kind {
	case CommandWord:
		return matches(text[last.Start+1:cursor], "/", commands, last.Start, end)
	case Agent:
		word := strings.TrimPrefix(text[last.Start:cursor], "@")
		if len(tokens) > 1 && tokens[len(tokens)-2].Kind == Comma { // one @ serves the whole list
			return matches(word, "", team.without(text, tokens), last.Start, end)
		}
		return matches(word, "@", team.everybody(), last.Start, end)
	case Comma:
		return matches("", "", team.without(text, tokens), cursor, end)
	case Text, Reference:
		start := cursor
		for start > last.Start && isNameByte(text[start-1]) {
			start--
		}
		if last.Kind == Text && start == last.Start && len(tokens) > 1 && tokens[len(tokens)-2].Kind == Reference {
			start = tokens[len(tokens)-2].Start + 1 // $builder- is a reference and a dash until more is typed
		}
		start--
		isRef := start >= 0 && text[start] == '$' &&
			(start == 0 || text[start-1] != '$' && text[start-1] != '\\')
		if team.NoRefs || !isRef || tokens[0].Kind == CommandWord {
			return nil
		}
		return matches(text[start+1:cursor], "$", team.Agents, start, end)
	}
	return nil
}

// without returns the team without the agents in the list that ends the tokens.
func (t *Team) without(text string, tokens []Token) (names []string) {
	named := map[string]bool{}
	for i := len(tokens) - 1; i >= 0 && (tokens[i].Kind == Agent || tokens[i].Kind == Comma); i-- {
		if tokens[i].End < len(text) && text[tokens[i].End] == ',' {
			named[strings.TrimPrefix(text[tokens[i].Start:tokens[i].End], "@")] = true
		}
	}
	for _, name := range t.everybody() {
		if !named[name] {
			names = append(names, name)
		}
	}
	return names
}

// matches returns the names that begin with the word, in upper or lower case.
func matches(word, sign string, names []string, start, end int) (all []Candidate) {
	for _, name := range names {
		if name = strings.TrimPrefix(name, sign); len(name) >= len(word) && strings.EqualFold(name[:len(word)], word) {
			all = append(all, Candidate{sign + name, start, end})
		}
	}
	return all
}
