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
