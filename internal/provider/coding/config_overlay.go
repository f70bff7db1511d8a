package coding

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"swarm"
)

// overlayEnv merges settings of ours into the user's variables that hold JSON. The user's other
// settings stay as they are.
func overlayEnv(env []string, over map[string]object) ([]string, error) {
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
		b, err := json.Marshal(merge(theirs, over[name]))
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+string(b))
	}
	return env, nil
}

// merge lays one object over another. Objects that both have are merged in turn.
func merge(under, over map[string]any) map[string]any {
	all := maps.Clone(under)
	for key, value := range over {
		below, one := all[key].(map[string]any)
		if above, two := value.(object); one && two {
			value = merge(below, above)
		}
		all[key] = value
	}
	return all
}
