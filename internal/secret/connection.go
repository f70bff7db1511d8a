package secret

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// connectionSecrets returns the secrets in the value of a variable, whatever its name: passwords
// and keys in addresses and connection strings, and the paths of webhooks. Names of users, hosts
// and databases are no secrets.
func connectionSecrets(name, value string) (found []string) {
	if !strings.ContainsAny(value, "@=/:") {
		return nil
	}
	if parsed := any(nil); strings.HasPrefix(strings.TrimSpace(value), "{") && json.Unmarshal([]byte(value), &parsed) == nil {
		return jsonSecrets(name, parsed)
	}
	for rest := value; ; {
		scheme, address, ok := strings.Cut(rest, "://")
		if !ok {
			break
		}
		rest = address
		scheme = scheme[strings.LastIndexFunc(scheme, func(c rune) bool { return !schemeCharacter(c) })+1:]
		if end := strings.IndexAny(address, " \t\r\n\"'<>|"); end >= 0 {
			address = address[:end]
		}
		found = append(found, addressSecrets(name, scheme, address)...)
	}
	if !strings.Contains(value, "://") {
		found = append(found, loginSecrets("", value)...)
	}
	for _, separators := range []string{";", ",", "?&#", " \t\r\n"} {
		found = append(found, settingSecrets(settingsOf(value, separators))...)
	}
	for _, part := range found {
		for _, meant := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
			if text, err := meant(part); err == nil && text != part {
				found = append(found, text)
			}
		}
	}
	return found
}

func schemeCharacter(c rune) bool {
	return c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) || c == '+' || c == '-' || c == '.'
}

// jsonSecrets returns the secrets in a JSON value, the form in which clouds configure their
// services.
func jsonSecrets(name string, value any) (found []string) {
	switch v := value.(type) {
	case string:
		if (setting{name, v}).secret() {
			found = append(found, v)
		}
		found = append(found, connectionSecrets(name, v)...)
	case []any:
		for _, item := range v {
			found = append(found, jsonSecrets(name, item)...)
		}
	case map[string]any:
		for key, item := range v {
			found = append(found, jsonSecrets(key, item)...)
		}
	}
	return found
}

// addressSecrets returns the secret parts of an address after its scheme: the login before the
// host, and the random parts of a webhook's path. The query is read as a list of settings.
func addressSecrets(name, scheme, address string) (found []string) {
	address, _, _ = strings.Cut(address, "?")
	authority, path, _ := strings.Cut(address, "/")
	if strings.Contains(authority, "@") {
		found = loginSecrets(scheme, authority+"/"+path)
	} else if _, port, ok := strings.Cut(authority, ":"); ok && strings.Trim(port, "0123456789") != "" {
		found = loginSecrets(scheme, address) // a password with an unescaped / in it
	}
	if at := strings.LastIndexByte(authority, '@'); webhook(name, authority[at+1:]+"/"+path) {
		for part := range strings.SplitSeq(path, "/") {
			if part, _, _ = strings.Cut(part, "#"); random(part) {
				found = append(found, part)
			}
		}
	}
	return found
}

// loginSecrets returns the password in name:password@host, or a key in place of the name. A
// password that equals the name of the user, the host or the database is no secret.
func loginSecrets(scheme, address string) (found []string) {
	authority, _, _ := strings.Cut(address, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		at = strings.LastIndexByte(address, '@')
	}
	if at < 0 || strings.ContainsAny(address[:at], " \t\r\n") {
		return nil
	}
	user, password, ok := strings.Cut(address[:at], ":")
	if strings.ContainsAny(user, "/=;,") || slices.Contains([]string{"mailto", "sip", "sips", "acct", "xmpp"}, strings.ToLower(user)) {
		return nil
	}
	if random(user) && (scheme != "" || ok) {
		found = append(found, user)
	}
	if ok && password != user && password != scheme && !strings.Contains(address[at:], password) {
		found = append(found, password)
	}
	return found
}

// webhook reports whether the address is a webhook: knowing it is enough to post there.
func webhook(name, address string) bool {
	name, address = strings.ToLower(name), strings.ToLower(address)
	return strings.Contains(name, "webhook") || strings.Contains(address, "webhook") || strings.HasPrefix(address, "hooks.") || strings.Contains(address, "/hooks/") ||
		strings.HasPrefix(address, "api.telegram.org/bot") || strings.HasPrefix(address, "maker.ifttt.com/")
}

// random reports whether a text looks random, as keys do and names do not: long, with letters and
// digits.
func random(s string) bool {
	return len(s) >= 16 && strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, unicode.IsLetter) && !strings.ContainsAny(s, " \t/\\;,*(){}")
}

// A setting is name=value in a connection string or a query.
type setting struct{ name, value string }

// settingsOf returns the settings in a value, split at separators. A value in quotes or braces may
// hold separators.
func settingsOf(value, separators string) (all []setting) {
	var quote byte
	start := 0
	for i := 0; i <= len(value); i++ {
		switch {
		case i < len(value) && quote != 0:
			if value[i] == quote {
				quote = 0
			}
			continue
		case i < len(value) && i > 0 && value[i-1] == '=' && strings.IndexByte(`"'{`, value[i]) >= 0:
			if quote = value[i]; quote == '{' {
				quote = '}'
			}
			continue
		case i < len(value) && strings.IndexByte(separators, value[i]) < 0:
			continue
		}
		if name, text, ok := strings.Cut(value[start:i], "="); ok {
			all = append(all, setting{strings.TrimSpace(name), strings.Trim(strings.TrimSpace(text), `"'{}`)})
		}
		start = i + 1
	}
	return all
}

// settingSecrets returns the values of the settings that hold a secret. A value that another,
// public setting has too is left out: it would hide nothing.
func settingSecrets(settings []setting) (found []string) {
	for _, p := range settings {
		if p.secret() && !slices.ContainsFunc(settings, func(other setting) bool { return other.name != p.name && other.value == p.value }) {
			found = append(found, p.value)
		}
	}
	return found
}

var (
	// passwords end the names of settings that hold one.
	passwords = []string{"password", "passwd", "passphrase", "secret", "pwd"}
	// signatures are names of settings that make an address a key.
	signatures = []string{"sig", "signature", "sharedaccesssignature", "xamzsignature", "xamzcredential", "xamzsecuritytoken", "xgoogsignature", "code"}
)

// OpensAddress reports whether a parameter of this name makes an address a key.
func OpensAddress(name string) bool {
	return LooksSecret(name) || slices.Contains(signatures, plain(name))
}

// plain returns a name in small letters, without signs.
func plain(name string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return -1
	}, name))
}

// secret reports whether a setting holds a secret. A password may be a word. The value of anything
// else that is called a key must look random: sort_key=created_at does not.
func (s setting) secret() bool {
	name := plain(s.name)
	if name == "pass" || slices.ContainsFunc(passwords, func(word string) bool { return strings.HasSuffix(name, word) }) {
		return !strings.HasPrefix(s.value, "/") // a path to the password, or a folder
	}
	key := strings.TrimRight(s.value, "=") // the padding of base64, whose alphabet has / too
	return OpensAddress(s.name) && random(strings.ReplaceAll(key, "/", "+"))
}
