package review

import (
	"slices"
	"strings"
	"testing"

	"swarm"
)

func TestReviews(t *testing.T) {
	for answer, want := range map[string][]int{
		`{"critiques":[{"answer":"A","critique":"too short"}],"ranking":["B","A"]}`: {1, 0},
		"Here it is:\n```json\n{\"ranking\": [\"answer b\", \" a \",]}\n```":        {1, 0},
		`{"thoughts": "…", "ranking": ["A", "B"`:                                    {0, 1},
	} {
		r, err := Read(answer, 2)
		if err != nil || !slices.Equal(r.Ranking, want) {
			t.Errorf("%s: %+v, %v", answer, r, err)
		}
	}
	r, err := Read(`{"critiques":[{"answer":"B","critique":"one"},{"answer":"answer B","critique":"two"},{"answer":"Z","critique":"x"}],"ranking":["B","A"]}`, 2)
	if err != nil || r.Critiques[0] != "" || r.Critiques[1] != "one\ntwo" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A review that does not rank every answer once is asked for again, with what is wrong.
func TestReviewsThatCannotBeRead(t *testing.T) {
	for answer, want := range map[string]string{
		"All are fine.":                               `no object with the field "ranking"`,
		`{"ranking": ["A"]}`:                          "1 of 2 answers",
		`{"ranking": ["A", "A"]}`:                     "has A twice",
		`{"ranking": ["A", "C"]}`:                     `"C"`,
		`{"ranking": "AB"}`:                           "list of letters",
		`{"ranking": ["A","B"], "critiques": "none"}`: "list of objects",
		`{"ranking": [`:                               "breaks off",
		"":                                            "empty",
	} {
		_, err := Read(answer, 2)
		if err == nil || swarm.KindOf(err) != swarm.Unexpected || !strings.Contains(err.Error(), want) || !strings.Contains(swarm.HintOf(err), "each of A, B once") {
			t.Errorf("%s: %v (%s)", answer, err, swarm.HintOf(err))
		}
	}
}
