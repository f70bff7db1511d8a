package flow_test

import (
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/plan"
)

// The end of a run says why its plan was denied, and which agents an answer lacks.
func TestTheEndOfASwarmSaysWhy(t *testing.T) {
	for want, h := range map[string]*hive{
		"a person has denied the plan: too dear": {acts: map[string]string{"plan": "denied"}},
		"answered without @a, which was cancelled": {acts: map[string]string{"plan": "approved", "b/1/1": "done", "c/1/1": "done"},
			world: world{ends: map[string]string{"a/1/1": "cut"}}},
		"answered without @a, which failed, and without @b, which was cancelled": {acts: map[string]string{"plan": "approved", "c/1/1": "done"},
			world: world{ends: map[string]string{"a/1/1": "not_signed_in", "b/1/1": "cut"}}},
	} {
		h.now = time.Unix(0, 0)
		h.plan, h.divided = swarmOf("a b c", func(s *swarm.Swarm) { s.Approve = true })
		h.signal(owned)
		if _, err := flow.Team(h, flow.Call{ID: swarm.RootLoop, Ref: "plan"}); err != nil || h.reason != want {
			t.Errorf("%q, %v, want %q\n%s", h.reason, err, want, strings.Join(h.told, "; "))
		}
	}
}

// A hive is a world of a swarm. By turn, acts says what an agent does: a tool name with a result
// ("search ok", "search denied"), "publish", "send", "help" or "done". Later results of the same
// action follow after commas. Without an entry it searches. "words" is a turn without an action.
// The supervisor "adds" the worker n, "writes" or "keeps" its plan when it plans anew.
// "help" brings the worker h, "help refused" nobody, and "help asked" waits for a person.
type hive struct {
	world
	divided swarm.Plan // what a division adds
	acts    map[string]string
	budget  swarm.Budget
	refused map[string]bool // requests for help, by id
	same    map[string]bool // agents whose turns all have the same output
	full    bool            // no other agent may be added
	queue   time.Duration   // passes while an agent waits for room in the budget
	waited  string          // the turn that waited an hour for room in the budget of another run
}

// helped is what granted help adds.
var helped = swarm.Plan{Agents: []swarm.Agent{{Name: "h"}}, Swarm: &swarm.Swarm{Subtasks: []swarm.Subtask{{ID: "help-t-a", Agent: "h", For: "a"}}}}

// askHelp asks for help in the name of an agent.
func (h *hive) askHelp(agent, id, how string) {
	if h.refused == nil {
		h.refused = map[string]bool{}
	}
	h.refused[id] = how == "refused"
	h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.ApprovalAsked, Agent: agent, Body: swarm.Approval{ID: id, Growth: &swarm.GrowthRequest{Spawn: &swarm.SpawnRequest{}}}}})
	if how != "asked" {
		h.answerHelp(agent, id)
	}
}

func (h *hive) answerHelp(agent, id string) {
	h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.ApprovalAnswered, Agent: agent, Body: swarm.ApprovalAnswer{ID: id, OK: true}}})
}

// grant carries out the answer to a request for help.
func (h *hive) grant(c flow.Call) flow.Result {
	h.told = append(h.told, "grant "+c.Ref)
	if !h.refused[c.Ref] {
		h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.PlanAdded, Key: "helped"}})
	}
	h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.HandoffStored, Body: plan.Mail{From: swarm.Supervisor, To: c.Agent, Wakes: true, Answers: c.Ref}}})
	return flow.Result{CallEnd: swarm.CallEnd{Wrote: h.seq}, Seq: h.seq}
}

func (h *hive) Do(c flow.Call) (flow.Result, error) {
	switch {
	case c.Kind == flow.KindDivide:
		h.told = append(h.told, strings.TrimSuffix("divide by "+c.Ref, " by "))
		h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.PlanAdded, Key: "divided by " + c.Ref}})
		return flow.Result{CallEnd: swarm.CallEnd{Wrote: h.seq}, Seq: h.seq}, nil
	case c.Kind == flow.KindGrant:
		return h.grant(c), nil
	case c.Kind == flow.KindAssign:
		h.told = append(h.told, "assign "+c.Ref)
		h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.PlanAdded, Key: "assigned"}})
		return flow.Result{CallEnd: swarm.CallEnd{Wrote: h.seq}, Seq: h.seq}, nil
	case c.Kind == flow.KindPlan && c.Ref == "assigned":
		return flow.Result{Plan: &swarm.Plan{Agents: []swarm.Agent{{Name: "x"}}, Swarm: &swarm.Swarm{Subtasks: []swarm.Subtask{{ID: "t-x", Agent: "x"}}}}}, nil
	case c.Kind == flow.KindPlan && strings.HasPrefix(c.Ref, "list"):
		_, needs, _ := strings.Cut(c.Ref, " ")
		return flow.Result{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Entries: []swarm.Subtask{{ID: "t-x", For: "a", DependsOn: strings.Fields(needs)}}}}}, nil
	case c.Kind == flow.KindPlan && strings.HasPrefix(c.Ref, "claim "):
		return flow.Result{Plan: &swarm.Plan{Swarm: &swarm.Swarm{Entries: []swarm.Subtask{{ID: "t-x", Agent: strings.TrimPrefix(c.Ref, "claim ")}}}}}, nil
	case c.Kind == flow.KindNote:
		h.told = append(h.told, "note "+c.Agent+": "+string(c.Note.Code))
		return flow.Result{Seq: h.seq}, nil
	case c.Kind == flow.KindPlan && c.Ref == "helped":
		return flow.Result{Plan: &helped}, nil
	case c.Kind == flow.KindReturn:
		h.told = append(h.told, "return "+c.Agent)
		return flow.Result{Seq: h.seq}, nil
	case c.Kind == flow.KindPlan && strings.HasPrefix(c.Ref, "divided by "):
		by := swarm.TurnID(strings.TrimPrefix(c.Ref, "divided by "))
		added := h.divided
		if by != "" && by != "supervisor/1/1" { // the supervisor has planned anew
			added = swarm.Plan{Swarm: &swarm.Swarm{}}
			if h.acts[string(by)] == "adds" {
				added = swarm.Plan{Agents: []swarm.Agent{{Name: "n"}}, Swarm: &swarm.Swarm{Subtasks: []swarm.Subtask{{ID: "t-n", Agent: "n"}}}}
			}
		}
		rules := *added.Swarm
		added.Swarm, rules.By = &rules, by
		return flow.Result{Plan: &added}, nil
	}
	return h.world.Do(c)
}

func (h *hive) Go(c flow.Call) error {
	if c.Kind == flow.KindAction {
		h.told = append(h.told, "go "+c.ID)
		_, results, _ := strings.Cut(h.acts[c.Ref], " ")
		all := strings.Split(results, ",")
		end := swarm.CallEnd{ID: c.ID, Status: swarm.CallOK}
		if strings.HasPrefix(h.acts[c.Ref], "help") {
			h.askHelp(c.Agent, c.Ref, results)
			all = []string{""}
		}
		if act := h.acts[c.Ref]; strings.HasPrefix(act, "list") || strings.HasPrefix(act, "claim") {
			h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.PlanAdded, Key: strings.TrimSpace(act)}})
			all = []string{""}
		}
		if how := all[min(c.Attempt, len(all))-1]; how != "" && how != "ok" {
			end.Status, end.Kind, end.Reason = swarm.CallFailed, swarm.ErrorKind(how), "why"
		}
		h.signal(flow.Signal{Fact: flow.Fact{Kind: swarm.ActionEnded, Agent: c.Agent, Turn: swarm.TurnID(c.Ref), Body: end}, Result: flow.Result{CallEnd: end}})
		h.control(h.after[c.ID])
		return nil
	}
	if c.Want == plan.WantResults {
		h.told = append(h.told, "list "+c.ID)
		h.signal(ended(swarm.CallEnd{ID: c.ID, Status: swarm.CallOK}))
		return nil
	}
	if h.ends[c.ID] == "slow" { // it takes all the time that it has
		h.ends[c.ID], h.jump = string(swarm.TimedOut), c.Timeout
	}
	if h.ends[c.ID] == "waited" { // for the budget of another run
		delete(h.ends, c.ID)
		h.jump, h.waited = time.Hour, c.ID
	}
	if h.ends[c.ID] == "late" { // it takes most of a minute
		delete(h.ends, c.ID)
		h.jump = 50 * time.Second
	}
	before := len(h.pending)
	if err := h.world.Go(c); err != nil || c.Agent == swarm.Supervisor && c.Want != plan.WantReplan {
		return err
	}
	for i := before; i < len(h.pending); i++ {
		if s := &h.pending[i]; s.Kind == swarm.TurnEnded && s.Result.Status == swarm.CallOK {
			*s = ended(h.act(s.Result.CallEnd))
			s.Seq = int64(i) + 1 + h.seq - int64(len(h.pending))
		}
	}
	return nil
}

// act adds the action to the end of a turn.
func (h *hive) act(end swarm.CallEnd) swarm.CallEnd {
	if end.ID == h.waited {
		end.Waited = time.Hour
	}
	what, _, _ := strings.Cut(h.acts[end.ID], " ")
	if agent, _, _ := strings.Cut(end.ID, "/"); h.same[agent] {
		end.Output = "the same"
	}
	kinds := map[string]swarm.ActionKind{"": swarm.ActToolCall, "search": swarm.ActToolCall, "publish": swarm.ActPublishData, "send": swarm.ActSendMessage,
		"help": swarm.ActRequestHelp, "done": swarm.ActDone}
	if strings.HasPrefix(end.ID, swarm.Supervisor) {
		kinds = map[string]swarm.ActionKind{"adds": swarm.ActReplan, "writes": swarm.ActReplan}
	}
	switch kind, ok := kinds[what]; {
	case what == "list" || what == "claim":
		end.Action = &swarm.Action{Kind: swarm.ActToolCall, Tool: "task_add", Ours: true}
	case what == "keeps":
		end.Inputs.Upto = h.seq
		end.Action = &swarm.Action{Kind: swarm.ActReplan, Taken: true, Weighed: []string{"a"}}
	case ok && kind == swarm.ActReplan:
		end.Inputs.Upto = h.seq
		end.Action = &swarm.Action{Kind: kind, Weighed: []string{"a"}}
	case ok:
		end.Action = &swarm.Action{Kind: kind}
	case what == "coded":
		end.Action = &swarm.Action{Kind: swarm.ActToolCall, Taken: true}
	}
	return end
}

// swarmOf makes the first plan of a swarm, and the plan that its division adds. Names are of workers;
// "b<a" waits for a.
func swarmOf(workers string, change func(s *swarm.Swarm)) (first, divided swarm.Plan) {
	rules := swarm.Swarm{Workers: 3, Iterations: 25, Timeout: 10 * time.Minute}
	if change != nil {
		change(&rules)
	}
	first = swarm.Plan{Kind: swarm.SwarmRun, Team: &swarm.Team{Lead: swarm.Supervisor, Mode: swarm.AutoMode}, Swarm: &rules, Agents: []swarm.Agent{{Name: swarm.Supervisor}}}
	added := rules
	for _, w := range strings.Fields(workers) {
		name, need, _ := strings.Cut(w, "<")
		divided.Agents = append(divided.Agents, swarm.Agent{Name: name})
		added.Subtasks = append(added.Subtasks, swarm.Subtask{ID: "t-" + name, Agent: name})
		if need != "" {
			added.Subtasks[len(added.Subtasks)-1].DependsOn = []string{"t-" + need}
		}
	}
	divided.Swarm = &added
	return first, divided
}

func TestSwarm(t *testing.T) {
	few := func(n int) func(*swarm.Swarm) { return func(s *swarm.Swarm) { s.Iterations = n } }
	replans := func(s *swarm.Swarm) { s.Replan = true }
	timeout := func(s *swarm.Swarm) { s.Timeout = 12 * time.Second }
	const begin = "go supervisor/1/1; divide by supervisor/1/1; "
	for _, c := range []struct {
		name    string
		workers string
		change  func(*swarm.Swarm)
		h       hive
		want    string
	}{
		{"two agents, and one answer of both", "a b", nil, hive{acts: map[string]string{"a/1/1": "search ok", "a/2/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; agent_ended b: done; return b; go a/2/1; agent_ended a: done; return a; go supervisor/2/1; run_ended completed 0"},
		{"one agent's result is the answer", "a", nil, hive{acts: map[string]string{"a/1/1": "done"}},
			begin + "go a/1/1; agent_ended a: done; return a; run_ended completed 0"},
		{"three actions without a tool", "a", nil, hive{acts: map[string]string{"a/1/1": "search ok", "a/2/1": "publish", "a/3/1": "send", "a/4/1": "words"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; go a/3/1; go action/a/3/1; go a/4/1; agent_ended a: converged; return a; list supervisor/2/1; run_ended completed 0"},
		{"a tool in between is work", "a", few(5), hive{acts: map[string]string{"a/1/1": "publish", "a/2/1": "send", "a/3/1": "search ok", "a/4/1": "publish", "a/5/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; go a/3/1; go action/a/3/1; go a/4/1; go action/a/4/1; go a/5/1; agent_ended a: done; return a; run_ended completed 0"},
		{"three tool calls that fail for good", "a", nil, hive{acts: map[string]string{"a/1/1": "search denied", "a/2/1": "search denied", "a/3/1": "search not_found"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; go a/3/1; go action/a/3/1; agent_ended a: aborted; return a; run_ended failed 1"},
		{"one that succeeds in between", "a", few(4), hive{acts: map[string]string{"a/1/1": "search denied", "a/2/1": "search denied", "a/3/1": "search ok", "a/4/1": "search denied"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; go a/3/1; go action/a/3/1; go a/4/1; go action/a/4/1; agent_ended a: forced; return a; list supervisor/2/1; run_ended completed 0"},
		{"the last iteration ends it", "a", few(2), hive{},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; agent_ended a: forced; return a; list supervisor/2/1; run_ended completed 0"},
		{"a tool that is busy is tried again, and uses no iteration", "a", few(2), hive{acts: map[string]string{"a/1/1": "search rate_limited,rate_limited,ok", "a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; task_retrying a after 5s; go action/a/1/1/2; task_retrying a after 10s; go action/a/1/1/3; go a/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"a model that is busy, too", "a", few(1), hive{world: world{ends: map[string]string{"a/1/1": "rate_limited", "a/1/2": "no_result"}}, acts: map[string]string{"a/1/3": "done"}},
			begin + "go a/1/1; task_retrying a after 5s; go a/1/2; task_retrying a after 10s; go a/1/3; agent_ended a: done; return a; run_ended completed 0"},
		{"a server that is away is asked again, and uses no iteration", "a", few(1), hive{world: world{ends: map[string]string{"a/1/1": "unreachable", "a/1/2": "unreachable"}}, acts: map[string]string{"a/1/3": "done"}},
			begin + "go a/1/1; task_retrying a after 5s; go a/1/2; task_retrying a after 10s; go a/1/3; agent_ended a: done; return a; run_ended completed 0"},
		{"for the answer, too, more often than attempts may fail", "a b", nil, hive{world: world{ends: map[string]string{"supervisor/2/1": "exited", "supervisor/2/2": "unreachable", "supervisor/2/3": "rate_limited", "supervisor/2/4": "unreachable", "supervisor/2/5": "exited"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; task_retrying supervisor after 1s; go supervisor/2/2; task_retrying supervisor after 5s; " +
				"go supervisor/2/3; task_retrying supervisor after 10s; go supervisor/2/4; task_retrying supervisor after 15s; go supervisor/2/5; task_retrying supervisor after 2s; go supervisor/2/6; run_ended completed 0"},
		{"until the supervisor's time is over: then the results are listed", "a b", timeout, hive{world: world{ends: map[string]string{"supervisor/2/1": "unreachable", "supervisor/2/2": "unreachable", "supervisor/2/3": "unreachable", "supervisor/2/4": "unreachable", "supervisor/2/5": "unreachable"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; task_retrying supervisor after 5s; go supervisor/2/2; task_retrying supervisor after 1s; " +
				"go supervisor/2/3; task_retrying supervisor after 5s; go supervisor/2/4; task_retrying supervisor after 2s; go supervisor/2/5; notice; list supervisor/2/6; run_ended failed 1"},
		{"a server that never answers does not hold up the answer", "a b", timeout, hive{world: world{ends: map[string]string{"supervisor/2/1": "slow"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; notice; list supervisor/2/2; run_ended failed 1"},
		{"nor a new plan: the swarm goes on as it is", "a b", func(s *swarm.Swarm) { s.Timeout, s.Replan = 12*time.Second, true }, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in", "supervisor/2/1": "slow"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; agent_ended b: done; return b; notice; go supervisor/3/1; run_ended completed 0"},
		{"without a server nothing is divided, and the run fails", "a", timeout, hive{world: world{ends: map[string]string{"supervisor/1/1": "unreachable", "supervisor/1/2": "unreachable", "supervisor/1/3": "slow"}}},
			"go supervisor/1/1; task_retrying supervisor after 5s; go supervisor/1/2; task_retrying supervisor after 1s; go supervisor/1/3; agent_ended supervisor: ; return supervisor; run_ended failed 1"},
		{"an answer that cannot be read is asked for once more", "a", few(2), hive{world: world{ends: map[string]string{"a/1/1": "unexpected", "a/1/2": "unexpected"}}, acts: map[string]string{"a/2/1": "done"}},
			begin + "go a/1/1; task_retrying a after 0s; go a/1/2; go a/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"and three times over, never taken for done", "a", nil, hive{world: world{ends: map[string]string{"a/1/1": "unexpected", "a/1/2": "unexpected", "a/2/1": "unexpected", "a/2/2": "unexpected", "a/3/1": "unexpected", "a/3/2": "unexpected"}}},
			begin + "go a/1/1; task_retrying a after 0s; go a/1/2; go a/2/1; task_retrying a after 0s; go a/2/2; go a/3/1; task_retrying a after 0s; go a/3/2; agent_ended a: aborted; return a; run_ended failed 1"},
		{"a model that refuses the key ends its agent at once", "a b", nil, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"its time is over", "a", func(s *swarm.Swarm) { s.Timeout = 12 * time.Second }, hive{acts: map[string]string{"a/1/1": "search rate_limited"}},
			begin + "go a/1/1; go action/a/1/1; task_retrying a after 5s; go action/a/1/1/2; task_retrying a after 10s; agent_ended a: timed_out; return a; run_ended failed 1"},
		{"a subtask that needs another waits for it", "a b<a", nil, hive{acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; agent_ended a: done; return a; go b/1/1; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"so many work at once", "a b", func(s *swarm.Swarm) { s.Workers = 1 }, hive{acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; agent_ended a: done; return a; go b/1/1; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"a coding agent's turn is its action", "a", few(2), hive{acts: map[string]string{"a/1/1": "coded", "a/2/1": "coded"}},
			begin + "go a/1/1; go a/2/1; agent_ended a: forced; return a; list supervisor/2/1; run_ended completed 0"},
		{"a query that cannot be divided goes to one", "a", nil, hive{world: world{ends: map[string]string{"supervisor/1/1": "unexpected", "supervisor/1/2": "unexpected", "supervisor/1/3": "unexpected"}}, acts: map[string]string{"a/1/1": "done"}},
			"go supervisor/1/1; task_retrying supervisor after 0s; go supervisor/1/2; task_retrying supervisor after 0s; go supervisor/1/3; notice; divide; go a/1/1; agent_ended a: done; return a; run_ended completed 0"},
		{"without a supervisor there is no answer", "a", nil, hive{world: world{ends: map[string]string{"supervisor/1/1": "exited", "supervisor/1/2": "exited", "supervisor/1/3": "exited"}}},
			"go supervisor/1/1; task_retrying supervisor after 1s; go supervisor/1/2; task_retrying supervisor after 2s; go supervisor/1/3; agent_ended supervisor: ; return supervisor; run_ended failed 1"},
		{"a supervisor that is not let in is asked once", "a", nil, hive{world: world{ends: map[string]string{"supervisor/1/1": "not_signed_in"}}},
			"go supervisor/1/1; agent_ended supervisor: ; return supervisor; run_ended failed 1"},
		{"help comes as another agent, and the answer waits for it", "a", nil, hive{acts: map[string]string{"a/1/1": "help", "a/2/1": "done", "h/1/1": "search ok", "h/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; grant a/1/1; go a/2/1; go h/1/1; agent_ended a: done; return a; go action/h/1/1; go h/2/1; agent_ended h: done; return h; go supervisor/2/1; run_ended completed 0"},
		{"help that is refused changes nothing", "a", nil, hive{acts: map[string]string{"a/1/1": "help refused", "a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; grant a/1/1; go a/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"the answer waits for a person who is asked about help", "a", nil, hive{world: world{after: map[string]string{"a/2/1": "approved a/1/1"}}, acts: map[string]string{"a/1/1": "help asked", "a/2/1": "done", "h/1/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; agent_ended a: done; return a; grant a/1/1; return a; go h/1/1; agent_ended h: done; return h; go supervisor/2/1; run_ended completed 0"},
		{"an agent that repeats itself is told, and then ended", "a b", few(9), hive{same: map[string]bool{"a": true}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; agent_ended b: done; return b; go a/2/1; go action/a/2/1; go a/3/1; note a: told_same_output; go action/a/3/1; " +
				"go a/4/1; go action/a/4/1; go a/5/1; go action/a/5/1; go a/6/1; notice; go action/a/6/1; agent_ended a: converged; return a; go supervisor/2/1; run_ended completed 0"},
		{"an open entry of the task list gets a worker", "a", nil, hive{acts: map[string]string{"a/1/1": "list", "a/2/1": "done", "x/1/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; assign t-x; go a/2/1; go x/1/1; agent_ended a: done; return a; agent_ended x: done; return x; go supervisor/2/1; run_ended completed 0"},
		{"when what it waits for has ended", "a b", nil, hive{acts: map[string]string{"a/1/1": "list t-b", "a/2/1": "done", "b/1/1": "search ok", "b/2/1": "done", "x/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; go action/b/1/1; go a/2/1; go b/2/1; agent_ended a: done; return a; agent_ended b: done; return b; assign t-x; go x/1/1; agent_ended x: done; return x; go supervisor/2/1; run_ended completed 0"},
		{"none when an agent has claimed it", "a b", func(s *swarm.Swarm) { s.Workers = 2 }, hive{acts: map[string]string{"a/1/1": "list", "a/2/1": "done", "b/1/1": "claim b", "b/2/1": "done"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; go action/b/1/1; go a/2/1; go b/2/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"none when all are there", "a", nil, hive{full: true, acts: map[string]string{"a/1/1": "list", "a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"tools of ours are no work", "a", nil, hive{acts: map[string]string{"a/1/1": "claim a", "a/2/1": "claim a", "a/3/1": "claim a"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; go action/a/2/1; go a/3/1; go action/a/3/1; agent_ended a: converged; return a; list supervisor/2/1; run_ended completed 0"},
		{"the supervisor adds a worker for one that failed", "a b", replans, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in"}}, acts: map[string]string{"supervisor/2/1": "adds", "b/1/1": "search ok", "b/2/1": "done", "n/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; go action/b/1/1; divide by supervisor/2/1; go b/2/1; go n/1/1; agent_ended b: done; return b; agent_ended n: done; return n; go supervisor/3/1; run_ended completed 0"},
		{"or leaves it", "a", replans, hive{acts: map[string]string{"supervisor/2/1": "keeps", "a/1/1": "words", "a/2/1": "words", "a/3/1": "words"}},
			begin + "go a/1/1; go a/2/1; go a/3/1; agent_ended a: converged; return a; go supervisor/2/1; list supervisor/3/1; run_ended completed 0"},
		{"it does not plan anew when all are there", "a b", func(s *swarm.Swarm) { s.Replan, s.Workers = true, 9 }, hive{full: true, world: world{ends: map[string]string{"a/1/1": "not_signed_in"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"a person's message has it plan anew", "a", replans, hive{world: world{after: map[string]string{"a/1/1": "mail supervisor"}}, acts: map[string]string{"supervisor/2/1": "writes", "a/1/1": "search ok", "a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go supervisor/2/1; go a/2/1; divide by supervisor/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"one that cannot plan anew is asked no more", "a b", replans, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in", "b/2/1": "not_signed_in", "supervisor/2/1": "unexpected", "supervisor/2/2": "unexpected", "supervisor/2/3": "exited"}}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; go action/b/1/1; task_retrying supervisor after 0s; go supervisor/2/2; go b/2/1; " +
				"task_retrying supervisor after 0s; go supervisor/2/3; agent_ended b: aborted; return b; notice; run_ended failed 1"},
		{"no plan is made anew when the budget is spent", "a b", replans, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in", "supervisor/2/1": "over_budget"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; agent_ended b: done; return b; budget_spent; go supervisor/3/1; run_ended failed 3"},
		{"the budget is spent: what is there is the answer", "a b", nil, hive{world: world{ends: map[string]string{"a/2/1": "over_budget"}}, acts: map[string]string{"b/1/1": "search ok", "b/2/1": "search ok"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; go action/b/1/1; go a/2/1; go b/2/1; budget_spent; agent_ended a: spent; return a; go action/b/2/1; agent_ended b: spent; return b; go supervisor/2/1; run_ended failed 3"},
		{"no room beside the turn of another: it waits, and uses no iteration", "a b", few(1), hive{world: world{ends: map[string]string{"a/1/1": "crowded"}}, acts: map[string]string{"b/1/1": "done", "a/1/2": "done"}},
			begin + "go a/1/1; go b/1/1; task_retrying a for room; agent_ended b: done; return b; go a/1/2; agent_ended a: done; return a; go supervisor/2/1; run_ended completed 0"},
		{"the wait for room is none of its time", "a b", few(1), hive{queue: time.Hour, world: world{ends: map[string]string{"a/1/1": "crowded"}}, acts: map[string]string{"b/1/1": "done", "a/1/2": "done"}},
			begin + "go a/1/1; go b/1/1; task_retrying a for room; agent_ended b: done; return b; go a/1/2; agent_ended a: done; return a; go supervisor/2/1; run_ended completed 0"},
		{"nor is the wait for the budget of another run", "a", few(2), hive{world: world{ends: map[string]string{"a/1/1": "waited"}}, acts: map[string]string{"a/1/1": "search ok", "a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; agent_ended a: done; return a; run_ended completed 0"},
		{"each end of a turn lets one of those that wait try again", "a b c", few(2), hive{world: world{ends: map[string]string{"a/1/1": "crowded", "b/1/1": "crowded"}},
			acts: map[string]string{"a/1/2": "done", "b/1/2": "done", "c/2/1": "done"}},
			begin + "go a/1/1; go b/1/1; go c/1/1; task_retrying a for room; task_retrying b for room; go action/c/1/1; go a/1/2; agent_ended a: done; return a; go b/1/2; " +
				"agent_ended b: done; return b; go c/2/1; agent_ended c: done; return c; go supervisor/2/1; run_ended completed 0"},
		{"no room while nobody else has a turn: the budget is spent", "a b", nil, hive{world: world{ends: map[string]string{"a/1/1": "crowded", "a/1/2": "crowded", "a/1/3": "crowded"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; task_retrying a for room; agent_ended b: done; return b; go a/1/2; budget_spent; agent_ended a: spent; return a; go supervisor/2/1; run_ended failed 3"},
		{"a turn that has ended meanwhile may have made room", "a b", few(1), hive{world: world{ends: map[string]string{"b/1/1": "crowded"}}, acts: map[string]string{"a/1/1": "done", "b/1/2": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; task_retrying b for room; go b/1/2; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"two turns have no room for their first request beside the other's start: both are done, one after the other", "a b", few(1),
			hive{world: world{ends: map[string]string{"a/1/1": "crowded late", "b/1/1": "crowded late"}}, acts: map[string]string{"a/1/2": "done", "b/1/2": "done"}},
			begin + "go a/1/1; go b/1/1; task_retrying a for room; task_retrying b for room; go a/1/2; agent_ended a: done; return a; go b/1/2; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"two that wait do not call each other", "a b c d", func(s *swarm.Swarm) { s.Workers = 4 }, hive{world: world{ends: map[string]string{"a/1/1": "crowded late", "b/1/1": "crowded late", "d/1/1": "never", "a/1/2": "crowded late"},
			after: map[string]string{"a/1/2": "end d/1/1"}}, acts: map[string]string{"c/1/1": "done", "b/1/2": "done", "a/1/3": "done", "d/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go c/1/1; go d/1/1; task_retrying a for room; task_retrying b for room; agent_ended c: done; return c; go a/1/2; task_retrying a for room; agent_ended d: done; return d; " +
				"go b/1/2; agent_ended b: done; return b; go a/1/3; agent_ended a: done; return a; go supervisor/2/1; run_ended completed 0"},
		{"no room for its first request while nobody else has a turn: the budget is spent", "a", nil, hive{world: world{ends: map[string]string{"a/1/1": "crowded late"}}},
			begin + "go a/1/1; budget_spent; agent_ended a: spent; return a; list supervisor/2/1; run_ended failed 3"},
		{"a cancelled agent does not wait for room, and holds up no other", "a b c", few(1), hive{world: world{ends: map[string]string{"a/1/1": "crowded", "b/1/1": "crowded"}, before: map[string]string{"c/1/1": "cancel a"}},
			acts: map[string]string{"b/1/2": "done", "c/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go c/1/1; task_retrying a for room; task_retrying b for room; agent_ended a: ; return a; agent_ended c: done; return c; go b/1/2; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"the budget has nothing for the answer: the results are", "a b", nil, hive{world: world{ends: map[string]string{"supervisor/2/1": "over_budget"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; budget_spent; notice; list supervisor/2/2; run_ended failed 3"},
		{"a model that can make no answer loses no results", "a b", nil, hive{world: world{ends: map[string]string{"supervisor/2/1": "exited", "supervisor/2/2": "exited", "supervisor/2/3": "exited"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; task_retrying supervisor after 1s; go supervisor/2/2; task_retrying supervisor after 2s; go supervisor/2/3; notice; list supervisor/2/4; run_ended failed 1"},
		{"the wall time has room for the answer", "a b", nil, hive{budget: swarm.Budget{Wall: time.Minute}, world: world{ends: map[string]string{"b/1/1": "slow"}}, acts: map[string]string{"a/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; budget_spent; agent_ended a: done; return a; agent_ended b: spent; return b; go supervisor/2/1; run_ended failed 3"},
		{"work that is done in time leaves the rest of the time to the answer", "a b", nil, hive{budget: swarm.Budget{Wall: time.Minute}, world: world{ends: map[string]string{"supervisor/2/1": "late"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; run_ended completed 0"},
		{"and if it is too short, the results are the answer", "a b", nil, hive{budget: swarm.Budget{Wall: time.Minute}, world: world{ends: map[string]string{"supervisor/2/1": "slow"}}, acts: map[string]string{"a/1/1": "done", "b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; agent_ended a: done; return a; agent_ended b: done; return b; go supervisor/2/1; notice; budget_spent; list supervisor/2/2; run_ended failed 3"},
		{"a person approves the plan", "a", func(s *swarm.Swarm) { s.Approve = true }, hive{budget: swarm.Budget{Wall: time.Minute}, acts: map[string]string{"plan": "approved", "a/1/1": "done"}},
			begin + "approval_asked supervisor; go a/1/1; agent_ended a: done; return a; run_ended completed 0"},
		{"or denies it: nobody works", "a b", func(s *swarm.Swarm) { s.Approve = true }, hive{acts: map[string]string{"plan": "answered"}},
			begin + "approval_asked supervisor; agent_ended a: ; return a; agent_ended b: ; return b; run_ended cancelled 1"},
		{"later agents wait for a person, and the others go on", "a b", func(s *swarm.Swarm) { s.Approve, s.Replan = true, true }, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in"}},
			acts: map[string]string{"plan": "approved", "plan/2": "approved", "supervisor/2/1": "adds", "b/1/1": "search ok", "b/2/1": "done", "n/1/1": "done"}},
			begin + "approval_asked supervisor; go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; go action/b/1/1; divide by supervisor/2/1; go b/2/1; approval_asked supervisor; " +
				"agent_ended b: done; return b; go n/1/1; agent_ended n: done; return n; go supervisor/3/1; run_ended completed 0"},
		{"those that it denies do not work", "a b", func(s *swarm.Swarm) { s.Approve, s.Replan = true, true }, hive{world: world{ends: map[string]string{"a/1/1": "not_signed_in"}},
			acts: map[string]string{"plan": "approved", "plan/2": "answered", "supervisor/2/1": "adds", "b/1/1": "search ok", "b/2/1": "done"}},
			begin + "approval_asked supervisor; go a/1/1; go b/1/1; agent_ended a: aborted; return a; go supervisor/2/1; go action/b/1/1; divide by supervisor/2/1; go b/2/1; approval_asked supervisor; " +
				"agent_ended b: done; return b; agent_ended n: ; return n; go supervisor/3/1; run_ended completed 0"},
		{"a person closes it, and it answers with what is there", "a b", nil, hive{world: world{after: map[string]string{"action/a/1/1": "close"}}, acts: map[string]string{"b/1/1": "done"}},
			begin + "go a/1/1; go b/1/1; go action/a/1/1; agent_ended b: done; return b; go a/2/1; go action/a/2/1; agent_ended a: forced; return a; go supervisor/2/1; run_ended completed 0"},
		{"a pause lets the action finish and takes no other", "a", few(2), hive{world: world{after: map[string]string{"action/a/1/1": "pause,resume"}}, acts: map[string]string{"a/2/1": "done"}},
			begin + "go a/1/1; go action/a/1/1; go a/2/1; run_pausing; run_unpaused; agent_ended a: done; return a; run_ended completed 0"},
		{"all agents are cancelled: there is no answer", "a b", nil, hive{world: world{ends: map[string]string{"a/1/1": "cut", "b/1/1": "cut"}, before: map[string]string{"a/1/1": "cancel a", "b/1/1": "cancel b"}}},
			begin + "go a/1/1; go b/1/1; agent_ended a: ; return a; agent_ended b: ; return b; run_ended failed 1"},
		{"the run is cancelled", "a b", nil, hive{world: world{ends: map[string]string{"a/1/1": "cut", "b/1/1": "cut"}, before: map[string]string{"a/1/1": "cancel"}}},
			begin + "go a/1/1; go b/1/1; agent_ended a: ; return a; agent_ended b: ; return b; run_ended cancelled 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &c.h
			h.now = time.Unix(0, 0)
			h.plan, h.divided = swarmOf(c.workers, c.change)
			h.plan.Budget = h.budget
			if h.full {
				h.plan.Team.MaxAgents = len(h.divided.Agents)
			}
			h.signal(owned)
			if _, err := flow.Team(h, flow.Call{ID: swarm.RootLoop, Ref: "plan"}); err != nil {
				t.Fatal(err, strings.Join(h.told, "; "))
			}
			var told []string
			for _, line := range h.told {
				if !strings.HasPrefix(line, "task_completed") && !strings.HasPrefix(line, "task_failed") && !strings.HasPrefix(line, "task_cancelled") && !strings.HasPrefix(line, "task_skipped") {
					told = append(told, line)
				}
			}
			if got := strings.Join(told, "; "); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func (h *hive) Tell(f flow.Fact) error {
	if f.Kind == swarm.ApprovalAsked {
		h.jump = time.Hour // people take their time
		id := f.Body.(swarm.Approval).ID
		h.control(h.acts[strings.TrimPrefix(id, swarm.Supervisor+"/")] + " " + id)
	}
	if r, ok := f.Body.(swarm.Retry); ok && r.Room {
		h.jump = h.queue
	}
	if e, ok := f.Body.(swarm.AgentEnd); ok {
		h.told = append(h.told, "agent_ended "+f.Agent+": "+string(e.Outcome))
		return nil
	}
	return h.world.Tell(f)
}

// If a person's file divides the query, the first turns have the time of their agents too.
func TestFirstTurnsOfADividedSwarmHaveATimeLimit(t *testing.T) {
	h := &timedHive{hive: hive{world: world{now: time.Unix(1000, 0)}, acts: map[string]string{"a/1/1": "done"}}}
	var divided swarm.Plan
	h.plan, divided = swarmOf("a", nil)
	h.plan.Agents, h.plan.Swarm.Subtasks = append(h.plan.Agents, divided.Agents...), divided.Swarm.Subtasks
	h.signal(owned)
	if _, err := flow.Team(h, flow.Call{ID: swarm.RootLoop, Ref: "plan"}); err != nil {
		t.Fatal(err)
	}
	if h.first != 10*time.Minute {
		t.Errorf("the first turn may take %v", h.first)
	}
}

// A timedHive notes how long the first turn may take.
type timedHive struct {
	hive
	first time.Duration
}

func (h *timedHive) Go(c flow.Call) error {
	if c.ID == "a/1/1" {
		h.first = c.Timeout
	}
	return h.hive.Go(c)
}
