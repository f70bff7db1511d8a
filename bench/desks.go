package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"swarm/internal/desk"
)

// desks measures desks: how soon a change of one among 1,000 is seen, what watching them costs when
// nothing happens, and how fast inputs are copied.
func (l *lab) desks() error {
	many, used, err := l.watchDesks(1000)
	if err != nil {
		return err
	}
	one, _, err := l.watchDesks(1)
	if err != nil {
		return err
	}
	p99 := many[len(many)*99/100]
	l.add(row{
		"status change of one of 1,000 desks", short(many[len(many)/2]), short(one[len(one)/2]) + " one desk alone",
		short(p99) + " p99", "p99 ≤ 50 ms", p99 <= 50*time.Millisecond})
	l.add(row{
		"CPU of watching 1,000 idle desks", fmt.Sprintf("%.2f %% of a core", 100*used), "", fmt.Sprintf("%.2f %%", 100*used),
		"≤ 1 %", used <= 0.01})
	return l.copyInputs()
}

// watchDesks follows n desks. It returns how long each of 1,000 changes took to be seen, sorted, and which
// part of a core the watcher used before them, while nothing happened.
func (l *lab) watchDesks(n int) (took []time.Duration, used float64, err error) {
	w := desk.NewWatcher(desk.WatchOptions{})
	defer w.Close()
	var desks []*desk.Desk
	var changes []<-chan desk.Reading
	for i := range n {
		d, err := l.newDesk(fmt.Sprintf("watched-%d/%d", n, i))
		if err != nil {
			return nil, 0, err
		}
		defer d.Close()
		desks, changes = append(desks, d), append(changes, w.Add(d, desk.Status{}))
		<-changes[i] // it is pending
	}
	const settle, idle = 4 * time.Second, 10 * time.Second // a new file may change unseen for 3 seconds
	time.Sleep(settle)
	before := cpuOfSelf()
	time.Sleep(idle)
	used = (cpuOfSelf() - before).Seconds() / idle.Seconds()
	for i := range 1000 {
		at := i % n
		file := filepath.Join(desks[at].Path(), desk.StatusFile)
		if err := os.WriteFile(file+".new", fmt.Appendf(nil, `{"state":"running","n":%d}`, i), 0o600); err != nil {
			return nil, 0, err
		}
		if n == 1 {
			time.Sleep(10 * time.Millisecond) // one desk is not read more often than every 5 ms
		}
		start := time.Now()
		if err := os.Rename(file+".new", file); err != nil {
			return nil, 0, err
		}
		<-changes[at]
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took, used, nil
}

func (l *lab) newDesk(name string) (*desk.Desk, error) {
	d, _, err := desk.Create(filepath.Join(l.dir, "desks", name), desk.Setup{Instructions: desk.Instructions{Task: "t", Objective: "o"}})
	return d, err
}

func cpuOfSelf() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for ourselves
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// copyInputs compares the copying of inputs with cp.
func (l *lab) copyInputs() error {
	const files, size = 32, 2 << 20
	from, err := l.newDesk("from")
	if err != nil {
		return err
	}
	defer from.Close()
	folder := filepath.Join(from.Path(), desk.Outbox, "data")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(i * i >> 7)
	}
	for i := range files {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%02d", i)), text, 0o600); err != nil {
			return err
		}
	}
	dep := desk.Dependency{Agent: "from", Outputs: []string{"outbox/data"}, CopyTo: "inbox/data"}
	n := 0
	ours := func() (time.Duration, error) {
		n++
		to, err := l.newDesk(fmt.Sprintf("to-%d", n))
		if err != nil {
			return 0, err
		}
		defer func() { _ = to.Remove(); _ = to.Close() }()
		start := time.Now()
		_, err = to.Receive(dep, from)
		return time.Since(start), err
	}
	floor := func() (time.Duration, error) {
		to := filepath.Join(l.dir, "desks", "cp")
		c, err := l.measure(l.dir, "cp", "-r", folder, to)
		if err != nil {
			return 0, err
		}
		return c.wall, os.RemoveAll(to)
	}
	got, err := inTurn(15, ours, floor)
	if err != nil {
		return err
	}
	a, b := p50(got[0], itself), p50(got[1], itself)
	speed := func(d time.Duration) string { return fmt.Sprintf("%.0f MB/s", files*size/1e6/d.Seconds()) }
	r := ratio(b, a)
	l.add(row{"copy the inputs of a desk, 32 files of 2 MB", speed(a), speed(b) + " `cp -r`", times(r), "≥ 0.8×", r >= 0.8})
	return nil
}
