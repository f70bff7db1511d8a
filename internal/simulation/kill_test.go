package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"swarm"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/turn"
)

// A stuck is an agent that works until its time is over, or a tool of it that does. It counts how
// long it has worked, over all processes.
type stuck struct {
	says   string // what it answers at once; "" = it is stuck
	worked time.Duration
}

func (s *stuck) Turn(ctx context.Context, req provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	if s.says == "" {
		return provider.Reply{}, s.work(ctx)
	}
	return provider.Reply{Output: []byte(s.says), Bytes: int64(len(s.says))}, nil
}

func (s *stuck) work(ctx context.Context) error {
	began := time.Now()
	<-ctx.Done()
	s.worked += time.Since(began)
	return context.Cause(ctx)
}

func (s *stuck) Specs(context.Context) ([]swarm.ToolSpec, error) {
	return []swarm.ToolSpec{{Name: "look", Schema: json.RawMessage(`{"type": "object"}`)}}, nil
}

func (s *stuck) Call(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
	return "", s.work(ctx)
}

// A turn, or an action, that is killed again and again has its time once, not once for each kill. What
// no process has done is not counted.
func TestKillsGiveNoMoreTime(t *testing.T) {
	const most, life, away = 10 * time.Minute, 4 * time.Minute, 3 * time.Hour
	text, _, err := prompt.Parse(prompt.Source{File: "p", Text: []byte("do it")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	query := []byte("what is to be done")
	pipeline := swarm.Plan{Providers: []swarm.ProviderSpec{{Name: "p", Kind: providerkind.Script}}, Agents: []swarm.Agent{{Name: "a", Provider: "p"}},
		Groups: []swarm.Group{{Iterations: 1}}, Tasks: []swarm.Task{{Name: "a", Agent: "a", Timeout: most, Prompt: swarm.HashOf(text.Marshal())}}}
	team := swarm.Plan{Kind: swarm.SwarmRun, Providers: pipeline.Providers, Team: &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode},
		Agents: []swarm.Agent{{Name: swarm.Supervisor, Provider: "p"}, {Name: "a", Provider: "p", Tools: []string{"look"}}},
		Swarm: &swarm.Swarm{Query: swarm.HashOf(query), Workers: 1, Iterations: 25, Timeout: most,
			Subtasks: []swarm.Subtask{{ID: "t", Agent: "a", Description: "it"}}}}
	for _, test := range []struct {
		name  string
		plan  swarm.Plan
		agent stuck
	}{
		{"a task", pipeline, stuck{}},
		{"an agent of a swarm", team, stuck{}},
		{"an action of a swarm", team, stuck{says: `{"action": "tool_call", "tool": "look", "tool_params": {}}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(1)
				w.plan, w.bodies, w.faults, w.agent = test.plan, [][]byte{text.Marshal(), query}, faults{}, &test.agent
				w.tools = func(*swarm.Agent, swarm.TurnID) (turn.Toolbox, error) { return &test.agent, nil }
				if err := w.begin(w.disk.open()); err != nil {
					t.Fatal(err)
				}
				lives := 1
				for ; lives < 20; lives++ {
					killer := time.AfterFunc(life, func() {
						w.disk.mu.Lock()
						defer w.disk.mu.Unlock()
						w.kill()
					})
					over := w.drive()
					killer.Stop()
					if over {
						break
					}
					time.Sleep(away)
				}
				if worked := test.agent.worked; lives != 3 || worked < most || worked > most+time.Duration(lives)*(lease/3+2*time.Second) || len(w.wrong) > 0 {
					t.Errorf("in %d lives it has worked for %s; it has %s: %v\n%s", lives, worked, most, w.wrong, w.log())
				}
				var timedOut bool
				for _, e := range w.disk.events {
					end, _ := swarm.Body[swarm.AgentEnd](&e)
					timedOut = timedOut || e.Kind == swarm.AgentEnded && end.Outcome == swarm.OutcomeTimedOut || e.Kind == swarm.TaskFailed && e.Task == "a" && end.Kind == swarm.TimedOut
				}
				if !timedOut {
					t.Error(fmt.Sprint("it has not timed out\n", w.log()))
				}
			})
		})
	}
}
