package control

import (
	"os"

	"swarm"
	"swarm/internal/statedir"
)

// A Caller is who acts. The zero value is a person.
type Caller struct {
	Run  swarm.RunID        // the run inside of which this program was started, if it was
	Turn swarm.TurnID       // and the turn
	Door swarm.ToolEndpoint // where the agent of that turn has its tools
}

// CallerFromEnv is who started this program, as the runtime wrote it into the environment of agents' programs.
func CallerFromEnv() Caller {
	return Caller{Run: swarm.RunID(os.Getenv("SWARM_RUN_ID")), Turn: swarm.TurnID(os.Getenv("SWARM_TURN_ID")),
		Door: swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}}
}

// InTurn says whether an agent acts that can use its own tools.
func (c Caller) InTurn() bool { return c.Door.URL != "" && c.Door.Token != "" }

// Person refuses to an agent of a run what is a person's to do in it. It does not keep out a program that hides where it was
// started: a program with a shell is as free as its sandbox. It keeps an agent from being talked into a plain command.
func (c Caller) Person(run swarm.RunID, what string) error {
	if c.Turn == "" || run != c.Run {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s is for a person to do, not for an agent of the run", what).
		WithHint("%s", "what an agent may do it does by its own tools, or by swarm send, inbox, publish, wait-for, spawn; to ask a person: swarm ask \"…\"; to report that all is done, which ends the lead's run: swarm done \"…\"")
}

// OwnRun refuses to an agent what belongs to another run of the same home: no edge leads there.
func (c Caller) OwnRun(h *statedir.Home, run swarm.RunID) error {
	if c.Turn == "" || run == c.Run || !h.Exists(c.Run) { // a run that is kept elsewhere has nothing near it here
		return nil
	}
	return ErrOtherRun()
}

// ErrOtherRun refuses an agent another run than its own.
func ErrOtherRun() error {
	return swarm.Errorf(swarm.BadInput, "an agent acts in its own run only").WithHint("leave --run out")
}
