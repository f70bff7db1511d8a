package statedir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"
	"syscall"

	"swarm"
)

// HowToStart says what to type where no run was started yet.
const HowToStart = "`swarm up` starts one, or `swarm run LINE` where there is no compose file"

// Find returns the run that a user means by an id, a prefix of one, or @last for the newest. Runs
// that were started in another folder than dir are found only with anywhere.
func (h *Home) Find(ref, dir string, anywhere bool) (swarm.RunSummary, error) {
	newest := ref == "@last" || ref == "last"
	if !newest && !swarm.IsRunID(ref) {
		return swarm.RunSummary{}, swarm.Errorf(swarm.BadInput, "%s is not a run's id", swarm.Quote(ref)).
			WithHint("write an id as `swarm ls` shows it, its beginning, or @last")
	}
	var here, elsewhere []swarm.RunSummary
	var unread error // why the folder of a run is not known
	var unbegun swarm.RunID
	for entry, err := range h.candidates(ref, newest) {
		if err != nil {
			return swarm.RunSummary{}, err
		}
		s := entry.RunSummary
		if !entry.Saved || anywhere || s.Dir == dir {
			s, err = h.present(entry)
		}
		switch {
		case err != nil && newest && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)):
			return swarm.RunSummary{}, err // it may be the newest, and an older one must not be taken for it
		case !s.Begun():
			unbegun = s.ID
			continue
		case !anywhere && !mayBeOf(s, dir):
			elsewhere = append(elsewhere, s)
			unread = cmp.Or(unread, err)
			continue
		}
		here = append(here, s)
		if newest || string(s.ID) == ref {
			here = here[len(here)-1:]
			break
		}
	}
	switch {
	case len(here) == 1:
		return here[0], nil
	case len(here) > 1:
		return swarm.RunSummary{}, ambiguous(ref, here)
	case unread != nil:
		return swarm.RunSummary{}, unread
	case len(elsewhere) > 0 && newest:
		return swarm.RunSummary{}, swarm.Errorf(swarm.NotFound, "no run was started in this folder").
			WithHint("use -g for the newest of all folders")
	case len(elsewhere) > 0:
		const msg = "the run %s was started in another folder: %s"
		return swarm.RunSummary{}, swarm.Errorf(swarm.NotFound, msg, elsewhere[0].ID, startedIn(elsewhere[0])).
			WithHint("use -g for runs of all folders")
	case unbegun != "" && !newest:
		return swarm.RunSummary{}, swarm.Errorf(swarm.NotFound, "the run %s has not begun: its process is still starting, or was killed", unbegun).
			WithHint("if it does not begin, start it again; none of its agents has worked")
	case newest:
		return swarm.RunSummary{}, swarm.Errorf(swarm.NotFound, "there is no run yet").WithHint(HowToStart)
	}
	return swarm.RunSummary{}, swarm.Errorf(swarm.NotFound, "there is no run %q", ref).
		WithHint("`swarm ls` lists the runs of this folder, `swarm ls -g` all")
}

// candidates returns the runs that ref may mean. A whole id is looked up directly, without listing
// the other runs.
func (h *Home) candidates(ref string, newest bool) iter.Seq2[swarm.RunEntry, error] {
	if newest {
		return h.Store.Runs(context.Background(), swarm.RunQuery{})
	}
	return func(yield func(swarm.RunEntry, error) bool) {
		for entry, err := range h.Store.Runs(context.Background(), swarm.RunQuery{ID: swarm.RunID(ref)}) {
			yield(entry, err)
			return
		}
		h.Store.Runs(context.Background(), swarm.RunQuery{Prefix: ref})(yield)
	}
}

func startedIn(s swarm.RunSummary) string {
	if s.Dir == "" {
		return "not known"
	}
	return s.Dir
}

func ambiguous(ref string, runs []swarm.RunSummary) error {
	const most = 10
	var b strings.Builder
	for i, s := range runs {
		if i == most {
			fmt.Fprintf(&b, "\n  and %d more", len(runs)-most)
			break
		}
		fmt.Fprintf(&b, "\n  %s  %s  %s", s.ID, s.Status, s.Name)
	}
	return swarm.Errorf(swarm.BadInput, "%d runs begin with %q:%s", len(runs), ref, b.String()).
		WithHint("write more of the id, or @last for the newest")
}

// namesIn returns the names in a folder, unsorted; none if the folder does not exist.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storageError(dir, "the folder cannot be read", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, storageError(dir, "the folder cannot be read", err)
	}
	return names, nil
}
