package tool

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/secret"
)

// given holds the credentials that a server was given: keys from the environment, and tokens of
// logins. A server may repeat them in its answers and errors. They are removed there before a model
// reads the text or a log stores it.
type given struct {
	name string
	keys map[string]string // by variable

	mu       sync.Mutex
	tokens   []string // NAME=value, the old ones too
	redactor *secret.Redactor
}

func newGiven(spec swarm.ToolServer, environ []string) *given {
	_, keys, _ := process.Headers(environ, spec.Headers)
	if keys == nil { // a variable is missing; a later step reports it
		keys = map[string]string{}
	}
	for _, value := range spec.Env {
		if variable, ok := secret.Reference(value); ok {
			if key, set := process.Lookup(environ, variable); set && secret.LooksSecret(variable) {
				keys[variable] = key
			}
		}
	}
	return &given{name: spec.Name, keys: keys, redactor: secret.New(nil, keys)}
}

// addLogin adds the tokens of a login.
func (g *given) addLogin(l *login) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := len(g.tokens)
	for name, value := range l.secrets(g.name) {
		if token := name + "=" + value; !slices.Contains(g.tokens, token) {
			g.tokens = append(g.tokens, token)
		}
	}
	if len(g.tokens) > before {
		g.redactor = secret.New(g.tokens, g.keys)
	}
}

// secrets returns the tokens of a login at a server, by the names that stand in their place.
func (l *login) secrets(server string) map[string]string {
	all := map[string]string{server + "_client_secret": l.ClientSecret}
	if l.Token != nil {
		all[server+"_access_token"], all[server+"_refresh_token"] = l.Token.AccessToken, l.Token.RefreshToken
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// LoginSecrets returns the tokens of the logins at these servers as they are stored now, by the names
// that stand in their place. A login that cannot be read has none here, and fails the turn that
// needs it.
func LoginSecrets(store LoginStore, servers []swarm.ToolServer) map[string]string {
	all := map[string]string{}
	for _, s := range servers {
		if s.URL == "" {
			continue
		}
		var stored login
		if text, err := store.Login(s.URL); err == nil && text != nil && json.Unmarshal(text, &stored) == nil {
			maps.Copy(all, stored.secrets(s.Name))
		}
	}
	return all
}

// redact removes the credentials from a text.
func (g *given) redact(text string) string {
	g.mu.Lock()
	r := g.redactor
	g.mu.Unlock()
	return r.String(text)
}

// clean removes the credentials from an error, which may quote the server.
func (g *given) clean(err error) error {
	if err == nil {
		return nil
	}
	text := g.redact(err.Error())
	if text == err.Error() {
		return err
	}
	return &swarm.Error{Kind: swarm.KindOf(err), Msg: text, Hint: g.redact(swarm.HintOf(err))}
}
