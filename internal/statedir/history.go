package statedir

import (
	"bytes"
	"encoding/json"
	"os"
	"syscall"

	"swarm"
)

const (
	historyLines = 1000    // that are kept of what was entered in sessions
	historyBytes = 4 << 20 // a larger file is cut to them
)

// History is what was entered in earlier sessions, the oldest first.
func (h *Home) History() []string {
	b, err := os.ReadFile(h.in("history"))
	if err != nil {
		return nil
	}
	var lines []string
	for raw := range bytes.Lines(b) {
		var text string
		if json.Unmarshal(raw, &text) == nil { // half a line is none
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-historyLines):]
}

// Remember keeps what was entered for later sessions. That it could not be kept is nobody's trouble.
func (h *Home) Remember(text string) {
	path := h.in("history")
	if info, err := os.Stat(path); err == nil && info.Size() > historyBytes {
		h.forget(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(append(swarm.Encode(text), '\n'))
	_ = f.Close()
}

// forget cuts the history to the lines that are kept.
func (h *Home) forget(path string) {
	var b bytes.Buffer
	for _, text := range h.History() {
		b.Write(append(swarm.Encode(text), '\n'))
	}
	_ = os.WriteFile(path, b.Bytes(), 0o600)
}
