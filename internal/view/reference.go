package view

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"swarm"
)

// A Reference is a place in the answer of a swarm that names where a claim comes from: an agent and
// its iteration, as in [takao/3]. The prompt of the synthesis asks for them. Models that name the
// subtask instead of the agent are understood, too.
type Reference struct {
	Ref   string       `json:"ref"`            // as the answer has it
	Found bool         `json:"found"`          // such a turn has a result
	Turn  swarm.TurnID `json:"turn,omitempty"` // which `swarm show RUN --turn` shows
	What  string       `json:"what,omitempty"` // the action of that turn, in words
}

type referencePatterns struct{ bracketed, reference, listed *regexp.Regexp }

// patterns are compiled when they are first needed: that takes a millisecond, and few commands need
// them.
var patterns = sync.OnceValue(func() referencePatterns {
	return referencePatterns{
		bracketed: regexp.MustCompile(`\[([^\[\]\n]{1,400})\]`),
		reference: regexp.MustCompile(`^@?([a-z][a-z0-9-]*/[0-9]{1,40})(?:/[0-9]{1,6})?$`),
		listed:    regexp.MustCompile(`\s*(?:[,;&]|\band\b)\s*`),
	}
})

// FindReferences returns the references in a text, each once, in their order. A pair of brackets may
// hold several: [takao/3, mitaka/5]. One that says nobody's name counts too, because a model may make
// it up, but not right after a word, where it is an index: list[n/2].
func FindReferences(text string, known func(name string) bool) (refs []string) {
	p := patterns()
	for _, at := range p.bracketed.FindAllStringSubmatchIndex(text, -1) {
		index := at[0] > 0 && isWord(text[at[0]-1])
		for _, one := range p.listed.Split(strings.TrimSpace(text[at[2]:at[3]]), -1) {
			m := p.reference.FindStringSubmatch(one)
			if m == nil || slices.Contains(refs, m[1]) {
				continue
			}
			if name, _, _ := strings.Cut(m[1], "/"); !index || known(name) {
				refs = append(refs, m[1])
			}
		}
	}
	return refs
}

func isWord(c byte) bool {
	return c == '_' || c == ']' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
