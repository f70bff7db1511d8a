package turn

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/excerpt"
	"swarm/internal/permission"
	"swarm/internal/providerkind"
	"swarm/internal/toolrule"
)

// A Snapshotter records what the files of folders are, and tells what became of them.
type Snapshotter interface {
	// Record returns what the files are now, or "" when the folder is in no repository; alone, it is recorded all the same.
	Record(ctx context.Context, dir string, alone bool) (tree string, err error)
	Compare(ctx context.Context, dir, from, to string) (Changes, error)
}

// Changes are what became of a folder's files between two trees.
type Changes struct {
	Top   string   // the folder that Files and Text name them from
	Files []string // that are new, gone or another
	Text  []byte   // as git prints it; of a long one only the list of files
	Long  bool
}

// comparing is how long it may take to find out what a turn changed: it is done even when the process is about to stop.
const comparing = 2 * time.Minute

// A fileWriter is a turn that may change files, and the turns that did so at the same time.
type fileWriter struct {
	turn       swarm.TurnID
	agent      string
	dirs       []string
	watched    bool // what it changes is recorded
	free       bool // it needs none of our tools to write
	concurrent []*fileWriter

	named   map[string]bool      // files that its agent says it has changed; absolute
	unnamed bool                 // it also writes files that nobody names: it is a program, or has run one
	changed map[string]bool      // files that are another since the turn began, whoever wrote them; nil = that is not known yet
	ordered map[*fileWriter]bool // turns of agents that waited for this one, or it for theirs: those come one after the other
}

// How far an agent changes files: not at all, only as everybody may at any time, or so that it is worth a record.
type writing int

const (
	writesNothing writing = iota
	writesUnseen
	writesSeen
)

// writing says how far the turn's agent changes files: programs by themselves, the others by their tools. What thousands of quick tasks
// do is not recorded one by one.
func (w *work) writing() writing {
	teams := writesUnseen
	if w.plan.Team != nil {
		teams = writesSeen
	}
	switch w.kind().Files {
	case providerkind.NoFiles:
		return writesNothing
	case providerkind.ByProgram:
		return teams
	case providerkind.ByTools:
		most := writesNothing
		for _, rule := range w.rules() {
			switch {
			case rule.Tool == toolrule.FileWrite || rule.Tool == toolrule.Command:
				return writesSeen
			case rule.Server != "":
				most = teams
			}
		}
		return most
	}
	return writesSeen
}

// rules are what a model may use beside our own tools.
func (w *work) rules() (rules []toolrule.Rule) {
	var servers []string
	for _, s := range w.plan.Servers {
		servers = append(servers, s.Name)
	}
	for _, entry := range w.agent.Tools {
		if rule, err := toolrule.Parse(entry, servers); err == nil {
			rules = append(rules, rule)
		}
	}
	return rules
}

// folder is the one that the agent's tools may touch.
func (r *Runner) folder(w *work) string {
	if w.agent.Root != "" {
		return w.agent.Root
	}
	return r.workdir(w)
}

// folders are where the agent works, without one that lies in another.
func (r *Runner) folders(w *work) []string {
	dir, root := r.workdir(w), r.folder(w)
	switch {
	case within(dir, root):
		return []string{dir}
	case within(root, dir):
		return []string{root}
	}
	return []string{dir, root}
}

func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// enter notes that somebody begins to change files, and who does so at the same time; leave ends that.
func (r *Runner) enter(w *work) (leave func()) {
	how := w.writing()
	if r.Snapshots == nil || how == writesNothing {
		return func() {}
	}
	s := &fileWriter{turn: w.turn, agent: w.c.Agent, dirs: r.folders(w), watched: how == writesSeen, free: w.writesByItself()}
	if s.watched {
		w.writer = s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.writers[true] {
		other.concurrent = append(other.concurrent, s)
		s.concurrent = append(s.concurrent, other)
	}
	if s.watched {
		s.concurrent = append(s.concurrent, r.writers[false]...)
	}
	if r.writers == nil {
		r.writers = map[bool][]*fileWriter{}
	}
	r.writers[s.watched] = append(r.writers[s.watched], s)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.writers[s.watched] = slices.DeleteFunc(r.writers[s.watched], func(o *fileWriter) bool { return o == s })
	}
}

// record notes what the files are before the turn, unless an earlier start has.
func (r *Runner) record(ctx context.Context, w *work) {
	if docs := r.docs(w); docs != "" {
		_ = os.MkdirAll(docs, 0o777) // if it cannot be made, whoever writes there is told why
	}
	if w.writer == nil || w.start > 0 {
		return
	}
	for _, dir := range w.writer.dirs {
		tree, err := r.Snapshots.Record(ctx, dir, w.plan.Team != nil)
		if err != nil && ctx.Err() == nil {
			w.unseen = err
			r.cannotTell(w, err)
		}
		if tree != "" {
			w.snapshots = append(w.snapshots, swarm.FolderSnapshot{Dir: dir, Tree: tree})
		}
	}
}

// docs is the folder that the turn's agent may write to and no other, or "".
func (r *Runner) docs(w *work) string {
	if w.plan.Team == nil || w.plan.Team.Phase != swarm.PlanningPhase {
		return ""
	}
	return filepath.Join(r.folder(w), permission.Docs)
}

// cannotTell says, once, that nobody will know what turns change.
func (r *Runner) cannotTell(w *work, err error) {
	r.mu.Lock()
	notices := r.blind
	r.blind = true
	r.mu.Unlock()
	if notices {
		return
	}
	reason := swarm.Reason{Reason: r.clean("what turns change in " + w.writer.dirs[0] + " is not recorded: " + err.Error()), Hint: swarm.HintOf(err)}
	if r.docs(w) != "" {
		reason.Reason += "; in the phase PLANNING turns of those who could write elsewhere fail for it"
	}
	// What the log does not take now, it does not take at the turn's end either.
	_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice, Data: swarm.Encode(reason)}}})
}

// A diff is what a turn has changed.
type diff struct {
	record swarm.Event // of the artifact
	text   []byte
	others string // who may have done some of it
}

// compare finds out what the turn has changed, and which of the files the phase does not let it write; nil = nothing, or nobody knows.
func (r *Runner) compare(ctx context.Context, w *work) *diff {
	if w.writer == nil || len(w.snapshots) == 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), comparing)
	defer stop()
	all := r.changes(ctx, w, w.snapshots)
	r.overlap(w, all)
	if r.docs(w) != "" && w.writer.free {
		r.findViolation(ctx, w, all)
	}
	if len(all) == 0 {
		return nil
	}
	d := &diff{others: shortly(r.concurrentWriters(w, all, false))}
	d.text = r.redact(describe(w, all, d.others))
	d.record, _ = agentapi.ArtifactEvent(swarm.Event{Task: w.c.Task, Agent: w.c.Agent, Turn: w.turn}, "diff", string(w.turn)+".diff", d.text)
	return d
}

// changes are what became of the files since they were recorded.
func (r *Runner) changes(ctx context.Context, w *work, since []swarm.FolderSnapshot) (all []Changes) {
	for _, before := range since {
		after, err := r.Snapshots.Record(ctx, before.Dir, true)
		if err == nil && after == before.Tree {
			continue
		}
		var c Changes
		if err == nil {
			c, err = r.Snapshots.Compare(ctx, before.Dir, before.Tree, after)
		}
		if err != nil {
			w.unseen = err
			r.cannotTell(w, err)
			continue
		}
		if len(c.Files) > 0 && !slices.ContainsFunc(all, func(o Changes) bool { return o.Top == c.Top }) {
			all = append(all, c)
		}
	}
	return all
}

// describe is a diff as it is stored. What stands in front of it says whose it is; `git apply` passes over it.
func describe(w *work, all []Changes, others string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Changes of the turn %s.\n", w.turn)
	if others != "" {
		fmt.Fprintf(&b, "At the same time worked here: %s. Some of it may be theirs.\n", others)
	}
	if w.start > 1 {
		fmt.Fprintf(&b, "The turn was begun %d times. What others changed in between is in it too.\n", w.start)
	}
	for _, c := range all {
		if len(all) > 1 {
			fmt.Fprintf(&b, "\nIn %s:\n", c.Top)
		}
		if c.Long {
			fmt.Fprintf(&b, "The changes are too long to be kept; these are the files.\n")
		}
		b.WriteByte('\n')
		b.Write(c.Text)
	}
	return b.Bytes()
}

// concurrentWriters are those who worked in the same folders at the same time; of them the free ones, where nobody else can have done it.
func (r *Runner) concurrentWriters(w *work, all []Changes, free bool) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range w.writer.concurrent {
		here := slices.ContainsFunc(s.dirs, func(dir string) bool {
			return slices.ContainsFunc(all, func(c Changes) bool { return within(c.Top, resolved(dir)) || within(resolved(dir), c.Top) })
		})
		if here && s.turn != w.turn && (s.free || !free) {
			names = append(names, "@"+s.agent+" ("+string(s.turn)+")")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// shortly is the beginning of a list.
func shortly(names []string) string { return excerpt.List(names, 10) }

// resolved is a path without links, as far as that can be known.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
