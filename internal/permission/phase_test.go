package permission

import (
	"path/filepath"
	"testing"

	"swarm"
)

func TestPlanningWritesDocs(t *testing.T) {
	for file, allowed := range map[string]bool{
		"docs/plan.md": true, "docs/deep/er.md": true, "./docs/plan.md": true, "docs//x": true, "docs/../docs/x": true,
		"docs": false, "docs/": false, "docs/.": false, "docs/../main.go": false, "main.go": false, "src/docs/x": false, "docsx/y": false, "../docs/x": false, "": false, "/docs/x": false,
	} {
		if err := Writing(swarm.PlanningPhase, file); (err == nil) != allowed || err != nil && swarm.KindOf(err) != swarm.Denied {
			t.Errorf("%q: %v", file, err)
		}
		for _, phase := range []swarm.Phase{swarm.ImplementationPhase, ""} {
			if err := Writing(phase, file); err != nil {
				t.Errorf("%q in %q: %v", file, phase, err)
			}
		}
	}
	if err := Acting(swarm.PlanningPhase, "command"); swarm.KindOf(err) != swarm.Denied {
		t.Error(err)
	}
	if err := Acting(swarm.ImplementationPhase, "command"); err != nil {
		t.Error(err)
	}
}

// FuzzWriting checks that PLANNING allows only paths below docs/.
func FuzzWriting(f *testing.F) {
	for _, seed := range []string{"docs/x", "docs/../x", "../docs/x", "docs", "/docs/x", "docs/./../../x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if Writing(swarm.PlanningPhase, file) != nil {
			return
		}
		if rel, err := filepath.Rel(Docs, file); err != nil || !filepath.IsLocal(rel) || rel == "." {
			t.Errorf("%q is allowed, and is nothing in docs/", file)
		}
	})
}
