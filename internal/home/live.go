package home

import (
	"os"
	"path/filepath"
)

// A run that is driven has a mark here. The marks of drivers that were killed stay, and lead to what they have left behind.

// MarkLive marks a run as driven.
func (h *Home) MarkLive(run string) error {
	if err := made(h.in("live")); err != nil {
		return err
	}
	f, err := create(h.in("live", run))
	if err != nil {
		return err
	}
	return f.Close()
}

// Unmark takes the mark away.
func (h *Home) Unmark(run string) { _ = os.Remove(h.in("live", filepath.Base(run))) }

// Marked lists the runs that are marked. Some may not be driven any more.
func (h *Home) Marked() []string {
	names, _ := namesIn(h.in("live"))
	var runs []string
	for _, name := range names {
		if isRunID(name) {
			runs = append(runs, name)
		}
	}
	return runs
}
