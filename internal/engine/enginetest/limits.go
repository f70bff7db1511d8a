package enginetest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// limitCrashes tests a provider whose limit is reached for an hour, until a person ends the wait. The
// agent of another provider works meanwhile, and it is during its turn that the person does so. After
// a crash at any append the run continues as if there was none.
func limitCrashes(t *testing.T, run Subject) {
	begin := func() *harness {
		p := swarm.Plan{
			Tasks:  []swarm.Task{{Name: "a"}, {Name: "b", Group: 1}},
			Groups: []swarm.Group{{Iterations: 1}, {Iterations: 1}},
			Agents: []swarm.Agent{{Name: "b", Provider: "other"}},
			Providers: []swarm.ProviderSpec{
				{Name: "team", Kind: providerkind.ACP}, {Name: "other", Kind: providerkind.ACP}},
		}
		b := newHarness(t, run, p, newTeam(nil))
		b.team.answer = func(ctx context.Context, r provider.Request) (string, error) {
			if r.Turn == "a/1/1" {
				e := swarm.Errorf(swarm.RateLimited, "used up")
				e.Until = time.Now().Add(time.Hour)
				return "", e
			}
			if r.Turn == "b/1/1" {
				reached := func(e swarm.Event) bool { return e.Kind == swarm.LimitReached }
				for !slices.ContainsFunc(b.events(), reached) {
					if ctx.Err() != nil {
						return "", context.Cause(ctx)
					}
				}
				b.append(swarm.Event{Kind: swarm.Control, To: swarm.ToControl, Key: "said:retry",
					Data: swarm.Encode(swarm.ControlCommand{Command: swarm.CommandRetry})}, nil)
			}
			return "out of " + string(r.Turn), nil
		}
		return b
	}
	clean := begin()
	if r, err := clean.drive(0, false); err != nil || r.Status != swarm.CallOK {
		t.Fatalf("without a crash: %+v, %v", r, err)
	}
	want, _ := clean.history()
	for _, line := range []string{"limit_reached a a/1/1", "limit_ended", "turn_ended a a/1/2"} {
		if !slices.Contains(want, line) {
			t.Fatalf("%s is missing:\n%s", line, strings.Join(want, "\n"))
		}
	}
	run.atEveryAppend(t, 5, func(at int, committed bool) bool {
		b := begin()
		crashed := crash(t, at, committed, b.drive)
		if crashed {
			b.checkHistory(at, committed, want)
		}
		return crashed
	})
}
