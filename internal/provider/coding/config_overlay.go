package coding

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"swarm"
)

// lay puts settings of ours over what the user has in variables that hold JSON: what is not ours stays as it is.
func lay(env []string, over map[string]object) ([]string, error) {
	for _, name := range slices.Sorted(maps.Keys(over)) {
		at := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		theirs := map[string]any{}
		if at >= 0 {
			if err := json.Unmarshal([]byte(env[at][len(name)+1:]), &theirs); err != nil {
				return nil, swarm.Errorf(swarm.BadInput, "%s, to which our tools have to be added, is not one JSON object: %w", name, err).
					WithHint("write it as JSON without comments, or put it into a file of the program's settings")
			}
			env = slices.Delete(slices.Clone(env), at, at+1)
		}
		b, err := json.Marshal(merged(theirs, over[name]))
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+string(b))
	}
	return env, nil
}

// merged is an object with another one over it. What both have and is an object is merged too.
func merged(under, over map[string]any) map[string]any {
	all := maps.Clone(under)
	for key, value := range over {
		below, one := all[key].(map[string]any)
		if above, two := value.(object); one && two {
			value = merged(below, above)
		}
		all[key] = value
	}
	return all
}
