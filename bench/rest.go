package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rest measures how often an idle process wakes up: one whose ten programs sleep, and a team of ten
// that waits for a person. Where the system does not count that, there is no row.
func (l *lab) rest() error {
	programs, err := l.project("rest-programs", crowdFile(10, "sleep", "60"))
	if err != nil {
		return err
	}
	file := "provider: t\nproviders:\n  t: {kind: command, command: [echo, done]}\nagents:\n"
	for i := range 10 {
		file += fmt.Sprintf("  a%d: {}\n", i)
	}
	team, err := l.project("rest-team", file+"edges: [a0 -> a1]\n")
	if err != nil {
		return err
	}
	for _, idle := range []struct {
		work, dir string
		argv      []string
	}{
		{"wake-ups at rest, ten programs sleep", programs, []string{"up"}},
		{"wake-ups at rest, a team of ten waits", team, []string{"team", "Wait.", "--mode", "INTERACTIVE"}},
	} {
		n, err := l.wakeUps(idle.dir, idle.argv)
		if err != nil {
			return err
		}
		if n >= 0 {
			figure := fmt.Sprintf("%.0f a second", n)
			l.add(row{idle.work, figure, "", figure, "≤ 20", n <= 20})
		}
	}
	return nil
}

// wakeUps counts how often the threads of a program are switched in a second, once it has settled;
// -1 if the system does not count that.
func (l *lab) wakeUps(dir string, argv []string) (float64, error) {
	cmd := l.command(dir, append([]string{l.swarm}, argv...)...)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	const settle, watch = 3 * time.Second, 10 * time.Second
	time.Sleep(settle)
	before, ok := switches(cmd.Process.Pid)
	time.Sleep(watch)
	after, still := switches(cmd.Process.Pid)
	if !ok || !still {
		return -1, nil
	}
	return float64(after-before) / watch.Seconds(), nil
}

// switches returns how often the threads of a process have been switched to and away from.
func switches(pid int) (n int, ok bool) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread may have ended
		for _, line := range strings.Split(string(b), "\n") {
			if name, value, _ := strings.Cut(line, ":"); strings.HasSuffix(name, "ctxt_switches") {
				k, _ := strconv.Atoi(strings.TrimSpace(value))
				n += k
			}
		}
	}
	return n, len(files) > 0
}
