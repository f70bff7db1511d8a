package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A cost is what one process took, with the children that it waited for.
type cost struct {
	wall, cpu time.Duration
}

// measure runs a program to its end.
func (l *lab) measure(dir string, argv ...string) (cost, error) {
	cmd := l.command(dir, argv...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		return cost{}, fmt.Errorf("%v: %w\n%s", argv, err, out)
	}
	return cost{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// memory returns the peak memory of a program, in bytes.
func (l *lab) memory(dir string, argv ...string) (int64, error) {
	out, err := l.command(dir, append([]string{l.floor, "memory"}, argv...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("%v: %w", argv, err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

func (l *lab) command(dir string, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	// With a key of its own Codex is `codex exec`, whose part a stand-in plays from a recording.
	cmd.Env = append(
		os.Environ(), "SWARM_HOME="+l.home(), "ANTHROPIC_API_KEY=nobodys-key", "OPENAI_API_KEY=nobodys-key",
		"CODEX_API_KEY=nobodys-key")
	return cmd
}

// inTurn does works one after the other, rounds times, so that the same disturbances hit each of
// them.
func inTurn[T any](rounds int, works ...func() (T, error)) ([][]T, error) {
	results := make([][]T, len(works))
	for range rounds {
		for i, work := range works {
			r, err := work()
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], r)
		}
	}
	return results, nil
}

// p50 returns the median of a value of the results.
func p50[T any, N cmp.Ordered](results []T, of func(T) N) N {
	all := make([]N, len(results))
	for i, r := range results {
		all[i] = of(r)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func wall(c cost) time.Duration            { return c.wall }
func cpu(c cost) time.Duration             { return c.cpu }
func itself(d time.Duration) time.Duration { return d }
func ratio(a, b time.Duration) float64     { return float64(a) / float64(b) }
func times(f float64) string               { return fmt.Sprintf("%.2f×", f) }
func since(start time.Time) time.Duration  { return time.Since(start) }
func megabytes(bytes int64) string         { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }
func kilobytes(bytes int64) string         { return fmt.Sprintf("%.0f KB", float64(bytes)/1e3) }

// short formats a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
