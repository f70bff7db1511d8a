package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// insideTurn is who may use each command inside an agent's turn. A new command is added here after
// this question has been answered for it: could an agent do with it what is a person's to do? If so,
// person-only.txtar tries it.
var insideTurn = map[access]string{
	everyone: "init repl up run team solve desk send inbox reply publish mail artifact done ask wait-for spawn ls show logs out why attach wait diff record export " +
		"check plan graph prompts config schema doctor mcp version",
	ownRuns: "resume retry fork close cancel pause start reset approve deny prune",
	people:  "db serve trust worker",
}

func TestEachCommandSaysWhoMayUseItInsideATurn(t *testing.T) {
	script, err := os.ReadFile("testdata/script/person-only.txtar")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]access{}
	for inside, names := range insideTurn {
		for name := range strings.FieldsSeq(names) {
			want[name] = inside
			if inside != everyone && !strings.Contains(string(script), "\nswarm "+name+" ") {
				t.Errorf("person-only.txtar does not try swarm %s", name)
			}
		}
	}
	got := map[string]access{}
	for _, row := range (&app{}).commandTable() {
		got[row.command.Name()] = row.inside
	}
	if !maps.Equal(got, want) {
		t.Errorf("the commands are %v, and here %v", got, want)
	}
	// Commands that cobra adds to ours only print.
	for _, cmd := range (&app{}).root().Commands() {
		if _, ours := got[cmd.Name()]; !ours && !slices.Contains([]string{"help", "completion"}, cmd.Name()) {
			t.Errorf("%s is not in the table", cmd.Name())
		}
	}
}
