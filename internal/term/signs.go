package term

import "swarm"

// statusLooks is how every screen shows a status: a sign of one column, so that nobody needs colours to see it, and a colour.
// docs/runs.md prints the signs.
var statusLooks = map[swarm.Status]struct {
	sign  string
	style Style
}{
	swarm.Running:     {"●", Cyan},
	swarm.Streaming:   {"◉", Cyan},
	swarm.Waiting:     {"◌", Yellow},
	swarm.Blocked:     {"?", Yellow},
	swarm.Pausing:     {"‖", Yellow},
	swarm.Paused:      {"‖", Yellow},
	swarm.Interrupted: {"‖", Yellow},
	swarm.Completed:   {"✓", Green},
	swarm.Failed:      {"✗", Wrong},
	swarm.Skipped:     {"⊘", Dim},
	swarm.Cancelled:   {"⊘", Dim},
	swarm.Pending:     {"·", Dim},
	swarm.Idle:        {"·", Dim},
}

// Sign is a status in one column.
func Sign(s swarm.Status) string {
	if look, ok := statusLooks[s]; ok {
		return look.sign
	}
	return "·"
}

// StatusStyle is the colour of a status. A word that is no status has none.
func StatusStyle(s swarm.Status) Style { return statusLooks[s].style }
