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
	"swarm/internal/toolrule"
)

// asker returns the function by which a provider asks a person for approval. The question and the
// answer are both records in the log, so any process may answer.
//
// An approval covers one request. Repeating the request within a start asks again. A start after a
// crash repeats the requests of the start before, in the same order, and finds the answers that
// were given.
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
			return r.denyTool(w, a)
		}
		a.What, a.Tool = r.clean(a.What), r.clean(a.Tool)
		if a.Input = json.RawMessage(r.clean(string(a.Input))); len(a.Input) > maxNoted {
			a.Input = swarm.Encode(excerpt.Head(string(a.Input), maxNoted))
		}
		for i, path := range a.Paths {
			a.Paths[i] = r.clean(path)
		}
		if err := r.recordQuestion(ctx, w, a); err != nil {
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

// denyTool refuses a tool without asking a person. The turn of a task then fails at its end. An agent of
// a team is told instead, and its turn goes on: another attempt would repeat what it has done. A notice
// says what to write if the agent may.
func (r *Runner) denyTool(w *work, a swarm.Approval) (ok bool, reason string, err error) {
	const why = "`approvals: {tools: deny}` in the compose file"
	if w.plan.Team == nil {
		return false, "", swarm.Errorf(swarm.Denied, "%s", why)
	}
	lines := r.clean(toolrule.Lines(w.agent.Name, w.agent.Tools, toolrule.Suggest(a.Tool, a.Input)))
	if w.asked.tell(lines) {
		r.notice(w, "it was not allowed to use "+a.Tool+": "+why, "if it may, write "+lines)
	}
	return false, why + ". Go on without it, and report what you could not do", nil
}

// recordQuestion appends a question. A conflict means that an earlier start asked it in other
// words, since some programs put a new number into each request. The stored question stands.
func (r *Runner) recordQuestion(ctx context.Context, w *work, a swarm.Approval) error {
	_, err := r.Log.Append(ctx, swarm.Batch{Fence: w.c.Fence, Absent: []string{w.nextStart()}, Events: []swarm.Event{{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey(a.ID), Task: w.c.Task,
		Agent: w.c.Agent, Turn: w.turn, Data: swarm.Encode(a)}}})
	if errors.Is(err, swarm.ErrConflict) {
		return nil
	}
	return err
}

// unanswered holds the open questions of one start, the oldest first, and how often each was asked.
// A provider may ask from several goroutines, hence the mutex.
type unanswered struct {
	mu    sync.Mutex
	open  []swarm.Approval
	times map[string]int
	told  map[string]bool // lines to paste that a notice has given
}

// tell reports whether a notice is to be given, which is once for the same text.
func (u *unanswered) tell(lines string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told[lines] {
		return false
	}
	put(&u.told, lines, true)
	return true
}

// next returns the id of a question that is asked now. The first request has its own id, and each
// repetition a hash of it. No id is a prefix of another: a person who repeats an answer must not
// answer the next question by it.
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

// explainCut returns why a turn was cut. If the turn timed out while it waited for a person, the
// error names the open question, since the turn itself was not slow. If it timed out while its server
// failed again and again, the error ends with that trouble, in the server's words.
func (u *unanswered) explainCut(cause error, trouble string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	var late *swarm.Error
	switch {
	case !errors.As(cause, &late) || late.Kind != swarm.TimedOut:
		return cause
	case len(u.open) == 0 && trouble == "":
		return cause
	case len(u.open) == 0:
		return swarm.Errorf(swarm.TimedOut, "%s; the last request failed: %s", late.Msg, trouble).WithHint("%s", late.Hint)
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

// awaitAnswer waits for the record that answers a question. Its key is unique, so there is at most
// one answer. Watch comes before Find, so an answer in between still wakes the loop.
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
