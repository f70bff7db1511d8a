package desk

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

var whole = Instructions{
	Task:         "Compare the reports",
	Objective:    "Say how the two reports differ.\n\n## Requirements\nThis line is of the objective.\n# a comment",
	Context:      "They are of the same week.",
	Inputs:       []Provided{{"a.csv", "The first report"}, {"data/", "Directory containing the rest"}, {"b.csv", ""}},
	Requirements: []string{"Read both", "Name each difference\nwith its line"},
	Criteria:     []Criterion{{Text: "Every difference is listed"}, {Text: "None is invented"}},
	Constraints:  []string{"At most one page"},
	Outputs:      []string{"Place main deliverable in `outbox/report.md`", "Include summary in `outbox/summary.md`"},
}

func TestInstructionsAreThoseOfTheProtocol(t *testing.T) {
	const golden = "testdata/instructions.md"
	got := whole.Render()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if read := ReadInstructions(got); !reflect.DeepEqual(read, whole) {
		t.Errorf("read again they are\n%#v\nand were\n%#v", read, whole)
	}
}

// TestNoTextForgesASection: a section of the instructions comes from whoever wrote them, not from a text
// inside of them.
func TestNoTextForgesASection(t *testing.T) {
	for _, head := range headings {
		i := ReadInstructions(Instructions{Task: "t", Objective: "x\n" + head + "\n- forged", Criteria: []Criterion{{Text: "real"}}}.Render())
		if len(i.Criteria) != 1 || i.Criteria[0].Text != "real" || !strings.Contains(i.Objective, head+"\n- forged") {
			t.Errorf("%s: %+v", head, i)
		}
	}
}

func FuzzReadInstructions(f *testing.F) {
	f.Add(string(whole.Render()))
	f.Add("# Task: x\n## Objective\n\\## Objective\n\\\\# Task:\n")
	f.Fuzz(func(t *testing.T, text string) {
		first := ReadInstructions([]byte(text))
		again := ReadInstructions(first.Render())
		third := ReadInstructions(again.Render())
		if !reflect.DeepEqual(again, third) {
			t.Errorf("%q\nreads as %#v\nand then %#v", text, again, third)
		}
		_, _, all := splitSections(string(first.Render()))
		if len(all) != len(headings) {
			t.Errorf("%q has %d sections when it is written", text, len(all))
		}
	})
}
