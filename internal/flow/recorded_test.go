package flow_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"swarm"
	"swarm/internal/engine"
	"swarm/internal/engine/enginetest"
	"swarm/internal/engine/local"
	"swarm/internal/fact"
	"swarm/internal/flow"
	"swarm/internal/plan"
	"swarm/internal/sqlite"
)

// A recorded is an Fx that drives a loop again from the log of a run that has ended.
type recorded struct {
	events []swarm.Event
	loop   string
	plans  func(ref string) (*swarm.Plan, error)
	ends   map[string]flow.Result
	keys   map[string]int64 // sequence numbers of the facts that the loop told, by key
	next   int
	told   int64 // the newest of them
}

func (r *recorded) Do(c flow.Call) (flow.Result, error) {
	if c.Kind == flow.KindPlan {
		p, err := r.plans(c.Ref)
		return flow.Result{Plan: p}, err
	}
	end, ok := r.ends[c.ID]
	if !ok {
		return end, errors.New("the log has no end of " + c.ID)
	}
	r.told = max(r.told, end.Seq)
	return end, nil
}

func (r *recorded) Go(flow.Call) error { return nil }

func (r *recorded) Tell(f flow.Fact) error {
	r.told = max(r.told, r.keys[f.Key])
	return nil
}

func (r *recorded) Now() time.Time { return r.events[max(0, r.next-1)].Time }

func (r *recorded) Next(time.Duration) (flow.Signal, error) {
	i, ok := r.following()
	if !ok {
		return flow.Signal{}, errStuck
	}
	r.next = i + 1
	s, _, err := engine.Signal(r.events[i])
	return s, err
}

// following returns the next record that the loop reads.
func (r *recorded) following() (int, bool) {
	for i := r.next; i < len(r.events); i++ {
		e := r.events[i]
		mine := e.To == swarm.ToLoop(r.loop) || e.To == swarm.ToControl || len(e.To) > 0 && e.To[:1] == swarm.ToAgents
		if _, ok, _ := engine.Signal(e); ok && mine && e.Kind != swarm.CallEnded {
			return i, true
		}
	}
	return 0, false
}

// The runs of the engine's tests, with all their crashes: whenever the loop waits with nothing
// untold, a reader of the log has the same model.
func TestTheLoopAndTheLogOfRealRunsAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the tests of the engine")
	}
	compared := 0
	step := 1
	if os.Getenv("SWARM_TEST_LONG") == "" {
		step = 7
	}
	enginetest.Run(t, enginetest.Subject{
		Step:  step,
		Store: func(t *testing.T) swarm.Store { return sqlite.NewStore(t.TempDir()) },
		Engine: func(t *testing.T) engine.Engine {
			return func(ctx context.Context, h *engine.Adapters, c flow.Call) (flow.Result, error) {
				result, err := local.Run(ctx, h, c)
				if err == nil && c.Kind == "team" {
					compared += compare(t, h, c)
				}
				return result, err
			}
		},
	})
	if compared < 500 {
		t.Errorf("only %d moments were compared", compared)
	}
}

func compare(t *testing.T, h *engine.Adapters, c flow.Call) (compared int) {
	events, err := h.Log.Read(0, 1<<20)
	if err != nil {
		t.Error(err) // the test that is compared runs in another goroutine
	}
	r := &recorded{events: events, loop: c.ID, plans: h.Turn.Plan, ends: map[string]flow.Result{}, keys: map[string]int64{}}
	for _, e := range events {
		r.keys[e.Key] = e.Seq
		if s, ok, _ := engine.Signal(e); ok && s.Result.ID != "" {
			r.ends[s.Result.ID] = s.Result
		}
	}
	follower, at := plan.NewTeam(), 0
	disagreed := false
	_, err = flow.WatchedTeam(r, c, func(loop *plan.Team) {
		if disagreed {
			return
		}
		next, ok := r.following()
		if !ok || r.told > int64(next) {
			return // its facts come after the next record
		}
		for ; at < next; at++ {
			f, _, err := fact.Of(&events[at])
			if err != nil {
				t.Error(err)
			}
			follower.Apply(f)
		}
		given := map[string]bool{}
		for _, m := range loop.Members {
			if f := follower.Member(m.Name); m.InTurn() && (f == nil || f.Turn != m.Turn || f.State == plan.MemberCut || m.Effort != nil && m.Effort.Next != nil) {
				given[m.Name] = true
			}
		}
		if got, want := picture(follower, given), picture(loop, given); got != want {
			t.Errorf("before event %d: the log says\n%s\nand the loop\n%s", next+1, got, want)
			disagreed = true
		}
		compared++
	})
	if err != nil {
		t.Error(err)
	}
	return compared
}
