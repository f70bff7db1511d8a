package term

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// JSON that is written through EscapeJSON means the same, and shows what it holds.
func TestEscapeJSON(t *testing.T) {
	const text = "a\u009b[2J\u202eb\u200b\u200d\u200c\u00ad\u2028\ufeff\U000e0041\x7f é 😀 \u0085 \x1b"
	var b strings.Builder
	if err := json.NewEncoder(EscapeJSON(&b)).Encode(map[string]string{text: text, "plain": "x"}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }) {
		t.Errorf("got %q", b.String())
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back[text] != text || back["plain"] != "x" {
		t.Errorf("%q, %v", back, err)
	}
	if !strings.Contains(b.String(), "é 😀") {
		t.Errorf("ordinary characters are escaped: %s", b.String())
	}
}
