package repl

import "swarm/internal/term"

// style returns the look of a token in the line being typed.
func (k TokenKind) style() term.Style {
	switch k {
	case AgentToken, CommandToken:
		return term.Cyan
	case ReferenceToken:
		return term.Reference
	case WrongToken:
		return term.Wrong
	case ArrowToken, BackgroundToken:
		return term.Bold
	case FlagToken:
		return term.Yellow
	case EscapeToken, CommentToken:
		return term.Dim
	}
	return term.Unstyled
}
