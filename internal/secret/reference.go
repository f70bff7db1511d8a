package secret

import "strings"

// Reference returns the name in `$NAME` or `${NAME}`, if value is nothing else. So a file can name
// a variable of the environment and need not hold the secret.
func Reference(value string) (name string, ok bool) {
	name, ok = strings.CutPrefix(value, "$")
	if !ok {
		return "", false
	}
	if inner, braces := strings.CutPrefix(name, "{"); braces {
		if name, ok = strings.CutSuffix(inner, "}"); !ok {
			return "", false
		}
	}
	for i, c := range []byte(name) {
		letter := c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return "", false
		}
	}
	return name, name != ""
}
