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

// Control says something to a run, whichever process drives it. When it returns, the word is on disk.
func Control(ctx context.Context, h *statedir.Home, id swarm.RunID, command swarm.Command, target string) error {
	log, err := h.Store.Open(ctx, id, swarm.ReadWrite)
	if err != nil {
		return err
	}
	return errors.Join(appendCommand(ctx, log, command, target), log.Close())
}

// PauseWanted says whether the run is paused, or the last that was said about it is to pause, whether somebody has obeyed or not. A run
// that goes in a circle pauses by itself. The loop may obey a word when a later one has been said: the key of what it tells names the
// record that it obeys.
func PauseWanted(h *statedir.Home, id swarm.RunID) (wanted bool, err error) {
	var last int64 // the last word about the whole run
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

// lastCommand is which of some words was said last of a target, whether somebody has obeyed or not; "" = none was.
func lastCommand(h *statedir.Home, id swarm.RunID, target string, commands ...swarm.Command) (last swarm.Command, err error) {
	err = scan(h, id, func(_ *swarm.Event, c swarm.ControlCommand) {
		if c.Target == target && slices.Contains(commands, c.Command) {
			last = c.Command
		}
	})
	return last, err
}

// scan calls fn with every event of a run, and with the word that it is, if it is one.
func scan(h *statedir.Home, id swarm.RunID, fn func(e *swarm.Event, c swarm.ControlCommand)) error {
	log, err := h.Store.Open(context.Background(), id, swarm.ReadOnly)
	if err != nil {
		return err
	}
	defer log.Close()
	return log.Scan(0, func(e *swarm.Event) error {
		var c swarm.ControlCommand
		if e.Kind == swarm.Control {
			c, _ = swarm.Body[swarm.ControlCommand](e) // who obeys it complains
		}
		fn(e, c)
		return nil
	})
}

func appendCommand(ctx context.Context, log swarm.Log, command swarm.Command, target string) error {
	e := swarm.NewEvent(swarm.Control, swarm.ControlCommand{Command: command, Target: target})
	e.To = swarm.ToControl
	_, err := log.Append(ctx, swarm.Batch{Events: []swarm.Event{e}})
	return err
}

// Sweep clears up after drivers that were killed: it ends the processes that they have left behind, and writes the copies of
// outputs that they had no time for. Every command does it first, so it looks only where a mark was left.
func Sweep(h *statedir.Home) {
	for _, mark := range h.Left() {
		if !h.DrivenBy(mark.Run, mark.PID) {
			process.Reap(mark.Run, mark.PID)
		}
		if !h.Driven(mark.Run) { // else its new driver has seen to it
			if log, err := h.Store.Open(context.Background(), mark.Run, swarm.ReadOnly); err == nil {
				_ = copyOutputs(h, mark.Run, log) // what cannot be copied is in the log
				_ = log.Close()
			}
		}
		h.Unmark(mark)
	}
}

// copyOutputs makes the files of outputs again from the log: they are copies, and a crash may have come before they were written.
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

// Say says something to a run that this process drives.
func (r *Run) Say(ctx context.Context, command swarm.Command, target string) error {
	return appendCommand(ctx, r.log, command, target)
}

// Grow adds to the plan of a run that this process drives, as its n-th addition. When it returns, that is on disk.
func (r *Run) Grow(ctx context.Context, n int, p *swarm.Plan, bodies [][]byte) error {
	_, err := r.log.Append(ctx, swarm.Batch{Fence: r.fence, Bodies: bodies, Events: []swarm.Event{{Kind: swarm.PlanAdded, Key: "plan:" + strconv.Itoa(n+1),
		To: swarm.ToLoop(root), Data: swarm.Encode(p)}}})
	return err
}
