package main

import (
	"os"

	"swarm"
	"swarm/internal/home"
)

// insideTurn says whether this program was started by an agent in its turn, and where the agent's tools are.
func insideTurn() (swarm.Door, bool) {
	door := swarm.Door{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
	return door, door.URL != "" && door.Token != ""
}

// aPersons refuses what is a person's to do in a run to an agent of that run. It keeps no program out that hides where it was started: one
// with a shell is as free as its sandbox. It keeps an agent that was told to from doing so by a plain command.
func aPersons(run, what string) error {
	if os.Getenv("SWARM_TURN_ID") == "" || run != os.Getenv("SWARM_RUN_ID") {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s is for a person to do, not for an agent of the run", what).
		WithHint("what an agent may do it does by its own tools, or by swarm send, inbox, publish, wait-for, spawn; to ask a person: swarm ask \"…\"; to report that all is done, which ends the lead's run: swarm done \"…\"")
}

// inOwnRun refuses an agent what belongs to another run of the same home: no edge leads there.
func inOwnRun(h *home.Home, id string) error {
	own := os.Getenv("SWARM_RUN_ID")
	if os.Getenv("SWARM_TURN_ID") == "" || id == own {
		return nil
	}
	if !h.Exists(own) {
		return nil //nolint:nilerr // its run is kept elsewhere: here is nothing that is near it
	}
	return errOtherRun()
}

func errOtherRun() error {
	return swarm.Errorf(swarm.BadInput, "an agent acts in its own run only").WithHint("leave --run out")
}
