package compose

import (
	"strings"
	"testing"
)

// A prompt that asks to run something is found, and one that only speaks of it is not.
func TestPromptsThatAskToRun(t *testing.T) {
	check := func(file string) string {
		_, warnings := Check(Options{File: "swarm.yaml", Source: []byte(file), Dir: t.TempDir()})
		var all []string
		for _, w := range warnings {
			all = append(all, w.Msg+" ("+w.Hint+")")
		}
		return strings.Join(all, "\n")
	}
	for text, hint := range map[string]string{
		"Write it, run the tests, and report.":          `agents: {a: {tools: ["Bash(go test:*)"]}}`,
		"Then run `npm test -- --watch=false`.":         `agents: {a: {tools: ["Bash(npm test:*)"]}}`,
		"Keep running the integration tests.":           `"Bash(go test:*)"`,
		"Execute all commands of the plan.":             `"Bash(go test:*)"`,
		"Do not change files. Run your unit tests now.": `"Bash(go test:*)"`,
		"Write it. Do not run the tests.":               "",
		"Answer without running the tests.":             "",
		"Never run commands.":                           "",
		"The tests run in CI. Review the run of today.": "",
		"Write a parser that runs on every line.":       "",
		"Plan how the build is made faster.":            "",
	} {
		got := check("provider: claude-code\ntasks: {a: {prompt-string: \"" + text + "\"}}\n")
		if hint == "" && got != "" || !strings.Contains(got, hint) {
			t.Errorf("%q: %s", text, got)
		}
	}
	const tests = "tasks: {t: {agent: a, prompt-string: Run the tests.}}\n"
	for file, want := range map[string]string{
		"agents: {a: {provider: claude-code, tools: [\"Bash(make:*)\"]}}\n":                   "",
		"agents: {a: {provider: claude-code, tools: [Bash]}}\n":                               "",
		"agents: {a: {provider: claude-code, tools: [Read]}}\n":                               `{a: {tools: ["Read", "Bash(go test:*)"]}}`,
		"agents: {a: {provider: codex}}\n":                                                    "",
		"agents: {a: {provider: anthropic}}\n":                                                "",
		"agents: {a: {provider: gemini}}\n":                                                   `{a: {tools: ["execute"]}}`,
		"agents: {a: {provider: gemini, tools: [execute]}}\n":                                 "",
		"agents: {a: {provider: claude-code}}\napprovals: {tools: auto}\n":                    "",
		"agents: {a: {provider: claude-code, tools: [\"mcp__x\", \"Bash(go vet:*)\"]}}\n":     "",
		"agents: {a: {provider: claude-code}, b: {provider: claude-code}}\nedges: [a -> b]\n": `asks to run commands ("Run the tests")`,
	} {
		got := check(file + tests)
		if want == "" && strings.Contains(got, "asks to run commands") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", file, got)
		}
	}
}
