package run

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/view"
)

// An Answer is the answer of a swarm.
type Answer struct {
	Run        swarm.RunID      `json:"run"`
	Turn       swarm.TurnID     `json:"turn"` // that made it
	Text       string           `json:"answer"`
	References []view.Reference `json:"references"` // the turns that it names
	// Unsourced says that a model made it of several results, and it names no source.
	Unsourced bool `json:"unsourced,omitempty"`
}

// Answer returns the answer of a swarm that has ended. Each reference in it is looked up, because a
// model may name a turn that never was.
func (r *Reader) Answer() (Answer, error) {
	p, err := r.Living()
	if err != nil {
		return Answer{}, err
	}
	switch {
	case p.Kind != swarm.SwarmRun:
		return Answer{}, swarm.Errorf(swarm.BadInput, "run %s is no swarm, so it has no answer", r.ID).WithHint("name a task: swarm out %s %s", r.ID, firstTask(p))
	case p.Answer == "" && p.Status.Ended():
		return Answer{}, swarm.Errorf(swarm.Other, "run %s has no answer: it %s%s", r.ID, ended(p.Status), excerpt.Reason(p.Reason)).WithHint("to see why: swarm show %s", r.ID)
	case p.Answer == "" && p.Status == swarm.Interrupted:
		return Answer{}, swarm.Errorf(swarm.Other, "run %s has no answer yet: it is %s", r.ID, p.Status).WithHint("to resume it: %s", p.ResumeCommand())
	case p.Answer == "":
		return Answer{}, swarm.Errorf(swarm.Other, "run %s has no answer yet: it is %s", r.ID, p.Status).WithHint("to wait for it: swarm wait %s", r.ID)
	}
	a := Answer{Run: r.ID, Turn: p.Answer, References: []view.Reference{}}
	t, err := r.Turn(string(p.Answer))
	if err == nil {
		a.Text, err = r.answerText(t)
	}
	if err != nil {
		return Answer{}, err
	}
	known := func(name string) bool { return findSource(name, p.Tasks) >= 0 }
	for _, ref := range view.FindReferences(a.Text, known) {
		found, ok, err := r.resolve(ref, p.Tasks)
		if err != nil {
			return Answer{}, err
		}
		if ok || t.Agent == swarm.Supervisor { // an agent's own result is not asked for references
			a.References = append(a.References, found)
		}
	}
	a.Unsourced = len(a.References) == 0 && t.Agent == swarm.Supervisor && t.Starts > 0 // a list of the results is not started
	return a, nil
}

// Report returns everything that `swarm show` tells about a run.
func (r *Reader) Report() (view.Report, error) { return r.ReportAt(0) }

// ReportAt returns what [Reader.Report] would have returned after an event; 0 = now.
func (r *Reader) ReportAt(seq int64) (view.Report, error) {
	picture, details := r.Living, r.Details
	if seq > 0 {
		picture = func() (view.Picture, error) { return r.PictureAt(seq) }
		details = func() (view.Details, error) { return view.Collect(eventsUntil(r.log, seq)) }
	}
	p, err := picture()
	if err != nil {
		return view.Report{}, err
	}
	d, err := details()
	if err != nil {
		return view.Report{}, err
	}
	p.Actions = d.Actions
	if p.Answer != "" {
		answer, err := r.Answer()
		p.Unsourced = err == nil && answer.Unsourced // a text that is gone does not hide the rest
	}
	return view.Report{Picture: p, Details: d}, nil
}

// eventsUntil goes through a log up to an event.
func eventsUntil(log swarm.RunLog, seq int64) iter.Seq2[*swarm.Event, error] {
	return func(yield func(*swarm.Event, error) bool) {
		for e, err := range swarm.Events(log, 0) {
			if err == nil && e.Seq > seq || !yield(e, err) {
				return
			}
		}
	}
}

// findSource returns the index of the agent that a reference names, by itself or by its subtask, or -1.
func findSource(name string, tasks []view.Task) int {
	return slices.IndexFunc(tasks, func(t view.Task) bool { return t.Subtask != nil && (t.Agent == name || t.Subtask.ID == name) })
}

// resolve looks up a reference. It names an agent of the swarm or a subtask, and an iteration. ok is
// false if it names neither.
func (r *Reader) resolve(ref string, tasks []view.Task) (found view.Reference, ok bool, err error) {
	found.Ref = ref
	name, number, _ := strings.Cut(ref, "/")
	at := findSource(name, tasks)
	if at < 0 {
		return found, false, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n == 0 {
		return found, true, nil //nolint:nilerr // no iteration has such a number
	}
	last, err := r.lastAttempt(tasks[at].Name, n)
	if last == 0 || err != nil {
		return found, true, err
	}
	t, err := r.Turn(string(swarm.NewTurnID(tasks[at].Name, n, last)))
	if err != nil || t.Status != swarm.Completed { // nothing came of it
		return found, true, err
	}
	found.Found, found.Turn, found.What = true, t.ID, string(t.Status)
	if t.Action != nil {
		found.What = t.Did()
		if t.ActionStarts > 1 {
			found.What += ", perhaps twice: a crash cut it"
		}
	}
	return found, true, nil
}

func firstTask(p view.Picture) string {
	if len(p.Tasks) == 0 {
		return "TASK"
	}
	return p.Tasks[0].Name
}

func ended(s swarm.Status) string {
	if s == swarm.Cancelled {
		return "was cancelled"
	}
	return string(s)
}

// answerText returns the text of an answer. The supervisor's output is the answer as it is. The only
// agent of a swarm answers by what it was done with.
func (r *Reader) answerText(t view.Turn) (string, error) {
	if t.Agent != swarm.Supervisor && t.Report != "" {
		return t.Report, nil
	}
	text, err := r.Text(t.Output.Hash)
	return string(text), err
}
