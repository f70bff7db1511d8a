package view

import (
	"slices"
	"testing"
)

func TestFindReferences(t *testing.T) {
	for text, want := range map[string][]string{
		"It leads [takao/3]. So it does [takao/3].":           {"takao/3"},
		"Both [takao/3, mitaka/12] and [nishi-ogikubo/1;a/2]": {"takao/3", "mitaka/12", "nishi-ogikubo/1", "a/2"},
		"Both [takao/3 and @mitaka/4]":                        {"takao/3", "mitaka/4"},
		"The turn [takao/4/1] is its iteration.":              {"takao/4"},
		"[A link](https://x/3), [docs/a.md], [3/4], [x/y]":    nil,
		"[takao/9999999999999999999999]":                      {"takao/9999999999999999999999"},
		"No brackets: takao/3":                                nil,
		"[unclosed takao/3":                                   nil,
		"list[n/2], list[0][n/2], but claim[takao/2] [n/3]":   {"takao/2", "n/3"},
		"[[takao/3]]": {"takao/3"},
	} {
		if got := FindReferences(text, func(name string) bool { return name == "takao" }); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
