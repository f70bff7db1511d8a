package secret

import (
	"slices"
	"strings"
)

// keyBeginnings begin the keys of services that mark them, so that a key is known by itself,
// whatever the name of its variable.
var keyBeginnings = []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_",
	"whsec_", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-", "AIza", "ya29.", "npm_", "pypi-", "hf_", "gsk_", "xai-", "pplx-", "dop_v1_", "SG.",
	"shpat_", "lin_api_", "ntn_", "AGE-SECRET-KEY-"}

// recognizedSecrets returns the secrets that are known by how they look, in any variable: keys with
// the mark of their service, JSON web tokens, private keys, and what follows Bearer or Basic.
func recognizedSecrets(value string) (found []string) {
	if strings.Contains(value, "-----BEGIN ") && strings.Contains(value, "PRIVATE KEY") {
		return []string{value}
	}
	last := ""
	for word := range strings.FieldsFuncSeq(value, betweenWords) {
		marked := slices.ContainsFunc(keyBeginnings, func(begin string) bool { return strings.HasPrefix(word, begin) })
		token := strings.HasPrefix(word, "eyJ") && strings.Count(word, ".") == 2
		if (marked || token || last == "bearer" || last == "basic") && random(strings.ReplaceAll(word, "/", "+")) {
			found = append(found, word)
		}
		last = strings.ToLower(word)
	}
	for line := range strings.Lines(value) { // YAML, and headers
		name, text, ok := strings.Cut(strings.TrimLeft(line, "- \t"), ": ")
		if s := (setting{strings.Trim(name, `"'`), strings.Trim(strings.TrimSpace(text), `"'`)}); ok && !strings.Contains(s.value, " ") && s.secret() {
			found = append(found, s.value)
		}
	}
	return found
}

func betweenWords(c rune) bool { return strings.ContainsRune(" \t\r\n\"'`,;:=<>()[]{}|&?#@", c) }
