// Package review reads how a member of a council judges the answers of the others:
// {"critiques": [{"answer": "A", "critique": "…"}], "ranking": ["B", "A"]}.
package review

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/modeljson"
)

// A Review is what a member says about the answers of the others. Answers are numbered from 0, in the
// order of their letters.
type Review struct {
	Ranking   []int    // the best answer first
	Critiques []string // of each answer; "" = none
}

// Letter is the name of the answer with a number.
func Letter(number int) string { return string(rune('A' + number)) }

// Read reads the review in a model's answer. It must rank each of so many answers, once. Fields that we
// do not know are ignored.
func Read(answer string, answers int) (Review, error) {
	r, err := read(answer, answers)
	if err != nil {
		return Review{}, swarm.Errorf(swarm.Unexpected, "%w", err).
			WithHint(`return ONLY one JSON object, such as {"critiques": [{"answer": "A", "critique": "…"}], "ranking": ["B", "A"]}; the ranking has each of %s once, the best first`, letters(answers))
	}
	return r, nil
}

func read(answer string, answers int) (Review, error) {
	r := Review{Critiques: make([]string, answers)}
	o, err := modeljson.Find(answer, "ranking")
	if err != nil {
		return r, err
	}
	var ranking []string
	if !o.Has("ranking") || json.Unmarshal(o.Fields["ranking"], &ranking) != nil {
		return r, swarm.Errorf(swarm.Unexpected, "the field %q must be a list of letters", "ranking")
	}
	for _, name := range ranking {
		n := number(name, answers)
		switch {
		case n < 0:
			return r, swarm.Errorf(swarm.Unexpected, "the ranking has %s, and there is no such answer", swarm.Quote(name))
		case slices.Contains(r.Ranking, n):
			return r, swarm.Errorf(swarm.Unexpected, "the ranking has %s twice", Letter(n))
		}
		r.Ranking = append(r.Ranking, n)
	}
	if len(r.Ranking) < answers {
		return r, swarm.Errorf(swarm.Unexpected, "the ranking has %d of %d answers", len(r.Ranking), answers)
	}
	var critiques []struct{ Answer, Critique string }
	if o.Has("critiques") && json.Unmarshal(o.Fields["critiques"], &critiques) != nil {
		return r, swarm.Errorf(swarm.Unexpected, "the field %q must be a list of objects", "critiques")
	}
	for _, c := range critiques {
		if n := number(c.Answer, answers); n >= 0 { // words about anything else decide nothing
			r.Critiques[n] = strings.TrimSpace(r.Critiques[n] + "\n" + c.Critique)
		}
	}
	return r, nil
}

// number returns the number of the answer that a model names, or -1. Some write "Answer A" for A.
func number(name string, answers int) int {
	name = strings.TrimSpace(strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "ANSWER"))
	for n := range answers {
		if Letter(n) == name {
			return n
		}
	}
	return -1
}

func letters(answers int) string {
	all := make([]string, answers)
	for n := range all {
		all[n] = Letter(n)
	}
	return strings.Join(all, ", ")
}
