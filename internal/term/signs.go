package term

import "swarm"

// statusLooks is how every screen shows a status: a colour, and a sign of one column that works
// without colours. docs/runs.md prints the signs.
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

// Sign returns the sign of a status, which is one column wide.
func Sign(s swarm.Status) string {
	if look, ok := statusLooks[s]; ok {
		return look.sign
	}
	return "·"
}

// StatusStyle returns the colour of a status. A word that is no status has none.
func StatusStyle(s swarm.Status) Style { return statusLooks[s].style }
