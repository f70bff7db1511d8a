package run

import (
	"context"
	"time"

	"swarm"
	"swarm/internal/snapshot"
	"swarm/internal/statedir"
)

// watchObeyed looks at the files that the run executes or obeys: the compose file, prompts, scripts.
// Calling ended looks again, and notes on disk which of them have changed, before the end of the turn
// is appended. The next run that would use such a file asks a person first. Changes that others make at
// the same time are noted too, because nobody can tell whose they are.
func (d *driver) watchObeyed(turn swarm.TurnID, agent string) (ended func()) {
	before := d.obeyed.LookBefore()
	return func() {
		for path, hash := range snapshot.Changed(before, d.obeyed.Look()) {
			err := d.home.NoteChange(statedir.Change{Path: path, Hash: hash, Run: d.ID, Turn: turn, Agent: agent, Time: time.Now().UTC()})
			if err != nil { // a log that refuses this notice also refuses the turn's end
				_ = d.notice(context.Background(), "a change of a file that swarm obeys could not be noted: "+err.Error(), "")
			}
		}
	}
}
