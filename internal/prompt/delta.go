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
			b.WriteString(hasAlready + s.Name + "; read_artifact shows it again." + emptyLine)
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

// StableFirst returns the prompt with those sections first that are the same in all turns of an
// agent, and how many bytes they have: role, rules and context packs. Servers of models cache what
// requests have in common at their beginning.
func (p Prompt) StableFirst() (text string, stable int) {
	var first, rest strings.Builder
	to := &rest
	begins := true // the next span begins a section
	for _, s := range p.Spans {
		if s.From == FromSeparator {
			begins = true
			continue
		}
		if begins {
			if to = &rest; s.From == FromRole || s.From == FromMode || s.From == FromPack {
				to = &first
			}
			if to.Len() > 0 {
				to.WriteString(emptyLine)
			}
		}
		begins = false
		to.WriteString(p.Text[s.Start:s.End])
	}
	if first.Len() == 0 || rest.Len() == 0 {
		return p.Text, 0
	}
	first.WriteString(emptyLine)
	return first.String() + rest.String() + "\n", first.Len()
}

// Words returns the text of the task and of the mail in a prompt, without ids, context packs and
// findings. The fence before a message is shortened to its sender. Text from agents and people
// cannot contain such lines: see [Escape].
func Words(text string) string {
	var b strings.Builder
	inPack, inFindings := false, false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case inPack:
			inPack = line != "--- End context pack ---"
		case inFindings:
			inFindings = line != ""
		case strings.HasPrefix(line, "--- Context pack "):
			inPack = true
		case line == findingsHeading:
			inFindings = true
		case strings.HasPrefix(line, "Your SWARM_"), strings.HasPrefix(line, "You are on iteration "),
			strings.HasPrefix(line, hasAlready), strings.HasPrefix(line, "--- End message "):
		case strings.HasPrefix(line, "--- Message "):
			_, from, _ := strings.Cut(line, " from ")
			from, _, _ = strings.Cut(from, " (")
			b.WriteString(from + ":\n")
		default:
			b.WriteString(line + "\n")
		}
	}
	if strings.TrimSpace(b.String()) == "" {
		return text
	}
	return b.String()
}

// hasAlready is the text before the refs of the context packs that the session already has.
const hasAlready = "You already have this context of your mail: "

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
