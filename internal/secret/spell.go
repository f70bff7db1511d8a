package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minLineLength is the length of the shortest line of a multi-line value, such as a private key,
// that is a secret by itself.
const minLineLength = 20

// spellings returns all texts that reveal a value: the value itself, and its encodings in JSON,
// addresses, source code, shells, HTML, base64 and hexadecimal.
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
		for _, text := range []string{inJSON(value, true), inJSON(value, false)} {
			for _, text := range []string{text, strings.ReplaceAll(text, "/", `\/`)} { // PHP escapes slashes.
				all = append(all, text, inASCII(text, `\u%04x`), inASCII(text, `\u%04X`))
			}
		}
		all = append(all, url.QueryEscape(value), url.PathEscape(value))
		for _, safe := range []string{"", "/", "~", "/~", "~!'()*", "~!'()*;,/?:@&=+$#"} { // the safe characters of Python, JavaScript and others
			text := percent(value, safe, "0123456789ABCDEF")
			all = append(all, text, percent(value, safe, "0123456789abcdef"), strings.ReplaceAll(text, "%20", "+"))
		}
		all = append(all, bytesInASCII(value, "\\'"), bytesInASCII(value, `\"`)) // Python's bytes and C's strings
		all = append(all, strings.ReplaceAll(value, `\`, `\\`), strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
		all = append(all, strings.ReplaceAll(value, `'`, `'\''`), strings.ReplaceAll(value, `'`, `'"'"'`))
		all = append(all, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value))
		all = append(all, html.EscapeString(value), strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(value),
			strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(value))
		slices.Sort(all)
		all = slices.Compact(all)
		for _, text := range all { // A text that holds one of these may be encoded as JSON before the Redactor sees it.
			all = append(all, inJSON(text, true), inJSON(text, false))
		}
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inBase64(encoding, value, before))
		}
	}
	lower := hex.EncodeToString([]byte(value))
	all = append(all, lower, strings.ToUpper(lower))
	for _, before := range []string{"%", `\x`, `\\x`} { // each byte escaped, in an address, in source code and in JSON of that
		for _, format := range []string{"%02x", "%02X"} {
			var b strings.Builder
			for _, c := range []byte(value) {
				fmt.Fprintf(&b, "%s"+format, before, c)
			}
			all = append(all, b.String())
		}
	}
	return all
}

// percent returns the percent-encoding of the value. Letters, digits, - _ . and the characters in
// safe stay as they are.
func percent(value, safe, digits string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c < utf8.RuneSelf && !unplain(rune(c)) || strings.IndexByte(safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + digits[c>>4:c>>4+1] + digits[c&15:c&15+1])
		}
	}
	return b.String()
}

// inASCII returns a text with UTF-16 escapes for characters outside ASCII.
func inASCII(text, escape string) string {
	var b strings.Builder
	for _, c := range text {
		if c < utf8.RuneSelf {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			fmt.Fprintf(&b, escape, unit)
		}
	}
	return b.String()
}

// bytesInASCII returns a text with \x escapes for bytes outside ASCII, and with \ before the quoted
// characters.
func bytesInASCII(text, quoted string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c >= utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, c)
		case strings.IndexByte(quoted, c) >= 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unplain reports whether JSON or an address may encode c.
func unplain(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.')
}

// inJSON returns the value as it stands between the quotes of a JSON string.
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

// inBase64 returns the base64 digits that are made of the value's bits alone. So they are the same
// in any text in which before bytes, modulo 3, precede the value.
func inBase64(encoding *base64.Encoding, value string, before int) string {
	digits := encoding.EncodeToString(append(make([]byte, before), value...))
	first := (before*8 + 5) / 6
	last := (before + len(value)) * 8 / 6
	return digits[first:last]
}
