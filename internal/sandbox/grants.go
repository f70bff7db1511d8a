package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// This file decides what Landlock allows. It is pure, as mounts.go is, and follows the same rules.
//
// A ruleset of Landlock allows and never forbids: what it allows for a folder, it allows for
// everything below. So a folder with something hidden below is not allowed itself. What else is in it
// is, entry by entry, as it is when the program starts. A folder that may be written cannot have
// parts that may only be read.

// A grant is a path that may be read, with everything below it.
type grant struct {
	path  string
	dir   bool
	write bool // it may be written too
}

// devices are the files in /dev that a program may open. Terminals are left out: a program that
// opens one can inject input, as if the person had typed it.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// grants returns what the program may read and write.
func (p *policy) grants(m machine) (list []grant) {
	m.sockets = nil // no Unix socket can be opened: see sharedCalls
	byPath := map[string]mount{"/": {path: "/", mode: readOnly}, "/dev": {path: "/dev", mode: hidden}}
	for _, path := range devices {
		byPath[path] = mount{path: path, mode: writable, file: true}
	}
	for _, one := range p.mounts(m) {
		byPath[one.path] = one
	}
	if real, _, ok := m.look(p.Temp); ok {
		byPath[real] = mount{path: real, mode: writable}
	}
	var hides []string
	for path := range byPath {
		if !isVisible(byPath, path) {
			hides = append(hides, path)
		}
	}
	// allow grants a path, or what is in it.
	var allow func(path string, as mode)
	allow = func(path string, as mode) {
		real, dir, ok := m.look(path)
		if !ok || real != path { // what a link leads to is allowed where it is, or not
			return
		}
		if !slices.ContainsFunc(hides, func(hide string) bool { return isBelow(hide, path) }) {
			list = append(list, grant{path, dir, as == writable})
			return
		}
		for _, entry := range m.list(path) {
			if _, own := byPath[entry]; !own {
				allow(entry, as)
			}
		}
	}
	for path, one := range byPath {
		if isVisible(byPath, path) {
			allow(path, one.mode)
		}
	}
	slices.SortFunc(list, func(a, b grant) int { return strings.Compare(a.path, b.path) })
	return list
}

// isBelow reports whether a path is below a folder.
func isBelow(path, folder string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator)))
	return ok && rest != "" && rest[0] == filepath.Separator
}
