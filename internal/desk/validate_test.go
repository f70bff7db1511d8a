package desk

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"swarm"
)

func TestValidate(t *testing.T) {
	d := newDesk(t)
	if errs, warnings := Validate(d.Path()); len(errs)+len(warnings) > 0 {
		t.Fatalf("a new desk: %v, %v", errs, warnings)
	}
	for _, c := range []struct{ file, text, want string }{
		{StatusFile, "{\n  \"state\": \"runnin\"\n}", "status.json:2:3: the field \"state\" is \"\\\"runnin\\\"\""},
		{StatusFile, "{\n  \"state\" \"x\"}", "status.json:2:11: the text is not JSON"},
		{StatusFile, "", "status.json:1:1: the text is not JSON"},
		{StatusFile, `{"state":"running","started":12}`, `status.json:1:20: the field "started" must be a time`},
		{StatusFile, `{"state":"failed"}`, `status.json:1:2: the state is failed, and "error" does not say why`},
		{StatusFile, `{"state":"completed"}`, "summary.md: the worker completed without a summary"},
		{InstructionsFile, "## Objective\nx\n", "instructions.md:1:1: there is no title"},
		{InstructionsFile, "# Task: x\n\n## Objective\n\n## Context\n", "instructions.md:3:1: the objective is empty"},
		{InstructionsFile, "# Task: x\n\n## Objective\n{Clear statement}\n", "instructions.md:4:1: {Clear statement} is still to be filled in"},
		{InstructionsFile, "# Task: x\n## Objective\ny\n## Inputs Provided\n- `a.csv` - A\n", "instructions.md:5:3: the input a.csv is not in inbox/"},
		{DependenciesFile, "{\"depends_on\": [\n  {\"agent\": \"a\", \"outputs\": [\"../x\"]}]}", "dependencies.json:2:30: depends_on[0]: outputs[0]: \"../x\" is not a path"},
		{DependenciesFile, "{\"depends_on\": 1}", "dependencies.json: dependencies.json cannot be read"},
		{DependenciesFile, "{", "dependencies.json:1:1: the text is not JSON"},
		{"outbox", "", "outbox: it is a file, not a folder"},
	} {
		d := newDesk(t)
		if c.file == Outbox {
			os.Remove(filepath.Join(d.Path(), Outbox))
		}
		put(t, d, c.file, c.text)
		errs, warnings := Validate(d.Path())
		contains(t, texts(append(errs, warnings...)), c.want)
	}
}

// TestEmptySummary: Validate and Collect agree about it.
func TestEmptySummary(t *testing.T) {
	d := newDesk(t)
	put(t, d, "outbox/a", "a")
	put(t, d, SummaryFile, "")
	put(t, d, StatusFile, `{"state":"completed","completed":"2024-01-15T11:45:00Z"}`)
	errs, _ := Validate(d.Path())
	c, _ := collect(t, d, Completed, nil)
	if want := texts(c.Violations); want == "" || texts(errs) != want {
		t.Errorf("%s and %s", texts(errs), want)
	}
}

func texts(all []*swarm.Error) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString(e.Error() + "\n")
	}
	return b.String()
}

// TestValidateHostileFolders: nothing in a folder makes it block, or read elsewhere.
func TestValidateHostileFolders(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{StatusFile, SkillFile} {
		syscall.Mkfifo(filepath.Join(dir, name), 0o644)
	}
	os.Symlink("/etc", filepath.Join(dir, Inbox))
	os.Symlink("/", filepath.Join(dir, Outbox))
	errs, _ := Validate(dir)
	for _, want := range []string{"inbox: it is a link", "outbox: it is a link", "status.json: it is a pipe", "SKILL.md: it is a pipe"} {
		contains(t, texts(errs), want)
	}
	if errs, _ := Validate(filepath.Join(dir, "none")); len(errs) != 1 {
		t.Errorf("%v", errs)
	}
}
