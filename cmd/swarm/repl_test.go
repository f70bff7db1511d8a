package main

import (
	"testing"

	"swarm"
	"swarm/internal/view"
)

// The exit code of a session that was left is that of one that has ended: cancelled lines alone fail it.
func TestLeftExit(t *testing.T) {
	for _, c := range []struct {
		tasks []swarm.Status
		want  int
	}{
		{nil, swarm.ExitDone},
		{[]swarm.Status{swarm.Completed, swarm.Cancelled, swarm.Skipped}, swarm.ExitDone},
		{[]swarm.Status{swarm.Cancelled, swarm.Cancelled}, swarm.ExitFailed},
		{[]swarm.Status{swarm.Completed, swarm.Failed}, swarm.ExitFailed},
		{[]swarm.Status{swarm.Completed, swarm.Waiting}, swarm.ExitFailed},
	} {
		var p view.Picture
		for _, s := range c.tasks {
			p.Tasks = append(p.Tasks, view.Task{Status: s})
		}
		if got := leftExit(p); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.tasks, got, c.want)
		}
	}
}
