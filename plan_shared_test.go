package swarm

import (
	"reflect"
	"runtime"
	"testing"
)

// TestReadersShareAPlan: readers of the same event have the same plan, as long as one of them holds
// it. Body returns another.
func TestReadersShareAPlan(t *testing.T) {
	p := Plan{Kind: PipelineRun, Groups: []Group{{Iterations: 2}},
		Tasks: []Task{{Name: "a", Agent: "a", Prompt: "x", Env: map[string]string{"K": "v"}},
			{Name: "b", Agent: "b", Prompt: "x", DependsOn: []Dependency{{Task: "a", Condition: OnAny}}, Inputs: map[string]string{"i": "a"}}},
		Agents: []Agent{{Name: "a", Provider: "sh", Tools: []string{"t"}}, {Name: "b", Provider: "sh"}}}
	e := NewEvent(PlanAdded, p)
	first, err := PlanOf(&e)
	if err != nil || !reflect.DeepEqual(*first, p) {
		t.Fatalf("%+v %v", first, err)
	}
	again := NewEvent(PlanAdded, p)
	if second, err := PlanOf(&again); err != nil || second != first {
		t.Errorf("a second reader has another plan: %v", err)
	}
	if own, err := Body[Plan](&e); err != nil || &own.Tasks[0] == &first.Tasks[0] {
		t.Errorf("the plan of Body is shared: %v", err)
	}
	other := p
	other.MaxParallel = 3
	e = NewEvent(PlanAdded, other)
	if third, err := PlanOf(&e); err != nil || third == first || third.MaxParallel != 3 {
		t.Errorf("another plan is %+v %v", third, err)
	}
	bad := Event{Kind: PlanAdded, Data: []byte(`{"tasks":1}`)}
	if _, err := PlanOf(&bad); KindOf(err) != Storage {
		t.Errorf("a broken plan: %v", err)
	}
	runtime.KeepAlive(first)
	first = nil
	for known, tries := 1, 0; known > 0; tries++ { // nobody holds the plans: they are forgotten
		if tries == 10_000 {
			t.Fatalf("%d plans that nobody holds are kept", known)
		}
		runtime.GC()
		sharedPlans.mu.Lock()
		known = len(sharedPlans.byBody)
		sharedPlans.mu.Unlock()
	}
}
