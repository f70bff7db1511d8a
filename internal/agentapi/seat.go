package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"swarm/internal/excerpt"

	"swarm"
)

// A Seat is an agent's place while it has a turn. Calls may come from many goroutines at once.
type Seat struct {
	Agent, Task, Turn string
	Start             int // which start of the turn, from 1

	office *Office
	gone   context.Context // ends when the turn does
	end    context.CancelFunc

	reading   sync.Mutex // read_inbox shows each envelope once
	answering sync.Mutex // a message is answered once

	mu    sync.Mutex
	left  bool
	busy  sync.WaitGroup // calls under way
	in    swarm.Inputs
	waits int     // how often it has waited
	done  *string // what it reports at its end
}

// Sit begins an agent's turn, whose prompt has the mail that in says. An agent has one seat: an earlier one is left.
func (o *Office) Sit(agent, task, turn string, start int, in swarm.Inputs) *Seat {
	in.Upto = max(in.From, in.Upto)
	s := &Seat{Agent: agent, Task: task, Turn: turn, Start: start, office: o, in: in}
	s.gone, s.end = context.WithCancel(context.Background())
	o.mu.Lock()
	if o.seats == nil {
		o.seats = map[string]*Seat{}
	}
	before := o.seats[agent]
	o.seats[agent] = s
	o.mu.Unlock()
	if before != nil {
		before.Leave()
	}
	return s
}

// Seat is the seat of the agent's turn that runs now, or nil.
func (o *Office) Seat(agent string) *Seat {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seats[agent]
}

// Leave ends the turn's calls, waits for those under way, and says which mail the turn has seen: whoever commits the turn commits
// it too. A turn that is cut consumes nothing, and its mail is unread again.
func (s *Seat) Leave() swarm.Inputs {
	s.mu.Lock()
	s.left = true
	s.mu.Unlock()
	s.end()
	s.busy.Wait()
	o := s.office
	o.mu.Lock()
	if o.seats[s.Agent] == s {
		delete(o.seats, s.Agent)
	}
	o.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in
}

// Call does a tool in the agent's name. The answer is one JSON object; an error is an answer for the agent too.
func (s *Seat) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	if !s.enter() {
		return nil, s.ended()
	}
	defer s.busy.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.gone, stop)()
	t, err := s.office.findTool(tool)
	if err != nil {
		return nil, s.office.clean(err)
	}
	answer, err := t.do(ctx, s, args)
	switch {
	case err == nil:
		return swarm.Encode(answer), nil
	case s.gone.Err() != nil && errors.Is(err, context.Canceled):
		return nil, s.ended()
	}
	return nil, s.office.clean(placeless(err))
}

// placeless is what an agent is told when the log fails: what is wrong, and not where the log is.
func placeless(err error) error {
	if e, ok := errors.AsType[*swarm.Error](err); ok && e.Kind == swarm.Storage {
		return &swarm.Error{Kind: e.Kind, Msg: e.Msg, Hint: e.Hint}
	}
	return err
}

func (s *Seat) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.busy.Add(1)
	}
	return !s.left
}

// first is what the ids of all that the agent does in its turn are made with: what it does again in another attempt, it has done.
func (s *Seat) first() string { return swarm.FirstAttempt(s.Turn) }

// append writes what the agent does, see [Office.append]. A turn that was begun again has another start: what the earlier one
// still does is refused with ErrStale, in whichever process it runs.
func (s *Seat) append(ctx context.Context, b swarm.Batch) (seq int64, there *swarm.Event, err error) {
	next := swarm.StartKey(s.Turn, s.Start+1)
	b.Absent = append(b.Absent, next)
	seq, there, err = s.office.append(ctx, b)
	if errors.Is(err, swarm.ErrStale) {
		_, replaced, failed := s.office.Log.Find(next)
		switch {
		case failed != nil:
			err = failed
		case replaced:
			err = swarm.Errorf(swarm.Denied, "the turn %s is over: %w", s.Turn, errReplaced).WithHint("stop here: its newer start does the work")
		}
	}
	return seq, there, err
}

// errReplaced refuses what a start of a turn does after another start of it began.
var errReplaced = fmt.Errorf("%w", swarm.ErrStale)

// by is who did something, in an event.
func (s *Seat) by() swarm.Event { return swarm.Event{Agent: s.Agent, Task: s.Task, Turn: s.Turn} }

func (s *Seat) ended() error {
	return swarm.Errorf(swarm.Denied, "the turn %s has ended", s.Turn).WithHint("an agent acts while it has a turn")
}

// clean takes secrets out of an error, which quotes what the agent wrote.
func (o *Office) clean(err error) error {
	var e *swarm.Error
	if o.Redact == nil || !errors.As(err, &e) {
		return err
	}
	clean := *e
	clean.Msg, clean.Hint = string(o.redact([]byte(e.Msg))), string(o.redact([]byte(e.Hint)))
	return &clean
}

// head is the beginning of a text, on one line.
func head(text string) string {
	return excerpt.Head(excerpt.OneLine(text), 200)
}
