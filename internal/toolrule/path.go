package toolrule

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"swarm"
)

// A PathPattern names files below an agent's root: one file, docs/plan.md, or many. In a part of the
// path * stands for any characters, and a part ** for any number of parts.
type PathPattern string

// ParsePath parses the pattern in an entry such as file_write(docs/**).
func ParsePath(tool, inner string) (PathPattern, error) {
	text := strings.TrimPrefix(strings.TrimSpace(inner), "./")
	bad := func(why, hint string) (PathPattern, error) {
		return "", swarm.Errorf(swarm.BadInput, "%s %s", swarm.Quote(tool+"("+inner+")"), why).WithHint("%s", hint)
	}
	switch {
	case text == "":
		return bad("names no file", "write "+tool+", or which files: "+tool+"(docs/**)")
	case strings.HasSuffix(text, "/"):
		return bad("names a folder", "write what is in it: "+tool+"("+text+"**)")
	case !fs.ValidPath(text) || strings.ContainsRune(text, 0):
		return bad("is not a path below the agent's root", "write it relative to the root: "+tool+"(docs/**)")
	}
	for part := range strings.SplitSeq(text, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return bad("is not a pattern: "+err.Error(), "write names, with * for any characters and ** for any folders")
		}
	}
	return PathPattern(text), nil
}

// Matches reports whether the pattern covers a slash-separated path.
func (p PathPattern) Matches(file string) bool {
	return matchParts(strings.Split(string(p), "/"), strings.Split(file, "/"))
}

func matchParts(pattern, parts []string) bool {
	for i, want := range pattern {
		if want == "**" {
			rest := pattern[i+1:]
			for from := i; from <= len(parts); from++ {
				if matchParts(rest, parts[from:]) {
					return true
				}
			}
			return false
		}
		if i >= len(parts) {
			return false
		}
		if ok, _ := path.Match(want, parts[i]); !ok {
			return false
		}
	}
	return len(pattern) == len(parts)
}

// Literal returns the parts of the pattern before the first wildcard: what it names for certain.
func (p PathPattern) Literal() string {
	parts := strings.Split(string(p), "/")
	if i := slices.IndexFunc(parts, func(part string) bool { return strings.ContainsAny(part, `*?[\`) }); i >= 0 {
		parts = parts[:i]
	}
	return strings.Join(parts, "/")
}
