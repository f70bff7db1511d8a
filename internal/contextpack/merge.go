package contextpack

import (
	"bytes"
	"slices"
	"strings"

	"swarm"
)

// How a part of a merged or shrunk pack differs from what was handed in.
const (
	Shortened = "shortened" // its text is cut
	Reference = "reference" // its text is missing
	Dropped   = "dropped"   // it is missing
	Replaced  = "replaced"  // a later pack has another value
)

// Merge merges packs in order. A duplicate keeps its first place. If packs differ about a fact, a
// constraint or a text, the later one wins, and the result reports the replaced one. Different
// goals are listed one below the other. The caller sets the id and the maker.
func Merge(packs ...Pack) (Pack, []swarm.LeftOut) {
	var m merging
	for _, p := range packs {
		m.add(p)
	}
	return m.Pack, m.left
}

type merging struct {
	Pack
	left []swarm.LeftOut
}

func (m *merging) replaced(part, name string) {
	m.left = append(m.left, swarm.LeftOut{Part: part, Name: name, How: Replaced})
}

// add merges one more pack into the result.
func (m *merging) add(p Pack) {
	if goal := strings.TrimSpace(p.Goal); goal != "" && !hasGoal(m.Goal, goal) {
		m.Goal = strings.TrimPrefix(m.Goal+"\n\n"+goal, "\n\n")
	}
	for _, d := range p.DefinitionOfDone {
		if !slices.Contains(m.DefinitionOfDone, d) {
			m.DefinitionOfDone = append(m.DefinitionOfDone, d)
		}
	}
	if p.GlobalMode != "" {
		m.GlobalMode = p.GlobalMode
	}
	if p.NodeMode != "" {
		m.NodeMode = p.NodeMode
	}
	if p.DocsRoot != "" {
		if m.DocsRoot != "" && m.DocsRoot != p.DocsRoot {
			m.replaced("docsRoot", m.DocsRoot)
		}
		m.DocsRoot = p.DocsRoot
	}
	for _, d := range p.DocRefs {
		at := slices.IndexFunc(m.DocRefs, func(o Doc) bool { return o.Path == d.Path })
		if at < 0 {
			m.DocRefs = append(m.DocRefs, d)
		} else {
			m.text("docRefs", d.Path, &m.DocRefs[at].Excerpt, d.Excerpt)
		}
	}
	for _, f := range p.RelevantFiles {
		at := slices.IndexFunc(m.RelevantFiles, func(o File) bool { return o.Path == f.Path })
		if at < 0 {
			m.RelevantFiles = append(m.RelevantFiles, f)
		} else {
			m.text("relevantFiles", f.Path, &m.RelevantFiles[at].Summary, f.Summary)
		}
	}
	for _, in := range p.Inputs {
		if !slices.Contains(m.Inputs, in) {
			m.Inputs = append(m.Inputs, in)
		}
	}
	for _, a := range p.Artifacts {
		if !slices.ContainsFunc(m.Artifacts, func(o Artifact) bool { return o.Ref() == a.Ref() }) {
			m.Artifacts = append(m.Artifacts, a)
		}
	}
	m.notes("repoFacts", &m.RepoFacts, p.RepoFacts)
	m.notes("constraints", &m.Constraints, p.Constraints)
}

// hasGoal reports whether a goal is among merged goals.
func hasGoal(goals, goal string) bool {
	return strings.Contains("\n\n"+goals+"\n\n", "\n\n"+goal+"\n\n")
}

// text replaces a text by a later one. An empty later text changes nothing.
func (m *merging) text(part, name string, old *string, later string) {
	if later == "" || later == *old {
		return
	}
	if *old != "" {
		m.replaced(part, name)
	}
	*old = later
}

func (m *merging) notes(part string, into *Notes, more Notes) {
	for _, n := range more {
		at := slices.IndexFunc(*into, func(o Note) bool { return o.Name == n.Name })
		switch {
		case at < 0:
			*into = append(*into, n)
		case !bytes.Equal((*into)[at].Value, n.Value):
			m.replaced(part, n.Name)
			(*into)[at] = n
		}
	}
}

// Without returns the parts of the pack that another pack lacks.
func (p Pack) Without(other Pack) Pack {
	if hasGoal(other.Goal, strings.TrimSpace(p.Goal)) {
		p.Goal = ""
	}
	if p.GlobalMode == other.GlobalMode && p.NodeMode == other.NodeMode {
		p.GlobalMode, p.NodeMode = "", ""
	}
	p = p.clone()
	p.DefinitionOfDone = slices.DeleteFunc(p.DefinitionOfDone, func(d string) bool {
		return slices.Contains(other.DefinitionOfDone, d)
	})
	p.DocRefs = slices.DeleteFunc(p.DocRefs, func(d Doc) bool {
		return slices.ContainsFunc(other.DocRefs, func(o Doc) bool { return o.Path == d.Path })
	})
	p.RelevantFiles = slices.DeleteFunc(p.RelevantFiles, func(f File) bool {
		return slices.ContainsFunc(other.RelevantFiles, func(o File) bool { return o.Path == f.Path })
	})
	p.Inputs = slices.DeleteFunc(p.Inputs, func(in Input) bool { return slices.Contains(other.Inputs, in) })
	p.Artifacts = slices.DeleteFunc(p.Artifacts, func(a Artifact) bool {
		return slices.ContainsFunc(other.Artifacts, func(o Artifact) bool { return o.Ref() == a.Ref() })
	})
	named := func(all Notes) func(Note) bool {
		return func(n Note) bool { return slices.ContainsFunc(all, func(o Note) bool { return o.Name == n.Name }) }
	}
	p.RepoFacts = slices.DeleteFunc(p.RepoFacts, named(other.RepoFacts))
	p.Constraints = slices.DeleteFunc(p.Constraints, named(other.Constraints))
	return p
}
