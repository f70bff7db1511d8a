package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"swarm"
)

// digits are in the order of their bytes, without those that are easily mistaken for others.
const digits = "0123456789abcdefghjkmnpqrstvwxyz"

// NewRunID is the id of a run that begins now: 20261115-143205-g7k3f9q is the second in UTC, the millisecond in two digits of
// base 32, and five random ones. Ids sort by time, and no two processes make the same.
func NewRunID(now time.Time) string {
	now = now.UTC()
	id := now.AppendFormat(make([]byte, 0, 24), "20060102-150405-")
	ms := now.Nanosecond() / 1e6
	id = append(id, digits[ms>>5], digits[ms&31])
	var random [5]byte
	_, _ = rand.Read(random[:]) // never fails
	for _, b := range random {
		id = append(id, digits[b&31])
	}
	return string(id)
}

// isRunID says whether a name can be a run's id: nothing that a path could be made of.
func isRunID(name string) bool {
	if name == "" || len(name) > 64 || name[0] == '-' {
		return false
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// An Entry is a run that was asked for.
type Entry struct {
	Summary
	Path string // of its log
}

// Find is the run that a user means by an id, the beginning of one, or @last, the newest. Runs that were started in another
// folder than dir are found only with anywhere.
func (h *Home) Find(ref, dir string, anywhere bool) (Entry, error) {
	ids, err := h.ids()
	if err != nil {
		return Entry{}, err
	}
	newest := ref == "@last" || ref == "last"
	if !newest && !isRunID(ref) {
		return Entry{}, swarm.Errorf(swarm.BadInput, "%s is not a run's id", swarm.Quote(ref)).WithHint("write an id as `swarm ls` shows it, its beginning, or @last")
	}
	var here, elsewhere []Summary
	for _, id := range ids {
		if !newest && !strings.HasPrefix(id, ref) {
			continue
		}
		s := h.Summary(id)
		if newest && !s.begun() {
			continue
		}
		if !anywhere && s.Dir != dir {
			elsewhere = append(elsewhere, s)
			continue
		}
		here = append(here, s)
		if newest || id == ref {
			here = here[len(here)-1:]
			break
		}
	}
	switch {
	case len(here) == 1:
		return Entry{here[0], h.RunPath(here[0].ID)}, nil
	case len(here) > 1:
		return Entry{}, ambiguous(ref, here)
	case len(elsewhere) > 0 && newest:
		return Entry{}, swarm.Errorf(swarm.NotFound, "no run was started in this folder").WithHint("use -g for the newest of all folders")
	case len(elsewhere) > 0:
		return Entry{}, swarm.Errorf(swarm.NotFound, "the run %s was started in another folder: %s", elsewhere[0].ID, elsewhere[0].where()).WithHint("use -g for runs of all folders")
	case newest:
		return Entry{}, swarm.Errorf(swarm.NotFound, "there is no run yet").WithHint("`swarm up` starts one")
	}
	return Entry{}, swarm.Errorf(swarm.NotFound, "there is no run %q", ref).WithHint("`swarm ls` lists the runs of this folder, `swarm ls -g` all")
}

func ambiguous(ref string, runs []Summary) error {
	const most = 10
	var b strings.Builder
	for i, s := range runs {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(runs)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s", s.ID, s.Status, s.Name)
	}
	return swarm.Errorf(swarm.BadInput, "%d runs begin with %q:%s", len(runs), ref, b.String()).WithHint("write more of the id, or @last for the newest")
}

// ids are the ids of all runs, the newest first.
func (h *Home) ids() ([]string, error) {
	names, err := namesIn(h.in("runs"))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, ".db"); ok && isRunID(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}

// namesIn are the names in a folder, in no order; none when there is no folder.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, File: dir, Msg: "the folder cannot be read", Err: bare(err)}
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, File: dir, Msg: "the folder cannot be read", Err: bare(err)}
	}
	return names, nil
}
