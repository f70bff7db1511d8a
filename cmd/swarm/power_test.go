//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"swarm"
)

// A disk is a file system of its own, on which the state folder lies.
type disk struct {
	*place
	image, dir string
}

// needsDisk skips a test where no file system can be mounted.
func needsDisk(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system of its own")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %s", out)
	}
	_ = exec.Command("umount", dir).Run()
}

func (p *place) must(name string, args ...string) {
	p.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		p.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// onDisk puts the state folder on an ext4 of its own.
func (p *place) onDisk() *disk {
	p.Helper()
	d := &disk{place: p, image: filepath.Join(p.TempDir(), "image"), dir: p.TempDir()}
	p.check(os.WriteFile(d.image, nil, 0o600))
	p.check(os.Truncate(d.image, 64<<20))
	p.must("mkfs.ext4", "-q", d.image)
	p.must("mount", "-o", "loop", d.image, d.dir)
	p.Cleanup(func() { _ = exec.Command("umount", d.dir).Run() })
	p.home = filepath.Join(d.dir, "home")
	return d
}

// losesPower drops all writes that were not synced, ends all processes, and mounts the disk again.
// Output after the cut does not count: after a real one no process would be left to write it.
func (d *disk) losesPower(p *driving) {
	d.Helper()
	ledger := filepath.Join(d.place.dir, "ledger")
	said := p.soFar()
	d.shutDown()
	result, _ := os.ReadFile(ledger) // after the cut: it must have every end that is on the disk
	p.kill()
	for pids := d.running(); len(pids) > 0; pids = d.running() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	p.said = said
	d.check(os.WriteFile(ledger, result, 0o600))
	d.soon("nobody uses the disk", func() bool { return exec.Command("umount", d.dir).Run() == nil }) // the dead close their files last
	d.must("mount", "-o", "loop", d.image, d.dir)
}

// running are the processes that use the disk, and their agents.
func (d *disk) running() []int { return processesWith("SWARM_HOME=" + d.home) }

// shutDown has the file system drop everything that was not synced: nothing reaches the disk from
// now on.
func (d *disk) shutDown() {
	d.Helper()
	root, err := os.Open(d.dir)
	d.check(err)
	defer root.Close()
	const shutdown, withoutJournal = 0x8004587d, 2
	how := uint32(withoutJournal)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, root.Fd(), shutdown, uintptr(unsafe.Pointer(&how))); errno != 0 {
		d.Fatalf("the file system cannot be shut down: %v", errno)
	}
}

// TestPowerLoss cuts the power under a run at random moments. All that was acknowledged must
// survive: the events that the driver printed, and the turns that an agent has started.
func TestPowerLoss(t *testing.T) {
	if !long {
		t.Skip("it takes a minute: set SWARM_TEST_LONG=1")
	}
	needsDisk(t)
	calm := newPlace(t)
	calm.runs(0, "up")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	v := &victim{random: rand.New(rand.NewPCG(seed, 0))}
	for v.kills < 300 && !t.Failed() {
		v.place = newPlace(t)
		v.disk = v.onDisk()
		v.drive()
		v.holdAgainst(calm)
	}
	t.Logf("%d power losses in %d runs: %d turns ended, %d of them started again, %d pauses acknowledged", v.kills, v.count, v.ended, v.again, v.pauses)
}

// promised lists the events that are on disk before they are shown. The others follow from them.
var promised = map[swarm.EventKind]bool{swarm.RunStarted: true, swarm.PlanAdded: true, swarm.TurnStarted: true, swarm.TurnEnded: true, swarm.Control: true, swarm.LoopEnded: true}

// SQLite checkpoints its write-ahead log when it is large. A run that starts with large prompts
// does so at its first commit.
func TestPowerLossAfterALargeBeginning(t *testing.T) {
	if !long {
		t.Skip("it mounts file systems: set SWARM_TEST_LONG=1")
	}
	needsDisk(t)
	for turns := range 3 {
		p := newPlace(t)
		d := p.onDisk()
		p.compose(`
provider: sh
providers:
  sh: {kind: command, command: [sh, -c, 'cat > /dev/null; echo done']}
  slow: {kind: command, command: [sh, -c, 'cat > /dev/null; until test -e go; do sleep 0.01; done']}
agents:
  slow: {provider: slow}
tasks:
  a: {prompt-file: large.md}
  b: {prompt-file: large.md, depends_on: [a]}
  c: {prompt-string: "the power is lost before it ends", depends_on: [b], agent: slow}
`)
		p.check(os.WriteFile(filepath.Join(p.dir, "swarm", "large.md"), []byte(strings.Repeat("a long story\n", 250_000)), 0o600))
		driver := p.drives("up")
		driver.until(swarm.TurnStarted)
		for range turns {
			driver.until(swarm.TurnEnded)
		}
		d.losesPower(driver)
		p.check(os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600))
		p.runs(0, "resume", "@last")
	}
}

// TestPowerLossAtDesks cuts the power while desks are made, worked at and collected, one after the other.
// What a command has acknowledged must be there, and no state may be empty.
func TestPowerLossAtDesks(t *testing.T) {
	if !long {
		t.Skip("it takes a minute: set SWARM_TEST_LONG=1")
	}
	needsDisk(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const worker = `echo done > outbox/text.md; mkdir outbox/data; echo 1 > outbox/data/n; echo 'I did it.' > outbox/summary.md
		echo '{"state": "completed"}' > workspace/s; mv workspace/s status.json`
	kept := map[string]int{}
	for losses := 0; losses < 60 && !t.Failed(); losses++ {
		p := newPlace(t)
		d := p.onDisk()
		in := func(name string) string { return filepath.Join(d.dir, name) }
		acknowledged := make(chan [2]string) // the command, and the desk
		go func() {
			defer close(acknowledged)
			for i := 0; ; i++ {
				name := fmt.Sprint("d", i)
				for _, args := range [][]string{
					{"new", in(name), "--objective", "Do it"},
					{"run", in(name), "--", "sh", "-c", worker},
					{"collect", in(name), "-o", in(name + ".out")},
				} {
					if p.swarm(append([]string{"desk"}, args...)...).Run() != nil {
						return // the power is lost
					}
					acknowledged <- [2]string{args[0], name}
				}
			}
		}()
		var before [][2]string
		for range 1 + random.IntN(12) {
			a, ok := <-acknowledged
			if !ok {
				t.Fatal("a command failed while there was power")
			}
			before = append(before, a)
		}
		d.shutDown()
		for range acknowledged { // after the cut it does not count
		}
		d.soon("nobody uses the disk", func() bool { return exec.Command("umount", d.dir).Run() == nil })
		d.must("mount", "-o", "loop", d.image, d.dir)

		states, err := filepath.Glob(in("d*/status.json"))
		d.check(err)
		for _, file := range states {
			if info, err := os.Stat(file); err != nil || info.Size() == 0 {
				t.Errorf("%s is empty, or %v", file, err)
			}
		}
		for _, a := range before {
			files := map[string]string{a[1] + "/status.json": `"state"`, a[1] + "/SKILL.md": "# Agent", a[1] + "/inbox/instructions.md": "Do it"}
			switch a[0] {
			case "run":
				files = map[string]string{a[1] + "/status.json": "completed", a[1] + "/outbox/data/n": "1", a[1] + "/outbox/summary.md": "I did it."}
			case "collect":
				files = map[string]string{a[1] + ".out/text.md": "done", a[1] + ".out/data/n": "1", a[1] + ".out/summary.md": "I did it."}
			}
			for name, want := range files {
				if text, err := os.ReadFile(in(name)); err != nil || !strings.Contains(string(text), want) {
					t.Errorf("after `swarm desk %s` %s is %q, %v", a[0], name, text, err)
				}
			}
			kept[a[0]]++
		}
	}
	t.Logf("acknowledged and there: %v", kept)
}

// A full disk stops a run with a clear error. When there is room again, the run can be resumed.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	t.Parallel()
	needsDisk(t)
	calm := newPlace(t)
	calm.runs(0, "up")
	for size := 40; size <= 340; size += times(150, 60, 60) { // from where there is no room to begin, to where there is almost enough
		p := newPlace(t)
		dir := t.TempDir()
		p.must("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", size), "tmpfs", dir)
		t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
		p.home = filepath.Join(dir, "home")
		if _, errs := p.runs(1, "up"); !strings.Contains(errs, "no space left on device") || !strings.Contains(errs, "hint: make room") {
			t.Errorf("with %d kB: %s", size, errs)
		}
		p.must("mount", "-o", "remount,size=64m", dir)
		if len(p.list()) == 0 {
			p.runs(0, "up")
		} else {
			p.runs(0, "resume", "@last")
		}
		v := &victim{place: p, id: p.list()[0].ID}
		v.holdAgainst(calm)
	}
}
