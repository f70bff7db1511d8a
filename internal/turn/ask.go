package turn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"swarm"
	"swarm/internal/excerpt"
)

// asker asks a person whether the turn's agent may do something, by a record in the log, and waits for the answer, which is one
// too: any process may give it. An answer is for one asking: the same asked again in the same start is another question. A start after a
// crash asks what the one before has asked, in the same order, and finds what was answered.
func (r *Runner) asker(w *work) func(context.Context, swarm.Approval) (ok bool, reason string, err error) {
	return func(ctx context.Context, a swarm.Approval) (bool, string, error) {
		a.ID = w.asked.next(a.ID)
		if e, ok, err := r.Log.Find(swarm.AnsweredKey(a.ID)); err != nil || ok {
			return answered(e, err)
		}
		switch w.plan.Approvals.Tools {
		case "auto":
			return true, "", nil
		case "deny":
			return false, "`approvals: {tools: deny}` in the compose file", nil
		}
		a.What, a.Tool = r.clean(a.What), r.clean(a.Tool)
		if a.Input = json.RawMessage(r.clean(string(a.Input))); len(a.Input) > maxNoted {
			a.Input = swarm.Encode(excerpt.Head(string(a.Input), maxNoted))
		}
		for i, path := range a.Paths {
			a.Paths[i] = r.clean(path)
		}
		if err := r.pose(ctx, w, a); err != nil {
			return false, "", err
		}
		w.asked.add(a)
		ok, reason, err := r.awaitAnswer(ctx, a.ID)
		if err == nil {
			w.asked.remove(a.ID)
		}
		return ok, reason, err
	}
}

// pose writes a question down. One that an earlier start has asked stands as it was: some programs put into it what is another
// thing each time.
func (r *Runner) pose(ctx context.Context, w *work, a swarm.Approval) error {
	_, err := r.Log.Append(ctx, swarm.Batch{Fence: w.c.Fence, Absent: []string{w.nextStart()}, Events: []swarm.Event{{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey(a.ID), Task: w.c.Task,
		Agent: w.c.Agent, Turn: w.turn, Data: swarm.Encode(a)}}})
	if errors.Is(err, swarm.ErrConflict) {
		return nil
	}
	return err
}

// unanswered are the questions of a start of a turn that nobody has answered, the oldest first, and how often each was asked.
type unanswered struct {
	mu    sync.Mutex
	open  []swarm.Approval
	times map[string]int
}

// next is the id of a question that is asked now: its own for the first time, then others. None begins like another: whoever repeats
// an answer must not give the next one.
func (u *unanswered) next(id string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times == nil {
		u.times = map[string]int{}
	}
	u.times[id]++
	n := u.times[id]
	if n == 1 {
		return id
	}
	sum := sha256.Sum256([]byte(id + "\x00" + strconv.Itoa(n)))
	return id[:strings.LastIndex(id, "/")+1] + hex.EncodeToString(sum[:8])
}

func (u *unanswered) add(a swarm.Approval) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = append(u.open, a)
}

func (u *unanswered) remove(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open = slices.DeleteFunc(u.open, func(a swarm.Approval) bool { return a.ID == id })
}

// blame is why a turn was cut. One whose time ran out while it waited for a person was not slow.
func (u *unanswered) blame(cause error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var late *swarm.Error
	if len(u.open) == 0 || !errors.As(cause, &late) || late.Kind != swarm.TimedOut {
		return cause
	}
	return swarm.Errorf(swarm.TimedOut, "%s: nobody answered whether it may %s", late.Msg, u.open[0].What).
		WithHint("answer in time with `swarm approve`, give the task more with `timeout`, or name what it may do in the agent's `tools`")
}

func answered(e swarm.Event, err error) (bool, string, error) {
	if err != nil {
		return false, "", err
	}
	a, err := swarm.Body[swarm.ApprovalAnswer](&e)
	if err != nil || a.OK {
		return a.OK, "", err
	}
	return false, cmp.Or(a.Reason, "a person said no"), nil
}

// awaitAnswer waits for the record that answers a question. Its key is unique, so there is one answer at most.
func (r *Runner) awaitAnswer(ctx context.Context, id string) (ok bool, reason string, err error) {
	wake, off := r.Log.Watch(swarm.ToControl)
	defer off()
	for {
		if e, there, err := r.Log.Find(swarm.AnsweredKey(id)); err != nil || there {
			return answered(e, err)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return false, "", context.Cause(ctx)
		}
	}
}
