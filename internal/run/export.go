package run

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/view"
)

// maxExported is the largest artifact whose text is exported, in bytes.
const maxExported = 1 << 20

// An Export is everything that can be shown of a run, with its texts. Reading it needs neither the log
// nor a server.
type Export struct {
	Report    view.Report               `json:"report"`
	Nodes     []view.Agent              `json:"nodes"`
	Turns     map[swarm.TurnID]FullTurn `json:"turns"`
	Diff      RunDiff                   `json:"diff"`
	Artifacts map[string]string         `json:"artifacts"` // by kind and id, KIND/ID: those that are text, and not large
}

// Export returns the run with all its texts. Without git, or after the end of its repository, it has
// no diff.
func (r *Reader) Export(ctx context.Context) (Export, error) {
	report, err := r.Report()
	if err != nil {
		return Export{}, err
	}
	e := Export{Report: report, Nodes: report.Agents, Turns: map[swarm.TurnID]FullTurn{}, Artifacts: map[string]string{}}
	for _, t := range report.Turns {
		if e.Turns[t.ID], err = r.Full(t); err != nil {
			return Export{}, err
		}
	}
	if e.Diff, err = r.Diff(ctx, ""); err != nil {
		e.Diff = RunDiff{Run: r.ID, Files: []FileDiff{}}
	}
	for _, raw := range report.Artifacts {
		var kept swarm.Artifact
		if json.Unmarshal(raw, &kept) != nil || kept.Bytes > maxExported {
			continue
		}
		text, err := r.Text(kept.Hash)
		if err != nil {
			return Export{}, err
		}
		if _, name, ok := strings.Cut(kept.Ref, "://"); ok && utf8.Valid(text) {
			e.Artifacts[name] = string(text)
		}
	}
	return e, nil
}
