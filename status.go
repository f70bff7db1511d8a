package swarm

// A Status is the state of a task, an agent or a run.
type Status string

// The statuses. A waiting task or agent always comes with the one it waits for and the reason.
const (
	Pending   Status = "pending"
	Waiting   Status = "waiting"
	Running   Status = "running"
	Streaming Status = "streaming" // running, and producing output
	Completed Status = "completed"
	Failed    Status = "failed"
	Skipped   Status = "skipped"
	Cancelled Status = "cancelled"

	Idle    Status = "idle"    // an agent without a turn
	Blocked Status = "blocked" // an agent that waits for an approval

	Pausing     Status = "pausing" // a run that starts no turn and whose running turns finish
	Paused      Status = "paused"
	Interrupted Status = "interrupted" // a run without an owner that can be resumed
)

// RunStatuses are the statuses that a run can have.
var RunStatuses = []Status{Running, Pausing, Paused, Completed, Failed, Cancelled, Interrupted}

// Ended reports whether a task or run with this status has ended for good.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Skipped || s == Cancelled
}
