package statedir

import (
	"bytes"
	"encoding/json"
	"os"
	"syscall"

	"swarm"
)

const (
	historyLines = 1000    // lines that are kept
	historyBytes = 4 << 20 // a larger file is cut to historyLines
)

// History returns the lines that were entered in earlier sessions, the oldest first.
func (h *Home) History() []string {
	b, err := os.ReadFile(h.in("history"))
	if err != nil {
		return nil
	}
	var lines []string
	for raw := range bytes.Lines(b) {
		var text string
		if json.Unmarshal(raw, &text) == nil { // skips an incomplete line
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-historyLines):]
}

// Remember appends a line to the history. It ignores errors, because no session depends on the
// history.
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

// forget cuts the history to historyLines.
func (h *Home) forget(path string) {
	var b bytes.Buffer
	for _, text := range h.History() {
		b.Write(append(swarm.Encode(text), '\n'))
	}
	_ = os.WriteFile(path, b.Bytes(), 0o600)
}
