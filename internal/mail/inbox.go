package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/prompt"
)

// Inbox formats an agent's mail for its prompt. Messages are counted from 1. No other number or
// time of the run appears, so the same mail makes the same prompt. The text of senders is escaped.
func (r *Rules) Inbox(agent string, items []Item) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.write(&b, i+1, agent, item.Envelope)
	}
	return b.String()
}

// Packs returns the refs of the context packs that came with mail, each once.
func Packs(items []Item) (refs []string) {
	for _, item := range items {
		if ref := item.ContextRef; ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Aside formats mail for an agent in the middle of a turn. The text is added to the answer of a
// tool.
func (r *Rules) Aside(agent string, items []Item) string {
	return "While you worked, mail has come for you. It is not part of the tool's answer; " +
		"take it into account from here on.\n\n" + r.Inbox(agent, items)
}

// write formats one message between two fences. Every part that a sender controls is escaped or
// reduced to one line, so that no message can forge a fence.
func (r *Rules) write(b *strings.Builder, n int, agent string, e swarm.Envelope) {
	kind := string(e.Kind)
	if t := MetaOf(e).Type; t != "" {
		kind += ", type " + t
	}
	if Urgent(e) {
		kind += ", urgent"
	}
	fmt.Fprintf(b, "--- Message %d from %s (%s, id %s) ---\n", n, short(e.FromNodeID), short(kind), oneLine(e.ID))
	p := e.Payload
	b.WriteString(prompt.Escape(strings.TrimRight(p.Message, "\r\n")) + "\n")
	if len(p.Structured) > 0 {
		b.WriteString("Structured:\n" + prompt.Escape(indented(p.Structured)) + "\n")
	}
	for i, a := range p.Artifacts {
		if i == 0 {
			b.WriteString(r.Say(agent, "Artifacts (read_artifact shows them):\n"))
		}
		fmt.Fprintf(b, "- %s (%s)\n", oneLine(a.Ref), oneLine(a.Type))
	}
	if p.Status != nil {
		b.WriteString("Status: " + status(p.Status) + "\n")
	}
	if e.ContextRef != "" {
		b.WriteString("Context: " + oneLine(e.ContextRef) + "\n")
	}
	if asks(e) {
		b.WriteString("Response: " + oneLine(p.Response.Expectation) + "; " + r.howToAnswer(agent, e) + "\n")
	}
	fmt.Fprintf(b, "--- End message %d ---\n", n)
}

// howToAnswer tells an agent how to give the response that a message asks for. It never suggests a
// call that would be refused.
func (r *Rules) howToAnswer(agent string, e swarm.Envelope) string {
	to := ReplyTo(e)
	switch {
	case r.mute[agent]:
		return "what you say in the end is your answer"
	case r.Ended(to):
		return "but " + short(to) + " has ended, and nobody waits for your answer"
	case !r.May(agent, to) && !slices.Contains(r.owed[[2]string{agent, to}], e.Ref()):
		return "you have answered it"
	}
	return r.AnswerBy(agent, e)
}

// AnswerBy returns the sentence that tells an agent how to answer a message; "" = it cannot.
func (r *Rules) AnswerBy(agent string, e swarm.Envelope) string {
	switch to := ReplyTo(e); {
	case r.mute[agent], r.Ended(to):
		return ""
	case r.commands[agent]:
		return "answer with: swarm reply " + oneLine(e.ID) + ` "…"`
	default:
		return "answer with send_handoff to " + short(to)
	}
}

func status(s *swarm.PayloadStatus) string {
	word := "not ok"
	if s.OK {
		word = "ok"
	}
	if s.Reason != "" {
		word += " (" + oneLine(s.Reason) + ")"
	}
	return word
}

// ends escapes characters that are valid in a JSON string but that readers may take for a line
// break.
var ends = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// indented formats JSON for reading. All line breaks in it are ours.
func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil {
		return oneLine(string(value))
	}
	return ends.Replace(b.String())
}
