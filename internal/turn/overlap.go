package turn

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// Two turns that run at the same time in one folder can overwrite each other's work without
// knowing. The runtime does not prevent that. It compares the snapshots and gives a notice of files
// that changed in both turns and that both may have written.

// recordFile records a file that the turn's agent says it changed.
func (w *work) recordFile(dir, path string) {
	if w.writer == nil {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if w.writer.named == nil {
		w.writer.named = map[string]bool{}
	}
	w.writer.named[filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))] = true
}

// recordToolFiles records the files that a call of our own tools changes.
func (w *work) recordToolFiles(dir string, u swarm.ToolUse) {
	if w.writer == nil || u.Failed {
		return
	}
	switch u.Name {
	case toolrule.Command:
		w.writer.unnamed = true
	case toolrule.FileWrite:
		var in struct{ Path string }
		if json.Unmarshal(u.Input, &in) == nil && in.Path != "" {
			w.recordFile(dir, in.Path)
		}
	}
}

// mayHaveWritten says whether the turn may have changed a file: its agent says so, or does not
// report all its files.
func (f *fileWriter) mayHaveWritten(path string) bool { return f.named[path] || f.unnamed }

// overlap records the turn's changes and gives a notice of files that another turn may have written
// as well. Of two turns the one that ends later gives the notice, because only then both changes
// are known.
func (r *Runner) overlap(w *work, all []Changes) {
	s := w.writer
	if kind := w.kind().Files; kind == providerkind.ByProgram || kind == providerkind.ByAgent && len(s.named) == 0 {
		s.unnamed = true
	}
	changed := map[string]bool{}
	for _, c := range all {
		for _, file := range c.Files {
			changed[filepath.Join(c.Top, file)] = true
		}
	}
	r.mu.Lock()
	concurrent := slices.Clone(s.concurrent)
	r.mu.Unlock()
	var ordered []*fileWriter // an agent that waits for this one continues after it
	for _, other := range concurrent {
		if r.AgentAPI != nil && slices.Contains(r.AgentAPI.WaitsFor(other.agent), s.agent) {
			ordered = append(ordered, other)
		}
	}
	r.mu.Lock()
	s.changed = changed
	for _, other := range ordered {
		s.order(other)
	}
	var notices []swarm.Event
	for _, other := range concurrent {
		if other.agent == s.agent || s.ordered[other] {
			continue
		}
		notices = append(notices, r.overlapping(s, other)...)
	}
	r.mu.Unlock()
	for _, e := range notices {
		if _, there, err := r.Log.Find(e.Key); err != nil || there { // an earlier process gave the notice
			continue
		}
		// The error may be dropped: a log that refuses this event also refuses the turn's end.
		_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Lazy: true, Events: []swarm.Event{e}})
	}
}

// overlapping returns the notices about two turns: files that both say they changed, and files that
// both may have changed. The second notice appears once for each pair of agents. The caller holds
// the runner's mutex.
func (r *Runner) overlapping(s, other *fileWriter) (notices []swarm.Event) {
	var both, perhaps []string
	for path := range other.changed {
		switch {
		case !s.changed[path]:
		case s.named[path] && other.named[path]:
			both = append(both, r.shown(path))
		case s.mayHaveWritten(path) && other.mayHaveWritten(path):
			perhaps = append(perhaps, r.shown(path))
		}
	}
	who := "@" + other.agent + " (" + string(other.turn) + ") and @" + s.agent + " (" + string(s.turn) + ")"
	notice := func(reason, key string) {
		reason += ": one may have overwritten the other's work"
		notices = append(notices, swarm.Event{Kind: swarm.Notice, Key: key, Data: swarm.Encode(swarm.Reason{Reason: r.clean(reason),
			Hint: "swarm artifact ls has what each turn changed; give each a folder of its own with root, or let one wait for the other"})})
	}
	if len(both) > 0 {
		slices.Sort(both)
		notice(who+" worked at the same time, and both changed "+joinShort(both), "overlap:"+string(other.turn)+":"+string(s.turn))
	}
	pair := [2]string{min(s.agent, other.agent), max(s.agent, other.agent)}
	if len(perhaps) > 0 && !r.overlaps[pair] {
		if r.overlaps == nil {
			r.overlaps = map[[2]string]bool{}
		}
		r.overlaps[pair] = true
		slices.Sort(perhaps)
		notice(who+" worked at the same time in one folder, and nobody can tell who changed "+joinShort(perhaps), "overlap:@"+pair[0]+":@"+pair[1])
	}
	return notices
}

func (f *fileWriter) order(other *fileWriter) {
	for _, pair := range [][2]*fileWriter{{f, other}, {other, f}} {
		if pair[0].ordered == nil {
			pair[0].ordered = map[*fileWriter]bool{}
		}
		pair[0].ordered[pair[1]] = true
	}
}

// shown returns a path relative to the run's folder, if it lies inside.
func (r *Runner) shown(path string) string {
	if rel, err := filepath.Rel(resolved(r.Dir), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
