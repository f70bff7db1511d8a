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

// A Snapshotter takes snapshots of folders and compares them.
type Snapshotter interface {
	// Record takes a snapshot of dir and returns its tree. If dir is in no repository, tree is "",
	// unless alone is set.
	Record(ctx context.Context, dir string, alone bool) (tree string, err error)
	Compare(ctx context.Context, dir, from, to string) (Changes, error)
}

// Changes are the differences between two snapshots of a folder.
type Changes struct {
	Top   string   // the folder that the paths in Files and Text are relative to
	Files []string // added, deleted or modified
	Text  []byte   // in git's format; if Long, only the list of files
	Long  bool
}

// comparing limits the time for finding what a turn changed. The comparison runs even when the
// process is about to stop.
const comparing = 2 * time.Minute

// A fileWriter is a turn that may change files, with the turns that could do so at the same time.
// The runner's mutex guards concurrent, changed and ordered.
type fileWriter struct {
	turn       swarm.TurnID
	agent      string
	dirs       []string
	watched    bool // its changes are recorded
	free       bool // it can write without our tools
	concurrent []*fileWriter

	named   map[string]bool      // absolute paths of files that the agent says it changed
	unnamed bool                 // it may also write files that it does not report: it is a program, or has run one
	changed map[string]bool      // files that differ since the turn began, whichever turn wrote them; nil = not compared yet
	ordered map[*fileWriter]bool // turns ordered before or after this one, because one agent waited for the other
}

// writing says how an agent changes files: not at all, in ways too common to record, or in ways
// worth a record.
type writing int

const (
	writesNothing writing = iota
	writesUnseen
	writesSeen
)

// writing says how the turn's agent changes files that are worth a record. At a desk, what the agent
// delivers is the record, and no phase limits the desk.
func (w *work) writing() writing {
	if w.worker() != "" {
		return writesNothing
	}
	return w.changesFiles()
}

// changesFiles says how the turn's agent changes files. Programs write by themselves, other agents by
// their tools. The changes of a pipeline's programs are not recorded: there may be thousands of
// short tasks.
func (w *work) changesFiles() writing {
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

// rules are the tools that a model may use beside our own.
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

// folder is the folder that the agent's tools may touch.
func (r *Runner) folder(w *work) string {
	if w.worker() != "" {
		return r.deskPath(w)
	}
	if w.agent.Root != "" {
		return w.agent.Root
	}
	if dir := r.Folder(w.c.Agent); w.kind().Tools == providerkind.InProcess && dir != "" {
		return dir
	}
	return r.workdir(w)
}

// folders are the folders in which the agent works, without one that lies in another.
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

// registerWriter registers a turn that may change files, and links it with the turns that run at
// the same time. Calling leave unregisters it.
func (r *Runner) registerWriter(w *work) (leave func()) {
	how := w.writing()
	if r.Snapshots == nil || w.asksPlainly() || how == writesNothing {
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

// record takes the snapshots before the turn, unless an earlier start has taken them.
func (r *Runner) record(ctx context.Context, w *work) {
	if docs := r.docs(w); docs != "" {
		_ = os.MkdirAll(docs, 0o777) // if this fails, the agent's own write reports why
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

// docs is the only folder that the turn's agent may write to in the phase PLANNING, or "" in other
// phases.
func (r *Runner) docs(w *work) string {
	if w.plan.Team == nil || w.plan.Team.Phase != swarm.PlanningPhase || w.worker() != "" {
		return ""
	}
	return filepath.Join(r.folder(w), permission.Docs)
}

// cannotTell appends a notice, once per process, that changes are not recorded.
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
	// The error may be dropped: a log that refuses this event also refuses the turn's end.
	_, _ = r.Log.Append(context.Background(), swarm.Batch{Fence: w.c.Fence, Lazy: true, Events: []swarm.Event{{Kind: swarm.Notice, Data: swarm.Encode(reason)}}})
}

// A diff is the artifact with the changes of a turn.
type diff struct {
	record swarm.Event // the event of the artifact
	text   []byte
	others string // agents that may have made some of the changes
}

// compare finds the changes of the turn, and those that the phase forbids. It returns nil if there
// are none or they are not known.
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
	d := &diff{others: joinShort(r.concurrentWriters(w, all, false))}
	d.text = r.redact(describe(w, all, d.others))
	d.record, _ = agentapi.ArtifactEvent(swarm.Event{Task: w.c.Task, Agent: w.c.Agent, Turn: w.turn}, "diff", string(w.turn)+".diff", d.text)
	return d
}

// changes compares the folders with their earlier snapshots.
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

// describe formats a diff for storage. Its head says which turn made the changes; `git apply` skips
// it.
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

// concurrentWriters names the turns that worked in the changed folders at the same time. With free
// set, it names only those that can write without our tools.
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

// joinShort joins the first names of a list.
func joinShort(names []string) string { return excerpt.List(names, 10) }

// resolved resolves the links in a path. A path that cannot be resolved stays as it is.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
