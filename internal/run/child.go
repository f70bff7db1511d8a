package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/growth"
	"swarm/internal/provider"
)

// A childSwarm does a task by a swarm. The swarm is a run of its own, with its own log and agents, so
// everything that can be done with a run can be done with it. Its id comes from the turn: after a
// crash the turn finds the run that it began, and drives it on.
type childSwarm struct {
	d     *driver
	plan  *swarm.Plan
	task  *swarm.Task
	agent *swarm.Agent // what its agents are like
}

// swarmOf is the provider of a task that a swarm does.
func (d *driver) swarmOf(p *swarm.Plan, t *swarm.Task, a *swarm.Agent) provider.Provider {
	return &childSwarm{d, p, t, a}
}

// ChildTool is the name under which the stream of a turn tells of the swarm that the turn has begun.
const ChildTool = "swarm"

// ChildID returns the id of the run that a turn begins. It sorts before the run of the turn, so @last
// means that.
func ChildID(parent swarm.RunID, turn swarm.TurnID) swarm.RunID {
	const stamp = len("20261115-143205-")
	sum := sha256.Sum256([]byte(string(parent) + "\x00" + string(turn)))
	return parent[:min(len(parent), stamp)] + "-" + swarm.RunID(hex.EncodeToString(sum[:5]))
}

// Turn has the swarm answer the prompt, and returns its answer. If the turn is cut for good, the
// swarm is cancelled. If this process stops, the swarm is interrupted with the run that it belongs to.
func (s *childSwarm) Turn(ctx context.Context, req provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	if live == nil {
		live = func(swarm.Delta) {}
	}
	child, began, err := s.open(ctx, req)
	if err != nil {
		return provider.Reply{Free: true}, err
	}
	defer child.Close()
	use := &swarm.ToolUse{ID: string(child.ID), Name: ChildTool, Input: swarm.Encode(map[string]string{"run": string(child.ID)})}
	live(swarm.Delta{Kind: swarm.DeltaTool, Tool: use})
	if _, ended, err := child.log.Find(string(swarm.RunEnded)); err != nil || !ended {
		if err == nil {
			err = s.drive(ctx, child, !began, req)
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		if err != nil {
			return provider.Reply{Free: true, Usage: child.usage()}, err
		}
	}
	reply, err := child.reply()
	live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: use.ID, Name: use.Name, Failed: err != nil, Output: "swarm show " + string(child.ID)}})
	return reply, err
}

// open begins the swarm of a turn, or finds the one that an earlier start of the turn has begun.
func (s *childSwarm) open(ctx context.Context, req provider.Request) (child *Run, began bool, err error) {
	d, id := s.d, ChildID(s.d.ID, req.Turn)
	if d.home.Exists(id) {
		child, err := Open(d.home, id)
		if err == nil {
			return child, false, nil
		}
		// A crash came before its first event, or its log is damaged. The former is nothing yet.
		if _, removed := d.home.Store.Remove(ctx, id, swarm.RemoveOptions{Fence: 0}); removed != nil {
			return nil, false, err
		}
	}
	p, bodies, err := s.planOf(req)
	if err != nil {
		return nil, false, err
	}
	start := swarm.RunStart{ID: id, Kind: p.Kind, Name: p.Name, Dir: d.start.Dir, File: d.start.File, NoFile: d.start.NoFile, Sources: d.start.Sources, Version: d.start.Version,
		Parent: &swarm.TurnRef{Run: d.ID, Turn: req.Turn}, Time: time.Now()}
	child, err = Start(ctx, d.home, start, p, bodies)
	return child, true, err
}

// planOf makes the plan of the swarm. It has what is left of the budgets against which its turn counts.
func (s *childSwarm) planOf(req provider.Request) (*swarm.Plan, [][]byte, error) {
	p, rules, query := *s.plan, s.task.Swarm.Swarm, []byte(req.Prompt)
	rules.Query, rules.Worker = swarm.HashOf(query), *s.agent
	if req.Model != "" {
		rules.Worker.Model, rules.Worker.Tier = req.Model, ""
	}
	rules.Taken = TakenNames(&rules)
	growth.PlanSwarm(&p, &rules, s.task.Swarm.MaxAgents, nil)
	if rules.IsCouncil() {
		growth.PlanCouncil(&p, ChildID(s.d.ID, req.Turn), req.Prompt)
	}
	p.Name, p.Stdin = string(req.Turn)+" of "+string(s.d.ID), ""
	if p.Desks != "" { // the folder itself is that of this run
		p.Desks = filepath.Join(p.Desks, string(ChildID(s.d.ID, req.Turn)))
	}
	shares, err := s.shares()
	if err != nil {
		return nil, nil, err
	}
	p.Budget = swarm.Budget{}
	for _, share := range shares {
		p.Budget = p.Budget.Within(share.left)
	}
	bodies := [][]byte{query}
	for _, spec := range p.Providers {
		if spec.Script != "" {
			text, err := s.d.log.Body(spec.Script)
			if err != nil {
				return nil, nil, err
			}
			bodies = append(bodies, text)
		}
	}
	b := &compose.Bundle{Plan: p}
	return &b.Plan, bodies, s.holdAnswer(b, string(query), shares)
}

// A budgetShare is a budget against which the turn of a swarm counts: that of the run, of its agent or
// of its task.
type budgetShare struct {
	what, name  string // agent or task, without the copy's number; "" = the run
	whole, left swarm.Budget
	over        swarm.ErrorKind // the error if it is spent
}

// shares returns the budgets against which the swarm counts. Copies share theirs.
func (s *childSwarm) shares() ([]budgetShare, error) {
	v, err := View(s.d.log, s.d.ID)
	if err != nil {
		return nil, err
	}
	p := v.Picture()
	agent := budgetShare{what: "agent", name: cmp.Or(s.agent.Base, s.agent.Name), whole: s.agent.Budget, over: swarm.OverShare}
	task := budgetShare{what: "task", name: cmp.Or(s.task.Base, s.task.Name), whole: s.task.Budget, over: swarm.OverShare}
	var byAgent, byTask swarm.Usage
	for i := range p.Agents {
		if a := &p.Agents[i]; cmp.Or(a.Base, a.Name) == agent.name {
			byAgent = byAgent.Plus(a.Usage)
		}
	}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; cmp.Or(t.Base, t.Name) == task.name {
			byTask = byTask.Plus(t.Usage)
		}
	}
	agent.left, task.left = agent.whole.Minus(byAgent, 0), task.whole.Minus(byTask, 0)
	run := budgetShare{whole: s.plan.Budget, left: s.plan.Budget.Minus(p.Usage, time.Since(s.d.start.Time)), over: swarm.OverBudget}
	return []budgetShare{run, agent, task}, nil
}

// holdAnswer holds back the answer in the budget of a swarm. If what is left of a budget cannot pay for
// a swarm, that budget is spent: another attempt would end the same.
func (s *childSwarm) holdAnswer(b *compose.Bundle, query string, shares []budgetShare) error {
	err := b.HoldAnswer(query)
	if err == nil {
		return nil
	}
	for _, share := range shares {
		if small := b.CheckLeast(query, share.whole, share.what, share.name); small != nil {
			return swarm.Errorf(share.over, "%w; %s", small, swarm.HintOf(small))
		}
		if less := b.CheckLeast(query, share.left, share.what, share.name); less != nil {
			return swarm.Errorf(share.over, "not enough of the budget is left for a swarm: %w. A retry has the whole budget again: swarm retry %s", less, s.d.ID)
		}
	}
	return err
}

// drive drives the swarm to its end. It passes pauses of the parent run on to the swarm. It
// reserves the usage of the swarm in the budget of the parent run, which several swarms may share.
func (s *childSwarm) drive(ctx context.Context, child *Run, again bool, req provider.Request) error {
	driving, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	o, loops := s.d.options, s.d.options.Engine
	if o.Children != nil {
		loops = o.Children
	}
	actor := swarm.Actor{By: swarm.ByAgent, Agent: &swarm.TurnRef{Run: s.d.ID}}
	defer context.AfterFunc(ctx, func() {
		switch swarm.KindOf(context.Cause(ctx)) {
		case swarm.CutByCancel, swarm.CutToReset, swarm.CutToSpeak, swarm.TimedOut:
			if child.Say(driving, swarm.ControlCommand{Command: swarm.CommandCancel, Actor: actor}) == nil {
				return
			}
		}
		stop(context.Cause(ctx))
	})()
	var passing sync.WaitGroup
	passing.Go(func() { s.passOn(driving, child) })
	defer passing.Wait() // it writes to the log of the swarm
	defer stop(nil)
	for {
		_, err := child.Drive(driving, Options{Engine: loops, Unpause: again, Actor: actor, Provider: o.Provider, Server: o.Server, Serve: o.Serve, Reserve: req.Reserve, AwaitRoom: req.AwaitRoom})
		if _, driven := errors.AsType[*swarm.OwnedError](err); !driven {
			return err
		}
		if ended, err := child.awaitDriver(driving); err != nil || ended {
			return err
		}
	}
}

// awaitDriver waits until the process that drives the run has stopped, and reports whether the run
// has ended. A person may have resumed the swarm on its own, before the parent run.
func (r *Run) awaitDriver(ctx context.Context) (ended bool, err error) {
	reader := &Reader{ID: r.ID, home: r.home, log: r.log}
	p := reader.newPoller()
	defer p.stop()
	for first := true; first || reader.Driven(); first = false {
		if err := p.wait(ctx, false); err != nil {
			return false, err
		}
	}
	_, ended, err = r.log.Find(string(swarm.RunEnded))
	return ended, err
}

// passOn passes pause and resume on, until ctx ends. Commands that are older than the swarm do not
// concern it.
func (s *childSwarm) passOn(ctx context.Context, child *Run) {
	changed, leave := s.d.log.Watch()
	defer leave()
	after := int64(0)
	for first := true; ; first = false {
		events, err := s.d.log.Read(after, 100, swarm.ToControl)
		for i := range events {
			after = events[i].Seq
			c, err := swarm.Body[swarm.ControlCommand](&events[i])
			if err == nil && !first && c.Target == "" && (c.Command == swarm.CommandPause || c.Command == swarm.CommandResume) {
				_ = child.Say(ctx, c) // the run itself obeys it anyway, when this turn has ended
			}
		}
		if len(events) > 0 && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// usage is what the turns of a run have used.
func (r *Run) usage() swarm.Usage {
	v, err := View(r.log, r.ID)
	if err != nil {
		return swarm.Usage{}
	}
	return v.Picture().Usage
}

// reply is the end of a swarm, as that of a turn.
func (r *Run) reply() (provider.Reply, error) {
	reply := provider.Reply{Free: true, Usage: r.usage()}
	answer, err := (&Reader{ID: r.ID, home: r.home, log: r.log}).Answer()
	if err != nil {
		return reply, err
	}
	end, ended, err := swarm.FindBody[swarm.RunEnd](r.log, string(swarm.RunEnded))
	if err != nil {
		return reply, err
	}
	if ended && end.Exit == swarm.ExitBudget {
		reply.Notice = &swarm.Reason{Reason: "the budget was spent before its swarm had done all its work: the answer is made of what there was", Hint: "swarm show " + string(r.ID)}
	}
	text := []byte(answer.Text)
	reply.Output, reply.Bytes = text[:min(len(text), swarm.MaxOutput)], int64(len(text))
	return reply, nil
}
