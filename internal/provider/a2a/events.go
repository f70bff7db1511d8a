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

// take takes one thing that the remote says.
func (t *turn) take(event wire.Event) error {
	t.heard = true
	switch e := event.(type) {
	case *wire.Message: // an answer without a task
		if err := t.meet(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		t.state = wire.TaskStateCompleted
		return t.put("message", textOf(e.Parts), false)
	case *wire.Task:
		if err := t.meet(string(e.ID), e.ContextID); err != nil {
			return err
		}
		for _, a := range e.Artifacts {
			if a != nil {
				if err := t.artifact(a, false); err != nil {
					return err
				}
			}
		}
		return t.stand(e.Status)
	case *wire.TaskStatusUpdateEvent:
		if err := t.meet(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		return t.stand(e.Status)
	case *wire.TaskArtifactUpdateEvent:
		if err := t.meet(string(e.TaskID), e.ContextID); err != nil {
			return err
		}
		if e.Artifact != nil {
			return t.artifact(e.Artifact, e.Append)
		}
	}
	return nil
}

// What a remote may have us keep beside its texts. Whoever sends more means no good.
const (
	maxID    = 256 // bytes of an id
	maxMoves = 10  // from one conversation to another in a turn; each is written into the log
	perText  = 128 // bytes that an artifact counts for, also when it says nothing
)

// artifact takes an artifact, or one more piece of it. What another swarm has kept beside its output, diffs above all, is named and no output: its
// id is a ref.
func (t *turn) artifact(a *wire.Artifact, more bool) error {
	if id := string(a.ID); !strings.HasPrefix(id, "artifact://") && !strings.HasPrefix(id, "contextpack://") {
		return t.put(id, textOf(a.Parts), more)
	}
	name := a.Name
	if name == "" {
		name = string(a.ID)
	}
	name = strings.ToValidUTF8(name[:min(len(name), maxID)], "\uFFFD")
	if len(t.beside) < mostBeside && !slices.Contains(t.beside, name) {
		t.beside = append(t.beside, name)
		t.live(swarm.Delta{Kind: swarm.DeltaThinking, Text: t.hide.String("kept "+name) + "\n"})
	}
	return nil
}

// mostBeside is how many things are named that the remote has kept.
const mostBeside = 100

// meet keeps which task it is.
func (t *turn) meet(task, conversation string) error {
	if len(task) > maxID || len(conversation) > maxID {
		return tooLong(max(len(task), len(conversation)))
	}
	if task != "" {
		t.task = task
		t.met.Store(true)
	}
	if conversation == "" || conversation == t.context {
		return nil
	}
	if t.moves++; t.moves > maxMoves {
		return swarm.Errorf(swarm.Protocol, "the remote agent says again and again that the task is in another conversation")
	}
	t.context = conversation
	t.live(swarm.Delta{Kind: swarm.DeltaSession, Session: t.session()})
	return nil
}

func tooLong(id int) error {
	return swarm.Errorf(swarm.Protocol, "the remote agent uses an id of %d bytes; %d are allowed", id, maxID)
}

// stand keeps where the task stands. What is said meanwhile is no output; what is said at the end is, when there is no other.
func (t *turn) stand(s wire.TaskStatus) error {
	t.state, t.why = s.State, ""
	if s.Message != nil {
		t.why = textOf(s.Message.Parts)
	}
	switch {
	case t.why == "":
	case t.state == wire.TaskStateCompleted && len(t.order) == 0:
		return t.put("status", t.why, false)
	case !settled(t.state):
		t.live(swarm.Delta{Kind: swarm.DeltaThinking, Text: t.hide.String(t.why) + "\n"})
	}
	return nil
}

// put keeps what an artifact says, or one more piece of it, and shows what is new.
func (t *turn) put(id, text string, more bool) error {
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
	default: // it says something else now
		fresh = "\n" + text
		kept.Reset()
	}
	kept.WriteString(text)
	if t.size += len(fresh); t.size > maxAnswer {
		return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxAnswer>>20)
	}
	t.show(t.said.Write(fresh))
	return nil
}

func (t *turn) show(text string) {
	if text != "" {
		t.live(swarm.Delta{Kind: swarm.DeltaText, Text: text})
	}
}

// flush shows what was held back because it might have been the beginning of a key.
func (t *turn) flush() { t.show(t.said.Flush()) }

// output is what all artifacts say, in the order in which they came, but for those that are only named.
func (t *turn) output() string {
	all := make([]string, 0, len(t.order))
	for _, id := range t.order {
		all = append(all, t.texts[id].String())
	}
	if len(all) == 0 && len(t.beside) > 0 {
		return "It said nothing, and kept: " + strings.Join(t.beside, ", ")
	}
	return strings.Join(all, "\n\n")
}

func (t *turn) reply() provider.Reply {
	var tail process.Tail
	_, _ = tail.Write([]byte(t.hide.String(t.output())))
	return provider.Reply{Output: tail.Bytes(), Bytes: tail.Len(), Free: !t.heard, Session: t.session()}
}

// textOf is what parts say. Pieces of text that follow each other are one text: so it is kept what came in pieces. What is no text stands
// on a line of its own; what cannot stand there is named.
func textOf(parts wire.ContentParts) string {
	var b strings.Builder
	apart := false // what comes next begins a line
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
