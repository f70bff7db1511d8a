package enginetest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"swarm"
	"swarm/internal/turn"
)

// memorySnapshots reports the changes of turns in a folder of a few small files. A snapshot holds
// the whole content of the files.
type memorySnapshots struct{}

func (memorySnapshots) Record(_ context.Context, dir string, _ bool) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	held := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		held[f.Name()] = string(text)
	}
	b, err := json.Marshal(held)
	return string(b), err
}

func (memorySnapshots) Compare(_ context.Context, dir, from, to string) (turn.Changes, error) {
	before, after := map[string]string{}, map[string]string{}
	if err := json.Unmarshal([]byte(from), &before); err != nil {
		return turn.Changes{}, err
	}
	if err := json.Unmarshal([]byte(to), &after); err != nil {
		return turn.Changes{}, err
	}
	c := turn.Changes{Top: dir}
	for name, text := range after {
		if before[name] != text {
			c.Files = append(c.Files, name)
			c.Text = append(c.Text, "+"+name+"\n"...)
		}
	}
	return c, nil
}

// checkDiffs checks that the files that a turn has written are in its own diff, and in no other.
func (h *harness) checkDiffs(at int) {
	h.t.Helper()
	log, err := h.store.Open(h.t.Context(), runID, swarm.ReadOnly)
	h.check(err)
	defer log.Close()
	events, err := log.Read(0, 1<<20)
	h.check(err)
	diffs := map[swarm.TurnID]string{}
	for _, e := range events {
		if e.Kind != swarm.ArtifactStored {
			continue
		}
		it, err := swarm.Body[swarm.Artifact](&e)
		h.check(err)
		text, err := log.Body(it.Hash)
		h.check(err)
		_, diffs[e.Turn], _ = strings.Cut(string(text), "\n\n")
	}
	want := map[swarm.TurnID]string{"a/1/1": "+half.txt\n", "a/1/2": "+whole.txt\n", "lead/4/1": "+goal.txt\n"}
	for turn := range diffs {
		if diffs[turn] != want[turn] {
			h.t.Errorf("crash at append %d: the diff of %s is %q", at, turn, diffs[turn])
		}
	}
	if len(diffs) != len(want) {
		h.t.Errorf("crash at append %d: %d diffs", at, len(diffs))
	}
}
