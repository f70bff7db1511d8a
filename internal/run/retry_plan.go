package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A RetryPlan is an ended run that is to be retried: its plan, its texts, and the turns that are
// carried over, with their effects.
type RetryPlan struct {
	Start       swarm.RunStart
	Plan        *swarm.Plan
	Bodies      [][]byte
	CarriedOver []swarm.Event
	parts       []swarm.Task // the tasks of the run, or the agents of a team, which have no dependencies
}

// PlanRetry reads an ended run and works out its retry. Tasks that failed or were cancelled in the
// last iteration run again, and so does everything that depends on them. With from, that task and
// its dependents run again. If only the goal of a team was not reached, the last turn of its lead runs
// again. The rest is carried over.
func PlanRetry(h *statedir.Home, id swarm.RunID, from string) (*RetryPlan, error) {
	log, a, v, err := openRetry(h, id)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if a.Plan.Swarm != nil { // the results of its agents belong together
		return nil, &StateError{swarm.Errorf(swarm.BadInput, "the run %s is a swarm, which cannot be retried in parts", id).
			WithHint("ask again: swarm solve %s; or go on from one of its turns: swarm fork %s --at TURN", swarm.Quote(a.Plan.Name), id)}
	}
	if from == "" && a.onlyGoalFailed(v) {
		from = a.Plan.Team.Lead
	}
	redo, err := a.redo(func(i int) swarm.Status { return v.At(i).Status }, from)
	if err != nil {
		return nil, err
	}
	last := map[string]int{} // by task: the iteration in which it runs again
	for i, t := range a.parts {
		if redo[i] {
			last[t.Name] = v.At(i).Iteration
		}
	}
	k, err := collectCarriedOver(log, func(e *swarm.Event) bool {
		task, iteration := plan.OfTurn(e.Turn)
		again, ok := last[task]
		return !ok || iteration < again
	}, math.MaxInt64)
	if err == nil {
		err = a.checkRestart(k)
	}
	if err == nil {
		err = k.arrange()
	}
	if err != nil {
		return nil, err
	}
	a.keepEdit(k, func(turn swarm.TurnID) bool { return a.sameTurn(turn, last) })
	if err := a.findDesks(h, log, func(task string) bool { return last[task] > 0 }); err != nil {
		return nil, err
	}
	return a, a.take(log, k)
}

// checkRestart returns an error if an agent was started again after a turn that was cut or failed. In the new
// run nobody starts it again, so the loop would not come by its later turns.
func (p *RetryPlan) checkRestart(k *carriedOver) error {
	if k.restarted == "" {
		return nil
	}
	return &StateError{swarm.Errorf(swarm.BadInput, "the agent %s was started again in the run %s, so its later turns cannot be carried over", k.restarted, p.Start.ID).
		WithHint("begin at a turn before that: swarm fork %s --at TURN; swarm show %s lists the turns", p.Start.ID, p.Start.ID)}
}

// keepEdit keeps the prompt that a person has written for a turn, if the turn is done again as it was.
func (p *RetryPlan) keepEdit(k *carriedOver, again func(swarm.TurnID) bool) {
	e := p.Plan.Edited
	if e == nil || !again(e.Turn) {
		p.Plan.Edited = nil
		return
	}
	kept := *e
	if kept.Upto > 0 {
		kept.Upto = k.number(p.agentOf(e.Turn), e.Upto)
	}
	p.Plan.Edited = &kept
}

// agentOf returns the agent that does a turn.
func (p *RetryPlan) agentOf(turn swarm.TurnID) string {
	task, _ := plan.OfTurn(turn)
	for _, t := range p.parts {
		if t.Name == task {
			return cmp.Or(t.Agent, task)
		}
	}
	return task
}

// sameTurn reports whether a turn runs again with the inputs that it had. last has the iterations in
// which tasks run again.
func (p *RetryPlan) sameTurn(turn swarm.TurnID, last map[string]int) bool {
	task, iteration := plan.OfTurn(turn)
	if last[task] != iteration {
		return false // it is carried over
	}
	for _, t := range p.parts {
		if t.Name == task {
			return !slices.ContainsFunc(t.DependsOn, func(d swarm.Dependency) bool { return last[d.Task] > 0 })
		}
	}
	return false
}

// openRetry opens a run whose turns another run is to carry over, and reads its plan.
func openRetry(h *statedir.Home, id swarm.RunID) (log swarm.RunLog, a *RetryPlan, v *view.Run, err error) {
	if log, err = h.Store.Open(context.Background(), id, swarm.ReadOnly); err != nil {
		return nil, nil, nil, err
	}
	a = &RetryPlan{}
	if v, err = a.read(log, id); err != nil {
		return nil, nil, nil, errors.Join(err, log.Close())
	}
	return log, a, v, nil
}

// read reads the plan of the run, and returns its fold.
func (p *RetryPlan) read(log swarm.RunLog, id swarm.RunID) (v *view.Run, err error) {
	if p.Start, err = firstEvent(log); err != nil {
		return nil, err
	}
	if p.Start.Replay { // its turns are recorded ones, and a replay promises that no agent is started
		return nil, &StateError{swarm.Errorf(swarm.BadInput, "the run %s was a replay, and a retry or fork would start its agents", id).
			WithHint("replay it again: swarm up --replay FILE; or start its agents: swarm up")}
	}
	if p.Start.Kind == swarm.LineRun {
		return nil, &StateError{swarm.Errorf(swarm.BadInput, "the run %s has lines, which cannot be retried or forked", id).
			WithHint("type the line again: swarm run '@AGENT TEXT'; in the REPL, /retry does that. swarm show %s has the lines that failed", id)}
	}
	if v, err = View(log, id); err != nil {
		return nil, err
	}
	first, ok, err := swarm.FindBody[swarm.Plan](log, planKey)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, swarm.Errorf(swarm.Storage, "the run %s has no plan", id)
	}
	p.Plan, p.parts = &first, first.Tasks
	if first.Team != nil { // also those that joined it later
		p.parts = nil
		for i := range v.Len() {
			p.parts = append(p.parts, swarm.Task{Name: v.At(i).Name})
		}
	}
	return v, nil
}

// findDesks notes the desks of the tasks that are carried over, for those that depend on them, and those
// whose inbox a person has corrected, for another attempt. again says which tasks run again.
func (p *RetryPlan) findDesks(h *statedir.Home, log swarm.RunLog, again func(task string) bool) error {
	for i := range p.Plan.Tasks {
		t := &p.Plan.Tasks[i]
		keys, err := log.Keys(swarm.DeskKeys(t.Name + "/"))
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			continue
		}
		opened, _, err := swarm.FindBody[swarm.DeskOpening](log, keys[0]) // the newest is first
		if err != nil {
			return err
		}
		t.OldDesk, t.OldInstructions, t.LateDesk = opened.Dir, false, ""
		if !again(t.Name) {
			continue
		}
		t.OldDesk = ""
		text, err := log.Body(opened.Manifest)
		if err != nil {
			return err
		}
		var before desk.Manifest
		if err := json.Unmarshal(text, &before); err != nil {
			return swarm.Errorf(swarm.Storage, "the inputs of the desk of %s cannot be read: %w", t.Name, err)
		}
		if !deskOf(p.Start.ID, p.Plan, opened.Dir) {
			continue
		}
		d, err := desk.OpenInRun(opened.Dir)
		if err != nil { // the desk is gone
			continue
		}
		if opened.Worker == swarm.ExternalWorker {
			if t.LateDesk, err = finishedLate(log, keys[0], d); err != nil {
				d.Close()
				return err
			}
		}
		p.findCorrection(h, t, d, before)
		d.Close()
	}
	return nil
}

// deskOf reports whether a desk still belongs to a run. A later run may have its desks in the same
// folder.
func deskOf(id swarm.RunID, p *swarm.Plan, dir string) bool {
	return p.Desks == "" || desk.LastRun(filepath.Dir(dir)) == id
}

// findCorrection finds what a person has changed in the inbox of a task's desk. The retry takes the
// changes if the person has run `swarm desk fix`. Otherwise a notice names them.
func (p *RetryPlan) findCorrection(h *statedir.Home, t *swarm.Task, d *desk.Desk, before desk.Manifest) {
	now, err := d.Record()
	if err != nil {
		return // the desk cannot be used, so the retry starts from the plan
	}
	changed := before.Changes(now)
	if h.DeskInputs(d.Path(), &desk.Manifest{}) {
		t.OldDesk, t.OldInstructions = d.Path(), slices.Contains(changed, desk.InstructionsFile)
		return
	}
	if len(changed) == 0 {
		return
	}
	p.CarriedOver = append(p.CarriedOver, swarm.NewEvent(swarm.Notice, swarm.Reason{
		Reason: fmt.Sprintf("%s starts from its plan, and the changes in %s are left out: %s", t.Name, d.Path(), excerpt.List(changed, maxChanged)),
		Hint:   fmt.Sprintf("to use them: swarm desk fix %s -- true; then swarm retry %s --from %s", d.Path(), p.Start.ID, t.Name)}))
}

// maxChanged is the number of changed inputs that one notice names.
const maxChanged = 5

// finishedLate returns the path of the desk if an external worker finished there after the attempt
// had ended, and else "". key is the key of the event that records the opening of the desk.
func finishedLate(log swarm.RunLog, key string, d *desk.Desk) (string, error) {
	now := d.Status(context.Background())
	if finished := now.Violation == nil && now.Status.State == desk.Completed; !finished {
		return "", nil
	}
	parts := strings.Split(strings.TrimPrefix(key, swarm.DeskKeys("")), "/")
	turn := swarm.TurnID(strings.Join(parts[:min(3, len(parts))], "/")) // a later start of the turn has a fourth part
	c, collected, err := swarm.FindBody[swarm.DeskCollection](log, swarm.CollectedKey(turn))
	if err != nil || collected && c.Clean() {
		return "", err
	}
	return d.Path(), nil
}

// onlyGoalFailed reports whether a team failed although none of its agents did: its goal was not
// reached.
func (p *RetryPlan) onlyGoalFailed(v *view.Run) bool {
	picture := v.Picture()
	return p.Plan.Team != nil && picture.Status == swarm.Failed &&
		!slices.ContainsFunc(picture.Tasks, func(t view.Task) bool { return failed(t.Status) })
}

// failed reports whether a retry runs a task of this status again.
func failed(s swarm.Status) bool { return s != swarm.Completed && s != swarm.Skipped }

// redo marks the tasks that run again.
func (p *RetryPlan) redo(status func(i int) swarm.Status, from string) ([]bool, error) {
	parts := p.parts
	redo := make([]bool, len(parts))
	at := map[string]int{}
	var names []string
	found := false
	for i, t := range parts {
		at[t.Name] = i
		names = append(names, t.Name)
		if from == "" {
			redo[i] = failed(status(i))
		} else {
			redo[i] = t.Name == from || t.Base == from
		}
		found = found || redo[i]
	}
	if !found && from != "" {
		return nil, swarm.Errorf(swarm.BadInput, "the run has no task %q", from).WithHint("%s", swarm.DidYouMean(from, names))
	}
	if !found {
		return nil, swarm.Errorf(swarm.BadInput, "nothing failed in this run").WithHint("swarm retry %s --from %s runs a task again, and what depends on it", p.Start.ID, names[0])
	}
	for changed := true; changed; { // dependents, and their dependents
		changed = false
		for i, t := range parts {
			if !redo[i] && slices.ContainsFunc(t.DependsOn, func(d swarm.Dependency) bool { return redo[at[d.Task]] }) {
				redo[i], changed = true, true
			}
		}
	}
	return redo, nil
}

// take takes the carried over events, and the texts of the plan and of them.
func (p *RetryPlan) take(log swarm.RunLog, k *carriedOver) error {
	p.CarriedOver = append(k.out, p.CarriedOver...) // first: they know their numbers
	texts := Texts(p.Plan)
	for _, e := range p.CarriedOver {
		switch e.Kind {
		case swarm.PlanAdded:
			grown, err := swarm.PlanOf(&e)
			if err != nil {
				return err
			}
			texts = append(texts, Texts(grown)...)
			continue
		case swarm.TurnCarriedOver, swarm.ArtifactStored:
		default:
			continue
		}
		names, err := swarm.Body[struct { // the hashes in a turn's end and in an artifact
			Output, Hash swarm.Hash
			FileText     swarm.Hash `json:"file_text"`
			Exchange     swarm.Exchange
		}](&e)
		if err != nil {
			return err
		}
		texts = append(texts, names.Output, names.Hash, names.FileText, names.Exchange.Sent, names.Exchange.Messages)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	for _, h := range texts {
		if h == "" || h == swarm.NoText {
			continue
		}
		b, err := log.Body(h)
		if err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
		p.Bodies = append(p.Bodies, b)
	}
	return nil
}

// Texts lists the hashes of the texts that a plan names.
func Texts(p *swarm.Plan) (all []swarm.Hash) {
	for _, t := range p.Tasks {
		all = append(all, t.Prompt)
		if t.Expect != nil {
			all = append(all, t.Expect.Schema)
		}
	}
	if p.Team != nil && p.Team.Expect != nil {
		all = append(all, p.Team.Expect.Schema)
	}
	for _, ag := range p.AllAgents() {
		all = append(all, ag.Role)
	}
	if p.Swarm != nil {
		all = append(all, p.Swarm.Query)
	}
	for _, s := range p.Providers {
		all = append(all, s.Script)
	}
	all = append(all, p.Stdin)
	if p.Edited != nil {
		all = append(all, p.Edited.Text)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
