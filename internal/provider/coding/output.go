package coding

import (
	"encoding/json"
	"errors"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// The methods by which a listener reports to its turn. The program's lock is held in all of them.
// Observers see everything while it happens; only the result outlives the turn.

// errNoJSON marks a line that is not JSON, and so not a part of the stream.
var errNoJSON = errors.New("no JSON")

// decode decodes a line, or a part of it. A field of the wrong type means that the program speaks
// another version of its protocol.
func (t *turn) decode(line []byte, v any) error {
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, v); {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		what, _, _ := strings.Cut(kind.Value, " ") // without the number itself
		return swarm.Errorf(swarm.Protocol, "%s writes a stream that swarm does not understand: its %q is of the type %s", t.facts.Title, strings.ToLower(kind.Field), what).
			WithHint("this version of it may be too new or too old; `swarm doctor` shows which one it is")
	}
	return errNoJSON
}

// showText shows a piece of the agent's text.
func (t *turn) showText(piece string) {
	if piece == "" {
		return
	}
	t.modelUsed = true
	t.lineOpen = !strings.HasSuffix(piece, "\n")
	t.appendPending(swarm.DeltaText, piece)
}

// endLine ends the line of the text so far, before something else is shown.
func (t *turn) endLine() {
	if t.lineOpen {
		t.showText("\n")
	}
}

func (t *turn) showThinking(piece string) {
	t.modelUsed = true
	if piece != "" {
		t.appendPending(swarm.DeltaThinking, piece)
	}
}

// startTool reports the call of a tool. file is the file that the tool changes if it succeeds, or
// "". The same call may be reported several times; only the first counts.
func (t *turn) startTool(id, name string, input json.RawMessage, file string) {
	if _, again := t.tools[id]; again {
		return
	}
	t.modelUsed = true
	t.endLine() // observers show the call in a line of its own, and a later end would be an empty line
	t.tools[id] = tool{name, file}
	t.publish(swarm.Delta{
		Kind: swarm.DeltaTool,
		Tool: &swarm.ToolUse{ID: id, Name: name, Input: provider.ShowInput(t.redactor, input)},
	})
}

// endTool reports the result of a tool.
func (t *turn) endTool(id, output string, failed bool) {
	used := t.tools[id]
	t.publish(swarm.Delta{
		Kind: swarm.DeltaToolDone,
		Tool: &swarm.ToolUse{ID: id, Name: used.name, Output: provider.ShowText(t.redactor, output), Failed: failed},
	})
	if !failed {
		t.reportFile(used.file)
	}
}

// reportFile reports a changed file.
func (t *turn) reportFile(file string) {
	if file != "" {
		t.publish(swarm.Delta{Kind: swarm.DeltaFile, File: t.redactor.String(file)})
	}
}

// setSession stores and reports the name by which a later turn can continue the session.
func (t *turn) setSession(session string) {
	if session == "" || session == t.session {
		return
	}
	t.session = session
	t.publish(swarm.Delta{Kind: swarm.DeltaSession, Session: session})
}

// setUsage stores and reports what the turn has cost so far.
func (t *turn) setUsage(u swarm.Usage) {
	if u != t.usage {
		t.usage = u
		t.publish(swarm.Delta{Kind: swarm.DeltaUsage, Usage: u})
	}
}

// setSessionTotal stores what the session has cost in all. The turn's cost is the difference to
// what it had cost before.
func (t *turn) setSessionTotal(total swarm.Usage) {
	if !total.Estimated { // an unusable figure leaves the last good one
		t.total = &total
	}
}

// spentBefore returns what the session had cost in all before the turn, if that is known.
func (t *turn) spentBefore() (before swarm.Usage, known bool) {
	if t.request.Session == "" {
		return before, true
	}
	if total := t.request.SessionTotal; total != nil {
		return *total, true
	}
	return before, false
}

// waitForModel notes that the program waits for its model's server, and starts the time limit of
// that wait.
func (t *turn) waitForModel(why string) {
	t.writeStderr(why + "\n")
	t.modelWait.Reset(t.patience)
}

// succeed ends the turn with the agent's last message. A second result replaces the first.
func (t *turn) succeed(message string) {
	if message == "" && len(t.tools) == 0 {
		t.fail(
			swarm.Errorf(swarm.NoResult, "%s ended its turn and %w", t.facts.Title, provider.ErrSaidNothing).
				WithHint("ask for it in other words, or ask another model"),
		)
		return
	}
	t.flush()
	t.setOutput(message)
	t.modelUsed, t.finished = true, true
	t.markEnded()
}

// setOutput stores the agent's last message, whether or not the turn succeeds.
func (t *turn) setOutput(message string) {
	t.output = process.Tail{}
	_, _ = t.output.Write([]byte(t.redactor.String(strings.ToValidUTF8(message, "\uFFFD"))))
}

// fail ends the turn with an error.
func (t *turn) fail(err *swarm.Error) {
	t.setFault(err)
	t.markEnded()
}

// setFault has the turn fail when it ends. The first error counts.
func (t *turn) setFault(err *swarm.Error) {
	if t.fault == nil {
		err.Msg = t.redactor.String(err.Msg)
		t.fault = err
	}
}

// failSessionLost ends the turn because the session to be continued does not exist.
func (t *turn) failSessionLost() {
	t.sessionLost = true
	t.fail(swarm.Errorf(swarm.NotFound, "%s does not know the session %s any more", t.facts.Title, t.request.Session))
}
