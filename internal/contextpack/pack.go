// Package contextpack makes context packs: small, structured bundles of what an agent has to know before it works, so that nobody has to
// send along everything that was ever said. A pack tells the goal and when it is reached, and refers to the rest: docs with an
// excerpt, files with a line about each, earlier messages, artifacts.
//
// A pack is read strictly, as envelopes are, joined with others by [Merge], and kept small by [Fit], which prefers references to
// texts and lists whatever it leaves out. [Write] is how packs stand in a prompt.
//
// What a pack says makes its id; which run it is of, and when it was made, do not. So the same pack has the same reference in a
// replay, and may stand in a prompt that is cached.
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

// MaxTokens is how large a pack may be in a prompt, by [swarm.EstimateTokens].
const MaxTokens = 6000

// A Pack is a context pack, to the letter of its specification.
type Pack struct {
	PackID           string         `json:"packId,omitempty"`
	RunID            string         `json:"runId,omitempty"`
	NodeID           string         `json:"nodeId,omitempty"` // who made it
	CreatedAt        time.Time      `json:"createdAt,omitzero"`
	Goal             string         `json:"goal"`
	DefinitionOfDone []string       `json:"definitionOfDone,omitempty"`
	GlobalMode       swarm.Phase    `json:"globalMode,omitempty"`
	NodeMode         swarm.TeamMode `json:"nodeMode,omitempty"`
	DocsRoot         string         `json:"docsRoot,omitempty"`
	DocRefs          []Doc          `json:"docRefs,omitempty"` // like the lists below: the most important first
	RepoFacts        Notes          `json:"repoFacts,omitempty"`
	RelevantFiles    []File         `json:"relevantFiles,omitempty"`
	Inputs           []Input        `json:"inputs,omitempty"`
	Artifacts        []Artifact     `json:"artifacts,omitempty"`
	Constraints      Notes          `json:"constraints,omitempty"`
}

// A Doc is a document, by reference.
type Doc struct {
	Path    string `json:"path"`
	Excerpt string `json:"excerpt,omitempty"`
}

// A File is a file of the project, by reference.
type File struct {
	Path    string `json:"path"`
	Summary string `json:"summary,omitempty"`
}

// An Input is an envelope, by its id.
type Input struct {
	PayloadID string `json:"payloadId"`
}

// An Artifact is one of the run.
type Artifact struct {
	ID   string `json:"id"` // the end of its ref, or the whole of it
	Kind string `json:"kind,omitempty"`
}

// A Note is a value under a name: a fact, a constraint.
type Note struct {
	Name  string
	Value json.RawMessage // any JSON
}

// Notes are an object whose order is kept.
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

// Text is a note whose value is a text.
func Text(name, value string) Note { return Note{name, swarm.Encode(value)} }

// MadeID is how the ids begin that are made here, of what a pack says. Nobody else can give one to another pack.
const MadeID = "p-"

// Identified is the pack with its id: its own, or one that is made of what it says.
func (p Pack) Identified() (Pack, error) {
	own := p.PackID
	bare := p.Portable()
	bare.PackID = ""
	made := MadeID + string(swarm.HashOf(swarm.Encode(bare))[:20])
	switch p.PackID = made; {
	case own == "" || own == made:
		return p, nil
	case len(own) >= len(MadeID) && own[:len(MadeID)] == MadeID:
		return p, swarm.Errorf(swarm.BadInput, "the packId %s is not yours to give: those that begin with %s are made of what a pack says", swarm.Quote(own), MadeID).
			WithHint("leave packId out, or choose another one")
	}
	p.PackID = own
	return p, nil
}

// Portable is the pack without what ties it to one run: another run may take it over.
func (p Pack) Portable() Pack {
	p.RunID, p.CreatedAt = "", time.Time{}
	return p
}

// Same says whether two packs say the same, whichever run they are of and whenever they were made.
func Same(a, b Pack) bool { return bytes.Equal(swarm.Encode(a.Portable()), swarm.Encode(b.Portable())) }

// Bare says whether the pack tells nothing but the goal, which its receiver is told anyway.
func (p Pack) Bare() bool {
	return len(p.DefinitionOfDone)+len(p.DocRefs)+len(p.RepoFacts)+len(p.RelevantFiles)+len(p.Inputs)+len(p.Artifacts)+len(p.Constraints) == 0
}

// Ref is how the pack is referred to.
func (p Pack) Ref() string { return mail.PackPrefix + p.PackID }

// JSON is the pack as it is stored.
func (p Pack) JSON() []byte { return swarm.Encode(p) }

// Redacted is the pack without secrets.
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

// clone is the pack with lists of its own.
func (p Pack) clone() Pack {
	p.DefinitionOfDone, p.DocRefs, p.RelevantFiles = slices.Clone(p.DefinitionOfDone), slices.Clone(p.DocRefs), slices.Clone(p.RelevantFiles)
	p.Inputs, p.Artifacts = slices.Clone(p.Inputs), slices.Clone(p.Artifacts)
	p.RepoFacts, p.Constraints = slices.Clone(p.RepoFacts), slices.Clone(p.Constraints)
	return p
}
