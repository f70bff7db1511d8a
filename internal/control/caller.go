package control

import (
	"os"

	"swarm"
	"swarm/internal/statedir"
)

// A Caller is the person or agent that acts. The zero value is a person.
type Caller struct {
	Run  swarm.RunID        // the run whose agent started this program; "" = none
	Turn swarm.TurnID       // the agent's turn
	Door swarm.ToolEndpoint // the agent's tools
}

// CallerFromEnv returns the caller by the environment variables that the runtime sets for agents'
// programs.
func CallerFromEnv() Caller {
	return Caller{Run: swarm.RunID(os.Getenv("SWARM_RUN_ID")), Turn: swarm.TurnID(os.Getenv("SWARM_TURN_ID")),
		Door: swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}}
}

// InTurn reports whether the caller is an agent that can use its own tools.
func (c Caller) InTurn() bool { return c.Door.URL != "" && c.Door.Token != "" }

// Person refuses an agent the actions in its own run that only a person may take. It is no sandbox:
// a program with a shell can hide where it was started. It protects against an agent that is talked
// into a plain command.
func (c Caller) Person(run swarm.RunID, what string) error {
	if c.Turn == "" || run != c.Run {
		return nil
	}
	return swarm.Errorf(swarm.Denied, "%s is for a person to do, not for an agent of the run", what).
		WithHint("%s", "what an agent may do it does by its own tools, or by swarm send, inbox, publish, wait-for, spawn; to ask a person: swarm ask \"…\"; to report that all is done, which ends the lead's run: swarm done \"…\"")
}

// OwnRun refuses an agent any other run of the same home, because no edge leads there.
func (c Caller) OwnRun(h *statedir.Home, run swarm.RunID) error {
	if c.Turn == "" || run == c.Run || !h.Exists(c.Run) { // the agent's run is in another home
		return nil
	}
	return ErrOtherRun()
}

// ErrOtherRun refuses an agent any run but its own.
func ErrOtherRun() error {
	return swarm.Errorf(swarm.BadInput, "an agent acts in its own run only").WithHint("leave --run out")
}
