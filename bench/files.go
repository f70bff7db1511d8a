package main

import (
	"fmt"
	"time"
)

// files measures finding out what a turn changed in a repository of 5,000 files. The benchmark of
// the snapshots measures its floor itself.
func (l *lab) files() error {
	got, err := benchmark("./internal/snapshot", "^BenchmarkTurn$", "50x")
	if err != nil {
		return err
	}
	at := func(name string) time.Duration { return time.Duration(got["Turn/"+name]["ns/op"]) }
	for _, c := range []struct {
		name, what string
		most       float64
	}{{"unchanged", "nothing", 2}, {"changed", "one file", 3}} {
		if at(c.name) == 0 || at("floor") == 0 {
			return fmt.Errorf("there is no figure of %s", c.name)
		}
		r := ratio(at(c.name), at("floor"))
		l.add(row{
			"what a turn changed, 5,000 files: " + c.what, short(at(c.name)),
			short(at("floor")) + " `git status`, twice", times(r), fmt.Sprintf("≤ %g×", c.most), r <= c.most})
	}
	return nil
}
