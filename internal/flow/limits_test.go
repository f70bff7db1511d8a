package flow_test

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
)

// providers gives the agents of a plan their providers: "a:p b:q".
func providers(p swarm.Plan, text string, on *swarm.OnLimit) swarm.Plan {
	for _, pair := range strings.Fields(text) {
		name, provider, _ := strings.Cut(pair, ":")
		p.Agents = append(p.Agents, swarm.Agent{Name: name, Provider: provider, OnLimit: on})
	}
	return p
}

// alone makes tasks that do not depend on each other.
func alone(t *swarm.Task) { t.DependsOn = nil }

func TestLimitsOfAPipeline(t *testing.T) {
	limited := func(task, lasts string) map[string]string { return map[string]string{task: "limit " + lasts} }
	again := map[string]string{}
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		again["a/1/"+n] = "limit 4h"
	}
	both := map[string]string{"a/1/1": "limit 3h", "a/1/2": "limit 1h"}
	for _, c := range []struct {
		name  string
		world world
		want  string
	}{
		{"a turn waits and runs again, and the attempt does not count", world{plan: providers(tasks("a", nil), "a:p", nil), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			limit_ended p until 03:00
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"others of its provider wait too, and those of another go on",
			world{plan: providers(swarm.Plan{MaxParallel: 1, Tasks: tasks("a b c", alone).Tasks, Groups: []swarm.Group{{Iterations: 1}}}, "a:p b:p c:q", nil), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			task_started c 1/1
			go c/1/1 by q
			task_completed c
			limit_ended p until 03:00
			task_started b 1/1
			go b/1/1
			task_completed b
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"on_limit: fail has no retry", world{plan: providers(tasks("a", func(t *swarm.Task) { t.Retries = 3 }), "a:p", &swarm.OnLimit{Fail: true}), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			task_failed a: why
			run_ended failed 1`},
		{"limit_wait is the most", world{plan: providers(tasks("a", nil), "a:p", &swarm.OnLimit{Wait: time.Hour}), ends: limited("a/1/1", "61m")}, `
			task_started a 1/1
			go a/1/1
			task_failed a: why
			run_ended failed 1`},
		{"in a row, too", world{plan: providers(tasks("a", nil), "a:p", nil), ends: again}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 04:00
			limit_ended p until 04:00
			go a/1/2
			limit_reached a p until 08:00
			limit_ended p until 08:00
			go a/1/3
			limit_reached a p until 12:00
			limit_ended p until 12:00
			go a/1/4
			task_failed a: why
			run_ended failed 1`},
		{"another provider does it, until the limit resets", world{plan: providers(tasks("a b", nil), "a:p b:p", &swarm.OnLimit{Use: "q"}), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00, use q
			go a/1/2 by q
			task_completed a
			task_started b 1/1
			go b/1/1 by q
			task_completed b
			run_ended completed 0`},
		{"of two limits the first to end counts", world{plan: providers(tasks("a", nil), "a:p", &swarm.OnLimit{Use: "q"}), ends: both}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00, use q
			go a/1/2 by q
			limit_reached a q until 01:00
			limit_ended q until 01:00
			go a/1/3 by q
			task_completed a
			run_ended completed 0`},
		{"a person ends the wait", world{plan: providers(tasks("a", nil), "a:p", nil), ends: limited("a/1/1", "3h"), after: map[string]string{"a/1/1": "retry a"}}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			limit_ended p until 03:00, early
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"or of the whole run", world{plan: providers(tasks("a", nil), "a:p", nil), ends: limited("a/1/1", "3h"), after: map[string]string{"a/1/1": "retry"}}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			limit_ended p until 03:00, early
			go a/1/2
			task_completed a
			run_ended completed 0`},
		{"or cancels it", world{plan: providers(tasks("a", nil), "a:p", nil), ends: limited("a/1/1", "3h"), after: map[string]string{"a/1/1": "cancel"}}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			task_cancelled a: the run was cancelled
			run_ended cancelled 1`},
		{"no wait for an output ends meanwhile", world{plan: func() swarm.Plan {
			p := tasks("a b", alone)
			p.Tasks[1].Awaits, p.Tasks[1].WaitTimeout = []string{"a"}, 5*time.Minute
			return providers(p, "a:p b:q", nil)
		}(), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			limit_ended p until 03:00
			go a/1/2
			task_completed a
			task_started b 1/1
			go b/1/1
			task_completed b
			run_ended completed 0`},
		{"the wall time goes on", world{plan: func() swarm.Plan {
			p := providers(tasks("a", nil), "a:p", nil)
			p.Budget.Wall = time.Hour
			return p
		}(), ends: limited("a/1/1", "3h")}, `
			task_started a 1/1
			go a/1/1
			limit_reached a p until 03:00
			budget_spent
			task_cancelled a: budget
			run_ended failed 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.world.now = time.Unix(0, 0)
			_, err := flow.Pipeline(&c.world, flow.Call{ID: swarm.RootLoop, Ref: "plan"})
			want := strings.ReplaceAll(strings.TrimSpace(c.want), "\t", "")
			if got := strings.Join(c.world.told, "\n"); err != nil || got != want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// A limit ends at a time of day: a pause, or a time without a process, does not put it off.
func TestALimitOutlastsAPause(t *testing.T) {
	for name, words := range map[string]string{"paused": "pause", "without a process": "owned"} {
		w := &world{plan: providers(tasks("a", nil), "a:p", nil), ends: map[string]string{"a/1/1": "limit 3h"}, now: time.Unix(0, 0)}
		w.after = map[string]string{"a/1/1": words}
		if words == "pause" {
			w.after["a/1/1"] = "pause,resume"
		}
		o := &office{world: *w}
		o.late, o.by = said(swarm.CommandInterrupt, "nobody"), 4*time.Hour
		if _, err := flow.Pipeline(o, flow.Call{ID: swarm.RootLoop, Ref: "plan"}); err != nil || o.now.Sub(time.Unix(0, 0)) != 4*time.Hour {
			t.Errorf("%s: %v after %s\n%s", name, err, o.now.Sub(time.Unix(0, 0)), strings.Join(o.told, "\n"))
		}
	}
}

func TestLimitsOfATeam(t *testing.T) {
	team := func(on *swarm.OnLimit) swarm.Plan {
		p := swarm.Plan{Team: &swarm.Team{Lead: "lead", Mode: swarm.AutoMode, ReplyTimeout: 10 * time.Minute}}
		return providers(p, "lead:p coder:p tester:p", on)
	}
	for _, c := range []struct {
		name string
		o    office
		want string
	}{
		{"an agent waits, another of its provider too, and the replies that they owe are not late",
			office{world: world{plan: team(nil), ends: map[string]string{"coder/1/1": "limit 3h"}},
				sends: map[swarm.TurnID]string{"lead/1/1": "coder! do it", "coder/1/2": "lead done,tester look", "tester/1/1": "lead seen"}},
			"go lead/1/1; go coder/1/1; limit_reached coder p until 03:00; limit_ended p until 03:00; go coder/1/2; go lead/2/1; go tester/1/1; go lead/3/1; run_ended completed 0"},
		{"or another provider does it", office{world: world{plan: team(&swarm.OnLimit{Use: "r"}), ends: map[string]string{"lead/1/1": "limit 3h"}}},
			"go lead/1/1; limit_reached lead p until 03:00, use r; go lead/1/2 by r; run_ended completed 0"},
		{"or it ends", office{world: world{plan: team(&swarm.OnLimit{Fail: true}), ends: map[string]string{"lead/1/1": "limit 3h"}}},
			"go lead/1/1; agent_ended lead; return lead: it failed: why; run_ended failed 1"},
		{"a person ends the wait", office{world: world{plan: team(nil), ends: map[string]string{"lead/1/1": "limit 3h"}, after: map[string]string{"lead/1/1": "retry lead"}}},
			"go lead/1/1; limit_reached lead p until 03:00; limit_ended p until 03:00, early; go lead/1/2; run_ended completed 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &c.o
			o.now = time.Unix(0, 0)
			o.mail(swarm.User, "lead begin")
			o.signal(owned)
			_, err := flow.Team(o, flow.Call{ID: swarm.RootLoop, Ref: "plan"})
			var told []string
			for _, line := range o.told {
				if !strings.HasPrefix(line, "task_completed") && !strings.HasPrefix(line, "task_failed") && !strings.HasPrefix(line, "task_skipped") && !strings.HasPrefix(line, "task_cancelled") {
					told = append(told, line)
				}
			}
			if got := strings.Join(told, "; "); err != nil || got != c.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// The time of a worker stands still while a limit holds it back.
func TestLimitsOfASwarm(t *testing.T) {
	first, divided := swarmOf("a b", func(s *swarm.Swarm) { s.Timeout = 10 * time.Minute })
	for _, p := range []*swarm.Plan{&first, &divided} {
		for i := range p.Agents {
			p.Agents[i].Provider = "p"
		}
	}
	h := &hive{world: world{plan: first, now: time.Unix(0, 0), ends: map[string]string{"a/1/1": "limit 3h"}}, divided: divided,
		acts: map[string]string{"a/1/2": "done", "b/1/1": "done"}}
	h.signal(owned)
	_, err := flow.Team(h, flow.Call{ID: swarm.RootLoop, Ref: "plan"})
	got := strings.Join(h.told, "; ")
	if err != nil || !strings.Contains(got, "limit_reached a p until 03:00") || !strings.Contains(got, "go a/1/2") || !strings.Contains(got, "run_ended completed 0") {
		t.Errorf("%v: %s", err, got)
	}
	if h.now.Sub(time.Unix(0, 0)) != 3*time.Hour {
		t.Errorf("it took %s", h.now.Sub(time.Unix(0, 0)))
	}
}
