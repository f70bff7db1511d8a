package model

import (
	"net/http"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/secret"
)

// findKey returns the key and the name of its variable. Keys are in the environment and nowhere
// else; `env` of the agent or the provider may name another variable. A server of the user's own
// gets a key only when `env` says so, because a compose file from a stranger could name any server.
func (m *model) findKey(env map[string]string) (key, name string, err error) {
	value, named := env[m.keyName]
	if !named {
		value, named = m.spec.Env[m.keyName]
	}
	own := m.spec.BaseURL != ""
	switch {
	case !named && own:
		return "", "", nil
	case !named || value == "":
		name = m.keyName
	default:
		var ok bool
		if name, ok = secret.Reference(value); !ok {
			return "", "", swarm.Errorf(swarm.BadInput, "the key of the provider %q stands in a file", m.spec.Name).
				WithHint("put it into a variable of the environment and write env: {%s: $NAME}", m.keyName)
		}
	}
	key, _ = process.Lookup(m.environ, name)
	switch key = strings.TrimSpace(key); {
	case key == "":
		return "", name, swarm.Errorf(swarm.NotSignedIn, "the provider %q has no key: %s is not set", m.spec.Name, name).
			WithHint("%s", m.signInHint(name))
	case !process.IsKey(key):
		return "", name, swarm.Errorf(swarm.NotSignedIn, "%s holds what cannot be a key", name).
			WithHint("%s", m.signInHint(name))
	}
	return key, name, nil
}

// headers returns the headers that the file sets, and the keys in them.
func (m *model) headers() (h http.Header, held map[string]string, err error) {
	h, held, missing := process.Headers(m.environ, m.spec.Headers)
	if missing != "" {
		return nil, nil, swarm.Errorf(swarm.NotSignedIn, "the provider %q has no key: %s is not set, or holds what cannot be one", m.spec.Name, missing).
			WithHint("%s", m.signInHint(missing))
	}
	return h, held, nil
}

func (m *model) signInHint(name string) string {
	return "export " + name + "=… with the key of your account"
}
