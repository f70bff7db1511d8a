package prompt

import (
	"strings"

	"swarm"
)

// isKnown says whether an agent has been told a section when its session goes on: who it is, how the run works, the packs and
// the findings that it was given before.
func isKnown(s swarm.Span) bool {
	return s.From == FromRole || s.From == FromMode || s.From == FromPack && s.Turn != "" || s.Known
}

// Fresh is what of the prompt is new to an agent whose session goes on. A pack that it has is only referred to.
func (p Prompt) Fresh() string {
	var b strings.Builder
	skipped := false // the last section; the empty lines behind it go with it
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
		return p.Text // a turn is never begun with silence
	}
	return b.String()
}

// WithSent is the prompt of a turn that is done again, with what its earlier start had already sent.
func (p Prompt) WithSent(sent []string) Prompt {
	if len(sent) == 0 {
		return p
	}
	more, err := Build(Turn{Sent: sent})
	if err != nil || len(p.Text)+len(more.Text) >= MaxPrompt {
		return p // it is only a reminder, and what is sent again is the same message
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
