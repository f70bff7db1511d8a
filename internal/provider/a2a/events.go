package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// handleEvent takes one event of the remote task.
func (t *turn) handleEvent(event wire.Event) error {
	t.heard = true
	switch e := event.(type) {
	case *wire.Message: // an answer without a task
		if err := t.setTask(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		t.state = wire.TaskStateCompleted
		return t.addText("message", textOf(e.Parts), false)
	case *wire.Task:
		if err := t.setTask(string(e.ID), e.ContextID); err != nil {
			return err
		}
		for _, a := range e.Artifacts {
			if a != nil {
				if err := t.addArtifact(a, false); err != nil {
					return err
				}
			}
		}
		return t.setStatus(e.Status)
	case *wire.TaskStatusUpdateEvent:
		if err := t.setTask(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		return t.setStatus(e.Status)
	case *wire.TaskArtifactUpdateEvent:
		if err := t.setTask(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		if e.Artifact != nil {
			return t.addArtifact(e.Artifact, e.Append)
		}
	}
	return nil
}

// Limits of what a remote agent can make us keep beside its texts. An agent that sends more is
// broken or hostile.
const (
	maxID    = 256 // bytes of an id
	maxMoves = 10  // changes of conversation in a turn; each is written to the log
	perText  = 128 // bytes that an artifact counts for, even if it is empty
)

// addArtifact takes an artifact, or one more piece of it. Another swarm also stores artifacts
// beside its output, above all diffs. Their id is a reference; they are named and are not output.
func (t *turn) addArtifact(a *wire.Artifact, more bool) error {
	if id := string(a.ID); !strings.HasPrefix(id, "artifact://") && !strings.HasPrefix(id, "contextpack://") {
		return t.addText(id, textOf(a.Parts), more)
	}
	name := a.Name
	if name == "" {
		name = string(a.ID)
	}
	name = strings.ToValidUTF8(name[:min(len(name), maxID)], "\uFFFD")
	if len(t.keptNames) < maxKeptNames && !slices.Contains(t.keptNames, name) {
		t.keptNames = append(t.keptNames, name)
		t.live(swarm.Delta{Kind: swarm.DeltaThinking, Text: t.redactor.String("kept "+name) + "\n"})
	}
	return nil
}

// maxKeptNames is the number of stored artifacts that are named.
const maxKeptNames = 100

// setTask stores the ids of the task and its conversation.
func (t *turn) setTask(task, conversation string) error {
	if len(task) > maxID || len(conversation) > maxID {
		return tooLong(max(len(task), len(conversation)))
	}
	if task != "" {
		t.task = task
		t.taskKnown.Store(true)
	}
	if conversation == "" || conversation == t.context {
		return nil
	}
	if t.moves++; t.moves > maxMoves {
		return swarm.Errorf(
			swarm.Protocol, "the remote agent says again and again that the task is in another conversation")
	}
	t.context = conversation
	t.live(swarm.Delta{Kind: swarm.DeltaSession, Session: t.session()})
	return nil
}

func tooLong(id int) error {
	return swarm.Errorf(swarm.Protocol, "the remote agent uses an id of %d bytes; %d are allowed", id, maxID)
}

// setStatus stores the state of the task. The text of a state is no output, except for the last one
// when there is no other output.
func (t *turn) setStatus(s wire.TaskStatus) error {
	t.state, t.statusText = s.State, ""
	if s.Message != nil {
		t.statusText = textOf(s.Message.Parts)
	}
	switch {
	case t.statusText == "":
	case t.state == wire.TaskStateCompleted && len(t.order) == 0:
		return t.addText("status", t.statusText, false)
	case !isSettled(t.state):
		t.live(swarm.Delta{Kind: swarm.DeltaThinking, Text: t.redactor.String(t.statusText) + "\n"})
	}
	return nil
}

// addText stores the text of an artifact, or one more piece of it, and shows what is new.
func (t *turn) addText(id, text string, more bool) error {
	if len(id) > maxID {
		return tooLong(len(id))
	}
	kept := t.texts[id]
	fresh := text
	switch {
	case kept == nil:
		t.size += len(id) + perText
		if len(t.order) > 0 {
			fresh = "\n\n" + text
		}
		kept = &strings.Builder{}
		t.texts[id], t.order = kept, append(t.order, id)
	case more:
	case strings.HasPrefix(text, kept.String()):
		fresh, text = text[kept.Len():], text[kept.Len():]
	default: // its text was replaced
		fresh = "\n" + text
		kept.Reset()
	}
	kept.WriteString(text)
	if t.size += len(fresh); t.size > maxAnswer {
		return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxAnswer>>20)
	}
	t.showText(t.textStream.Write(fresh))
	return nil
}

// showText sends text to the observers.
func (t *turn) showText(text string) {
	if text != "" {
		t.live(swarm.Delta{Kind: swarm.DeltaText, Text: text})
	}
}

// flush shows the text that was held back because it might have been the beginning of a key.
func (t *turn) flush() { t.showText(t.textStream.Flush()) }

// output joins the texts of all artifacts, in the order in which they came. Artifacts that are only
// named are not in it.
func (t *turn) output() string {
	all := make([]string, 0, len(t.order))
	for _, id := range t.order {
		all = append(all, t.texts[id].String())
	}
	if len(all) == 0 && len(t.keptNames) > 0 {
		return "It said nothing, and kept: " + strings.Join(t.keptNames, ", ")
	}
	return strings.Join(all, "\n\n")
}

// reply makes the reply of the turn. It is free if the remote agent has not begun to work.
func (t *turn) reply() provider.Reply {
	var tail process.Tail
	_, _ = tail.Write([]byte(t.redactor.String(t.output())))
	return provider.Reply{Output: tail.Bytes(), Bytes: tail.Len(), Free: !t.heard, Session: t.session()}
}

// textOf returns the text of parts. Neighbouring pieces of text are one text, because a text may
// come in pieces. Data stands on a line of its own, and a file is only named.
func textOf(parts wire.ContentParts) string {
	var b strings.Builder
	apart := false // the next part begins a line
	for _, p := range parts {
		if p == nil {
			continue
		}
		name := p.Filename
		if name == "" {
			name = "a file"
		}
		text, plain := "", false
		switch c := p.Content.(type) {
		case wire.Text:
			text, plain = string(c), true
		case wire.Data:
			data, err := json.Marshal(c.Value)
			if err != nil {
				data = []byte("[data that cannot be written]")
			}
			text = string(data)
		case wire.URL:
			text = fmt.Sprintf("[%s: %s]", name, string(c))
		case wire.Raw:
			text = fmt.Sprintf("[%s: %d bytes, %s]", name, len(c), p.MediaType)
		}
		if b.Len() > 0 && (apart || !plain) {
			b.WriteByte('\n')
		}
		b.WriteString(text)
		apart = !plain
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
