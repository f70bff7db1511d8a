package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// Text that the model is told between two rounds of tools stands beside the results as the user's
// own message, and stays in all later requests. Without such text there is no message.
func TestAsides(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		call := modeltest.Answer{Calls: []modeltest.Call{{Name: "add", Args: `{"a":1,"b":2}`}, {Name: "add", Args: `{"a":3,"b":4}`}}}
		b := newBench(t, kind, call, call, call, modeltest.Answer{Text: "done"})
		var asked []string
		tell := func(_ context.Context, tool string) (string, error) {
			if asked = append(asked, tool); len(asked) == 2 {
				return "mail: <urgent>", nil
			}
			return "", nil
		}
		reply, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds, Aside: tell})
		if err != nil || string(reply.Output) != "done" || fmt.Sprint(asked) != "[add add add]" {
			t.Fatalf("%q, %v; it was asked after %v", reply.Output, err, asked)
		}
		var heard []string
		for _, r := range b.server.Requests() {
			heard = append(heard, strings.Join(r.Said, "|")+fmt.Sprint(" ", len(r.Results)))
		}
		want := "add 0; add 2; add|mail: <urgent> 4; add|mail: <urgent> 6"
		if strings.Join(heard, "; ") != want {
			t.Errorf("the model was told %s, want %s", strings.Join(heard, "; "), want)
		}
	})
}

// Text that cannot be stored is not told, and the turn ends: the disk has failed.
func TestAsideThatFails(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{Name: "add", Args: `{"a":1,"b":2}`}}})
		full := errors.New("the disk is full")
		tell := func(context.Context, string) (string, error) { return "", full }
		if _, err := b.turn(t.Context(), provider.Request{Prompt: "add", ToolSpecs: []swarm.ToolSpec{add}, Call: adds, Aside: tell}); !errors.Is(err, full) {
			t.Errorf("it ended with %v", err)
		}
	})
}
