package swarm

// A Status is where a task, an agent or a run stands.
type Status string

// The statuses. `waiting` always comes with for whom and why.
const (
	Pending   Status = "pending"
	Waiting   Status = "waiting"
	Running   Status = "running"
	Streaming Status = "streaming" // running, and saying something
	Completed Status = "completed"
	Failed    Status = "failed"
	Skipped   Status = "skipped"
	Cancelled Status = "cancelled"

	Idle    Status = "idle"    // an agent without a turn
	Blocked Status = "blocked" // an agent that waits for an approval

	Pausing     Status = "pausing" // a run whose turns still run, and that starts no other
	Paused      Status = "paused"
	Interrupted Status = "interrupted" // a run that nobody drives and that can be resumed
)

// RunStatuses are the statuses that a run can have.
var RunStatuses = []Status{Running, Pausing, Paused, Completed, Failed, Cancelled, Interrupted}

// Ended says whether a task or run with this status is through.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Skipped || s == Cancelled
}
