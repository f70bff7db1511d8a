package view

import (
	"bytes"
	"fmt"
	"testing"

	"swarm"
)

// TestLargeFoldsAreStoredCompressed: they come back the same, and a damaged one is refused.
func TestLargeFoldsAreStoredCompressed(t *testing.T) {
	p := swarm.Plan{Kind: swarm.PipelineRun, Groups: []swarm.Group{{Iterations: 1}}}
	for i := range packedTasks {
		name := fmt.Sprint("t", i)
		p.Tasks = append(p.Tasks, swarm.Task{Name: name, Agent: name, Prompt: "x"})
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: "sh"})
		if i > 0 {
			p.Tasks[i].DependsOn = []swarm.Dependency{{Task: fmt.Sprint("t", i-1), Condition: swarm.OnAny}}
		}
	}
	e := swarm.NewEvent(swarm.PlanAdded, p)
	e.Seq = 1
	r := New("r1")
	if err := r.Apply(&e); err != nil {
		t.Fatal(err)
	}
	stored := r.Marshal()
	if len(stored) > 100*packedTasks {
		t.Errorf("%d tasks take %d bytes", packedTasks, len(stored))
	}
	again, err := Unmarshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Marshal(), stored) || again.Len() != packedTasks || again.At(9).Waits[0].Task != "t8" {
		t.Error("it comes back as another")
	}
	for _, damaged := range [][]byte{stored[:len(stored)/2], append(bytes.Clone(stored[:100]), stored[200:]...), append(bytes.Clone(stored), '{'), stored[:len(stored)-1]} {
		if _, err := Unmarshal(damaged); swarm.KindOf(err) != swarm.Storage {
			t.Errorf("a damaged fold: %v", err)
		}
	}
}
