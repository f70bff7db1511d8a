package view

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// Version is the version of stored folds. A fold of another version is dropped, and the log is
// folded again. Increase it with every change of what is stored or how events are folded.
const Version = 19

// A stored is the stored form of a fold, without its agents and tasks: those follow it, one JSON value
// each, so that they can be read one by one. Its size depends on the plan, not on the log. The
// schedule is not stored: the tasks restore it.
type stored struct {
	Version  int                 `json:"version"`
	Head     Head                `json:"head"`
	Usage    swarm.Usage         `json:"usage"`
	Planned  bool                `json:"planned,omitempty"`
	Parallel int                 `json:"parallel,omitempty"`
	Pause    swarm.Status        `json:"pause,omitempty"`
	PausedAt time.Time           `json:"paused_at,omitzero"`
	Pauses   time.Duration       `json:"pauses_ns,omitempty"`
	Since    time.Time           `json:"paused_since,omitzero"`
	Groups   []group             `json:"groups,omitempty"`
	Edges    []Edge              `json:"edges,omitempty"`
	Boxes    map[string]Box      `json:"boxes,omitempty"`
	Findings []Finding           `json:"findings,omitempty"`
	Asked    []question          `json:"asked,omitempty"`
	Actions  map[string][]Action `json:"actions,omitempty"`
	Paused   []string            `json:"paused,omitempty"` // agents of a pipeline
	Limits   plan.Limits         `json:"limits,omitempty"` // of providers, in a pipeline
	Team     *plan.TeamState     `json:"team,omitempty"`
	Agents   int                 `json:"agents,omitempty"` // how many follow
	Tasks    int                 `json:"tasks,omitempty"`  // how many follow the agents
}

// packedTasks is the number of tasks from which on a fold is stored compressed. The fold of 100,000
// tasks has 100 MB; storing it took three times that at the end of a run, when memory is fullest.
// Smaller folds are quicker to read as they are.
const packedTasks = 20_000

// Marshal returns the fold for storage. Agents and tasks are encoded one by one. Encoding 10,000 of
// them at once would need buffers several times as large as the result.
func (r *Run) Marshal() []byte {
	s := stored{Version: Version, Head: r.Head, Usage: r.Usage, Planned: r.planned, Parallel: r.parallel, Pause: r.pause, PausedAt: r.pausedAt, Pauses: r.Head.Paused, Since: r.Since,
		Groups: r.groups, Edges: r.edges, Boxes: r.boxes, Findings: r.findings, Asked: r.questions, Actions: r.actions, Agents: len(r.agents), Tasks: len(r.tasks)}
	if r.team != nil {
		s.Team = &r.team.TeamState
	} else {
		s.Limits = r.sched.Limits()
	}
	for _, a := range r.agents {
		if paused, _ := r.sched.Paused(a.Name); paused {
			s.Paused = append(s.Paused, a.Name)
		}
	}
	var b bytes.Buffer
	if len(r.tasks) < packedTasks {
		b.Grow(600 * len(r.tasks))
		r.write(&b, s)
		return b.Bytes()
	}
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level that exists
	r.write(z, s)
	_ = z.Close() // a buffer takes everything
	return b.Bytes()
}

// write writes the fold: s, and then the agents and tasks.
func (r *Run) write(w io.Writer, s stored) {
	_, _ = w.Write(swarm.Encode(s)) // a buffer takes everything, here and below
	for i := range r.agents {
		_, _ = w.Write(swarm.Encode(&r.agents[i]))
	}
	for i := range r.tasks {
		t := r.tasks[i]
		if r.team == nil {
			t.Status = r.sched.Status(i)
		}
		if t.Status == swarm.Waiting { // only this wait is stored; the others follow from the tasks
			t.Waits = []Wait{r.sched.Waits(i)[0]}
		}
		_, _ = w.Write(swarm.Encode(&t))
	}
}

// Unmarshal restores a fold from the result of Marshal. Folding goes on with the event after its
// Seq.
func Unmarshal(b []byte) (*Run, error) {
	s, agents, tasks, err := read(b)
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, Msg: "the stored view cannot be read", Err: err}
	}
	if s.Version != Version {
		return nil, swarm.Errorf(swarm.Storage, "the stored view is of version %d, and this program reads version %d", s.Version, Version)
	}
	r := New(s.Head.ID)
	r.Head, r.Usage, r.planned, r.parallel = s.Head, s.Usage, s.Planned, s.Parallel
	r.pause, r.pausedAt, r.groups, r.boxes = s.Pause, s.PausedAt, s.Groups, s.Boxes
	for _, e := range s.Edges {
		r.keepEdge(e)
	}
	r.questions, r.Head.Paused, r.Since = s.Asked, s.Pauses, s.Since
	r.actions, r.findings = s.Actions, s.Findings
	r.agents = agents[:0] // each is read before it is written in its place
	for _, a := range agents {
		r.addAgent(a)
	}
	if s.Team != nil {
		r.team = plan.RestoreTeam(*s.Team)
		for _, t := range tasks {
			r.addTask(t)
		}
		return r, nil
	}
	if err := r.reschedule(tasks); err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, Msg: "the stored view is broken", Err: err}
	}
	for _, name := range s.Paused {
		r.sched.PauseAgent(name, true)
	}
	r.sched.RestoreLimits(s.Limits)
	return r, nil
}

// read decodes a stored fold, compressed or not.
func read(b []byte) (s stored, agents []Agent, tasks []task, err error) {
	var from io.Reader = bytes.NewReader(b)
	if bytes.HasPrefix(b, []byte{0x1f, 0x8b}) { // the mark of gzip; JSON begins with {
		if from, err = gzip.NewReader(from); err != nil {
			return s, nil, nil, err
		}
	}
	d := json.NewDecoder(from)
	if err = d.Decode(&s); err == nil && s.Version == Version {
		known := interned{}
		agents, err = readEach(d, s.Agents, func(a *Agent) { known.share(&a.Name, &a.Base, &a.Provider, &a.Model) })
		if err == nil {
			tasks, err = readEach(d, s.Tasks, known.shareTask)
		}
		if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) { // also the checksum of what was compressed
			err = cmp.Or(more, errors.New("more follows the last task"))
		}
	}
	return s, agents, tasks, err
}

// readEach decodes so many values one by one. Decoding 100,000 of them as one would need several
// times the memory of the result.
func readEach[T any](d *json.Decoder, n int, compact func(*T)) ([]T, error) {
	all := make([]T, 0, max(0, min(n, 1<<17))) // a broken number must not take all memory
	for range n {
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		compact(&one)
		all = append(all, one)
	}
	return all, nil
}

// interned are strings that many tasks have. Each is kept once.
type interned map[string]string

func (known interned) share(all ...*string) {
	for _, s := range all {
		if have, ok := known[*s]; ok {
			*s = have
		} else {
			known[*s] = *s
		}
	}
}

func (known interned) shareTask(t *task) {
	known.share(&t.Name, &t.Base, &t.Agent, (*string)(&t.Status), &t.Provider, &t.Model, (*string)(&t.Output.Hash))
	for i := range t.DependsOn {
		known.share(&t.DependsOn[i].Task, (*string)(&t.DependsOn[i].Condition))
	}
	if t.Output.Turn == t.Turn {
		t.Output.Turn = t.Turn
	}
	if t.Good == t.Output {
		t.Good = t.Output
	}
}

// reschedule restores the tasks and the schedule. It adds all plans as one.
//
// A group in iteration 7 of 9 is restored as one in iteration 2 of 4. Earlier iterations have left
// only one trace: the groups that this one depends on have ended. One iteration is enough to
// restore that. Groups that have ended are restored first, because others may have gone on since.
func (r *Run) reschedule(tasks []task) error {
	all := swarm.Plan{MaxParallel: r.parallel}
	for _, g := range r.groups {
		if g.Iteration < 1 || g.Iteration > g.Iterations {
			return swarm.Errorf(swarm.Storage, "a group is in iteration %d of %d", g.Iteration, g.Iterations)
		}
		all.Groups = append(all.Groups, swarm.Group{Iterations: g.Iterations - g.Iteration + min(g.Iteration, 2)})
	}
	all.Tasks = make([]swarm.Task, 0, len(tasks))
	for _, t := range tasks {
		all.Tasks = append(all.Tasks, swarm.Task{Name: t.Name, Base: t.Base, Agent: t.Agent, Group: t.Group,
			DependsOn: t.DependsOn, Awaits: t.Awaits, Concurrency: t.Concurrency})
	}
	if !r.planned && len(tasks) == 0 {
		return nil
	}
	if err := r.sched.Add(&all); err != nil {
		return err
	}
	r.tasks = tasks[:0] // as with the agents
	through := make([]bool, len(r.groups))
	for g := range through {
		through[g] = r.groups[g].Iteration == r.groups[g].Iterations
	}
	for _, t := range tasks {
		if !t.Status.Ended() {
			through[t.Group] = false
		}
		r.groups[t.Group].members = append(r.groups[t.Group].members, len(r.tasks))
		r.addTask(t)
	}
	for _, first := range []bool{true, false} {
		for g := range r.groups {
			if through[g] == first {
				r.restoreGroup(g)
			}
		}
	}
	r.sched.Pause(r.pause != "")
	return nil
}

// restoreGroup restores the state of a group's tasks.
func (r *Run) restoreGroup(g int) {
	if r.groups[g].Iteration > 1 {
		r.sched.Iterate(g)
	}
	for _, i := range r.groups[g].members {
		t := &r.tasks[i]
		switch {
		case t.Status == swarm.Running:
			r.sched.Started(i)
		case t.Status == swarm.Waiting:
			var why plan.Wait
			if len(t.Waits) > 0 {
				why = t.Waits[0]
			}
			r.sched.Wait(i, why)
			if why.For == plan.ForRetry {
				r.retries = append(r.retries, i)
			}
		case t.Status.Ended():
			r.sched.Ended(i, t.Status)
		}
		t.Status, t.Waits = swarm.Pending, nil
	}
}
