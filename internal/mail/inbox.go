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

// Inbox is mail as it stands in a prompt. Messages are counted from 1, and nothing else of a run's numbers or times stands there, so
// that the same mail makes the same prompt. Whatever a sender wrote is escaped.
func Inbox(items []Item) string {
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		write(&b, i+1, item.Envelope)
	}
	return b.String()
}

// Packs are the refs of the context packs that came with mail, each once.
func Packs(items []Item) (refs []string) {
	for _, item := range items {
		if ref := item.ContextRef; ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Aside is mail as it is told to an agent that works, beside the answer of a tool.
func Aside(items []Item) string {
	return "While you worked, mail has come for you. It is not part of the tool's answer; take it into account from here on.\n\n" + Inbox(items)
}

func write(b *strings.Builder, n int, e swarm.Envelope) {
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
			b.WriteString("Artifacts (read_artifact shows them):\n")
		}
		fmt.Fprintf(b, "- %s (%s)\n", oneLine(a.Ref), oneLine(a.Type))
	}
	if p.Status != nil {
		b.WriteString("Status: " + status(p.Status) + "\n")
	}
	if e.ContextRef != "" {
		b.WriteString("Context: " + oneLine(e.ContextRef) + "\n")
	}
	if r := p.Response; r != nil && r.Expectation != "none" {
		to := e.FromNodeID
		if r.ReplyTo != "" {
			to = r.ReplyTo
		}
		fmt.Fprintf(b, "Response: %s; answer with send_handoff to %s\n", oneLine(r.Expectation), short(to))
	}
	fmt.Fprintf(b, "--- End message %d ---\n", n)
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

// ends are what may stand in a JSON string as it is, and may be taken for the end of a line.
var ends = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// indented is JSON for reading. All its line breaks are ours.
func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, value, "", "  "); err != nil {
		return oneLine(string(value))
	}
	return ends.Replace(b.String())
}
