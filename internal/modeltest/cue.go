package modeltest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"swarm/internal/strictjson"
)

// A Cue is what is answered to those whom it fits, one answer after the other, and the last one to all that follow.
type Cue struct {
	When    string   `json:"when"` // stands in the system's prompt or in what the user said; "" fits all
	Answers []Answer `json:"answers"`
}

// ReadCues reads cues as JSON: [{"when": "SWARM_AGENT_ID is planner", "answers": [{"text": "done"}]}], or only [{"text": "done"}], a
// list of answers for all.
func ReadCues(data []byte) ([]Cue, error) {
	var cues []Cue
	err := strictjson.Decode(data, &cues)
	if err != nil {
		var answers []Answer
		if strictjson.Decode(data, &answers) != nil {
			return nil, fmt.Errorf("neither cues nor answers: %w", err)
		}
		cues = []Cue{{Answers: answers}}
	}
	if len(cues) == 0 {
		return nil, errors.New("there are no answers")
	}
	for i, c := range cues {
		if len(c.Answers) == 0 {
			return nil, fmt.Errorf("cue %d (%q) has no answers", i+1, c.When)
		}
	}
	return cues, nil
}

// fits says whether a request is one for this cue. Once an agent was told who it is, its later turns fit as well.
func (c Cue) fits(r Request) bool {
	return strings.Contains(r.System, c.When) || slices.ContainsFunc(r.Said, func(said string) bool { return strings.Contains(said, c.When) })
}

// cued takes the next answer for a request. Somebody for whom there is none gets an error that no client tries again.
func (s *Server) cued(r Request) Answer {
	for i := range s.cues {
		if c := &s.cues[i]; c.fits(r) {
			a := c.Answers[0]
			if len(c.Answers) > 1 {
				c.Answers = c.Answers[1:]
			}
			return a
		}
	}
	return Answer{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: fmt.Sprintf("no answer is meant for %q", r.Prompt)}
}
