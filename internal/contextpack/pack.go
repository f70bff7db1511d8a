// Package contextpack makes context packs: small, structured bundles of what an agent has to know
// before it works. With a pack, agents need not forward whole conversations. A pack has the goal
// and its definition of done. It refers to the rest: docs with an excerpt, files with a line about
// each, earlier messages, artifacts.
//
// [Read] reads a pack strictly, like an envelope. [Merge] joins packs. [Fit] keeps a pack small: it
// prefers references to texts, and lists what it leaves out. [Write] formats a pack for a prompt.
//
// A pack's id is a hash of its content, without the run and the time. So the same pack has the same
// reference in a replay, and a prompt that holds it can be cached.
package contextpack

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// MaxTokens is the size limit of a pack in a prompt, by [swarm.EstimateTokens].
const MaxTokens = 6000

// A Pack is a context pack. Its JSON is fixed by the specification.
type Pack struct {
	PackID           string         `json:"packId,omitempty"`
	RunID            string         `json:"runId,omitempty"`
	NodeID           string         `json:"nodeId,omitempty"` // its maker
	CreatedAt        time.Time      `json:"createdAt,omitzero"`
	Goal             string         `json:"goal"`
	DefinitionOfDone []string       `json:"definitionOfDone,omitempty"`
	GlobalMode       swarm.Phase    `json:"globalMode,omitempty"`
	NodeMode         swarm.TeamMode `json:"nodeMode,omitempty"`
	DocsRoot         string         `json:"docsRoot,omitempty"`
	DocRefs          []Doc          `json:"docRefs,omitempty"` // the most important first, as in all lists below
	RepoFacts        Notes          `json:"repoFacts,omitempty"`
	RelevantFiles    []File         `json:"relevantFiles,omitempty"`
	Inputs           []Input        `json:"inputs,omitempty"`
	Artifacts        []Artifact     `json:"artifacts,omitempty"`
	Constraints      Notes          `json:"constraints,omitempty"`
}

// A Doc is a reference to a document.
type Doc struct {
	Path    string `json:"path"`
	Excerpt string `json:"excerpt,omitempty"`
}

// A File is a reference to a file of the project.
type File struct {
	Path    string `json:"path"`
	Summary string `json:"summary,omitempty"`
}

// An Input is a reference to an envelope.
type Input struct {
	PayloadID string `json:"payloadId"`
}

// An Artifact is a reference to an artifact of the run.
type Artifact struct {
	ID   string `json:"id"` // the whole ref, or its end
	Kind string `json:"kind,omitempty"`
}

// A Note is a named value: a fact or a constraint.
type Note struct {
	Name  string
	Value json.RawMessage // any JSON
}

// Notes are a JSON object that keeps its order.
type Notes []Note

// MarshalJSON writes an object.
func (n Notes) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, note := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(swarm.Encode(note.Name))
		b.WriteByte(':')
		b.Write(note.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Text returns a note whose value is a text.
func Text(name, value string) Note { return Note{name, swarm.Encode(value)} }

// MadeID is the prefix of ids that are made from a pack's content. A client cannot choose such an
// id for another content.
const MadeID = "p-"

// Identified returns the pack with an id: its own, or one made from its content.
func (p Pack) Identified() (Pack, error) {
	own := p.PackID
	bare := p.Portable()
	bare.PackID = ""
	made := MadeID + string(swarm.HashOf(swarm.Encode(bare))[:20])
	switch p.PackID = made; {
	case own == "" || own == made:
		return p, nil
	case len(own) >= len(MadeID) && own[:len(MadeID)] == MadeID:
		const msg = "the packId %s is not yours to give: those that begin with %s are made of what a pack says"
		return p, swarm.Errorf(swarm.BadInput, msg, swarm.Quote(own), MadeID).
			WithHint("leave packId out, or choose another one")
	}
	p.PackID = own
	return p, nil
}

// Portable returns the pack without run and time, so that another run can adopt it.
func (p Pack) Portable() Pack {
	p.RunID, p.CreatedAt = "", time.Time{}
	return p
}

// Same reports whether two packs have the same content, whatever their run and time.
func Same(a, b Pack) bool { return bytes.Equal(swarm.Encode(a.Portable()), swarm.Encode(b.Portable())) }

// Bare reports whether the pack has nothing but the goal, which its receiver gets anyway.
func (p Pack) Bare() bool {
	return len(p.DefinitionOfDone)+len(p.DocRefs)+len(p.RepoFacts)+len(p.RelevantFiles)+len(p.Inputs)+
		len(p.Artifacts)+len(p.Constraints) == 0
}

// Ref returns the reference of the pack.
func (p Pack) Ref() string { return mail.PackPrefix + p.PackID }

// JSON returns the pack as it is stored.
func (p Pack) JSON() []byte { return swarm.Encode(p) }

// Redacted returns the pack without secrets.
func (p Pack) Redacted(redact func([]byte) []byte) Pack {
	text := func(s string) string { return string(redact([]byte(s))) }
	notes := func(all Notes) Notes {
		all = slices.Clone(all)
		for i, n := range all {
			all[i] = Note{text(n.Name), strictjson.Redact(n.Value, redact)}
		}
		return all
	}
	p = p.clone()
	p.Goal, p.DocsRoot, p.PackID = text(p.Goal), text(p.DocsRoot), text(p.PackID)
	for i, d := range p.DefinitionOfDone {
		p.DefinitionOfDone[i] = text(d)
	}
	for i, d := range p.DocRefs {
		p.DocRefs[i] = Doc{text(d.Path), text(d.Excerpt)}
	}
	for i, f := range p.RelevantFiles {
		p.RelevantFiles[i] = File{text(f.Path), text(f.Summary)}
	}
	for i, in := range p.Inputs {
		p.Inputs[i] = Input{text(in.PayloadID)}
	}
	for i, a := range p.Artifacts {
		p.Artifacts[i] = Artifact{text(a.ID), text(a.Kind)}
	}
	p.RepoFacts, p.Constraints = notes(p.RepoFacts), notes(p.Constraints)
	return p
}

// clone returns the pack with copies of its lists.
func (p Pack) clone() Pack {
	p.DefinitionOfDone, p.DocRefs = slices.Clone(p.DefinitionOfDone), slices.Clone(p.DocRefs)
	p.RelevantFiles = slices.Clone(p.RelevantFiles)
	p.Inputs, p.Artifacts = slices.Clone(p.Inputs), slices.Clone(p.Artifacts)
	p.RepoFacts, p.Constraints = slices.Clone(p.RepoFacts), slices.Clone(p.Constraints)
	return p
}
