package control

import (
	"cmp"
	"context"
	"iter"
	"strconv"
	"unicode"
	"unicode/utf8"

	"swarm"
	"swarm/internal/run"
)

// A task is the run of a swarm, as seed 002 calls it: the id of a task is the id of its run.

// FindTask returns the task that a program names.
func (c *Control) FindTask(id string) (swarm.RunSummary, error) {
	s, err := c.Lookup(id)
	switch {
	case swarm.KindOf(err) == swarm.NotFound:
		err = swarm.Errorf(swarm.NotFound, "there is no task %s", swarm.Quote(id)).WithHint("GET /api/v1/tasks lists them")
	case err == nil && s.Kind != swarm.SwarmRun:
		err = swarm.Errorf(swarm.NotFound, "run %s is no swarm, so it is no task", s.ID).WithHint("GET /api/v1/runs/%s shows it", s.ID)
	}
	return s, err
}

// Tasks iterates over the tasks of a session, or of all sessions, newest first. With before it
// starts at the first one that is older.
func (c *Control) Tasks(session, before string) iter.Seq2[swarm.RunSummary, error] {
	return func(yield func(swarm.RunSummary, error) bool) {
		for s, err := range c.Runs(before) {
			if err == nil && (s.Kind != swarm.SwarmRun || session != "" && SessionOf(s) != session) {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// SessionOf returns the session of a task. Without one it is a session of its own.
func SessionOf(s swarm.RunSummary) string {
	if s.Origin != nil && s.Origin.Context != "" {
		return s.Origin.Context
	}
	return string(s.ID)
}

// maxSession is the maximum length of a session's id and of an idempotency key, in bytes.
const maxSession = 200

// StartTask begins the task that a program asks for. A request with the idempotency key of an
// earlier one begins nothing: it gets the earlier task, and begun is false. With the same key and
// another content it is refused. A lock between processes makes that true at several servers.
func (c *Control) StartTask(ctx context.Context, r Request, session, key string, start func(context.Context, Request) (string, error)) (s swarm.RunSummary, begun bool, err error) {
	if err := cmp.Or(checkLabel("the session_id", session), checkLabel("the Idempotency-Key", key)); err != nil {
		return s, false, err
	}
	r.Origin, r.Args = &swarm.Origin{Agent: swarm.Supervisor, Context: session, Message: key}, solveArgs(r)
	if key != "" {
		if r.Lock, err = c.Home.LockStore(ctx, "tasks"); err != nil {
			return s, false, err
		}
		defer r.Lock.Unlock()
		if s, found, err := c.taskWithKey(r); found || err != nil {
			return s, false, err
		}
	}
	id, err := start(ctx, r)
	if err != nil {
		return s, false, err
	}
	s, err = c.FindTask(id)
	return s, true, err
}

// taskWithKey finds the task that an earlier request with the same idempotency key began.
func (c *Control) taskWithKey(r Request) (s swarm.RunSummary, found bool, err error) {
	for s, err := range c.Home.Runs(c.Dir, c.Anywhere, "") {
		if err != nil {
			return s, false, err
		}
		if s.Kind != swarm.SwarmRun || s.Origin == nil || s.Origin.Message != r.Origin.Message || s.Dir != r.Dir {
			continue
		}
		l, err := c.OpenReader(s.ID)
		if err != nil {
			return s, false, err
		}
		same, err := l.BegunBy(r.Args)
		_ = l.Close()
		if err == nil && (!same || s.Origin.Context != r.Origin.Context) {
			err = refuse("use another key for another task", "the Idempotency-Key is that of task %s, which was asked for something else", s.ID)
		}
		return run.Current(c.Home, s), true, err
	}
	return s, false, nil
}

// checkLabel returns what is wrong with a text by which a program names something, or nil.
func checkLabel(what, text string) error {
	switch {
	case len(text) > maxSession:
		return swarm.Errorf(swarm.BadInput, "%s has %d bytes; %d are allowed", what, len(text), maxSession)
	case !utf8.ValidString(text):
		return swarm.Errorf(swarm.BadInput, "%s is not UTF-8", what)
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return swarm.Errorf(swarm.BadInput, "%s has the character %U, which cannot be shown", what, r)
		}
	}
	return nil
}

// solveArgs returns the command line that does the same as a request.
func solveArgs(r Request) []string {
	args := []string{"solve", r.Query}
	if r.File != "" {
		args = append(args, "--file="+r.File)
	}
	if r.Provider != "" {
		args = append(args, "--provider="+r.Provider)
	}
	if r.Strategy != "" {
		args = append(args, "--strategy="+r.Strategy)
	}
	if r.Agents != nil {
		args = append(args, "--agents="+strconv.Itoa(*r.Agents))
	}
	if r.Iterations != nil {
		args = append(args, "--iterations="+strconv.Itoa(*r.Iterations))
	}
	if r.ApprovePlan {
		args = append(args, "--approve-plan")
	}
	for _, set := range r.Set {
		args = append(args, "--set="+set)
	}
	return args
}
