package contextpack

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// Limits of what clients may hand in. Fit leaves out later what has no room in a prompt.
const (
	maxBytes   = 4 << 20
	maxEntries = 500 // of each list
	maxLine    = 512 // bytes of a path, a name or an id
	maxExtends = 20
	maxID      = 40
)

// A Draft is a pack that a client hands in.
type Draft struct {
	Pack
	Extends []string // refs of stored packs to merge it with
}

var fields = []string{
	"packId", "runId", "nodeId", "createdAt", "goal", "definitionOfDone", "globalMode", "nodeMode", "docsRoot", "docRefs",
	"repoFacts", "relevantFiles", "inputs", "artifacts", "constraints",
}

// Read reads a pack strictly: one object with known fields only, in exact spelling, none twice, and
// no text after it.
func Read(text []byte) (Pack, error) {
	d, err := read(text, fields)
	if err == nil {
		err = d.whole()
	}
	return d.Pack, err
}

// ReadDraft reads a draft. A draft with extends needs no goal of its own.
func ReadDraft(text []byte) (Draft, error) {
	d, err := read(text, append(slices.Clone(fields), "extends"))
	if err == nil && len(d.Extends) == 0 {
		err = d.whole()
	}
	return d, err
}

func (p *Pack) whole() error {
	if strings.TrimSpace(p.Goal) == "" {
		return swarm.Errorf(swarm.BadInput, "the context pack has no goal").
			WithHint(`say what is to be reached: "goal": "…"`)
	}
	return nil
}

// read reads all fields, then checks the rules. The reader of fields keeps the first error, so they
// are checked once at the end.
func read(text []byte, names []string) (d Draft, err error) {
	a := strictjson.ReadObject("the context pack", text, maxBytes, names...)
	p := &d.Pack
	p.PackID, p.RunID, p.NodeID = a.Text("packId"), a.Text("runId"), a.Text("nodeId")
	if a.Has("createdAt") {
		p.CreatedAt = a.Time("createdAt")
	}
	p.Goal, p.DefinitionOfDone, p.DocsRoot = a.Text("goal"), a.Texts("definitionOfDone"), a.Text("docsRoot")
	p.GlobalMode, p.NodeMode = swarm.Phase(a.Text("globalMode")), swarm.TeamMode(a.Text("nodeMode"))
	for _, in := range a.Objects("docRefs", "path", "excerpt") {
		in.Need("path")
		p.DocRefs = append(p.DocRefs, Doc{in.Text("path"), in.Text("excerpt")})
	}
	for _, in := range a.Objects("relevantFiles", "path", "summary") {
		in.Need("path")
		p.RelevantFiles = append(p.RelevantFiles, File{in.Text("path"), in.Text("summary")})
	}
	for _, in := range a.Objects("inputs", "payloadId") {
		in.Need("payloadId")
		p.Inputs = append(p.Inputs, Input{in.Text("payloadId")})
	}
	for _, in := range a.Objects("artifacts", "id", "kind") {
		in.Need("id")
		p.Artifacts = append(p.Artifacts, Artifact{in.Text("id"), in.Text("kind")})
	}
	d.Extends = a.Texts("extends")
	if err := a.Err(); err != nil {
		return Draft{}, err
	}
	if p.RepoFacts, err = readNotes("repoFacts", a.JSON("repoFacts")); err != nil {
		return Draft{}, err
	}
	if p.Constraints, err = readNotes("constraints", a.JSON("constraints")); err != nil {
		return Draft{}, err
	}
	if err := d.check(); err != nil {
		return Draft{}, err
	}
	return d, nil
}

// readNotes reads an object and keeps its order. The JSON is valid, so the only possible mistake is
// another type.
func readNotes(field string, object json.RawMessage) (all Notes, err error) {
	if object == nil {
		return nil, nil
	}
	in := json.NewDecoder(bytes.NewReader(object))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, swarm.Errorf(swarm.BadInput, "the field %q must be an object", field)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "the field %q: %w", field, err)
		}
		var n Note
		n.Name, _ = name.(string)
		if err := in.Decode(&n.Value); err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "the field %q: %w", field, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// check checks the rules that types cannot express.
func (d *Draft) check() error {
	p := &d.Pack
	for _, c := range []struct {
		field string
		n     int
	}{
		{"definitionOfDone", len(p.DefinitionOfDone)}, {"docRefs", len(p.DocRefs)}, {"repoFacts", len(p.RepoFacts)},
		{"relevantFiles", len(p.RelevantFiles)}, {"inputs", len(p.Inputs)}, {"artifacts", len(p.Artifacts)},
		{"constraints", len(p.Constraints)},
	} {
		if c.n > maxEntries {
			return swarm.Errorf(swarm.BadInput, "the field %q has %d entries; %d are allowed", c.field, c.n, maxEntries).
				WithHint("a context pack is small: name the most important ones")
		}
	}
	phases := []string{string(swarm.PlanningPhase), string(swarm.ImplementationPhase)}
	modes := []string{string(swarm.AutoMode), string(swarm.InteractiveMode)}
	switch {
	case p.PackID != "" && (len(p.PackID) > maxID || !mail.IsPack(p.Ref())):
		return swarm.Errorf(swarm.BadInput, "%s is not an id for a context pack", swarm.Quote(p.PackID)).
			WithHint("leave packId out, and one is made; your own has at most %d letters", maxID)
	case p.GlobalMode != "" && !slices.Contains(phases, string(p.GlobalMode)):
		return swarm.Errorf(swarm.BadInput, "globalMode cannot be %s", swarm.Quote(string(p.GlobalMode))).
			WithHint("%s", swarm.DidYouMean(string(p.GlobalMode), phases))
	case p.NodeMode != "" && !slices.Contains(modes, string(p.NodeMode)):
		return swarm.Errorf(swarm.BadInput, "nodeMode cannot be %s", swarm.Quote(string(p.NodeMode))).
			WithHint("%s", swarm.DidYouMean(string(p.NodeMode), modes))
	case len(d.Extends) > maxExtends:
		return swarm.Errorf(swarm.BadInput, "extends names %d context packs; %d are allowed", len(d.Extends), maxExtends)
	case p.DocsRoot != "" && !oneLine(p.DocsRoot):
		return notLine("docsRoot", p.DocsRoot)
	}
	return p.checkLines()
}

// checkLines checks the values that must be one line: paths, names and ids.
func (p *Pack) checkLines() error {
	lines := map[string][]string{}
	add := func(field, line string) { lines[field] = append(lines[field], line) }
	for _, d := range p.DocRefs {
		add("docRefs.path", d.Path)
	}
	for _, f := range p.RelevantFiles {
		add("relevantFiles.path", f.Path)
	}
	for _, in := range p.Inputs {
		add("inputs.payloadId", in.PayloadID)
	}
	for _, a := range p.Artifacts {
		add("artifacts.id", a.ID)
		if a.Kind != "" {
			add("artifacts.kind", a.Kind)
		}
	}
	for _, n := range p.RepoFacts {
		add("repoFacts", n.Name)
	}
	for _, n := range p.Constraints {
		add("constraints", n.Name)
	}
	for _, field := range []string{
		"docRefs.path", "relevantFiles.path", "inputs.payloadId", "artifacts.id", "artifacts.kind", "repoFacts", "constraints",
	} {
		for _, line := range lines[field] {
			if !oneLine(line) {
				return notLine(field, line)
			}
		}
	}
	return nil
}

func notLine(field, text string) error {
	return swarm.Errorf(swarm.BadInput, "%s: %s is not one line of at most %d bytes", field, swarm.Quote(text), maxLine)
}

func oneLine(text string) bool {
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	return strings.TrimSpace(text) != "" && len(text) <= maxLine && !strings.ContainsFunc(text, unprintable)
}
