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

// What a survey leaves out, and where it says so.
const (
	inDocs  = "docRefs"
	inFiles = "relevantFiles"

	mostLeft = 20 // that are named, for one reason; of the rest there is their number
)

// Why a survey leaves something out.
const (
	maySecret = "its name says that it may hold secrets"
	isLinked  = "nothing behind a link is read"
	isOutside = "it is not in the folder"
	noText    = "it is no text, or too large, or may not be read"
)

// omit notes that something is left out, once.
func (s *surveyor) omit(part, name, how, why string) {
	if l := (swarm.LeftOut{Part: part, Name: name, How: how, Why: why}); !slices.Contains(s.left, l) {
		s.left = append(s.left, l)
	}
}

// omitted is what was left out. Many for one reason are counted.
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

// bars is why a file that is there may not be looked at; "" = it may, or is not there.
func (s *surveyor) bars(name string) string {
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

// barred notes that a file is left out that may not be looked at.
func (s *surveyor) barred(part, name string) {
	if why := s.bars(name); why != "" {
		s.omit(part, name, contextpack.Dropped, why)
	}
}

// partOf is where a file would stand.
func partOf(name string) string {
	if isDoc(name) {
		return inDocs
	}
	return inFiles
}
