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

// A phaseViolation is what was changed against the phase while a turn ran. An agent is failed for what nobody else can have done, and for nothing
// else: of files that changed while another one was free to write there too, a person decides.
type phaseViolation struct {
	changed []string // in this attempt
	left    []string // in an earlier one, which has failed for it, and it is as that one left it
	others  []string // who may have done it as well
	unknown error    // why more cannot be told
}

// files are those for which the turn has failed.
func (v phaseViolation) files() []string {
	if len(v.others) > 0 {
		return v.left
	}
	all := slices.Concat(v.left, v.changed)
	slices.Sort(all)
	return slices.Compact(all)
}

// finding tells of files of which nobody knows whose they are.
func (v phaseViolation) finding() []swarm.Finding {
	changed := v.changed
	if v.unknown != nil {
		changed = append(changed[:len(changed):len(changed)], "what cannot be told ("+v.unknown.Error()+")")
	}
	if len(changed) == 0 || len(v.others) == 0 {
		return nil
	}
	return []swarm.Finding{{Kind: swarm.Shared, About: shortly(v.others), Evidence: shortly(changed)}}
}

// findViolation finds out what was changed against the phase. What an earlier attempt has failed for is good again when it is as it was before.
func (r *Runner) findViolation(ctx context.Context, w *work, all []Changes) {
	blamed, since := r.blamed(w)
	earlier := func(file string) bool { return slices.Contains(blamed, file) }
	w.violation.changed = slices.DeleteFunc(r.outside(w, all), earlier)
	w.violation.unknown = r.unverifiable(w)
	if w.violation.unknown != nil {
		for _, dir := range w.writer.dirs { // anybody who worked there may be the reason
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

// blamed are the files for which earlier attempts have failed, and what the files were before the first: what one attempt has written
// against the phase, the next one has not made good by leaving it there.
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

// hasOthers says whether the run has another agent that may write by itself.
func (w *work) hasOthers() bool {
	for name, a := range w.plan.agents {
		other := &work{plan: w.plan, agent: a, spec: w.plan.providers[a.Provider]}
		if name != w.c.Agent && other.writing() != writesNothing && other.writesByItself() {
			return true
		}
	}
	return false
}

// outside are the changed files that do not lie below docs/, as they are named from the folder of the run.
func (r *Runner) outside(w *work, all []Changes) (files []string) {
	docs := filepath.Join(resolved(filepath.Dir(r.docs(w))), permission.Docs) // docs/ itself is no link that leads elsewhere
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

// checkPhase fails a turn that has written what the phase forbids: a program is as free as its own sandbox, but what it did is seen.
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
	return swarm.Errorf(swarm.Denied, "the phase %s forbids to write outside of docs/, and the turn changed %s", swarm.PlanningPhase, shortly(files)).
		WithHint("undo it: `swarm artifact ls` has what each turn changed, and `git apply -R` takes it back")
}

// unverifiable is why nobody can tell whether the turn holds to the phase, if that is so: then it has failed, and has not begun if that is known before.
func (r *Runner) unverifiable(w *work) error {
	if w.writer == nil || !w.writer.free || r.docs(w) == "" || w.unseen == nil && len(w.snapshots) > 0 {
		return nil
	}
	return &swarm.Error{Kind: swarm.Denied, Msg: "the phase " + string(swarm.PlanningPhase) + " forbids to write outside of docs/, and whether the turn did cannot be told",
		Err: w.unseen, Hint: swarm.HintOf(w.unseen)}
}

// writesByItself says that the agent needs none of our tools to write: what those let through is no question any more.
func (w *work) writesByItself() bool {
	if w.kind().Files == providerkind.ByTools {
		return slices.ContainsFunc(w.rules(), func(r toolrule.Rule) bool { return r.Server != "" })
	}
	return true
}
