package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// minLineLength is the length of the shortest line of a value of several lines, a private key for one, that is a secret by itself.
const minLineLength = 20

// spellings are the texts by which a value gives itself away: as it is, and as it stands in JSON, in an address, in base64 and
// in hexadecimal.
func spellings(value string) []string {
	all := []string{value}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if len(line) >= minLineLength && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	if strings.ContainsFunc(value, unplain) {
		all = append(all, inJSON(value, true), inJSON(value, false), url.QueryEscape(value), url.PathEscape(value))
		all = append(all, strings.ReplaceAll(inJSON(value, true), "/", `\/`), strings.ReplaceAll(inJSON(value, false), "/", `\/`)) // as PHP writes it
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inBase64(encoding, value, before))
		}
	}
	lower := hex.EncodeToString([]byte(value))
	return append(all, lower, strings.ToUpper(lower))
}

// unplain says whether c may be written otherwise in JSON or in an address.
func unplain(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
}

// inJSON is the value as it stands between the quotes of a JSON string.
func inJSON(value string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(value); err != nil {
		return value
	}
	quoted := strings.TrimSuffix(b.String(), "\n")
	return quoted[1 : len(quoted)-1]
}

// inBase64 is what is always the same of the value in base64 when so many bytes, modulo 3, stand before it: the digits that are
// made of its own bits alone.
func inBase64(encoding *base64.Encoding, value string, before int) string {
	digits := encoding.EncodeToString(append(make([]byte, before), value...))
	first := (before*8 + 5) / 6
	last := (before + len(value)) * 8 / 6
	return digits[first:last]
}
