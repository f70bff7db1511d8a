package office

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarm"
	"swarm/internal/strictjson"
)

const (
	waitTime = 10 * time.Minute // how long an agent waits for others, when it does not say
	mostWait = time.Hour
	maxHead  = 4 << 10 // bytes of an output that are shown; the rest is an artifact
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

// waited answers wait_for.
type waited struct {
	Outputs []waitedOutput `json:"outputs"`
}

type waitedOutput struct {
	Agent  string `json:"agent"`
	Turn   string `json:"turn"`
	Output string `json:"output"`        // its beginning, when it is long
	Bytes  int    `json:"bytes"`         // of the whole
	Ref    string `json:"ref,omitempty"` // the whole, when it is long
}

// A wait is one call of wait_for.
type wait struct {
	seat  *Seat
	names []string
	key   string
}

// waitFor blocks until the others are through.
func waitFor(ctx context.Context, s *Seat, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "agents", "timeout")
	a.Need("agents")
	names := a.Texts("agents")
	limit := time.Duration(a.Int("timeout", int64(waitTime/time.Second), 1, int64(mostWait/time.Second))) * time.Second
	if err := a.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, swarm.Errorf(swarm.BadInput, "there is nobody to wait for").WithHint("name the agents whose outputs you need")
	}
	w, err := s.beginWait(names)
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

// beginWait notes that the agent waits, if that can come to an end.
func (s *Seat) beginWait(names []string) (*wait, error) {
	s.mu.Lock()
	s.waits++
	nth := s.waits
	s.mu.Unlock()
	o := s.office
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.follow(); err != nil {
		return nil, err
	}
	w := &wait{seat: s, key: fmt.Sprintf("%s:%d:%d", s.Turn, s.Start, nth)}
	for _, name := range names {
		agent, err := o.rules.Find(s.Agent, name)
		switch {
		case err != nil:
			return nil, o.notYet(name, err)
		case agent == s.Agent:
			return nil, swarm.Errorf(swarm.BadInput, "%s cannot wait for itself", s.Agent)
		case !o.rules.Sees(s.Agent, agent):
			return nil, swarm.Errorf(swarm.BadInput, "%s has no edge to %s or from it, and cannot wait for it", s.Agent, agent).
				WithHint("wait for agents that you write to, or that write to you")
		}
		if path := o.waitPath(agent, s.Agent, map[string]bool{}); path != nil {
			return nil, swarm.Errorf(swarm.BadInput, "to wait for %s would never end: %s", agent, strings.Join(append([]string{s.Agent}, path...), " → ")).
				WithHint("end your turn: what %s sends you comes with your next one", agent)
		}
		if !slices.Contains(w.names, agent) {
			w.names = append(w.names, agent)
		}
	}
	if _, busy := o.waits[s.Agent]; busy {
		return nil, swarm.Errorf(swarm.BadInput, "%s waits already", s.Agent).WithHint("wait for all you need in one call")
	}
	o.waits[s.Agent] = w.names
	return w, nil
}

// waitPath is how one agent's waits lead to another, or nil. The office is locked.
func (o *Office) waitPath(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, next := range o.waits[from] {
		if seen[next] {
			continue
		}
		if path := o.waitPath(next, to, seen); path != nil {
			return append([]string{from}, path...)
		}
	}
	return nil
}

// watch waits until everybody is ready.
func (w *wait) watch(ctx context.Context, limit time.Duration) ([]output, error) {
	o := w.seat.office
	if err := w.tell(ctx, swarm.WaitBegan, ""); err != nil {
		return nil, err
	}
	wake, off := o.Log.Watch()
	defer off()
	over := newPatience(limit)
	defer over.stop()
	for {
		outputs, pending, paused, err := w.look()
		if err != nil || pending == "" {
			return outputs, err
		}
		over.hold(paused)
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-over.timer.C:
			return nil, swarm.Errorf(swarm.TimedOut, "waited %s for %s", limit, pending).
				WithHint("wait again, wait only for the others, or go on without it")
		}
	}
}

// A patience is how long somebody still waits. It does not grow less while the run is paused.
type patience struct {
	timer *time.Timer
	left  time.Duration
	since time.Time // when the timer was set; zero = it stands
}

func newPatience(limit time.Duration) *patience {
	return &patience{time.NewTimer(limit), limit, time.Now()}
}

func (p *patience) stop() { p.timer.Stop() }

func (p *patience) hold(on bool) {
	switch {
	case on && !p.since.IsZero():
		p.timer.Stop()
		p.left, p.since = max(0, p.left-time.Since(p.since)), time.Time{}
	case !on && p.since.IsZero():
		p.timer.Reset(p.left)
		p.since = time.Now()
	}
}

// look says whose outputs are there, or who is not ready and why; and whether the run is paused.
func (w *wait) look() (outputs []output, pending string, paused bool, err error) {
	o := w.seat.office
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.follow(); err != nil {
		return nil, "", false, err
	}
	var late []string
	for _, name := range w.names {
		a := o.agent(name)
		wanted := int64(0)
		if p := a.from[w.seat.Agent]; p.turn == w.seat.Turn {
			wanted = p.seq
		}
		switch {
		case a.quiet() && a.cursor >= wanted && a.output.seq > wanted && a.output.hash != "":
			outputs = append(outputs, a.output)
		case wanted > 0 && wanted < a.began && a.output.seq < wanted:
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s was ended and started again, and has not read what you sent it", name).WithHint("send it again, or go on without it")
		case o.rules.Ended(name):
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s has ended, and will not answer any more%s", name, because(a.trouble)).WithHint("go on without it")
		case o.last != "" && a.turn == "":
			return nil, "", false, swarm.Errorf(swarm.WaitFailed, "%s has no turn any more: %s", name, o.last).WithHint("go on without it")
		default:
			late = append(late, name+" ("+o.busyWith(name)+")")
		}
	}
	return outputs, strings.Join(late, ", "), o.paused, nil
}

// busyWith says why an agent is not through. The office is locked.
func (o *Office) busyWith(name string) string {
	a := o.agent(name)
	held := ""
	if a.held {
		held = "it is paused, and "
	}
	switch {
	case a.turn != "" && len(a.asks) > 0:
		return "in its turn " + a.turn + " it waits for a person to allow something"
	case a.turn != "" && len(o.waits[name]) > 0:
		return "in its turn " + a.turn + " it waits for " + strings.Join(o.waits[name], ", ")
	case a.turn != "":
		return "its turn " + a.turn + " runs"
	case !a.quiet():
		return held + "it has mail to read" + because(a.trouble)
	}
	return held + "it has no output yet; nobody has sent it work"
}

func because(trouble string) string {
	if trouble == "" {
		return ""
	}
	return "; its last turn failed: " + head(trouble)
}

// end notes that the agent waits no longer, however that came.
func (w *wait) end(ctx context.Context, err error) {
	o := w.seat.office
	o.mu.Lock()
	delete(o.waits, w.seat.Agent)
	o.mu.Unlock()
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	_ = w.tell(context.WithoutCancel(ctx), swarm.WaitEnded, reason) // who looks sees the turn end too
}

func (w *wait) tell(ctx context.Context, kind swarm.EventKind, reason string) error {
	s := w.seat
	e := swarm.Event{Kind: kind, Key: string(kind) + ":" + w.key, Agent: s.Agent, Task: s.Task, Turn: s.Turn,
		Data: swarm.Encode(swarm.AgentWait{For: w.names, Reason: string(s.office.redact([]byte(reason)))})}
	if s.office.Loop != "" {
		e.To = swarm.ToLoop(s.office.Loop)
	}
	_, _, err := s.office.append(ctx, swarm.Batch{Fence: s.office.Fence, Events: []swarm.Event{e}})
	return err
}

// answer shows the outputs. A long one becomes an artifact of who made it.
func (w *wait) answer(ctx context.Context, outputs []output) (any, error) {
	o := w.seat.office
	all := waited{Outputs: make([]waitedOutput, len(outputs))}
	for i, out := range outputs {
		text, err := o.Log.Body(out.hash)
		if err != nil {
			return nil, err
		}
		it := waitedOutput{Agent: w.names[i], Turn: out.turn, Output: string(text), Bytes: len(text)}
		if len(text) > maxHead {
			from, to := window(text, 0, maxHead)
			it.Output = string(text[from:to])
			by := swarm.Event{Agent: w.names[i], Task: out.task, Turn: out.turn}
			if it.Ref, err = w.seat.put(ctx, by, "report", "output of "+out.turn+", "+strconv.Itoa(len(text))+" bytes", text); err != nil {
				return nil, err
			}
		}
		all.Outputs[i] = it
	}
	return all, nil
}
