package prompt

import (
	"strings"

	"swarm"
)

// isKnown reports whether a continued session has the section already: the agent's role, the mode
// of the run, and the packs and findings of earlier turns.
func isKnown(s swarm.Span) bool {
	return s.From == FromRole || s.From == FromMode || s.From == FromPack && s.Turn != "" || s.Known
}

// Fresh returns the part of the prompt that is new to an agent whose session continues. A pack that
// the session has is only referred to.
func (p Prompt) Fresh() string {
	var b strings.Builder
	skipped := false // the last section was left out, and so are the empty lines after it
	for _, s := range p.Spans {
		if s.From != FromSeparator {
			skipped = isKnown(s)
		}
		if skipped && s.From == FromPack {
			b.WriteString("Of the context that belongs to your mail you have this already: " + s.Name + "; read_artifact shows it again." + emptyLine)
		}
		if !skipped {
			b.WriteString(p.Text[s.Start:s.End])
		}
	}
	if b.Len() == 0 {
		return p.Text // A turn never starts with an empty prompt.
	}
	return b.String()
}

// WithSent returns the prompt of a turn that starts again, with the messages that its earlier start
// had already sent.
func (p Prompt) WithSent(sent []string) Prompt {
	if len(sent) == 0 {
		return p
	}
	more, err := Build(Turn{Sent: sent})
	if err != nil || len(p.Text)+len(more.Text) >= MaxPrompt {
		return p // It is only a reminder: sending a message again stores the same message.
	}
	spans := append([]swarm.Span{}, p.Spans...)
	start := len(p.Text)
	if start > 0 {
		p.Text += "\n"
		spans = append(spans, swarm.Span{From: FromSeparator, Start: start, End: start + 1})
	}
	for _, s := range more.Spans {
		s.Start, s.End = s.Start+len(p.Text), s.End+len(p.Text)
		spans = append(spans, s)
	}
	return Prompt{p.Text + more.Text, spans}
}
