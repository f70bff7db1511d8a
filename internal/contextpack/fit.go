package contextpack

import (
	"slices"
	"sort"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
)

// shortest is the length below which a text is not shortened. It becomes a mere reference instead.
const shortest = 160

// Fit shrinks a pack to at most this many tokens in a prompt, and returns what it left out. A pack
// that fits stays as it is. The steps, until the pack fits:
//  1. Texts are shortened, the longest first.
//  2. Texts become references, the last first.
//  3. Entries are dropped: earlier messages, files, artifacts, docs, facts; of each the last
//     first.
//
// Goal, definition of done and constraints are never touched. If they alone are too large, Fit
// returns an error.
func Fit(p Pack, tokens int64) (Pack, []swarm.LeftOut, error) {
	room := int(tokens*4) - frame
	if p.size() <= room {
		return p, nil, nil
	}
	core := Pack{
		Goal: p.Goal, DefinitionOfDone: p.DefinitionOfDone, GlobalMode: p.GlobalMode, NodeMode: p.NodeMode,
		Constraints: p.Constraints,
	}
	if n := core.size(); n > room {
		const msg = "goal, definition of done and constraints have about %d tokens; a context pack has room for %d"
		const hint = "say the goal in a few sentences, put the rest into a file or an artifact, " +
			"and name that in docRefs or artifacts"
		has, room := swarm.EstimateTokens(int64(n)), swarm.EstimateTokens(int64(max(room, 0)))
		return Pack{}, nil, swarm.Errorf(swarm.BadInput, msg, has, room).WithHint(hint)
	}
	small := p.clone()
	dropTexts(&small, p.shortenedTo(shortest).size()-room)
	small.lengthen(room)
	dropEntries(&small, small.size()-room)
	return small, difference(p, small), nil
}

// shortenedTo returns the pack with no text longer than most bytes.
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

// dropTexts removes texts until `over` bytes are gone. Each text counts with at most its shortest
// length, because the remaining texts are shortened later anyway.
func dropTexts(p *Pack, over int) {
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

// lengthen finds by binary search the largest common length limit with which the remaining texts
// fit.
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

// dropEntries removes entries until `over` bytes are gone.
func dropEntries(p *Pack, over int) {
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

// difference lists what a shrunk pack lacks. Lists of the shrunk pack are prefixes of the whole
// ones.
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

// cut returns the beginning of a text, at most `most` bytes with a mark at its end. It cuts between
// lines if that keeps at least half.
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
