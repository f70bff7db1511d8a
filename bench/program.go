package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func (l *lab) home() string { return filepath.Join(l.dir, "home") }

// project writes a compose file into a folder of its own.
func (l *lab) project(name, file string) (string, error) {
	dir := filepath.Join(l.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "swarm"), 0o700); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "swarm", "swarm.yaml"), []byte(file), 0o600)
}

// chainFile makes n tasks, each of which runs a program and waits for the task before it.
func chainFile(n int, argv ...string) string { return tasksFile(n, true, argv) }

// crowdFile makes n tasks that all run their program at the same time.
func crowdFile(n int, argv ...string) string {
	return fmt.Sprintf("max_parallel: %d\n", n) + tasksFile(n, false, argv)
}

func tasksFile(n int, chained bool, argv []string) string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "provider: t\nproviders:\n  t: {kind: command, command: [%s]}\ntasks:\n",
		strings.Join(quoted(argv), ", "))
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  t%d: {prompt-string: Do nothing.", i)
		if chained && i > 1 {
			fmt.Fprintf(&b, ", depends_on: [t%d]", i-1)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func quoted(argv []string) (all []string) {
	for _, arg := range argv {
		all = append(all, strconv.Quote(arg))
	}
	return all
}

// chain measures 100 tasks one after the other. Each starts `true`, which prints nothing, or
// `echo`, whose output is stored. The floor starts it as often, with pipes, between two synced
// writes.
func (l *lab) chain() error {
	const tasks = 100
	for _, program := range [][]string{{"true"}, {"echo", "hello"}} {
		dir, err := l.project("chain-"+program[0], chainFile(tasks, program...))
		if err != nil {
			return err
		}
		got, err := inTurn(11,
			func() (cost, error) { return l.measure(dir, l.swarm, "up") },
			func() (cost, error) {
				return l.measure(
					dir,
					append(
						[]string{l.floor, "chain", strconv.Itoa(tasks), filepath.Join(l.dir, "chain.log")},
						program...)...)
			})
		if err != nil {
			return err
		}
		for _, what := range []struct {
			name string
			of   func(cost) time.Duration
			most float64
		}{{"wall", wall, 1.4}, {"CPU", cpu, 1.5}} {
			ours, floor := p50(got[0], what.of), p50(got[1], what.of)
			r := ratio(ours, floor)
			l.add(row{
				"100-task chain of `" + program[0] + "`, durable, per task: " + what.name, short(ours / tasks),
				short(floor/tasks) + " fork+exec, pipes, 2 synced writes", times(r),
				fmt.Sprintf("≤ %.4g×", what.most), r <= what.most})
		}
	}
	return nil
}

// programs measures 1,000 programs at the same time: what each adds to the CPU time and the memory
// of its run. The floor starts as many, with pipes, and waits for them.
func (l *lab) programs() error {
	const many = 1000
	program := []string{"sleep", "2"}
	dir, err := l.project("programs", crowdFile(many, program...))
	if err != nil {
		return err
	}
	one, err := l.project("program", crowdFile(1, program...))
	if err != nil {
		return err
	}
	all := append([]string{l.floor, "crowd", strconv.Itoa(many)}, program...)
	got, err := inTurn(3,
		func() (cost, error) { return l.measure(dir, l.swarm, "up") },
		func() (cost, error) { return l.measure(dir, all...) })
	if err != nil {
		return err
	}
	ours, floor := p50(got[0], cpu)/many, p50(got[1], cpu)/many
	l.add(row{
		"1,000 programs at once, each: CPU", short(ours), short(floor) + " fork+exec, pipes", short(ours),
		"≤ 2.3 ms", ours <= 2300*time.Microsecond})
	memory, err := inTurn(3,
		func() (int64, error) { return l.memory(dir, l.swarm, "up") },
		func() (int64, error) { return l.memory(one, l.swarm, "up") },
		func() (int64, error) { return l.memory(dir, all...) },
		func() (int64, error) { return l.memory(dir, append([]string{l.floor, "crowd", "1"}, program...)...) })
	if err != nil {
		return err
	}
	bytes := func(n int64) int64 { return n }
	each := (p50(memory[0], bytes) - p50(memory[1], bytes)) / many
	least := (p50(memory[2], bytes) - p50(memory[3], bytes)) / many
	l.add(row{
		"1,000 programs at once, each: memory", kilobytes(each), kilobytes(least) + " fork+exec, pipes",
		kilobytes(each), "≤ 200 KB", each <= 200_000})
	return nil
}

// longChain measures the memory of a run with 10,000 tasks.
func (l *lab) longChain() error {
	var most [2]int64
	for i, tasks := range []int{10_000, 100} {
		dir, err := l.project(fmt.Sprint("long", tasks), chainFile(tasks, "true"))
		if err != nil {
			return err
		}
		if most[i], err = l.memory(dir, l.swarm, "up"); err != nil {
			return err
		}
	}
	l.add(row{
		"10,000-task chain of `true`: memory", megabytes(most[0]), megabytes(most[1]) + " for 100 tasks",
		megabytes(most[0]), "≤ 200 MB", most[0] <= 200e6})
	return nil
}

// longest measures the memory of a run with 100,000 tasks, a chain of 100 in 1,000 copies, and what
// it takes to read a little of it.
func (l *lab) longest() error {
	if !l.long {
		return nil
	}
	var names []string
	for i := 1; i <= 100; i++ {
		names = append(names, fmt.Sprint("t", i))
	}
	file := chainFile(100, "echo", "hello") + "pipelines:\n  main: {tasks: [" + strings.Join(names, ", ") + "], parallelism: 1000}\n"
	dir, err := l.project("longest", file)
	if err != nil {
		return err
	}
	most, err := l.memory(dir, l.swarm, "up")
	if err != nil {
		return err
	}
	l.add(row{"100,000 tasks: memory", megabytes(most), "", megabytes(most), "≤ 500 MB", most <= 500e6})
	for _, args := range [][]string{{"out", "@last", "t50.500"}, {"logs", "@last", "-n", "20"}} {
		command := append([]string{l.swarm}, args...)
		got, err := inTurn(5,
			func() (cost, error) { return l.measure(dir, command...) },
			func() (cost, error) { return l.measure(dir, l.swarm, "version") })
		if err != nil {
			return err
		}
		most, err := l.memory(dir, command...)
		if err != nil {
			return err
		}
		ours := p50(got[0], wall)
		what := "`swarm " + strings.Join(args, " ") + "` of 100,000 tasks"
		l.add(row{what + ": time", short(ours), short(p50(got[1], wall)) + " `swarm version`", short(ours), "≤ 200 ms", ours <= 200*time.Millisecond})
		l.add(row{what + ": memory", megabytes(most), "", megabytes(most), "≤ 100 MB", most <= 100e6})
	}
	return nil
}

// start measures a whole `swarm up` with one task. The floor is a Go program that starts one child.
func (l *lab) start() error {
	dir, err := l.project("start", chainFile(1, "true"))
	if err != nil {
		return err
	}
	got, err := inTurn(41,
		func() (cost, error) { return l.measure(dir, l.swarm, "up") },
		func() (cost, error) { return l.measure(dir, l.floor, "one") })
	if err != nil {
		return err
	}
	ours, floor := p50(got[0], wall), p50(got[1], wall)
	r := ratio(ours, floor)
	l.add(row{
		"one-task `swarm up`, start to exit", short(ours), short(floor) + " Go program, one child", times(r),
		"≤ 5.7×", r <= 5.7})
	return nil
}

// bytes measures how much a step adds to the disk, late and early, by comparing runs of different
// lengths.
func (l *lab) bytes() error {
	size := func(steps int) (int64, error) {
		name := fmt.Sprint("bytes", steps)
		dir, err := l.project(
			name,
			fmt.Sprintf(
				"provider: t\nproviders:\n  t: {kind: command, command: [sh, -c, 'printf %%01024d $SWARM_ITERATION']}\n"+
					"tasks:\n  t: {prompt-string: Say something., iterations: %d}\n",
				steps,
			),
		)
		if err != nil {
			return 0, err
		}
		before, err := onDisk(l.home())
		if err != nil {
			return 0, err
		}
		if _, err := l.measure(dir, l.swarm, "up"); err != nil {
			return 0, err
		}
		after, err := onDisk(l.home())
		return after - before, err
	}
	var sizes []int64
	for _, steps := range []int{10, 110, 900, 1000} {
		s, err := size(steps)
		if err != nil {
			return err
		}
		sizes = append(sizes, s)
	}
	early, late := sizes[1]-sizes[0], sizes[3]-sizes[2]
	r := float64(late) / float64(early)
	l.add(row{
		"bytes on disk per step, 1 KB output a step", fmt.Sprintf("%d at 900–1,000 steps", late/100),
		fmt.Sprintf("%d at 10–110 steps", early/100), times(r), "≤ 1.1×", r <= 1.1})
	return nil
}

// onDisk returns the sum of the blocks of all files in a folder.
func onDisk(dir string) (sum int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	return sum, err
}

// check measures `swarm check` of a file with 10,000 tasks, and with 1,000.
func (l *lab) check() error {
	large, err := l.project("check10000", chainFile(10_000, "true"))
	if err != nil {
		return err
	}
	small, err := l.project("check1000", chainFile(1000, "true"))
	if err != nil {
		return err
	}
	got, err := inTurn(5,
		func() (cost, error) { return l.measure(large, l.swarm, "check") },
		func() (cost, error) { return l.measure(small, l.swarm, "check") },
		func() (cost, error) { return l.measure(small, l.swarm, "version") })
	if err != nil {
		return err
	}
	most, err := l.memory(large, l.swarm, "check")
	if err != nil {
		return err
	}
	least, err := l.memory(small, l.swarm, "version")
	if err != nil {
		return err
	}
	idle := p50(got[2], wall)
	ours, less := p50(got[0], wall), p50(got[1], wall)
	perTask := ratio(ours-idle, 10*(less-idle))
	l.add(row{
		"`swarm check` of 10,000 tasks: time", short(ours), short(less) + " for 1,000", short(ours), "≤ 1 s",
		ours <= time.Second})
	l.add(row{
		"`swarm check` of 10,000 tasks: memory", megabytes(most), megabytes(least) + " `swarm version`",
		megabytes(most), "≤ 200 MB", most <= 200e6})
	l.add(row{
		"`swarm check`, per task: 10,000 against 1,000", short((ours - idle) / 10_000), short((less - idle) / 1000),
		times(perTask), "linear: ≤ 1.5×", perTask <= 1.5})
	return nil
}
