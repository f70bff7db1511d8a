package project

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/contextpack"
)

// Names of the parts of a context pack in which a survey reports what it leaves out, and their
// limit.
const (
	inDocs  = "docRefs"
	inFiles = "relevantFiles"

	mostLeft = 20 // entries named per reason; the rest is counted
)

// Reasons for leaving something out. They are stored in the log with the pack.
const (
	maySecret = "its name says that it may hold secrets"
	isLinked  = "nothing behind a link is read"
	isOutside = "it is not in the folder"
	noText    = "it is no text, or too large, or may not be read"
)

// omit records once that a file or part is left out.
func (s *surveyor) omit(part, name, how, why string) {
	if l := (swarm.LeftOut{Part: part, Name: name, How: how, Why: why}); !slices.Contains(s.left, l) {
		s.left = append(s.left, l)
	}
}

// omitted returns the records. It names the first mostLeft entries of each reason and counts the
// others.
func (s *surveyor) omitted() (all []swarm.LeftOut) {
	type reason struct{ part, how, why string }
	times := map[reason]int{}
	for _, l := range s.left {
		r := reason{l.Part, l.How, l.Why}
		if times[r]++; times[r] <= mostLeft {
			all = append(all, l)
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		l := all[i]
		r := reason{l.Part, l.How, l.Why}
		if more := times[r] - mostLeft; more > 0 {
			all = slices.Insert(all, i+1, swarm.LeftOut{Part: l.Part, Name: fmt.Sprintf("%d more", more), How: l.How, Why: l.Why})
			times[r] = 0
		}
	}
	return all
}

// barrier returns why an existing file must not be read; "" = it may be read, or does not exist.
func (s *surveyor) barrier(name string) string {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") {
		return ""
	}
	root, err := s.folder.open()
	if err != nil {
		return ""
	}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := root.Lstat(at)
		switch {
		case err != nil:
		case hidesSecrets(name) && at == name:
			return maySecret
		case info.Mode()&fs.ModeSymlink != 0:
			return isLinked
		}
	}
	return ""
}

// omitBarred records a file that must not be read.
func (s *surveyor) omitBarred(part, name string) {
	if why := s.barrier(name); why != "" {
		s.omit(part, name, contextpack.Dropped, why)
	}
}

// partOf returns the part of a context pack to which a file belongs.
func partOf(name string) string {
	if isDoc(name) {
		return inDocs
	}
	return inFiles
}
