package secret

import (
	"slices"
	"strings"
	"unicode"
)

var (
	// A name is a secret's if one of words is in it.
	words = []string{"KEY", "KEYS", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "PASSCODE",
		"CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE"}
	// A name is a secret's if one of lastWords ends it, after another word.
	lastWords = []string{"PASS", "PWD", "PAT", "TOKENS"}
	// A name is a secret's if one of glued ends a longer word of it: PGPASSWORD.
	glued = []string{"PASSWORD", "PASSWORDS", "PASSWD", "TOKEN", "SECRET", "SECRETS", "APIKEY", "APIKEYS", "ACCESSKEY", "ACCESSKEYS", "SECRETKEY", "PRIVATEKEY",
		"PRIVATEKEYS", "PRIVKEY"}
	// A name that ends with one of about is no secret's: it says where the secret is, or how long
	// it lasts.
	about = []string{"FILE", "FILES", "PATH", "DIR", "DIRECTORY", "FOLDER", "HOME", "SOCK", "SOCKET", "URL", "URI", "ENDPOINT", "HOST", "PORT",
		"ID", "NAME", "TYPE", "KIND", "MODE", "METHOD", "ALGORITHM", "FORMAT", "PROVIDER", "BACKEND", "MANAGER", "HELPER", "COMMAND",
		"TTL", "TIMEOUT", "EXPIRY", "EXPIRES", "LENGTH", "SIZE", "LIMIT", "COUNT", "MAX", "MIN", "ENABLED", "DISABLED", "REQUIRED",
		"PREFIX", "HEADER", "VERSION", "REGION", "DOMAIN", "SCOPE", "SCOPES"}
	// Names that end with a pair of held are a secret's nevertheless.
	held = [][2]string{{"SECRET", "ID"}, {"AUTH", "HEADER"}, {"AUTHORIZATION", "HEADER"}}
	// TOKENS after one of counted are a model's tokens.
	counted = []string{"MAX", "MIN", "INPUT", "OUTPUT", "THINKING", "CONTEXT", "COMPLETION", "PROMPT", "TOTAL", "NUM"}
	// exceptions override all of these rules.
	exceptions = map[string]bool{"AWS_ACCESS_KEY_ID": true, "GOOGLE_APPLICATION_CREDENTIALS": false}
)

// LooksSecret reports whether a variable of this name holds a secret: OPENAI_API_KEY, PGPASSWORD,
// githubToken2, but not SSH_AUTH_SOCK, MAX_TOKENS or MONKEY.
func LooksSecret(name string) bool {
	if known, ok := exceptions[strings.ToUpper(name)]; ok {
		return known
	}
	parts := split(name)
	if len(parts) == 0 {
		return false
	}
	last := len(parts) - 1
	if last > 0 && slices.Contains(held, [2]string{parts[last-1], parts[last]}) {
		return true
	}
	if slices.Contains(about, parts[last]) {
		return false
	}
	if last > 0 && slices.Contains(lastWords, parts[last]) {
		return parts[last] != "TOKENS" || !slices.Contains(counted, parts[last-1])
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		return slices.Contains(words, part) || slices.ContainsFunc(glued, func(end string) bool { return strings.HasSuffix(part, end) })
	})
}

// split returns the words of a name in upper case: api_key, api-key, apiKey and API_KEY2 are API
// and KEY.
func split(name string) []string {
	var b strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			c = ' '
		case lower && unicode.IsUpper(c):
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(c)
		b.WriteRune(unicode.ToUpper(c))
	}
	parts := strings.Fields(b.String())
	for i, part := range parts {
		if word := strings.TrimRight(part, "0123456789"); word != "" && part != "AUTH0" { // AUTH0 is the name of a company.
			parts[i] = word
		}
	}
	return parts
}

// ordinary are values that people set in place of a secret, and that occur in ordinary text.
var ordinary = []string{"password", "changeme", "change-me", "disabled", "required", "optional", "undefined", "anonymous", "keychain",
	"username", "localhost", "interactive", "not-needed", "none-needed", "placeholder", "your-key-here", "your-api-key", "xxxxxxxx",
	"authorization", "changeit", "postgres", "postgresql", "mongodb", "rabbitmq", "minioadmin", "administrator", "elastic", "elasticsearch",
	"development", "production", "mysecretpassword", "example.com"}

// trivial reports whether replacing a value would damage texts and hide nothing.
func trivial(value string) bool {
	if len(value) < minLength || slices.Contains(ordinary, strings.ToLower(value)) {
		return true
	}
	return strings.Trim(value, value[:1]) == ""
}

// printable returns a variable's name without characters that could break the text around it, such
// as JSON.
func printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			return c
		}
		return '_'
	}, name)
}
