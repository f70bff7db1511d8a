package run

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/snapshot"
)

// The limits of a diff, in bytes.
const (
	maxPatch = 16 << 20  // of all files
	maxFile  = 512 << 10 // of one file
)

// A RunDiff is what a run, or one of its turns, changed in files.
type RunDiff struct {
	Run       swarm.RunID    `json:"run"`
	Turn      swarm.TurnID   `json:"turn,omitempty"` // "" = the whole run
	Start     swarm.Snapshot `json:"start,omitzero"`
	End       swarm.Snapshot `json:"end,omitzero"` // zero = the run has not ended, and the files are as they are now
	Files     []FileDiff     `json:"files"`
	Truncated bool           `json:"truncated,omitempty"` // files are missing: the diff is too long
}

// A FileDiff is what was changed in one file.
type FileDiff struct {
	Path      string `json:"path"`
	From      string `json:"from,omitempty"` // of a renamed file: its path before
	Status    string `json:"status"`         // added, modified, deleted or renamed
	Binary    bool   `json:"binary,omitempty"`
	Added     int    `json:"added"`   // lines
	Deleted   int    `json:"deleted"` // lines
	Patch     string `json:"patch"`   // of `git diff`
	Truncated bool   `json:"truncated,omitempty"`
}

// Diff returns what the run changed in files, or with a turn what that turn changed. A turn's changes
// were recorded at its end.
func (r *Reader) Diff(ctx context.Context, turn string) (RunDiff, error) {
	d := RunDiff{Run: r.ID, Files: []FileDiff{}}
	if turn != "" {
		return d, r.diffTurn(&d, turn)
	}
	p, err := r.Picture()
	if err != nil {
		return d, err
	}
	for _, t := range p.Snapshots {
		if t.When == "start" {
			d.Start = t
		} else {
			d.End = t
		}
	}
	if d.Start.Hash == "" {
		e := swarm.Errorf(swarm.NotFound, "run %s has no record of a git tree", p.ID)
		if p.Replay {
			return d, e.WithHint("a replay starts no agents, so no tree is recorded")
		}
		return d, e.WithHint("one is recorded when a run begins in a folder of a git repository")
	}
	out := limited{most: maxPatch}
	if err := snapshot.Diff(ctx, p.Dir, r.home.TreePath(p.ID), d.Start.Hash, d.End.Hash, &out, "--color=never", "--find-renames"); err != nil {
		return d, err
	}
	d.Files, d.Truncated = splitPatch(out.kept.Bytes()), out.full
	return d, nil
}

// diffTurn reads the stored diff of a turn.
func (r *Reader) diffTurn(d *RunDiff, name string) error {
	t, err := r.Turn(name)
	if err != nil {
		return err
	}
	d.Turn = t.ID
	details, err := r.Details()
	if err != nil {
		return err
	}
	for _, raw := range details.Artifacts {
		var kept swarm.Artifact
		if json.Unmarshal(raw, &kept) != nil || kept.Kind != "diff" || kept.Name != string(t.ID)+".diff" {
			continue
		}
		text, err := r.Text(kept.Hash)
		if err != nil {
			return err
		}
		d.Files = append(d.Files, splitPatch(text)...)
		d.Truncated = d.Truncated || len(d.Files) == 0 && len(text) > 0 // only the list of files was stored
	}
	return nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	kept bytes.Buffer
	most int
	full bool
}

func (l *limited) Write(b []byte) (int, error) {
	room := l.most - l.kept.Len()
	l.full = l.full || len(b) > room
	l.kept.Write(b[:min(len(b), room)])
	return len(b), nil
}

// splitPatch splits the output of `git diff` into its files.
func splitPatch(text []byte) (files []FileDiff) {
	files = []FileDiff{}
	const head = "diff --git "
	for part := range bytes.SplitSeq(text, []byte("\n"+head)) {
		part = bytes.TrimPrefix(part, []byte(head))
		if len(files) == 0 && !bytes.HasPrefix(text, []byte(head)) {
			if i := bytes.Index(text, []byte("\n"+head)); i < 0 || len(part) == i { // what comes before the first file
				continue
			}
		}
		if len(part) > 0 {
			files = append(files, readFileDiff(head+string(part)))
		}
	}
	return files
}

// readFileDiff reads the part of a patch that is about one file.
func readFileDiff(patch string) FileDiff {
	f := FileDiff{Status: "modified"}
	inHunk := false
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		word := func(prefix string) (string, bool) {
			rest, ok := strings.CutPrefix(line, prefix)
			return rest, ok && !inHunk
		}
		switch {
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
		case inHunk && strings.HasPrefix(line, "+"):
			f.Added++
		case inHunk && strings.HasPrefix(line, "-"):
			f.Deleted++
		}
		if rest, ok := word("diff --git "); ok {
			f.Path = pathOfBoth(rest)
		}
		if rest, ok := word("+++ "); ok && rest != "/dev/null" {
			f.Path = gitPath(rest)
		}
		if rest, ok := word("--- "); ok && rest != "/dev/null" && f.Status == "deleted" {
			f.Path = gitPath(rest)
		}
		if rest, ok := word("rename from "); ok {
			f.Status, f.From = "renamed", unquoted(rest)
		}
		if rest, ok := word("rename to "); ok {
			f.Path = unquoted(rest)
		}
		if _, ok := word("new file mode "); ok {
			f.Status = "added"
		}
		if _, ok := word("deleted file mode "); ok {
			f.Status = "deleted"
		}
		if _, ok := word("Binary files "); ok {
			f.Binary = true
		}
	}
	f.Patch = patch
	if !strings.HasSuffix(patch, "\n") {
		f.Patch += "\n"
	}
	if len(f.Patch) > maxFile {
		cut := excerpt.CutAt(f.Patch, maxFile)
		f.Patch, f.Truncated = f.Patch[:strings.LastIndexByte(f.Patch[:cut], '\n')+1], true
	}
	return f
}

// pathOfBoth returns the path of a header "a/PATH b/PATH". Renamed files have lines of their own.
func pathOfBoth(both string) string {
	if strings.HasPrefix(both, `"`) {
		if quoted, err := strconv.QuotedPrefix(both); err == nil {
			return gitPath(quoted)
		}
	}
	return gitPath(both[:len(both)/2])
}

// gitPath returns a path of a patch without its prefix a/ or b/.
func gitPath(path string) string {
	path = unquoted(strings.TrimSuffix(path, "\t")) // git ends a path with blanks by a tab
	if len(path) > 2 && path[1] == '/' {
		return path[2:]
	}
	return path
}

// unquoted returns a path that git has quoted for its odd characters.
func unquoted(path string) string {
	if plain, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
		return plain
	}
	return path
}
