package view

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// Version is the version of stored folds. A fold of another version is dropped, and the log is
// folded again. Increase it with every change of what is stored or how events are folded.
const Version = 7

// A stored is the stored form of a fold. Its size depends on the plan, not on the log. The schedule
// is not stored: the tasks restore it.
type stored struct {
	Version  int                 `json:"version"`
	Head     Head                `json:"head"`
	Usage    swarm.Usage         `json:"usage"`
	Planned  bool                `json:"planned,omitempty"`
	Parallel int                 `json:"parallel,omitempty"`
	Pause    swarm.Status        `json:"pause,omitempty"`
	PausedAt time.Time           `json:"paused_at,omitzero"`
	Groups   []group             `json:"groups,omitempty"`
	Agents   []Agent             `json:"agents,omitempty"`
	Edges    []swarm.Edge        `json:"edges,omitempty"`
	Boxes    map[string]Box      `json:"boxes,omitempty"`
	Actions  map[string][]Action `json:"actions,omitempty"`
	Paused   []string            `json:"paused,omitempty"` // agents of a pipeline
	Team     *plan.TeamState     `json:"team,omitempty"`
	Tasks    []task              `json:"tasks,omitempty"`
}

// packedTasks is the number of tasks from which on a fold is stored compressed. The fold of 100,000
// tasks has 100 MB; storing it took three times that at the end of a run, when memory is fullest.
// Smaller folds are quicker to read as they are.
const packedTasks = 20_000

// Marshal returns the fold for storage. Agents and tasks are encoded one by one. Encoding 10,000 of
// them at once would need buffers several times as large as the result.
func (r *Run) Marshal() []byte {
	s := stored{Version: Version, Head: r.Head, Usage: r.Usage, Planned: r.planned, Parallel: r.parallel, Pause: r.pause, PausedAt: r.pausedAt,
		Groups: r.groups, Edges: r.edges, Boxes: r.boxes, Actions: r.actions}
	if r.team != nil {
		s.Team = &r.team.TeamState
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
	head := swarm.Encode(s)
	_, _ = w.Write(head[:len(head)-1]) // a buffer takes everything, here and below
	list := func(name string, n int, one func(i int) any) {
		before := `,"` + name + `":[`
		for i := range n {
			_, _ = io.WriteString(w, before)
			_, _ = w.Write(swarm.Encode(one(i)))
			before = ","
		}
		if n > 0 {
			_, _ = io.WriteString(w, "]")
		}
	}
	list("agents", len(r.agents), func(i int) any { return &r.agents[i] })
	list("tasks", len(r.tasks), func(i int) any {
		t := r.tasks[i]
		if r.team == nil {
			t.Status = r.sched.Status(i)
		}
		if t.Status == swarm.Waiting { // only this wait is stored; the others follow from the tasks
			t.Waits = []Wait{r.sched.Waits(i)[0]}
		}
		return &t
	})
	_, _ = io.WriteString(w, "}")
}

// Unmarshal restores a fold from the result of Marshal. Folding goes on with the event after its
// Seq.
func Unmarshal(b []byte) (*Run, error) {
	s, err := read(b)
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, Msg: "the stored view cannot be read", Err: err}
	}
	if s.Version != Version {
		return nil, swarm.Errorf(swarm.Storage, "the stored view is of version %d, and this program reads version %d", s.Version, Version)
	}
	r := New(s.Head.ID)
	r.Head, r.Usage, r.planned, r.parallel = s.Head, s.Usage, s.Planned, s.Parallel
	r.pause, r.pausedAt, r.groups, r.edges, r.boxes = s.Pause, s.PausedAt, s.Groups, s.Edges, s.Boxes
	r.actions = s.Actions
	for _, a := range s.Agents {
		r.addAgent(a)
	}
	if s.Team != nil {
		r.team = plan.RestoreTeam(*s.Team)
		for _, t := range s.Tasks {
			r.addTask(t)
		}
		return r, nil
	}
	if err := r.reschedule(s.Tasks); err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, Msg: "the stored view is broken", Err: err}
	}
	for _, name := range s.Paused {
		r.sched.PauseAgent(name, true)
	}
	return r, nil
}

// read decodes a stored fold, compressed or not.
func read(b []byte) (s stored, err error) {
	if !bytes.HasPrefix(b, []byte{0x1f, 0x8b}) { // the mark of gzip; JSON begins with {
		return s, json.Unmarshal(b, &s)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return s, err
	}
	return s, json.NewDecoder(z).Decode(&s)
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
