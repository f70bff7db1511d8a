package secret

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// TestBeginnings: every secret with a known beginning is replaced, in any spelling, and nothing of
// it is left.
func TestBeginnings(t *testing.T) {
	const begin, rest = "swa_AbCdEf-_01234567", "abcdefghijklmnopqrstuvwxyz-_0123456789ABCDEF"
	token := begin + rest
	r := New([]string{"API_KEY=canary-0123456789"}, nil, Beginning{Name: "TOKEN", Text: begin, Rest: len(rest)})
	for text, want := range map[string]string{
		token:                               "[secret TOKEN]",
		"x " + token + " y":                 "x [secret TOKEN] y",
		`{"t":"` + token + `"}`:             `{"t":"[secret TOKEN]"}`,
		token + "\n" + token:                "[secret TOKEN]\n[secret TOKEN]",
		begin + "short, canary-0123456789":  "[secret TOKEN], [secret API_KEY]",
		hex.EncodeToString([]byte(token)):   "[secret TOKEN]",
		begin[:len(begin)-1] + "!" + rest:   begin[:len(begin)-1] + "!" + rest,
		"swa_0123456789012345678901234567":  "swa_0123456789012345678901234567",
		"…" + rest + " and more":            "… and more",
		"more …" + rest[:10]:                "more …" + rest[:10],
		"some " + begin[:12] + "… of it":    "some … of it",
		"a text … /a/path/that/is/long/er/": "a text … /a/path/that/is/long/er/",
	} {
		if got := r.Cut(text); got != want {
			t.Errorf("%s\nbecame %s\nnot    %s", text, got, want)
		}
	}
	for before := range 3 {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", before) + token))
			if got := r.String(text); !strings.Contains(got, "[secret TOKEN]") || len(got) > len("[secret TOKEN]")+8 {
				t.Errorf("%s became %s", text, got)
			}
		}
	}
	for at := range token {
		for next := at; next < len(token); next += 7 {
			s := r.Stream()
			got := s.Write("a "+token[:at]) + s.Write(token[at:next]) + s.Write(token[next:]) + s.Write(" b") + s.Flush()
			if got != "a [secret TOKEN] b" {
				t.Fatalf("cut at %d and %d it became %s", at, next, got)
			}
		}
	}
}
