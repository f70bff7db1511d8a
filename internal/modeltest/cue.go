package modeltest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"swarm/internal/strictjson"
)

// A Cue is the answers to the requests that it fits: one after the other, and then the last one
// again.
type Cue struct {
	When    string   `json:"when"`           // is in the system prompt or in a message of the user; "" fits all
	Also    string   `json:"also,omitempty"` // is there too
	Answers []Answer `json:"answers"`
}

// ReadCues reads cues as JSON: [{"when": "SWARM_AGENT_ID is planner", "answers": [{"text":
// "done"}]}], or only [{"text": "done"}], a list of answers for all.
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

// fits says whether a request is for this cue. An agent's later turns repeat its first message, so
// they fit as well.
func (c Cue) fits(r Request) bool {
	has := func(text string) bool {
		return strings.Contains(r.System, text) ||
			slices.ContainsFunc(r.Said, func(said string) bool { return strings.Contains(said, text) })
	}
	return has(c.When) && has(c.Also)
}

// nextAnswer takes the next answer for a request. A request without one gets an error that no
// client retries.
func (s *Server) nextAnswer(r Request) Answer {
	for i := range s.cues {
		if c := &s.cues[i]; c.fits(r) {
			a := c.Answers[0]
			if len(c.Answers) > 1 {
				c.Answers = c.Answers[1:]
			}
			return a
		}
	}
	return Answer{
		Status:  http.StatusBadRequest,
		Type:    "invalid_request_error",
		Message: fmt.Sprintf("no answer is meant for %q", r.Prompt),
	}
}
