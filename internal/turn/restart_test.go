package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/sqlite"
	"swarm/internal/turn"
)

// An agent is a provider implemented by a function.
type agent func(ctx context.Context, r provider.Request) (provider.Reply, error)

func (a agent) Turn(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	return a(ctx, r)
}

// A bench is the log of a run with one task, ask, whose prompt reads a number from the output of
// the task tell.
type bench struct {
	*testing.T
	log *sqlite.Log
}

var call = flow.Call{ID: "ask/1/1", Kind: flow.KindTurn, Task: "ask", Agent: "ask", Iteration: 1, Of: 1, Attempt: 1, Ref: "plan:1"}

func newBench(t *testing.T) *bench {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	b := &bench{t, log}
	text, _, err := prompt.Parse(prompt.Source{File: "ask.md", Text: []byte("double {{output:tell:.n}}")}, nil)
	b.check(err)
	plan := swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "team", Kind: "acp"}}, Groups: []swarm.Group{{Iterations: 1}}}
	for _, name := range []string{"tell", "ask"} {
		plan.Agents = append(plan.Agents, swarm.Agent{Name: name, Provider: "team"})
		plan.Tasks = append(plan.Tasks, swarm.Task{Name: name, Agent: name, Prompt: swarm.HashOf(text.Marshal())})
	}
	b.append(text.Marshal(), swarm.Event{Kind: swarm.RunStarted}, swarm.Event{Kind: swarm.PlanAdded, Key: call.Ref, Data: b.json(plan)})
	return b
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) json(v any) json.RawMessage {
	data, err := json.Marshal(v)
	b.check(err)
	return data
}

func (b *bench) append(body []byte, events ...swarm.Event) {
	b.Helper()
	_, err := b.log.Append(b.Context(), swarm.Batch{Events: events, Bodies: [][]byte{body}})
	b.check(err)
}

// tells appends an output of the other task.
func (b *bench) tells(id, text string) {
	b.Helper()
	b.append([]byte(text), swarm.Event{Kind: swarm.TurnEnded, Key: swarm.EndKey(id), Task: "tell", Turn: swarm.TurnID(id),
		Data: b.json(swarm.CallEnd{ID: id, Status: swarm.CallOK, Output: swarm.HashOf([]byte(text))})})
}

// A worker is a turn runner under an engine that owns the run. The engine sets the fence, and
// whether another worker may have run the turn before.
type worker struct {
	*turn.Runner
	fence int64
}

func (w worker) Do(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	c.Fence, c.Again = w.fence, w.fence > 1
	return w.Runner.Do(ctx, loop, c)
}

// owner is the turn runner of a process that has just become the owner of the run.
func (b *bench) owner(log swarm.Log, a agent) worker {
	b.Helper()
	owner, err := b.log.Own(b.Context(), flow.Version, time.Nanosecond)
	b.check(err)
	return worker{b.runner(log, a), owner.Fence}
}

func (b *bench) runner(log swarm.Log, a agent) *turn.Runner {
	return &turn.Runner{Run: "run", Log: log, Dir: b.TempDir(), Provider: func(swarm.ProviderSpec) (provider.Provider, error) { return a, nil }}
}

// dies is an agent that is killed together with its driver.
func dies(stop context.CancelCauseFunc, asked *string) agent {
	return func(ctx context.Context, r provider.Request) (provider.Reply, error) {
		*asked = r.Prompt
		stop(errors.New("killed"))
		<-ctx.Done()
		return provider.Reply{}, context.Cause(ctx)
	}
}

func TestATurnThatIsDoneAgainHasItsFirstPrompt(t *testing.T) {
	for _, since := range []string{`{"n": 22}`, `no number`} {
		b := newBench(t)
		b.tells("tell/1/1", `{"n": 21}`)
		var first, second string
		ctx, stop := context.WithCancelCause(t.Context())
		if _, err := b.owner(b.log, dies(stop, &first)).Do(ctx, "root", call); err == nil || err.Error() != "killed" {
			t.Fatalf("the killed turn: %v", err)
		}
		b.tells("tell/2/1", since)
		r, err := b.owner(b.log, func(_ context.Context, r provider.Request) (provider.Reply, error) {
			second = r.Prompt
			return provider.Reply{Output: []byte("42")}, nil
		}).Do(t.Context(), "root", call)
		if err != nil || r.Status != swarm.CallOK {
			t.Errorf("after %s the turn ended as %+v, %v", since, r, err)
		}
		if first != second {
			t.Errorf("after %s the agent was asked\n%s\nand the first time\n%s", since, second, first)
		}
	}
}

// A deaf log fails when control records are read.
type deaf struct{ swarm.Log }

func (d deaf) Read(after int64, limit int, to ...string) ([]swarm.Event, error) {
	if len(to) > 0 && to[0] == swarm.ToControl {
		return nil, errors.New("the disk failed")
	}
	return d.Log.Read(after, limit, to...)
}

// An error that stops the process says nothing about the turn: the turn must not end as failed or
// cancelled.
func TestATurnDoesNotEndWithItsProcess(t *testing.T) {
	plain, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, c := range map[string]struct {
		ctx context.Context
		log func(*bench) swarm.Log
	}{
		"the context ends without a reason": {plain, func(b *bench) swarm.Log { return b.log }},
		"control cannot be read":            {t.Context(), func(b *bench) swarm.Log { return deaf{b.log} }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.tells("tell/1/1", `{"n": 21}`)
			_, err := b.owner(c.log(b), func(ctx context.Context, r provider.Request) (provider.Reply, error) {
				cancel()
				<-ctx.Done()
				return provider.Reply{}, context.Cause(ctx)
			}).Do(c.ctx, "root", call)
			if err == nil {
				t.Error("the process is not told to stop")
			}
			if e, ok, err := b.log.Find(swarm.EndKey(call.ID)); ok || err != nil {
				t.Errorf("the turn has ended: %s, %v", e.Data, err)
			}
		})
	}
}
