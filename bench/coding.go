package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// codingFile makes a compose file with a chain of turns of coding agents, each another agent or all
// the same.
func codingFile(kind string, command []string, turns int, same bool) string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "provider: c\nproviders:\n  c: {kind: %s, command: [%s]}\nagents:\n", kind, strings.Join(command, ", "))
	agents := turns
	if same {
		agents = 1
	}
	for a := range agents {
		fmt.Fprintf(&b, "  a%d: {}\n", a)
	}
	b.WriteString("tasks:\n")
	for t := range turns {
		fmt.Fprintf(&b, "  t%d: {agent: a%d, prompt-string: Do nothing.", t, t%agents)
		if t > 0 {
			fmt.Fprintf(&b, ", depends_on: [t%d]", t-1)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// coding measures our own part of a coding agent's turn. It runs from the last byte of one turn's
// program, which is then committed, until the next turn's program has started, or has read its
// prompt. Stand-ins for the real programs take no time themselves and note these moments.
func (l *lab) coding() error {
	standin := filepath.Join(l.dir, "standin")
	if out, err := exec.Command("go", "build", "-o", standin, "./bench/standin").CombinedOutput(); err != nil {
		return fmt.Errorf("the stand-in cannot be built: %w\n%s", err, out)
	}
	streams, err := filepath.Abs(filepath.Join("internal", "modeltest", "testdata", "streams"))
	if err != nil {
		return err
	}
	const turns = 100
	for _, c := range []struct {
		work, floor, kind, recording, how string
	}{
		{"turn of a coding agent, new program", "start a program", "claude-code", "claude/stays.jsonl", "new"},
		{"turn of a coding agent, its program stays", "write to a program", "claude-code", "claude/stays.jsonl", "stays"},
		{"turn of a coding agent, its program ends", "start a program, wait for it", "codex", "codex/text.jsonl", "ends"},
	} {
		ledger := filepath.Join(l.dir, "ledger")
		mode := "stays"
		if c.how == "ends" {
			mode = "ends"
		}
		command := []string{standin, mode, ledger, filepath.Join(streams, c.recording)}
		dir, err := l.project("coding-"+c.how, codingFile(c.kind, command, turns, c.how == "stays"))
		if err != nil {
			return err
		}
		// The stand-in gets the vendor's key, which a person has to confirm.
		if out, err := l.command(dir, l.swarm, "trust").CombinedOutput(); err != nil {
			return fmt.Errorf("swarm trust: %w: %s", err, out)
		}
		noted := func(argv ...string) func() ([]time.Duration, error) {
			return func() ([]time.Duration, error) {
				if _, err := l.measure(dir, argv...); err != nil {
					return nil, err
				}
				return between(ledger, turns)
			}
		}
		got, err := inTurn(
			5,
			noted(l.swarm, "up"),
			noted(
				append(
					[]string{l.floor, "agents", strconv.Itoa(turns), filepath.Join(l.dir, "coding.log"), c.how},
					command...)...),
		)
		if err != nil {
			return err
		}
		all := slices.Sorted(slices.Values(slices.Concat(got[0]...)))
		ours, floor := p50(all, itself), p50(slices.Concat(got[1]...), itself)
		l.add(row{
			c.work, short(ours), short(floor) + " " + c.floor + ", 2 synced writes",
			short(all[len(all)*99/100]) + " p99", "p50 ≤ 5 ms", ours <= 5*time.Millisecond})
	}
	return nil
}

// between reads from the stand-ins' ledger the time from the end of each turn to the beginning of
// the next, and empties it. Two programs may write to it at a time, so its order means nothing.
func between(ledger string, turns int) (gaps []time.Duration, err error) {
	text, err := os.ReadFile(ledger)
	if err != nil {
		return nil, err
	}
	noted := map[string][]int64{}
	for line := range strings.Lines(string(text)) {
		var word string
		var at int64
		if _, err := fmt.Sscan(line, &word, &at); err != nil {
			return nil, fmt.Errorf("the ledger says %q: %w", line, err)
		}
		noted[word] = append(noted[word], at)
	}
	heard, said := noted["heard"], noted["said"]
	if len(heard) != turns || len(said) < turns-1 {
		return nil, fmt.Errorf("%d turns were begun and %d ended, and not %d", len(heard), len(said), turns)
	}
	slices.Sort(heard)
	slices.Sort(said)
	for i, at := range heard[1:] {
		gaps = append(gaps, time.Duration(at-said[i]))
	}
	return gaps, os.Remove(ledger)
}
