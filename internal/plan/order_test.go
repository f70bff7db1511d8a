package plan

import (
	"slices"
	"testing"

	"swarm"
)

// A replay begins turns in their recorded order: `second` may run at once, and lets `first` try again before it, since both are x's.
func TestOrder(t *testing.T) {
	p := &swarm.Plan{Groups: []swarm.Group{{Iterations: 1}}, Order: []string{"first/1/1", "first/1/2", "answer/1/1", "second/1/1"}, Tasks: []swarm.Task{
		{Name: "second", Agent: "x"}, {Name: "first", Agent: "x"}, {Name: "answer", Agent: "y", DependsOn: []swarm.Dependency{{Task: "first", Condition: swarm.OnAny}}}}}
	s := New()
	if err := s.Add(p); err != nil {
		t.Fatal(err)
	}
	var began []string
	next := func() int {
		t.Helper()
		step := s.Next()
		if step.Kind != StepRun {
			t.Fatalf("after %v: %+v", began, step)
		}
		began = append(began, s.Task(step.Task).Name)
		return step.Task
	}
	first := next()
	if step := s.Next(); step.Kind != StepNone {
		t.Errorf("while x works, %s begins", s.Task(step.Task).Name)
	}
	s.Wait(first, Wait{For: ForRetry})
	s.Again(first)
	next()
	s.Ended(first, swarm.Completed)
	next()
	next()
	if want := []string{"first", "first", "answer", "second"}; !slices.Equal(began, want) {
		t.Errorf("began %v, want %v", began, want)
	}
}

// A plan that has changed since is not kept waiting for turns that it does not have: what was recorded first begins.
func TestOrderWithTurnsThatDoNotCome(t *testing.T) {
	p := &swarm.Plan{Groups: []swarm.Group{{Iterations: 1}}, Order: []string{"gone/1/1", "a/1/1", "b/1/1"}, Tasks: []swarm.Task{
		{Name: "b", Agent: "b"}, {Name: "new", Agent: "new"}, {Name: "a", Agent: "a"}}}
	s := New()
	if err := s.Add(p); err != nil {
		t.Fatal(err)
	}
	if step := s.Next(); step.Kind != StepRun || s.Task(step.Task).Name != "new" {
		t.Fatalf("what was not recorded waits: %+v", step)
	} else if more := s.Next(); more.Kind != StepNone {
		t.Fatalf("the order is given up while something runs: %+v", more)
	} else {
		s.Ended(step.Task, swarm.Completed)
	}
	for _, want := range []string{"a", "b"} {
		if step := s.Next(); step.Kind != StepRun || s.Task(step.Task).Name != want {
			t.Fatalf("%+v, want %s", step, want)
		}
	}
}
