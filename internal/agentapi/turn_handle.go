package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"swarm"
	"swarm/internal/excerpt"
)

// A TurnHandle is an agent's place while it has a turn. Calls may come from many goroutines at once.
type TurnHandle struct {
	Agent, Task string
	Turn        swarm.TurnID
	Start       int // which start of the turn, from 1

	service *Service
	ctx     context.Context // ends when the turn does
	cancel  context.CancelFunc

	reading   sync.Mutex // read_inbox shows each envelope once
	answering sync.Mutex // a message is answered once

	mu    sync.Mutex
	left  bool
	busy  sync.WaitGroup // calls under way
	in    swarm.Inputs
	waits int     // how often it has waited
	done  *string // what it reports at its end
}

// BeginTurn begins an agent's turn, whose prompt has the mail that in says. An agent has one seat: an earlier one is left.
func (s *Service) BeginTurn(agent, task string, turn swarm.TurnID, start int, in swarm.Inputs) *TurnHandle {
	in.Upto = max(in.From, in.Upto)
	h := &TurnHandle{Agent: agent, Task: task, Turn: turn, Start: start, service: s, in: in}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	s.mu.Lock()
	if s.turns == nil {
		s.turns = map[string]*TurnHandle{}
	}
	before := s.turns[agent]
	s.turns[agent] = h
	s.mu.Unlock()
	if before != nil {
		before.End()
	}
	return h
}

// Turn is the handle of the agent's turn that runs now, or nil.
func (s *Service) Turn(agent string) *TurnHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[agent]
}

// End ends the turn's calls, waits for those under way, and says which mail the turn has seen: whoever commits the turn commits
// it too. A turn that is cut consumes nothing, and its mail is unread again.
func (h *TurnHandle) End() swarm.Inputs {
	h.mu.Lock()
	h.left = true
	h.mu.Unlock()
	h.cancel()
	h.busy.Wait()
	s := h.service
	s.mu.Lock()
	if s.turns[h.Agent] == h {
		delete(s.turns, h.Agent)
	}
	s.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.in
}

// Call does a tool in the agent's name. The answer is one JSON object; an error is an answer for the agent too.
func (h *TurnHandle) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	if !h.enter() {
		return nil, h.ended()
	}
	defer h.busy.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(h.ctx, stop)()
	t, err := h.service.findTool(tool)
	if err != nil {
		return nil, h.service.clean(err)
	}
	answer, err := t.do(ctx, h, args)
	switch {
	case err == nil:
		return swarm.Encode(answer), nil
	case h.ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil, h.ended()
	}
	return nil, h.service.clean(withoutPath(err))
}

// withoutPath is what an agent is told when the log fails: what is wrong, and not where the log is.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*swarm.Error](err); ok && e.Kind == swarm.Storage {
		return &swarm.Error{Kind: e.Kind, Msg: e.Msg, Hint: e.Hint}
	}
	return err
}

func (h *TurnHandle) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.left {
		h.busy.Add(1)
	}
	return !h.left
}

// first is what the ids of all that the agent does in its turn are made with: what it does again in another attempt, it has done.
func (h *TurnHandle) first() string { return string(swarm.FirstAttempt(h.Turn)) }

// append writes what the agent does, see [Service.append]. A turn that was begun again has another start: what the earlier one
// still does is refused with ErrStale, in whichever process it runs.
func (h *TurnHandle) append(ctx context.Context, b swarm.Batch) (seq int64, there *swarm.Event, err error) {
	next := swarm.StartKey(h.Turn, h.Start+1)
	b.Absent = append(b.Absent, next)
	seq, there, err = h.service.append(ctx, b)
	if errors.Is(err, swarm.ErrStale) {
		_, replaced, failed := h.service.Log.Find(next)
		switch {
		case failed != nil:
			err = failed
		case replaced:
			err = swarm.Errorf(swarm.Denied, "the turn %s is over: %w", h.Turn, errReplaced).WithHint("stop here: its newer start does the work")
		}
	}
	return seq, there, err
}

// errReplaced refuses what a start of a turn does after another start of it began.
var errReplaced = fmt.Errorf("%w", swarm.ErrStale)

// by is who did something, in an event.
func (h *TurnHandle) by() swarm.Event { return swarm.Event{Agent: h.Agent, Task: h.Task, Turn: h.Turn} }

func (h *TurnHandle) ended() error {
	return swarm.Errorf(swarm.Denied, "the turn %s has ended", h.Turn).WithHint("an agent acts while it has a turn")
}

// clean takes secrets out of an error, which quotes what the agent wrote.
func (s *Service) clean(err error) error {
	var e *swarm.Error
	if s.Redact == nil || !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Msg, clean.Hint = string(s.redact([]byte(e.Msg))), string(s.redact([]byte(e.Hint)))
	return &clean
}

// head is the beginning of a text, on one line.
func head(text string) string {
	return excerpt.Head(excerpt.OneLine(text), 200)
}
