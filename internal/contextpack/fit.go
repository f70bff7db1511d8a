package contextpack

import (
	"slices"
	"sort"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// shortest is the length to which a text is cut at least before it becomes a mere reference.
const shortest = 160

// Fit makes a pack so small that it has no more than so many tokens in a prompt, and says what was left out. First texts are shortened,
// the longest ones; then they become references, the last ones first; then entries are dropped: earlier messages, files, artifacts,
// docs, facts, of each the last first. Goal, definition of done and constraints are never touched: when these alone are too large,
// that is an error. A pack that is small enough is left as it is.
func Fit(p Pack, tokens int64) (Pack, []swarm.LeftOut, error) {
	room := int(tokens*4) - frame
	if p.size() <= room {
		return p, nil, nil
	}
	core := Pack{Goal: p.Goal, DefinitionOfDone: p.DefinitionOfDone, GlobalMode: p.GlobalMode, NodeMode: p.NodeMode, Constraints: p.Constraints}
	if n := core.size(); n > room {
		return Pack{}, nil, swarm.Errorf(swarm.BadInput, "goal, definition of done and constraints have about %d tokens; a context pack has room for %d",
			swarm.EstimateTokens(int64(n)), swarm.EstimateTokens(int64(max(room, 0)))).
			WithHint("say the goal in a few sentences, put the rest into a file or an artifact, and name that in docRefs or artifacts")
	}
	small := p.clone()
	refer(&small, p.shortenedTo(shortest).size()-room)
	small.lengthen(room)
	drop(&small, small.size()-room)
	return small, difference(p, small), nil
}

// shortenedTo is the pack with no text longer than most.
func (p Pack) shortenedTo(most int) Pack {
	p.DocRefs, p.RelevantFiles = slices.Clone(p.DocRefs), slices.Clone(p.RelevantFiles)
	for i := range p.DocRefs {
		p.DocRefs[i].Excerpt = cut(p.DocRefs[i].Excerpt, most)
	}
	for i := range p.RelevantFiles {
		p.RelevantFiles[i].Summary = cut(p.RelevantFiles[i].Summary, most)
	}
	return p
}

// refer takes texts away until so many bytes are gone, of which they count no more than the shortest.
func refer(p *Pack, over int) {
	for i := len(p.DocRefs) - 1; i >= 0 && over > 0; i-- {
		d := &p.DocRefs[i]
		over -= len(Doc{d.Path, cut(d.Excerpt, shortest)}.item()) - len(Doc{Path: d.Path}.item())
		d.Excerpt = ""
	}
	for i := len(p.RelevantFiles) - 1; i >= 0 && over > 0; i-- {
		f := &p.RelevantFiles[i]
		over -= len(File{f.Path, cut(f.Summary, shortest)}.item()) - len(File{Path: f.Path}.item())
		f.Summary = ""
	}
}

// lengthen gives the texts that are left as much of the room as there is, all the same.
func (p *Pack) lengthen(room int) {
	longest := shortest
	for _, d := range p.DocRefs {
		longest = max(longest, len(d.Excerpt))
	}
	for _, f := range p.RelevantFiles {
		longest = max(longest, len(f.Summary))
	}
	texts := Pack{DocsRoot: p.DocsRoot, DocRefs: p.DocRefs, RelevantFiles: p.RelevantFiles}
	room -= p.size() - texts.size()
	n := sort.Search(longest-shortest, func(n int) bool { return texts.shortenedTo(longest-n).size() <= room })
	*p = p.shortenedTo(longest - n)
}

// drop drops entries until so many bytes are gone.
func drop(p *Pack, over int) {
	all := p.sections()
	from := func(at, n int, shrink func(n int)) {
		s := all[at]
		for n > 0 && over > 0 {
			n--
			over -= len(s.items[n])
			if n == 0 {
				over -= len(s.head)
			}
		}
		shrink(n)
	}
	from(inInputs, len(p.Inputs), func(n int) { p.Inputs = p.Inputs[:n] })
	from(inFiles, len(p.RelevantFiles), func(n int) { p.RelevantFiles = p.RelevantFiles[:n] })
	from(inArtifacts, len(p.Artifacts), func(n int) { p.Artifacts = p.Artifacts[:n] })
	from(inDocs, len(p.DocRefs), func(n int) { p.DocRefs = p.DocRefs[:n] })
	from(inFacts, len(p.RepoFacts), func(n int) { p.RepoFacts = p.RepoFacts[:n] })
}

// difference is what a smaller pack has left of a whole one: lists are shorter, and texts.
func difference(whole, small Pack) (left []swarm.LeftOut) {
	add := func(part, name, how string) { left = append(left, swarm.LeftOut{Part: part, Name: name, How: how}) }
	text := func(part, name, was, is string) {
		switch {
		case is == was:
		case is == "":
			add(part, name, Reference)
		default:
			add(part, name, Shortened)
		}
	}
	for i, d := range whole.DocRefs {
		if i < len(small.DocRefs) {
			text("docRefs", d.Path, d.Excerpt, small.DocRefs[i].Excerpt)
		} else {
			add("docRefs", d.Path, Dropped)
		}
	}
	for _, n := range whole.RepoFacts[len(small.RepoFacts):] {
		add("repoFacts", n.Name, Dropped)
	}
	for i, f := range whole.RelevantFiles {
		if i < len(small.RelevantFiles) {
			text("relevantFiles", f.Path, f.Summary, small.RelevantFiles[i].Summary)
		} else {
			add("relevantFiles", f.Path, Dropped)
		}
	}
	for _, in := range whole.Inputs[len(small.Inputs):] {
		add("inputs", in.PayloadID, Dropped)
	}
	for _, a := range whole.Artifacts[len(small.Artifacts):] {
		add("artifacts", a.Ref(), Dropped)
	}
	return left
}

// cut is the beginning of a text, at most so many bytes with a mark at its end: whole lines if that leaves enough of it.
func cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	n := excerpt.CutAt(text, max(most-len("\n"+mark), 0))
	head := text[:n]
	if at := strings.LastIndexByte(head, '\n'); at >= n/2 && at > 0 {
		return head[:at+1] + mark
	}
	return strings.TrimRight(head, " \t\n") + mark
}
