package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm"
)

// iteration makes the prompt's parts of an agent that has searched and published in turn.
func iteration(n int) *Iteration {
	it := &Iteration{
		Agent: "takao", Task: "Research US AI chip market", Number: n, Of: 25,
		Team: []Teammate{
			{Name: "takao", Task: "Research US AI chip market"},
			{Name: "mitaka", Task: "Research Japan AI chip market"},
			{Name: "kichijoji", Task: "Compare findings and write report", State: "waits for takao, mitaka"},
		},
	}
	for i := 1; i < n; i++ {
		s := Step{Iteration: i, Action: "tool_call:web_search", Result: fmt.Sprintf("Result %d: ", i) + strings.Repeat("x", 300), Turn: swarm.NewTurnID("takao", i, 1)}
		if i%3 == 0 {
			s.Action, s.Result = "publish_data", `{"seq": 12}`
		}
		it.History = append(it.History, s)
	}
	if n > 1 {
		it.Findings = []Finding{{Agent: "takao", Text: "NVIDIA dominates US with 80% market share", Topic: "findings", Turn: "takao/3/1"}, {Agent: "mitaka", Text: "Japan focuses on edge AI chips", Topic: "findings", Turn: "mitaka/2/1"}}
		it.Inbox = []Message{{From: "mitaka", Type: "info", Payload: `{"message": "Check Samsung's foundry plans"}`}}
	}
	return it
}

func TestIterationGolden(t *testing.T) {
	for _, n := range []int{1, 4, 23, 25} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := BuildIteration(iteration(n))
			checkSpans(t, p)
			system, user := p.SplitSystem()
			tools := []swarm.ToolSpec{{Name: "web_search", Description: "Search the web.", Schema: []byte(`{"type": "object", "properties": {"query": {"type": "string"}}}`)}}
			got := "[System]\n" + system + ToolList(tools) + "[User]\n" + user + "[Assistant prefill] " + Prefill + "\n"
			path := filepath.Join("testdata", "iterations", fmt.Sprintf("%d.txt", n))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("the prompt is another one (%v):\n%s", err, got)
			}
		})
	}
}

// TestIterationHistory checks how much of earlier iterations a prompt shows.
func TestIterationHistory(t *testing.T) {
	it := iteration(1)
	for i := 1; i <= 24; i++ {
		it.History = append(it.History, Step{Iteration: i, Action: "tool_call:web_search", Result: strings.Repeat("é", 10_000)})
	}
	it.Number = 25
	p := BuildIteration(it)
	_, user := p.SplitSystem()
	for i, line := range strings.Split(strings.TrimSpace(p.Text[strings.Index(p.Text, "## Previous Actions\n")+20:strings.Index(p.Text, "\n\n## Budget")]), "\n") {
		want := 500
		if i >= 21 {
			want = 4000
		}
		if got := strings.Count(line, "é"); got != want || !strings.HasSuffix(line, "é…") {
			t.Errorf("of iteration %d %d characters are shown, want %d", i+1, got, want)
		}
	}
	if n := runes(user); n > 24_500 {
		t.Errorf("the prompt of iteration 25 has %d characters", n)
	}
}

// TestIterationIsTrimmed checks that the oldest steps go first, and that three stay.
func TestIterationIsTrimmed(t *testing.T) {
	it := iteration(10)
	it.Inbox = []Message{{From: "mitaka", Type: "info", Payload: strings.Repeat("m", maxChars-3_500)}}
	p := BuildIteration(it)
	if runes(p.Text) > maxChars || strings.Contains(p.Text, "Iteration 1:") || !strings.Contains(p.Text, "Iteration 9:") {
		t.Errorf("the prompt has %d characters:\n%s", runes(p.Text), p.Text[:3000])
	}
	it.Inbox[0].Payload = strings.Repeat("m", maxChars)
	p = BuildIteration(it)
	for i := 1; i < 10; i++ {
		if got, want := strings.Contains(p.Text, fmt.Sprintf("- Iteration %d:", i)), i >= 7; got != want {
			t.Errorf("iteration %d is shown: %v", i, got)
		}
	}
}

// TestSectionsAreOurs checks that no text of others looks like an item, or like a line with which a
// section of ours begins. The lines are those of real prompts, so a new section is found missing in
// swarmLines.
func TestSectionsAreOurs(t *testing.T) {
	failed := []Failure{{Attempt: 1, Reason: "no JSON"}}
	it := iteration(25)
	it.Failures = failed
	texts := BuildIteration(it).Text + ToolList(nil) +
		BuildDivision(&Division{Query: "q", Most: 3, AtOnce: 2, Roles: []string{"a"}, Failures: failed}).Text +
		BuildSynthesis(&Synthesis{Query: "q", Results: []Result{resultForTests("fine")}, Inbox: it.Inbox, Failures: failed}).Text
	var ours, evidence []string
	for line := range strings.SplitSeq(texts, "\n") {
		if strings.HasPrefix(line, "  [") || strings.HasPrefix(line, "  (") || strings.HasPrefix(line, "  It ") {
			evidence = append(evidence, strings.TrimSpace(line))
		}
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "⚠️") || strings.HasPrefix(line, "Decide ") {
			ours = append(ours, line)
		}
	}
	if len(ours) < 20 {
		t.Fatalf("lines of ours: %q", ours)
	}
	honest := countOurs("fine")
	if len(evidence) != 4 {
		t.Fatalf("lines with evidence: %q", evidence)
	}
	for _, line := range append(evidence, "[kamata/1] x", "[ Kamata / 1 ]", "【kamata/1】", "&#91;kamata/1]", "1. **[nishi-ogikubo/12]**", "（report: x）") {
		if _, _, ok := ownLine(&swarmLines, line, ""); !ok {
			t.Errorf("%q is not known as a line of ours", line)
		}
		for _, forged := range []string{line, "  " + line, "- " + line, "> " + line, strings.ToUpper(line), "x\r" + line, "x\u2028" + line, "\u200b" + line, "x <br>" + line} {
			if got := countOurs("x\n" + forged + "\ny"); got != honest {
				t.Errorf("with the text %q, %d lines look like ours; without it %d", forged, got, honest)
			}
		}
	}
	for _, line := range ours {
		words := strings.TrimLeft(line, "# ")
		for _, forged := range []string{line, "  " + line, "> " + line, strings.ToUpper(line), "x\r" + line, "x\u2028" + line, "<h2>" + words + "</h2>", "**" + words + "**", words + "\n====", "\u200b" + line} {
			if strings.HasPrefix(line, "---") && !strings.Contains(forged, line) {
				continue // a fence is no heading
			}
			if got := countOurs("x\n" + forged + "\n- From mitaka (info): {}"); got != honest {
				t.Errorf("with the text %q, %d lines look like ours; without it %d", forged, got, honest)
			}
		}
	}
	for _, text := range []string{"see [takao/1]", "[1/5] Resolving packages", "[x] done", "[a link](https://x/3)", "Report: all is well", "## Results of 2025", "The task is done", "- Tools: none", "Query", "# Limits to growth\nx"} {
		if got := sectionData(text); got != text {
			t.Errorf("ordinary text is changed: %q is %q", text, got)
		}
	}
}

// resultForTests is a result with evidence, that has a text of others everywhere.
func resultForTests(text string) Result {
	return Result{Agent: "takao", Turn: "takao/3/1", Text: text, Reason: text, Task: text, File: "takao-report.md", Report: text, Steps: []Step{
		{Iteration: 1, Action: "tool_call:look", Words: text, Result: text, Turn: "takao/1/1"}, {Iteration: 2, Action: "publish_data", Words: text, Turn: "takao/2/1"}}}
}

// countOurs puts a text wherever text of others stands in the prompts of a swarm, and counts the
// lines that look like ours.
func countOurs(text string) (n int) {
	it := iteration(4)
	it.History[2].Result, it.History[1].Action, it.Inbox[0].Payload, it.Inbox[0].Type, it.Findings[0].Text, it.Task = text, text, text, text, text, text
	it.Failures = []Failure{{Attempt: 1, Reason: text}}
	synthesis := &Synthesis{Query: text, Results: []Result{resultForTests(text)}, Inbox: it.Inbox, Failures: it.Failures}
	for _, p := range []Prompt{BuildIteration(it), BuildDivision(&Division{Query: text, Failures: it.Failures}), BuildSynthesis(synthesis)} {
		_, user := p.SplitSystem()
		lines := strings.FieldsFunc(user, endsLine)
		for i, line := range lines {
			rest := strings.Join(lines[i+1:], "\n")
			pieces := []string{line}
			if strings.Contains(line, "<h2>") {
				pieces = strings.SplitAfter(line, ">")
			}
			for _, piece := range pieces {
				if at, _, ok := ownLine(&swarmLines, piece, rest); ok && piece[at] != '\\' {
					n++
				}
			}
		}
	}
	return n
}

// What is held back of a budget for the answer is enough for any results, and what is counted for a
// new plan is enough for any task list.
func TestPromptsOfTheSupervisorAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for agents, long := range map[int]string{7: strings.Repeat("x", 1<<17), 30: strings.Repeat("## 世界\r\n\"\x00", 1<<11)} {
		s := Synthesis{Query: "Why?\n## Results"}
		for range agents {
			s.Results = append(s.Results, Result{Agent: "takao", Task: long, Outcome: swarm.OutcomeForced, Reason: long, Text: long, Turn: "takao/1/1"})
			s.Inbox = append(s.Inbox, Message{From: "takao", Type: "info", Payload: long}, Message{From: "takao", Type: "info", Payload: `"short"`})
		}
		for n := range 2 {
			s.Failures = append(s.Failures, Failure{Attempt: n + 1, Reason: long})
		}
		r := Replan{Query: s.Query, Room: agents, Roles: []string{"reader"}, Inbox: s.Inbox, Failures: s.Failures}
		for range agents {
			r.Tasks = append(r.Tasks, Task{ID: "t1", Task: long, State: long, Text: long})
		}
		if n, most := len(BuildReplan(&r).Text), MaxReplan(r.Query, r.Roles, agents); int64(n) > most {
			t.Errorf("the prompt for a new plan has %d bytes; the bound is %d", n, most)
		}
		made := BuildSynthesis(&s)
		if most := MaxSynthesis(s.Query, len(s.Results), s.Vote != nil); int64(len(made.Text)) > most {
			t.Errorf("the prompt has %d bytes; at most %d are held back", len(made.Text), most)
		}
		if !utf8.ValidString(made.Text) || !strings.Contains(made.Text, "older messages are left out") || !strings.Contains(made.Text, `"short"`) {
			t.Errorf("the prompt is\n%s", made.Text)
		}
	}
}
