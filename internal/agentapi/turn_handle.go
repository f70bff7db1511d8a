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

// A TurnHandle is how an agent acts on the run while it has a turn. Its methods may be called from
// many goroutines.
type TurnHandle struct {
	Agent, Task string
	Turn        swarm.TurnID
	Start       int // number of this start of the turn, from 1

	service *Service
	ctx     context.Context // ends with the turn
	cancel  context.CancelFunc

	reading   sync.Mutex // serializes reads of mail, so each envelope is shown once
	answering sync.Mutex // serializes answers, so each message is answered once

	mu    sync.Mutex
	left  bool
	busy  sync.WaitGroup // calls in progress
	in    swarm.Inputs
	waits int     // number of waits, for their keys
	done  *string // the report for the turn's end
}

// BeginTurn begins an agent's turn, with the mail of in in its prompt. An agent has one handle:
// BeginTurn ends an earlier one.
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

// Turn returns the handle of the agent's running turn, or nil.
func (s *Service) Turn(agent string) *TurnHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns[agent]
}

// End refuses further calls, waits for those in progress, and returns the mail that the turn has
// seen. The caller commits that range with the turn. A turn that is cut consumes nothing, so its
// mail stays unread.
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

// Call runs a tool for the agent. The answer is one JSON object. An error is an answer for the
// agent, too.
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

// withoutPath removes the path of the log from a storage error, since agents must not see it.
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

// first is the turn's first attempt, from which the ids of the agent's actions are made. An action
// that a retry repeats is therefore the same event.
func (h *TurnHandle) first() string { return string(swarm.FirstAttempt(h.Turn)) }

// append appends what the agent does, see [Service.append]. The key of the turn's next start must
// be absent. So a start that was replaced fails with ErrStale, in whichever process it runs.
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

// errReplaced refuses the actions of a start after a newer start of the turn began.
var errReplaced = fmt.Errorf("%w", swarm.ErrStale)

// by is an event with the agent and its turn.
func (h *TurnHandle) by() swarm.Event { return swarm.Event{Agent: h.Agent, Task: h.Task, Turn: h.Turn} }

func (h *TurnHandle) ended() error {
	return swarm.Errorf(swarm.Denied, "the turn %s has ended", h.Turn).WithHint("an agent acts while it has a turn")
}

// clean removes secrets from an error, which may quote the agent's arguments.
func (s *Service) clean(err error) error {
	var e *swarm.Error
	if s.Redact == nil || !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Msg, clean.Hint = string(s.redact([]byte(e.Msg))), string(s.redact([]byte(e.Hint)))
	return &clean
}

// head shortens a text to one line.
func head(text string) string {
	return excerpt.Head(excerpt.OneLine(text), 200)
}
