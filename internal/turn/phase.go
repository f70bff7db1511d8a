package turn

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// A trespass is what was changed against the phase while a turn ran. An agent is failed for what nobody else can have done, and for nothing
// else: of files that changed while another one was free to write there too, a person decides.
type trespass struct {
	changed []string // in this attempt
	left    []string // in an earlier one, which has failed for it, and it is as that one left it
	others  []string // who may have done it as well
	untold  error    // why more cannot be told
}

// its are the files for which the turn has failed.
func (t trespass) its() []string {
	if len(t.others) > 0 {
		return t.left
	}
	all := slices.Concat(t.left, t.changed)
	slices.Sort(all)
	return slices.Compact(all)
}

// finding tells of files of which nobody knows whose they are.
func (t trespass) finding() []swarm.Finding {
	changed := t.changed
	if t.untold != nil {
		changed = append(changed[:len(changed):len(changed)], "what cannot be told ("+t.untold.Error()+")")
	}
	if len(changed) == 0 || len(t.others) == 0 {
		return nil
	}
	return []swarm.Finding{{Kind: swarm.Shared, About: shortly(t.others), Evidence: shortly(changed)}}
}

// trespassed finds out what was changed against the phase. What an earlier attempt has failed for is good again when it is as it was before.
func (h *Hand) trespassed(ctx context.Context, w *work, all []Changes) {
	blamed, since := h.blamed(w)
	earlier := func(file string) bool { return slices.Contains(blamed, file) }
	w.astray.changed = slices.DeleteFunc(h.outside(w, all), earlier)
	w.astray.untold = h.untold(w)
	if w.astray.untold != nil {
		for _, dir := range w.scribe.dirs { // anybody who worked there may be the reason
			all = append(all[:len(all):len(all)], Changes{Top: resolved(dir)})
		}
	}
	if len(w.astray.changed) > 0 || w.astray.untold != nil {
		w.astray.others = h.besides(w, all, true)
		if w.start > 1 && w.hasOthers() {
			w.astray.others = append(w.astray.others, "whoever did before the turn was begun again")
		}
	}
	if len(blamed) > 0 {
		w.astray.left = slices.DeleteFunc(h.outside(w, h.changes(ctx, w, since)), func(file string) bool { return !earlier(file) })
	}
}

// blamed are the files for which earlier attempts have failed, and what the files were before the first: what one attempt has written
// against the phase, the next one has not made good by leaving it there.
func (h *Hand) blamed(w *work) (files []string, since []swarm.FolderSnapshot) {
	for n := 1; n < w.c.Attempt; n++ {
		id := swarm.TurnID(w.c.Task, w.c.Iteration, n)
		end, ok := written[swarm.CallEnd](h, swarm.EndKey(id))
		if !ok || len(end.Outside) == 0 {
			continue
		}
		if start, ok := written[swarm.TurnStart](h, swarm.StartKey(id, 1)); ok {
			files = append(files, end.Outside...)
			if since == nil {
				since = start.Snapshots
			}
		}
	}
	return files, since
}

// written is the body that was written under a key, if it is there.
func written[T any](h *Hand, key string) (body T, ok bool) {
	e, ok, err := h.Log.Find(key)
	if err != nil || !ok {
		return body, false
	}
	body, err = swarm.Body[T](&e)
	return body, err == nil
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
func (h *Hand) outside(w *work, all []Changes) (files []string) {
	docs := filepath.Join(resolved(filepath.Dir(h.docs(w))), permission.Docs) // docs/ itself is no link that leads elsewhere
	for _, c := range all {
		for _, file := range c.Files {
			path := filepath.Join(c.Top, file)
			if within(docs, path) && path != docs {
				continue
			}
			if rel, err := filepath.Rel(resolved(h.Dir), path); err == nil && filepath.IsLocal(rel) {
				path = rel
			}
			files = append(files, h.clean(path))
		}
	}
	return files
}

// held fails a turn that has written what the phase forbids: a program is as free as its own sandbox, but what it did is seen.
func (h *Hand) held(w *work, err error) error {
	files := w.astray.its()
	switch {
	case err != nil:
		return err
	case len(files) == 0 && len(w.astray.others) == 0:
		return w.astray.untold
	case len(files) == 0:
		return nil
	}
	return swarm.Errorf(swarm.Denied, "the phase %s forbids to write outside of docs/, and the turn changed %s", swarm.PlanningPhase, shortly(files)).
		WithHint("undo it: `swarm artifact ls` has what each turn changed, and `git apply -R` takes it back")
}

// untold is why nobody can tell whether the turn holds to the phase, if that is so: then it has failed, and has not begun if that is known before.
func (h *Hand) untold(w *work) error {
	if w.scribe == nil || !w.scribe.free || h.docs(w) == "" || w.unseen == nil && len(w.snapshots) > 0 {
		return nil
	}
	e := &swarm.Error{Kind: swarm.Denied, Msg: "the phase " + string(swarm.PlanningPhase) + " forbids to write outside of docs/, and whether the turn did cannot be told", Err: w.unseen}
	var why *swarm.Error
	if errors.As(w.unseen, &why) {
		e.Hint = why.Hint
	}
	return e
}

// writesByItself says that the agent needs none of our tools to write: what those let through is no question any more.
func (w *work) writesByItself() bool {
	if w.kind().Files == providerkind.ByTools {
		return slices.ContainsFunc(w.rules(), func(r toolrule.Rule) bool { return r.Server != "" })
	}
	return true
}
