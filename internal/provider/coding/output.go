package coding

import (
	"encoding/json"
	"errors"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// What a listener tells its turn. All of it is for those who look while it happens, but for the result.

// errNoJSON is the error of a line that is no JSON, and so none of the stream.
var errNoJSON = errors.New("no JSON")

// understand reads a line, or a part of it.
func (t *turn) understand(line []byte, v any) error {
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, v); {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		what, _, _ := strings.Cut(kind.Value, " ") // without the number itself
		return swarm.Errorf(swarm.Protocol, "%s says what nobody here understands: its %q is of the kind %s", t.facts.Title, strings.ToLower(kind.Field), what).
			WithHint("this version of it may be too new or too old; swarm doctor tells which it is")
	}
	return errNoJSON
}

// text is a piece of what the agent says.
func (t *turn) text(piece string) {
	if piece == "" {
		return
	}
	t.asked = true
	t.begun = !strings.HasSuffix(piece, "\n")
	t.says(swarm.DeltaText, piece)
}

// paragraph ends what the agent has said so far, before it says something else.
func (t *turn) paragraph() {
	if t.begun {
		t.text("\n")
	}
}

func (t *turn) thinking(piece string) {
	t.asked = true
	if piece != "" {
		t.says(swarm.DeltaThinking, piece)
	}
}

// calls says that a tool is called. file is what it changes if it is done, or "".
func (t *turn) calls(id, name string, input json.RawMessage, file string) {
	if _, again := t.tools[id]; again {
		return
	}
	t.asked = true
	t.tools[id] = tool{name, file}
	t.tell(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: id, Name: name, Input: provider.ShowInput(t.hide, input)}})
}

// called says what a tool answered.
func (t *turn) called(id, output string, failed bool) {
	used := t.tools[id]
	t.tell(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: id, Name: used.name, Output: provider.ShowText(t.hide, output), Failed: failed}})
	if !failed {
		t.changed(used.file)
	}
}

// changed says that a file was.
func (t *turn) changed(file string) {
	if file != "" {
		t.tell(swarm.Delta{Kind: swarm.DeltaFile, File: t.hide.String(file)})
	}
}

// continues says by which name the session can be continued.
func (t *turn) continues(session string) {
	if session == "" || session == t.session {
		return
	}
	t.session = session
	t.tell(swarm.Delta{Kind: swarm.DeltaSession, Session: session})
}

// spent says what the turn has cost so far.
func (t *turn) spent(u swarm.Usage) {
	if u != t.usage {
		t.usage = u
		t.tell(swarm.Delta{Kind: swarm.DeltaUsage, Usage: u})
	}
}

// waits says that the program waits for its model's server. That is not for ever.
func (t *turn) waits(why string) {
	t.noise(why + "\n")
	t.tired.Reset(t.patience)
}

// finish says what the agent's last message was. A second result takes the place of the first.
func (t *turn) finish(message string) {
	if message == "" && len(t.tools) == 0 {
		t.fail(swarm.Errorf(swarm.NoResult, "%s ended its turn and said nothing", t.facts.Title).WithHint("ask for it in other words, or ask another model"))
		return
	}
	t.flush()
	t.answered(message)
	t.asked, t.finished = true, true
	t.over()
}

// answered says what the agent's last message was, whatever becomes of the turn.
func (t *turn) answered(message string) {
	t.output = process.Tail{}
	_, _ = t.output.Write([]byte(t.hide.String(strings.ToValidUTF8(message, "\uFFFD"))))
}

// fail says that the turn has failed. The first reason is the one.
func (t *turn) fail(err *swarm.Error) {
	if t.fault == nil {
		err.Msg = t.hide.String(err.Msg)
		t.fault = err
	}
	t.over()
}

// forgotten says that the session that was to be continued is not there.
func (t *turn) forgotten() {
	t.lost = true
	t.fail(swarm.Errorf(swarm.NotFound, "%s does not know the session %s any more", t.facts.Title, t.request.Session))
}
