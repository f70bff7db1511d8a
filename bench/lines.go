package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"swarm/bench/disk"
)

// lines takes its figures from the benchmarks of the line language and of its screen, which measure
// their floors themselves.
func (l *lab) lines() error {
	parse, err := benchmark("./internal/line", "^BenchmarkParse$", "1s")
	if err != nil {
		return err
	}
	// Often enough for a meaningful p99.
	screen, err := benchmark("./internal/repl", "^Benchmark(Key|ToTerminal)$", "500x")
	if err != nil {
		return err
	}
	for _, want := range []string{"Parse/refs=10", "Parse/floor"} {
		if parse[want]["ns/op"] == 0 {
			return fmt.Errorf("there is no figure of %s", want)
		}
	}
	for _, want := range []string{"ToTerminal/state", "ToTerminal/floor", "Key/50-agents", "Key/silence"} {
		if screen[want]["p99-ms"] == 0 {
			return fmt.Errorf("there is no figure of %s", want)
		}
	}
	took, floor := time.Duration(parse["Parse/refs=10"]["ns/op"]), time.Duration(parse["Parse/floor"]["ns/op"])
	l.add(row{
		"parse a line with 10 references", short(took), short(floor) + " one look, one copy", short(took),
		"≤ 10 µs", took <= 10*time.Microsecond})
	change := func(work, name, floor, what string, most time.Duration) {
		at := func(name, unit string) time.Duration {
			return time.Duration(screen[name][unit] * float64(time.Millisecond))
		}
		worst := at(name, "p99-ms")
		l.add(row{
			work, short(at(name, "p50-ms")), short(at(floor, "p50-ms")) + " " + what, short(worst) + " p99",
			"≤ " + short(most), worst <= most})
	}
	change(
		"state change to terminal, 50 agents stream", "ToTerminal/state", "ToTerminal/floor",
		"one word, nobody else", 25*time.Millisecond)
	change("typing a key, 50 agents stream", "Key/50-agents", "Key/silence", "nobody speaks", 16*time.Millisecond)
	return nil
}

// benchmark runs benchmarks of a package, for so long or so often, and returns their figures by
// name and unit.
func benchmark(pkg, names, long string) (map[string]map[string]float64, error) {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", names, "-benchtime", long, pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test: %w\n%s", err, out)
	}
	all := map[string]map[string]float64{}
	for _, line := range strings.Split(string(out), "\n") {
		if name, is := strings.CutPrefix(line, "Benchmark"); is && len(strings.Fields(name)) > 2 {
			all[trailer.ReplaceAllString(strings.Fields(name)[0], "")] = figuresOf(line)
		}
	}
	return all, nil
}

// runLines measures `swarm run -`: lines that each wait for the one before, answered by a script,
// so that all the time is ours. The floor is what a line writes to disk before it goes on: the
// plan, the beginning of the turn and its end.
func (l *lab) runLines() (err error) {
	dir, err := l.project("lines", "provider: says\nproviders:\n  says: {kind: script, script: says.yaml}\n")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "swarm", "says.yaml"), []byte("- {agent: ba, say: done}\n"), 0o600)
	}
	if err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(l.dir, "lines.raw"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	whole := func(lines int) (time.Duration, error) {
		cmd := l.command(dir, l.swarm, "run", "-")
		cmd.Stdin = strings.NewReader(strings.Repeat("@ba Say something.\n", lines))
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return time.Since(start), err
	}
	const lines = 100
	got, err := inTurn(7,
		func() (time.Duration, error) { return whole(lines + 1) },
		func() (time.Duration, error) { return whole(1) },
		func() (time.Duration, error) {
			start := time.Now()
			for range 3 * lines {
				if err := disk.Write(file, someEvent().Data); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		})
	if err != nil {
		return err
	}
	ours, floor := (p50(got[0], itself)-p50(got[1], itself))/lines, p50(got[2], itself)/lines
	l.add(row{
		"`swarm run -`, a line", short(ours), short(floor) + " 3 synced writes", short(ours), "≤ 2 ms",
		ours <= 2*time.Millisecond})
	return nil
}
