package run

import (
	"context"
	"encoding/json"
	"errors"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/provider"
	"swarm/internal/sqlite"
)

// Control says something to a run, whichever process drives it. When it returns, the word is on disk.
func Control(ctx context.Context, h *home.Home, id string, word swarm.Word, target string) error {
	log, err := sqlite.Open(h.RunPath(id))
	if err != nil {
		return err
	}
	return errors.Join(say(ctx, log, word, target), log.Close())
}

// copyOutputs makes the files of outputs again from the log: they are copies, and a crash may have come before they were written.
func (d *driver) copyOutputs() error {
	v, err := View(d.log, d.ID)
	if err != nil {
		return err
	}
	for i := range v.Len() {
		t := v.At(i)
		if t.Output.Hash == "" {
			continue
		}
		text, err := d.log.Body(t.Output.Hash)
		if err != nil {
			return err
		}
		if err := d.home.WriteOutput(d.ID, t.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// Unpause lets the run go on if it is paused. Without a driver a pause would last for ever: whoever drives a run on wants it to
// go on.
func (r *Run) Unpause(ctx context.Context) error { return say(ctx, r.log, swarm.WordResume, "") }

func say(ctx context.Context, log swarm.Log, word swarm.Word, target string) error {
	body, err := json.Marshal(swarm.ControlWord{Word: word, Target: target})
	if err == nil {
		_, err = log.Append(ctx, swarm.Batch{Events: []swarm.Event{{Kind: swarm.Control, To: swarm.ToControl, Data: body}}})
	}
	return err
}

// Sweep ends the processes that killed drivers have left behind. Every command does it first, so it looks only at the runs that
// were being driven when somebody last looked.
func Sweep(h *home.Home) {
	for _, id := range h.Marked() {
		if h.Live(id) {
			continue
		}
		provider.Reap(id, func() bool { return !h.Live(id) })
		h.Unmark(id)
	}
}
