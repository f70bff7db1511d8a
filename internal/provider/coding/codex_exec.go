package coding

import (
	"cmp"

	"swarm/internal/provider"
)

// A codexExec reads the stream of `codex exec --json` in one turn.
type codexExec struct {
	codexItems
	lastError string // the last error that the stream reported
}

// A codexLine is one event of the stream.
type codexLine struct {
	Type     string
	ThreadID string `json:"thread_id"`
	Message  string
	Error    struct{ Message string }
	Item     codexItem
	Usage    provider.Reported[codexUsage]
}

// hearLine decodes an event. A line with an unknown type of item may have any form, so an error in
// it does not count.
func (e *codexExec) hearLine(line []byte) error {
	e.modelWait.Stop()
	var l codexLine
	if err := e.decode(line, &l); err != nil && (l.Item.Type == "" || codexKinds[l.Item.Type] != "") {
		return err
	}
	switch l.Type {
	case "thread.started":
		e.setSession(l.ThreadID)
	case "item.started", "item.updated", "item.completed":
		e.handleItem(&l.Item, l.Type == "item.completed")
	case "error":
		e.lastError = l.Message
		if status, limit, _ := provider.Blame(l.Message); limit || status >= 500 {
			e.waitForModel(l.Message)
		} else {
			e.writeStderr(l.Message + "\n")
		}
	case "turn.failed":
		e.fail(e.failure(0, cmp.Or(l.Error.Message, e.lastError)))
	case "turn.completed":
		e.reportUsage(l.Usage.Value, l.Usage.Unusable)
		e.finish()
	}
	return nil
}
