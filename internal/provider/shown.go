package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/secret"
)

// maxShown is how much of a tool's input and output is shown to those who look.
const maxShown = 2000

// ShowInput is what a tool was given, for those who look: without secrets, and of one that is long the beginning, as a text.
func ShowInput(hide *secret.Redactor, input json.RawMessage) json.RawMessage {
	if shown := hide.Bytes(input); len(shown) <= maxShown {
		return slices.Clone(shown)
	}
	return swarm.Encode(ShowText(hide, string(input)))
}

// ShowText is the same for what a tool answered, and for anything else that is said of one. It is cut after its secrets were taken
// out: of one that is cut in two the beginning would stay.
func ShowText(hide *secret.Redactor, text string) string {
	return excerpt.HeadWithSize(strings.ToValidUTF8(hide.String(text), "\uFFFD"), maxShown)
}
