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

// Two turns that run at the same time in one folder can overwrite each other's work, and neither agent would
// know. Nobody keeps them from it. What the trees tell is a notice: a file that is another after both turns,
// and that both may have written.

// name notes a file that the turn's agent says it has changed.
func (w *work) name(dir, path string) {
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

// nameTool notes what a use of our own tools says about files.
func (w *work) nameTool(dir string, u swarm.ToolUse) {
	if w.writer == nil || u.Failed {
		return
	}
	switch u.Name {
	case toolrule.Command:
		w.writer.unnamed = true
	case toolrule.FileWrite:
		var in struct{ Path string }
		if json.Unmarshal(u.Input, &in) == nil && in.Path != "" {
			w.name(dir, in.Path)
		}
	}
}

// mayHaveWritten says whether the turn's agent may have changed a file: it says so, or it names no files.
func (f *fileWriter) mayHaveWritten(path string) bool { return f.named[path] || f.unnamed }

// overlap notes what the turn has changed, and tells of the files that it and another turn may both have
// written. Of each two turns the one that ends later tells.
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
	var ordered []*fileWriter // whoever waits for this turn's agent goes on after it
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
		if _, there, err := r.Log.Find(e.Key); err != nil || there { // an earlier process has told it
			continue
		}
		// What the log does not take now it does not take at the turn's end either.
		_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Lazy: true, Events: []swarm.Event{e}})
	}
}

// overlapping is what there is to tell of two turns: which files both say they have changed, or, where one of
// them names none, which may be such. The latter is told of two agents once. The runner is locked.
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
		notice(who+" worked at the same time, and both changed "+shortly(both), "overlap:"+string(other.turn)+":"+string(s.turn))
	}
	pair := [2]string{min(s.agent, other.agent), max(s.agent, other.agent)}
	if len(perhaps) > 0 && !r.overlaps[pair] {
		if r.overlaps == nil {
			r.overlaps = map[[2]string]bool{}
		}
		r.overlaps[pair] = true
		slices.Sort(perhaps)
		notice(who+" worked at the same time in one folder, and nobody can tell who changed "+shortly(perhaps), "overlap:@"+pair[0]+":@"+pair[1])
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

// shown is a file as people name it, from the folder of the run.
func (r *Runner) shown(path string) string {
	if rel, err := filepath.Rel(resolved(r.Dir), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
