package providerkind

import (
	"slices"
	"testing"

	"swarm"
)

// Rows must agree with themselves: a capability that needs another one has it.
func TestRows(t *testing.T) {
	for _, k := range table {
		program := k.Tools == ByDoor
		for what, wrong := range map[string]bool{
			"acts by commands, and is no program":                               k.Commands && !program,
			"needs a key that it does not take":                                 k.Needs.Key != "" && !k.Takes(k.Needs.Key),
			"says what to do instead of a key that it takes":                    slices.ContainsFunc(k.Keys, func(key string) bool { return k.Instead[key] != "" }),
			"is a program with a shell, and does not say what confines it":      k.Files == ByAgent && (k.Confined.Always == "" || k.Confined.Planning == ""),
			"writes by itself, and does not say what confines it in PLANNING":   (k.Files == ByProgram || k.Files == ByAgent) != (k.Confined.Planning != ""),
			"changes files with tools that it is not given":                     k.Files == ByTools && k.Tools != InProcess,
			"reads a list of our tools, and is given none":                      k.ToolNames == OurNames && k.Tools != InProcess,
			"reads a list of its program's tools, and is no program":            k.ToolNames == ProgramNames && !program,
			"has no example of its program's tools":                             k.ToolNames == ProgramNames && k.ToolSample == "" && k.ToolPrefix == "",
			"works undeclared, and neither its program nor its server is known": slices.Contains(Presets(), k.Name) && k.Program.Name == "" && k.BaseURL == "",
			"has a program, and does not say how to sign in":                    k.Program.Name != "" && (k.Program.SignIn == "" || k.Program.Package == "" || len(k.KeyVars) == 0),
			"has a program of its own, and does not say where its login is":     k.Program.Name != "" && (len(k.Login.Folders) == 0 || len(k.Login.Obeyed) == 0),
			"is a program that no sandbox can confine":                          program && !k.Takes(keySandbox),
			"needs a model that the preset does not name":                       k.Model == NeedModel && k.Models["medium"] == "",
		} {
			if wrong {
				t.Errorf("the kind %s %s", k.Name, what)
			}
		}
		for tier, model := range k.Models {
			if !slices.Contains([]string{"small", "medium", "large"}, tier) {
				t.Errorf("the kind %s has a model of the tier %q", k.Name, tier)
			}
			if k.ListPrices && !HasPrice(model) {
				t.Errorf("the kind %s has list prices, but not for %s", k.Name, model)
			}
		}
	}
}

// The default of `context` comes from the window, so that a model without one would remember less.
func TestKnowsWindows(t *testing.T) {
	for name, m := range models {
		if m.context < 128_000 {
			t.Errorf("%s has a window of %d tokens", name, m.context)
		}
	}
}

func TestKnowsCost(t *testing.T) {
	for _, c := range []struct {
		kind, server string
		want         bool
	}{{Anthropic, "", true}, {OpenAI, "http://127.0.0.1:1/v1", false}, {ClaudeCode, "", true}, {Codex, "", false}, {Command, "", false}, {"unknown", "", false}} {
		if got := Of(c.kind).KnowsCost(&swarm.ProviderSpec{Kind: c.kind, BaseURL: c.server}); got != c.want {
			t.Errorf("%s at %q: %v", c.kind, c.server, got)
		}
	}
}

func TestNames(t *testing.T) {
	if slices.Contains(Names(), Notify) || !slices.Contains(Names(), Command) || slices.Contains(Presets(), Command) || !slices.Contains(Presets(), Codex) {
		t.Errorf("kinds %v, presets %v", Names(), Presets())
	}
	for i, name := range Names() {
		if slices.Contains(Names()[:i], name) {
			t.Errorf("%s is there twice", name)
		}
	}
}
