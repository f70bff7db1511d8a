package desk

import "swarm"

// A template is a role with what is usually asked of it.
type template struct {
	name, about  string
	requirements []string
	criteria     []string
	output       string
}

// templates are the roles that a desk can be made for.
var templates = []template{
	{"research", "You find out what is known about a question, and where it is said.",
		[]string{"Name the source of each statement", "Say what could not be found"},
		[]string{"Each statement has a source", "Contradictions between sources are named"}, "findings.md"},
	{"code", "You write and change code.",
		[]string{"Keep to the style of the code that is there", "Run the tests"},
		[]string{"The code builds", "Its tests pass"}, "changes.patch"},
	{"analysis", "You analyse data, and say what it shows and how sure that is.",
		[]string{"Say how each figure was computed", "Name what is missing or odd in the data"},
		[]string{"Each figure can be computed again from the inputs"}, "analysis.md"},
	{"writer", "You write texts for readers who know nothing of this task.",
		[]string{"Write for the readers that the context names"},
		[]string{"The text is complete, and has no placeholders"}, "text.md"},
	{"review", "You judge the work of others, and say what to change and why.",
		[]string{"Name the place of each problem", "Order the problems by their weight"},
		[]string{"Each problem has a place, a reason and a proposal"}, "review.md"},
	{"integration", "You make one whole of the outputs of others.",
		[]string{"Use every input, or say why not", "Resolve contradictions, and say how"},
		[]string{"Nothing of the inputs is lost without a word"}, "result.md"},
}

// TemplateNames lists the templates.
func TemplateNames() (names []string) {
	for _, t := range templates {
		names = append(names, t.name)
	}
	return names
}

// Template returns what a desk with a role starts with. The objective is still to be filled in. "" is no
// role.
func Template(name string) (Setup, error) {
	const todo = "{Clear statement of what needs to be accomplished}"
	if name == "" {
		return Setup{Skill: Skill("Agent", "You do the task in `inbox/instructions.md`."), Instructions: Instructions{Objective: todo}}, nil
	}
	for _, t := range templates {
		if t.name != name {
			continue
		}
		i := Instructions{Objective: todo, Requirements: t.requirements,
			Outputs: []string{"Place main deliverable in `outbox/" + t.output + "`", DefaultOutputs[1]}}
		for _, c := range t.criteria {
			i.Criteria = append(i.Criteria, Criterion{Text: c})
		}
		return Setup{Skill: Skill(t.name, t.about), Instructions: i}, nil
	}
	return Setup{}, swarm.Errorf(swarm.BadInput, "there is no template %q", name).WithHint("%s", swarm.DidYouMean(name, TemplateNames()))
}

// Skill is SKILL.md: the role, and how a desk is used.
func Skill(title, about string) string {
	return "# " + title + "\n\n" + about + "\n\n" + `## How to work here
1. Set "state" in ` + "`status.json`" + ` to "running", and "started" to the time.
2. Read ` + "`inbox/instructions.md`" + `. The inbox is read-only.
3. Work in ` + "`workspace/`" + `. It is yours alone.
4. Put the deliverables into ` + "`outbox/`" + `, and what you did into ` + "`outbox/summary.md`" + `. Tick there the success
   criteria that are met, as in "- [x] The code builds".
5. Set "state" to "completed". If you cannot go on, set it to "failed" and "error" to
   {"type": "…", "message": "…", "details": "…", "recoverable": false}, and write ` + "`outbox/error_report.md`" + `.

Write ` + "`status.json`" + ` under another name and rename it, so that it is never half written. "progress" may
have "current_step", "steps_completed" and "total_steps".
`
}
