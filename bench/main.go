// Command bench measures swarm and prints one table. Each figure stands beside its floor, which is
// the least that the same work can cost. Both are measured in turn in the same run, because a busy
// machine slows both. Medians are shown. Nothing is asserted: the last column says whether a goal
// is met.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	program := flag.String("swarm", "bin/swarm", "the program to measure")
	only := flag.String("only", "", "measure only what has this in its name")
	long := flag.Bool("long", false, "measure also what takes minutes: a run of 100,000 tasks")
	dir := flag.String("dir", os.TempDir(), "where files are written: the disk that is measured")
	flag.Parse()
	if os.Getenv(insideVariable) == "" {
		code, err := runInside()
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(code)
	}
	if err := measureAll(*program, *only, *dir, *long); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A lab is where things are measured.
type lab struct {
	dir   string // its own, removed at the end
	swarm string // the program
	floor string // the floors that are programs
	sdk   string // calls models by their vendors' own libraries
	long  bool   // also what takes minutes
	rows  []row

	person *person

	events int64 // in the run of a million events; 0 = it is not written yet
}

// A row is one line of the table.
type row struct {
	work, ours, floor, figure, reach string
	met                              bool
}

func (l *lab) add(r row) { l.rows = append(l.rows, r) }

var measurements = []struct {
	name string
	do   func(*lab) error
}{
	{"chain", (*lab).chain},
	{"start", (*lab).start},
	{"programs", (*lab).programs},
	{"long", (*lab).longChain},
	{"longest", (*lab).longest},
	{"telemetry", (*lab).telemetry},
	{"schedule", (*lab).schedule},
	{"bytes", (*lab).bytes},
	{"append", (*lab).append},
	{"callers", (*lab).callers},
	{"prompt", (*lab).prompt},
	{"lines", (*lab).lines},
	{"run-lines", (*lab).runLines},
	{"check", (*lab).check},
	{"open", (*lab).open},
	{"reads", (*lab).reads},
	{"list", (*lab).list},
	{"turns", (*lab).turns},
	{"crowd", (*lab).crowd},
	{"coding", (*lab).coding},
	{"files", (*lab).files},
	{"injected", (*lab).injected},
	{"senders", (*lab).senders},
	{"stream", (*lab).stream},
	{"idlers", (*lab).idlers},
	{"iterations", (*lab).iterations},
	{"swarms", (*lab).swarms},
	{"post", (*lab).post},
	{"rest", (*lab).rest},
	{"desks", (*lab).desks},
}

func measureAll(program, only, dir string, long bool) (err error) {
	l := &lab{long: long, person: newPerson()}
	if l.swarm, err = filepath.Abs(program); err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp(dir, "swarm-bench."); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(l.dir)) }()
	l.floor = filepath.Join(l.dir, "floor")
	if out, err := exec.Command("go", "build", "-o", l.floor, "./bench/floor").CombinedOutput(); err != nil {
		return fmt.Errorf("the floors cannot be built: %w\n%s", err, out)
	}
	// The linker leaves its file in the page cache in small pieces, and such a program starts about
	// 1 ms slower. Users have a copy, so copies are measured.
	for _, program := range []*string{&l.swarm, &l.floor} {
		if *program, err = copyProgram(*program, filepath.Join(l.dir, filepath.Base(*program)+".copy")); err != nil {
			return err
		}
	}
	for _, m := range measurements {
		if !strings.Contains(m.name, only) {
			continue
		}
		start := time.Now()
		if err := m.do(l); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(os.Stderr, "%-9s measured in %s\n", m.name, time.Since(start).Round(100*time.Millisecond))
	}
	l.print()
	return nil
}

func copyProgram(from, to string) (string, error) {
	bytes, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	return to, os.WriteFile(to, bytes, 0o700)
}

func (l *lab) print() {
	fmt.Printf(
		"\n%s, %s/%s, %d cores, %s\n\n", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), runtime.Version())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| work\t| p50\t| floor, p50\t| figure\t| reach\t| met\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range l.rows {
		met := "yes"
		if !r.met {
			met = "**no**"
		}
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", r.work, r.ours, r.floor, r.figure, r.reach, met)
	}
	_ = w.Flush() // nothing to do if standard output is closed
}
