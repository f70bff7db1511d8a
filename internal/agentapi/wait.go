package agentapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/strictjson"
)

const (
	waitTime = 10 * time.Minute // how long an agent waits for others by default
	mostWait = time.Hour
	maxHead  = 4 << 10 // bytes of an output that are shown; a longer one becomes an artifact
)

const waitDescription = "Wait until other agents are through with what you sent them, and get their outputs. You sent them work with send_handoff before, in this turn; " +
	"an agent to which you sent nothing is waited for until it has an output at all. Wait for all you need at once: your turn goes on when the last of them is " +
	"quiet. A long output comes with a ref: read it with read_artifact. When it takes longer than timeout you are told who is not ready."

const waitSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["agents"],
  "properties": {
    "agents": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string"}, "description": "The names of the agents to wait for."},
    "timeout": {"type": "integer", "minimum": 1, "maximum": 3600, "description": "How many seconds at most; 600 when left out."}
  }
}`

// A waitResult answers wait_for.
type waitResult struct {
	Outputs []waitedOutput `json:"outputs"`
}

type waitedOutput struct {
	Agent  string       `json:"agent"`
	Turn   swarm.TurnID `json:"turn"`
	Output string       `json:"output"`        // the beginning of a long output
	Bytes  int          `json:"bytes"`         // of the whole output
	Ref    string       `json:"ref,omitempty"` // artifact with the whole of a long output
}

// A wait is one call of wait_for.
type wait struct {
	turn  *TurnHandle
	names []string
	key   string
}

// waitFor blocks until the other agents are done.
func waitFor(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "agents", "timeout")
	a.Need("agents")
	names := a.Texts("agents")
	limit := time.Duration(a.Int("timeout", int64(waitTime/time.Second), 1, int64(mostWait/time.Second))) * time.Second
	if err := a.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, swarm.Errorf(swarm.BadInput, "agents is empty").WithHint("name the agents whose outputs you need")
	}
	w, err := h.beginWait(names)
	if err != nil {
		return nil, err
	}
	outputs, err := w.watch(ctx, limit)
	w.end(ctx, err)
	if err != nil {
		return nil, err
	}
	return w.answer(ctx, outputs)
}

// beginWait checks a wait. It refuses one that could never end.
func (h *TurnHandle) beginWait(names []string) (*wait, error) {
	h.mu.Lock()
	h.waits++
	nth := h.waits
	h.mu.Unlock()
	s := h.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	w := &wait{turn: h, key: fmt.Sprintf("%s:%d:%d", h.Turn, h.Start, nth)}
	for _, name := range names {
		agent, err := s.rules.Find(h.Agent, name)
		switch {
		case err != nil:
			return nil, s.explainUnknown(name, err)
		case agent == h.Agent:
			return nil, swarm.Errorf(swarm.BadInput, "%s cannot wait for itself", h.Agent)
		case !s.rules.Sees(h.Agent, agent):
			return nil, swarm.Errorf(swarm.BadInput, "%s has no edge to %s or from it, and cannot wait for it", h.Agent, agent).
				WithHint("wait for agents that you write to, or that write to you")
		}
		if err := s.cycle(h.Agent, []string{agent}, math.MaxInt64); err != nil {
			return nil, err
		}
		if !slices.Contains(w.names, agent) {
			w.names = append(w.names, agent)
		}
	}
	if m := s.team.Member(h.Agent); m != nil && m.State == plan.MemberWaiting {
		return nil, swarm.Errorf(swarm.BadInput, "%s waits already", h.Agent).WithHint("wait for all you need in one call")
	}
	return w, nil
}

// cycle refuses a wait that would deadlock: the waits of the others lead back to the agent. Only
// waits before a sequence number count. So of several waits that close a cycle together, only the
// last is refused, even if they are in several processes. The caller holds the service's mutex.
func (s *Service) cycle(waits string, names []string, before int64) error {
	for _, name := range names {
		if path := s.team.WaitPath(name, waits, before); path != nil {
			return swarm.Errorf(swarm.BadInput, "waiting for %s would deadlock: %s", name, append(plan.Path{waits}, path...)).
				WithHint("end your turn: what %s sends you comes with your next one", name)
		}
	}
	return nil
}

// watch waits until all agents are done.
func (w *wait) watch(ctx context.Context, limit time.Duration) ([]output, error) {
	s := w.turn.service
	began, err := w.record(ctx, swarm.WaitBegan, "")
	if err != nil {
		return nil, err
	}
	wake, off := s.Log.Watch()
	defer off()
	timeout := newPausableTimer(limit)
	defer timeout.stop()
	for {
		outputs, pending, paused, err := w.check(began)
		if err != nil || pending == "" {
			return outputs, err
		}
		timeout.pause(paused)
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.timer.C:
			return nil, swarm.Errorf(swarm.TimedOut, "waited %s for %s", limit, pending).
				WithHint("wait again, wait only for the others, or go on without it")
		}
	}
}

// A pausableTimer is the timeout of a wait. It stops while the run is paused.
type pausableTimer struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // when the timer was set; zero = it is paused
}

func newPausableTimer(limit time.Duration) *pausableTimer {
	return &pausableTimer{time.NewTimer(limit), limit, time.Now()}
}

func (p *pausableTimer) stop() { p.timer.Stop() }

func (p *pausableTimer) pause(on bool) {
	switch {
	case on && !p.since.IsZero():
		p.timer.Stop()
		p.left, p.since = max(0, p.left-time.Since(p.since)), time.Time{}
	case !on && p.since.IsZero():
		p.timer.Reset(p.left)
		p.since = time.Now()
	}
}

// check returns the outputs, or the agents that are not done and why, and whether the run is
// paused. began is the sequence number of the wait. The fold has reached it, so it includes all
// earlier waits, also those of other processes.
func (w *wait) check(began int64) (outputs []output, pending string, paused bool, err error) {
	s := w.turn.service
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, "", false, err
	}
	if err := s.cycle(w.turn.Agent, w.names, began); err != nil {
		return nil, "", false, err
	}
	var late []string
	for _, name := range w.names {
		a, m := s.agent(name), s.team.Member(name)
		wanted := int64(0)
		if p := a.From[w.turn.Agent]; p.Turn == w.turn.Turn {
			wanted = p.Seq
		}
		switch {
		case m.Quiet() && m.Read >= wanted && a.Output.Seq > wanted && a.Output.Hash != "":
			outputs = append(outputs, a.Output)
		case wanted > 0 && wanted < a.Began && a.Output.Seq < wanted:
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s was ended and started again, and has not read what you sent it", name).WithHint("send it again, or go on without it")
		case m.End != nil:
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s has ended, and will not answer any more%s", name, plan.LastFailure(m.Trouble)).WithHint("go on without it")
		case s.team.Closing != "" && !m.InTurn():
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s has no turn any more: %s", name, closing(&s.team.TeamState)).WithHint("go on without it")
		default:
			late = append(late, name+" ("+s.team.Busy(name).String()+")")
		}
	}
	return outputs, strings.Join(late, ", "), !s.team.PauseAt.IsZero(), nil
}

// closing says why no turn of the team starts any more.
func closing(t *plan.TeamState) string {
	switch t.Closing {
	case plan.ClosedByLead:
		return t.Rules.Lead + " has reported that all is done"
	case plan.ClosedByBudget:
		return "the budget is spent"
	case plan.ClosedByCancel:
		return "the run is being cancelled"
	}
	return "the run is being ended"
}

// end records that the agent no longer waits, with the error if there was one.
func (w *wait) end(ctx context.Context, err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	_, _ = w.record(context.WithoutCancel(ctx), swarm.WaitEnded, reason) // if this fails, the turn's end shows it too
}

func (w *wait) record(ctx context.Context, kind swarm.EventKind, reason string) (seq int64, err error) {
	h := w.turn
	e := swarm.Event{Kind: kind, Key: string(kind) + ":" + w.key, Agent: h.Agent, Task: h.Task, Turn: h.Turn,
		Data: swarm.Encode(swarm.AgentWait{For: w.names, Reason: string(h.service.redact([]byte(reason)))})}
	if h.service.Loop != "" {
		e.To = swarm.ToLoop(h.service.Loop)
	}
	seq, _, err = h.service.append(ctx, swarm.Batch{Fence: h.service.Fence, Events: []swarm.Event{e}})
	return seq, err
}

// answer makes the answer with the outputs. A long output becomes an artifact of the agent that
// made it.
func (w *wait) answer(ctx context.Context, outputs []output) (any, error) {
	s := w.turn.service
	all := waitResult{Outputs: make([]waitedOutput, len(outputs))}
	for i, out := range outputs {
		text, err := s.Log.Body(out.Hash)
		if err != nil {
			return nil, err
		}
		it := waitedOutput{Agent: w.names[i], Turn: out.Turn, Output: string(text), Bytes: len(text)}
		if len(text) > maxHead {
			from, to := window(text, 0, maxHead)
			it.Output = string(text[from:to])
			by := swarm.Event{Agent: w.names[i], Task: out.Task, Turn: out.Turn}
			if it.Ref, err = w.turn.put(ctx, by, "report", "output of "+string(out.Turn)+", "+strconv.Itoa(len(text))+" bytes", text); err != nil {
				return nil, err
			}
		}
		all.Outputs[i] = it
	}
	return all, nil
}
