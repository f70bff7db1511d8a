package run

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/statedir"
)

// A StateError refuses an action that has no meaning in the run's current state.
type StateError struct{ Err *swarm.Error }

func (e *StateError) Error() string { return e.Err.Error() }

// Unwrap returns the error whose kind and hint count.
func (e *StateError) Unwrap() error { return e.Err }

// Control sends a command to a run, whichever process drives it. When it returns, the command is on
// disk. If no process owns the run, the command takes effect when the run is resumed.
func Control(ctx context.Context, h *statedir.Home, id swarm.RunID, c swarm.ControlCommand) error {
	cancels := c.Command == swarm.CommandCancel && c.Target == ""
	log, replay, err := openToSteer(ctx, h, id, cancels)
	if err != nil {
		return err
	}
	e := commandEvent(c)
	if replay {
		e.Key = swarm.CancelReplayKey
	}
	_, err = log.Append(ctx, swarm.Batch{Events: []swarm.Event{e}})
	return errors.Join(err, log.Close())
}

// openToSteer opens a run for a record of a person. It refuses a replay that has not ended, because
// its people are the recorded ones. A person can only cancel it.
func openToSteer(ctx context.Context, h *statedir.Home, id swarm.RunID, cancels bool) (log swarm.RunLog, replay bool, err error) {
	if log, err = h.Store.Open(ctx, id, swarm.ReadWrite); err != nil {
		return nil, false, err
	}
	start, err := firstEvent(log)
	ended := false
	if err == nil {
		_, ended, err = log.Find(string(swarm.RunEnded))
	}
	if err == nil && start.Replay && !cancels && !ended {
		err = &StateError{swarm.Errorf(swarm.BadInput, "run %s is a replay: it takes only cancel", id).WithHint("swarm cancel %s", id)}
	}
	if err != nil {
		_ = log.Close() // nothing was written
		return nil, false, err
	}
	return log, start.Replay, nil
}

// PauseWanted reports whether the run is paused or will be: the latest pause or resume decides,
// whether the loop has obeyed it or not. A run whose agents repeat themselves pauses by itself.
//
// The loop may obey a command after a later one was written. The key of the event that it appends
// names the record that it obeys, so an event about an older command is ignored.
func PauseWanted(h *statedir.Home, id swarm.RunID) (wanted bool, err error) {
	var last int64 // the last command about the whole run
	err = scan(h, id, func(e *swarm.Event, c swarm.ControlCommand) {
		_, number, _ := strings.Cut(e.Key, ":")
		obeyed, _ := strconv.ParseInt(number, 10, 64)
		switch command := c.Target == "" && (c.Command == swarm.CommandPause || c.Command == swarm.CommandResume); {
		case command:
			wanted, last = c.Command == swarm.CommandPause, e.Seq
		case e.Kind == swarm.RunPausing && obeyed >= last:
			wanted = true
		case e.Kind == swarm.RunUnpaused && obeyed >= last:
			wanted = false
		}
	})
	return wanted, err
}

// lastCommand returns which of some commands was sent last to a target, whether it was obeyed or
// not. "" means none.
func lastCommand(h *statedir.Home, id swarm.RunID, target string, commands ...swarm.Command) (last swarm.Command, err error) {
	err = scan(h, id, func(_ *swarm.Event, c swarm.ControlCommand) {
		if c.Target == target && slices.Contains(commands, c.Command) {
			last = c.Command
		}
	})
	return last, err
}

// TakesLines reports whether a run is a session that waits for its next line.
func TakesLines(h *statedir.Home, id swarm.RunID) (bool, error) {
	if h.Summary(id).Kind != swarm.LineRun {
		return false, nil
	}
	closed, err := lastCommand(h, id, "", swarm.CommandClose, swarm.CommandCancel)
	return closed == "", err
}

// CancelWanted reports whether somebody has cancelled the whole run, whether its loop has obeyed or
// not.
func CancelWanted(h *statedir.Home, id swarm.RunID) (bool, error) {
	last, err := lastCommand(h, id, "", swarm.CommandCancel)
	return last != "", err
}

// scan calls fn with every event of a run, and with the command of a control record.
func scan(h *statedir.Home, id swarm.RunID, fn func(e *swarm.Event, c swarm.ControlCommand)) error {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err != nil {
		return err
	}
	defer log.Close()
	return log.Scan(0, func(e *swarm.Event) error {
		var c swarm.ControlCommand
		if e.Kind == swarm.Control {
			c, _ = swarm.Body[swarm.ControlCommand](e) // the loop that obeys it reports the error
		}
		fn(e, c)
		return nil
	})
}

func appendCommand(ctx context.Context, log swarm.Log, c swarm.ControlCommand) error {
	_, err := log.Append(ctx, swarm.Batch{Events: []swarm.Event{commandEvent(c)}})
	return err
}

func commandEvent(c swarm.ControlCommand) swarm.Event {
	e := swarm.NewEvent(swarm.Control, c)
	e.To = swarm.ToControl
	return e
}

// Sweep cleans up after drivers that were killed. It ends their orphaned processes, and writes the
// copies of outputs that they had no time for. Every command calls it first, so it looks only at
// runs whose driver left a mark.
func Sweep(h *statedir.Home) {
	for _, mark := range h.Left(func(m statedir.Mark) bool { return process.HasOrphans(m.Run, m.PID) }) {
		all := true
		if !h.DrivenBy(mark.Run, mark.PID) {
			_, all = process.Reap(mark.Run, mark.PID, mark.Folder)
		}
		if !h.Driven(mark.Run) { // a new driver has done it already
			if log, err := h.Store.Open(context.Background(), mark.Run, swarm.ReadOnly); err == nil {
				_ = copyOutputs(h, mark.Run, log) // the outputs are in the log anyway
				_ = log.Close()
			}
		}
		if all { // this command may be in an orphaned process, which the next one outside of it ends
			h.Unmark(mark)
		}
	}
}

// copyOutputs writes the files of outputs from the log. They are copies, and a crash may come
// before they are written.
func copyOutputs(h *statedir.Home, id swarm.RunID, log swarm.RunLog) error {
	v, err := View(log, id)
	if err != nil {
		return err
	}
	for i := range v.Len() {
		t := v.At(i)
		if t.Output.Hash == "" {
			continue
		}
		text, err := log.Body(t.Output.Hash)
		if err != nil {
			return err
		}
		if err := h.WriteOutput(id, t.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// Say sends a command to a run that this process drives.
func (r *Run) Say(ctx context.Context, c swarm.ControlCommand) error {
	return appendCommand(ctx, r.log, c)
}

// Grow adds to the plan of a run that this process drives, as its n-th addition. When it returns,
// the addition is on disk.
func (r *Run) Grow(ctx context.Context, n int, p *swarm.Plan, bodies [][]byte) error {
	p, bodies, err := redactPlan(p, bodies, r.redact)
	if err != nil {
		return err
	}
	_, err = r.log.Append(ctx, swarm.Batch{Fence: r.fence, Bodies: bodies, Events: []swarm.Event{{Kind: swarm.PlanAdded, Key: "plan:" + strconv.Itoa(n+1),
		To: swarm.ToLoop(root), Data: swarm.Encode(p)}}})
	return err
}
