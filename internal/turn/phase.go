package turn

import (
	"context"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// A phaseViolation lists the changes during a turn that the phase forbids. A turn fails only for
// changes that no other turn can have made. If another agent could write there at the same time, a
// person decides.
type phaseViolation struct {
	changed []string // in this attempt
	left    []string // in an earlier attempt that failed for it, and not undone since
	others  []string // other turns that may have made the changes
	unknown error    // why the changes are not fully known
}

// files are the files that make the turn fail.
func (v phaseViolation) files() []string {
	if len(v.others) > 0 {
		return v.left
	}
	all := slices.Concat(v.left, v.changed)
	slices.Sort(all)
	return slices.Compact(all)
}

// finding reports changes that several turns may have made.
func (v phaseViolation) finding() []swarm.Finding {
	changed := v.changed
	if v.unknown != nil {
		changed = append(changed[:len(changed):len(changed)], "what cannot be told ("+v.unknown.Error()+")")
	}
	if len(changed) == 0 || len(v.others) == 0 {
		return nil
	}
	return []swarm.Finding{{Kind: swarm.Shared, About: joinShort(v.others), Evidence: joinShort(changed)}}
}

// findViolation finds the changes that the phase forbids. A file that failed an earlier attempt
// counts until it is as it was before that attempt.
func (r *Runner) findViolation(ctx context.Context, w *work, all []Changes) {
	blamed, since := r.blamed(w)
	earlier := func(file string) bool { return slices.Contains(blamed, file) }
	w.violation.changed = slices.DeleteFunc(r.outside(w, all), earlier)
	w.violation.unknown = r.unverifiable(w)
	if w.violation.unknown != nil {
		for _, dir := range w.writer.dirs { // any turn in these folders may be the cause
			all = append(all[:len(all):len(all)], Changes{Top: resolved(dir)})
		}
	}
	if len(w.violation.changed) > 0 || w.violation.unknown != nil {
		w.violation.others = r.concurrentWriters(w, all, true)
		if w.start > 1 && w.hasOthers() {
			w.violation.others = append(w.violation.others, "whoever did before the turn was begun again")
		}
	}
	if len(blamed) > 0 {
		w.violation.left = slices.DeleteFunc(r.outside(w, r.changes(ctx, w, since)), func(file string) bool { return !earlier(file) })
	}
}

// blamed returns the files that made earlier attempts fail, and the snapshots before the first such
// attempt. A later attempt is compared with those snapshots, because leaving a forbidden change in
// place does not undo it.
func (r *Runner) blamed(w *work) (files []string, since []swarm.FolderSnapshot) {
	for n := 1; n < w.c.Attempt; n++ {
		id := swarm.NewTurnID(w.c.Task, w.c.Iteration, n)
		end, ok, _ := swarm.FindBody[swarm.CallEnd](r.Log, swarm.EndKey(string(id)))
		if !ok || len(end.Outside) == 0 {
			continue
		}
		if start, ok, _ := swarm.FindBody[swarm.TurnStart](r.Log, swarm.StartKey(id, 1)); ok {
			files = append(files, end.Outside...)
			if since == nil {
				since = start.Snapshots
			}
		}
	}
	return files, since
}

// hasOthers says whether the run has another agent that can write without our tools.
func (w *work) hasOthers() bool {
	for name, a := range w.plan.agents {
		other := &work{plan: w.plan, agent: a, spec: w.plan.providers[a.Provider]}
		if name != w.c.Agent && other.changesFiles() != writesNothing && other.writesByItself() {
			return true
		}
	}
	return false
}

// outside returns the changed files outside of docs/, relative to the run's folder.
func (r *Runner) outside(w *work, all []Changes) (files []string) {
	docs := filepath.Join(resolved(filepath.Dir(r.docs(w))), permission.Docs) // docs/ itself is not resolved: a link named docs is no way out
	for _, c := range all {
		for _, file := range c.Files {
			path := filepath.Join(c.Top, file)
			if within(docs, path) && path != docs {
				continue
			}
			if rel, err := filepath.Rel(resolved(r.Dir), path); err == nil && filepath.IsLocal(rel) {
				path = rel
			}
			files = append(files, r.clean(path))
		}
	}
	return files
}

// checkPhase fails a turn with changes that the phase forbids. Swarm cannot keep a program from
// writing, but it sees the result.
func (r *Runner) checkPhase(w *work, err error) error {
	files := w.violation.files()
	switch {
	case err != nil:
		return err
	case len(files) == 0 && len(w.violation.others) == 0:
		return w.violation.unknown
	case len(files) == 0:
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids to write outside of docs/, and the turn changed %s", swarm.PlanningPhase, joinShort(files)).
		WithHint("undo it: `swarm artifact ls` has what each turn changed, and `git apply -R` takes it back")
}

// unverifiable returns an error if the changes of a turn cannot be checked against the phase. A
// turn for which that is known beforehand does not call its provider.
func (r *Runner) unverifiable(w *work) error {
	if w.writer == nil || !w.writer.free || r.docs(w) == "" || w.unseen == nil && len(w.snapshots) > 0 {
		return nil
	}
	return &swarm.Error{Kind: swarm.Denied, Msg: "the phase " + string(swarm.PlanningPhase) + " forbids to write outside of docs/, and whether the turn did cannot be told",
		Err: w.unseen, Hint: swarm.HintOf(w.unseen)}
}

// writesByItself says whether the agent can write without our tools, which enforce the phase.
func (w *work) writesByItself() bool {
	if w.kind().Files == providerkind.ByTools {
		return slices.ContainsFunc(w.rules(), func(r toolrule.Rule) bool { return r.Server != "" })
	}
	return true
}
