package model

import (
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/secret"
)

// key finds the key, and the variable that holds it, in the environment and nowhere else. `env` of the agent or the provider may
// name another variable. A server of the user's own is given a key only when `env` says so: a file of a stranger could name any
// server.
func (m *model) key(env map[string]string) (key, name string, err error) {
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
		return "", name, swarm.Errorf(swarm.NotSignedIn, "the provider %q has no key: %s is not set", m.spec.Name, name).WithHint("%s", m.signIn(name))
	case !process.IsKey(key):
		return "", name, swarm.Errorf(swarm.NotSignedIn, "%s holds what cannot be a key", name).WithHint("%s", m.signIn(name))
	}
	return key, name, nil
}

func (m *model) signIn(name string) string {
	return "export " + name + "=… with the key of your account"
}
