package provider

import (
	"strings"
	"testing"

	"swarm/internal/secret"
)

// A secret that begins before the cut and ends after it must not leave its beginning behind.
func TestWhatIsShownOfATool(t *testing.T) {
	hide := secret.New(nil, map[string]string{"API_KEY": "canary-canary-canary"})
	text := strings.Repeat("x", maxShown-8) + "canary-canary-canary and more"
	for what, shown := range map[string]string{"text": ShowText(hide, text), "input": string(ShowInput(hide, []byte(`"`+text+`"`)))} {
		if strings.Contains(shown, "can") || !strings.Contains(shown, "bytes)") {
			t.Errorf("%s: %s", what, shown[maxShown-20:])
		}
	}
	if shown := ShowInput(hide, []byte(`{"a":"canary-canary-canary"}`)); string(shown) != `{"a":"[secret API_KEY]"}` {
		t.Errorf("%s", shown)
	}
}
