package contextpack

import (
	"encoding/json"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/prompt"
)

// The format of packs in a prompt.
const (
	openFence = "--- Context pack "
	endFence  = "--- End context pack ---\n"

	frame     = 1400 // upper bound of the bytes that Write adds to the sections
	shownRefs = 6
	shownLeft = 8
	noteBytes = 400 // upper bound of the line about what was left out
)

// A section is one part of a pack in a prompt: a heading with its entries.
type section struct {
	head  string
	items []string
}

func (s section) size() int {
	n := 0
	for _, item := range s.items {
		n += len(item)
	}
	if n > 0 {
		n += len(s.head)
	}
	return n
}

// sections formats the pack. Text from others is escaped, and indented or behind a mark of ours. So
// none of its lines can be mistaken for one of ours.
func (p Pack) sections() []section {
	docs := "Docs:\n"
	if p.DocsRoot != "" {
		docs = "Docs, in " + flat(p.DocsRoot) + ":\n"
	}
	return []section{
		inGoal:        {"", line("Goal: ", p.Goal)},
		inDone:        {"Done when:\n", items(p.DefinitionOfDone, item)},
		inModes:       {"", line("", modes(p))},
		inConstraints: {"Constraints:\n", items(p.Constraints, Note.item)},
		inFacts:       {"The repository:\n", items(p.RepoFacts, Note.item)},
		inDocs:        {docs, items(p.DocRefs, Doc.item)},
		inArtifacts:   {"Artifacts (read_artifact shows them):\n", items(p.Artifacts, Artifact.item)},
		inFiles:       {"Relevant files:\n", items(p.RelevantFiles, File.item)},
		inInputs:      {"Earlier messages, by id:\n", items(p.Inputs, Input.item)},
	}
}

// Indexes of the sections.
const (
	inGoal = iota
	inDone
	inModes
	inConstraints
	inFacts
	inDocs
	inArtifacts
	inFiles
	inInputs
)

func items[T any](all []T, item func(T) string) []string {
	lines := make([]string, len(all))
	for i, it := range all {
		lines[i] = item(it)
	}
	return lines
}

func modes(p Pack) string {
	var words []string
	if p.GlobalMode != "" {
		words = append(words, "Phase: "+flat(string(p.GlobalMode))+".")
	}
	if p.NodeMode != "" {
		words = append(words, "Mode: "+flat(string(p.NodeMode))+".")
	}
	return strings.Join(words, " ")
}

func (d Doc) item() string {
	if d.Excerpt == "" {
		return item(flat(d.Path))
	}
	return item(flat(d.Path) + ":\n" + d.Excerpt)
}

func (f File) item() string {
	if f.Summary == "" {
		return item(flat(f.Path))
	}
	return item(flat(f.Path) + ": " + f.Summary)
}

func (in Input) item() string { return item(flat(in.PayloadID)) }

func (a Artifact) item() string {
	ref := flat(a.Ref())
	if a.Kind != "" && !strings.Contains(ref, "/"+a.Kind+"/") {
		ref += " (" + flat(a.Kind) + ")"
	}
	return item(ref)
}

// Ref returns the artifact's ref, as read_artifact takes it.
func (a Artifact) Ref() string {
	if strings.Contains(a.ID, "://") || a.Kind == "" {
		return a.ID
	}
	return "artifact://" + a.Kind + "/" + a.ID
}

func (n Note) item() string {
	value := string(n.Value)
	var text string
	if json.Unmarshal(n.Value, &text) == nil && value != "null" {
		value = text
	}
	return item(flat(n.Name) + ": " + value)
}

// item formats one entry of a list. All lines but the first are indented.
func item(text string) string { return "- " + indented(text) + "\n" }

func line(before, text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []string{before + indented(text) + "\n"}
}

// breaks replaces everything that a common reader takes for a line break.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\x1c", "\n", "\x1d", "\n",
	"\x1e", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// indented escapes a text and indents all its lines but the first.
func indented(text string) string {
	text = strings.TrimRight(breaks.Replace(prompt.Escape(text)), " \t\n")
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		switch {
		case i > 0 && line == "":
			b.WriteByte('\n')
		case i > 0:
			b.WriteString("\n  " + line)
		default:
			b.WriteString(line)
		}
	}
	return b.String()
}

func flat(text string) string { return strings.Join(strings.Fields(breaks.Replace(text)), " ") }

// size returns the bytes of the pack's sections in a prompt.
func (p Pack) size() (n int) {
	for _, s := range p.sections() {
		n += s.size()
	}
	return n
}

// Write formats a pack for a prompt, under the refs of the packs that it was merged from. It names
// what was left out, and the refs of unread packs, of which nothing is shown.
func Write(refs []string, p Pack, left []swarm.LeftOut, unread []string) string {
	var b strings.Builder
	b.WriteString(openFence + some(refs, shownRefs) + " ---\n")
	for _, s := range p.sections() {
		if s.size() > 0 {
			b.WriteString(s.head + strings.Join(s.items, ""))
		}
	}
	if len(left) > 0 {
		b.WriteString(note(left))
	}
	if len(unread) > 0 {
		b.WriteString("Not shown here; read_artifact shows it: " + some(unread, shownRefs) + "\n")
	}
	b.WriteString(endFence)
	return b.String()
}

// note names in one line what was left out.
func note(left []swarm.LeftOut) string {
	names := make([]string, len(left))
	for i, l := range left {
		names[i] = flat(l.Name) + " (" + l.How + ")"
	}
	text := some(names, shownLeft)
	if len(text) > noteBytes-100 {
		text = cut(text, noteBytes-100)
	}
	return "Left out for room, or replaced by what came later: " + flat(text) + "\n"
}

// some lists at most `most` names, and counts the others.
func some(names []string, most int) string {
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// Tokens returns the number of tokens of the pack in a prompt.
func (p Pack) Tokens() int64 {
	return swarm.EstimateTokens(int64(len(Write([]string{p.Ref()}, p, nil, nil))))
}
