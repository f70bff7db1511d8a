package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/secret"
)

// maxShown is the number of bytes of a tool's input or output that observers see.
const maxShown = 2000

// ShowInput returns a tool's input for observers: without secrets. A long input becomes a text with
// its beginning.
func ShowInput(hide *secret.Redactor, input json.RawMessage) json.RawMessage {
	if shown := hide.Bytes(input); len(shown) <= maxShown {
		return slices.Clone(shown)
	}
	return swarm.Encode(ShowText(hide, string(input)))
}

// ShowText returns a tool's output, or another text about it, for observers. It is cut after
// redaction: a secret across the cut would otherwise leave its beginning behind.
func ShowText(hide *secret.Redactor, text string) string {
	return excerpt.HeadWithSize(strings.ToValidUTF8(hide.String(text), "\uFFFD"), maxShown)
}
