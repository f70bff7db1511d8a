package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
)

// Descent and marks find a leftover only while somebody looks at it. A process that starts its
// successor and exits, again and again, can be missed after its driver was killed, and a process can
// throw its marks away. So the programs of a run are started in a cgroup of their own, where one can
// be made. A process leaves it only on purpose, and the kernel kills all of it at once.
//
// There is one cgroup for each run and driver. One for each program took a third more time when
// 1,000 programs start at once, because the kernel makes and removes them one by one. So a program
// that ends while its driver lives is still followed by descent, which cannot be outrun then: see
// children_linux.go.
//
// The cgroup is made below the one that the driver is in, without any controller: limits and
// accounts of the user's own cgroup stay as they are. Its name says the run and the driver. The
// driver's mark in the state folder holds the folder, so the next command finds it after a kill.

// A cgroup is a folder of the kernel's cgroup2 file system. A nil cgroup has no process.
type cgroup struct {
	path string
	fd   int // for programs that are started in it; -1 = none
}

// cgroupFolder returns the folder of the cgroup that this process is in. Cgroups for its programs
// are made there.
func cgroupFolder() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::") // cgroup2
		if !ok {
			continue
		}
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} { // the latter beside cgroups of version 1
			if dir := filepath.Join(mount, path); isCgroup(dir) {
				return dir, nil
			}
		}
	}
	return "", errors.New("there is no cgroup of version 2")
}

func isCgroup(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// cgroupOf is the cgroup of a run and its driver. The folder comes from a file that agents may be
// able to write, so it counts only if it is one of the kernel's, and the name is never taken from
// there.
func cgroupOf(folder string, runID swarm.RunID, driver int) *cgroup {
	path := filepath.Join(folder, "swarm-"+string(runID)+"-"+strconv.Itoa(driver))
	if folder == "" || !isCgroup(path) {
		return nil
	}
	return &cgroup{path, -1}
}

// makeCgroup makes the cgroup of a run that this process drives.
func makeCgroup(folder string, runID swarm.RunID) (*cgroup, error) {
	g := &cgroup{filepath.Join(folder, "swarm-"+string(runID)+"-"+strconv.Itoa(os.Getpid())), -1}
	if err := os.Mkdir(g.path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	fd, err := unix.Open(g.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Access(filepath.Join(g.path, "cgroup.kill"), unix.W_OK) // Linux has it since 5.14
	}
	if err != nil {
		closeAll(&fd)
		_ = unix.Rmdir(g.path)
		return nil, err
	}
	g.fd = fd
	return g, nil
}

// Contain has the programs of a run started in a cgroup, from the first one on. It returns the
// folder in which that cgroup will be; "" = none can be made. release ends the processes that are
// left in it and removes it.
func Contain(runID swarm.RunID) (folder string, release func()) {
	folder, err := cgroupFolder()
	if err != nil {
		return "", func() {}
	}
	family.mu.Lock()
	defer family.mu.Unlock()
	if family.folders == nil { // not by setUp: a run may need no program, and its driver no orphans
		family.folders, family.cgroups = map[swarm.RunID]string{}, map[swarm.RunID]*cgroup{}
	}
	family.folders[runID] = folder
	return folder, func() {
		family.mu.Lock()
		g := family.cgroups[runID]
		delete(family.cgroups, runID)
		delete(family.folders, runID)
		family.mu.Unlock()
		if g != nil {
			g.end(DefaultGrace)
			family.reap()
		}
	}
}

// cgroup returns the cgroup for a new program of a run, and makes it if there is none yet. It needs
// mu.
func (c *children) cgroup(runID swarm.RunID) *cgroup {
	folder := c.folders[runID]
	if folder == "" || c.cgroups[runID] != nil {
		return c.cgroups[runID]
	}
	g, err := makeCgroup(folder, runID)
	if err != nil {
		delete(c.folders, runID) // the next one would fail too
		return nil
	}
	c.cgroups[runID] = g
	sweepCgroups(folder)
	return g
}

// sweepCgroups removes the empty cgroups of drivers that were killed, and whose state folder is gone
// with the mark that leads to them. The kernel refuses to remove one that has processes. A driver in
// another pid namespace may seem to be dead; it then starts its next program without a cgroup.
func sweepCgroups(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), "swarm-")
		pid, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		if !ours || err != nil || pid <= 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		g := &cgroup{filepath.Join(folder, e.Name()), -1}
		if text, err := os.ReadFile(filepath.Join(g.path, "cgroup.events")); err == nil && bytes.Contains(text, []byte("populated 0")) {
			g.remove()
		}
	}
}

// checkCgroup returns why no cgroup can be made here; nil = one can.
func checkCgroup() error {
	folder, err := cgroupFolder()
	if err != nil {
		return err
	}
	g, err := makeCgroup(folder, "check")
	if err == nil {
		g.end(0)
	}
	return err
}

// holds reports whether a process is in the cgroup, or in one below it.
func (g *cgroup) holds(pid int) bool { return slices.Contains(g.pids(), pid) }

// all returns the folders of the cgroup and of those that its processes have made below it, the
// lowest first.
func (g *cgroup) all() (dirs []string) {
	var add func(dir string)
	add = func(dir string) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				add(filepath.Join(dir, e.Name()))
			}
		}
		dirs = append(dirs, dir)
	}
	add(g.path)
	return dirs
}

// pids returns the processes of the cgroup and of those below it.
func (g *cgroup) pids() (pids []int) {
	for _, dir := range g.all() {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for word := range bytes.FieldsSeq(text) {
			if pid, err := strconv.Atoi(string(word)); err == nil && pid > 0 { // 0 = in another pid namespace
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// kill ends all processes of the cgroup at once. The kernel also kills those that are just forked.
func (g *cgroup) kill() {
	if g != nil {
		_ = os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0)
	}
}

// freeze stops all processes of the cgroup at once, so that none can start another, and returns how
// they go on. A stopped process can be killed.
func (g *cgroup) freeze() (thaw func()) {
	if g == nil {
		return func() {}
	}
	set := func(on string) { _ = os.WriteFile(filepath.Join(g.path, "cgroup.freeze"), []byte(on), 0) }
	set("1")
	frozen := func() bool {
		text, err := os.ReadFile(filepath.Join(g.path, "cgroup.events"))
		return err != nil || bytes.Contains(text, []byte("frozen 1"))
	}
	for patience := time.Now().Add(time.Second); !frozen() && time.Now().Before(patience); {
		time.Sleep(time.Millisecond)
	}
	return func() { set("0") }
}

// end asks the processes of the cgroup to end, kills them after the grace period, and removes the
// cgroup. It returns how many processes it found. It does nothing to a cgroup that this process is
// in: a program of a killed driver may call us.
func (g *cgroup) end(grace time.Duration) (ended int) {
	if g == nil || g.holds(os.Getpid()) {
		return 0
	}
	ended, _ = terminate(grace, time.Sleep, g.pids, func(pid int, s syscall.Signal) {
		if s == syscall.SIGKILL {
			g.kill()
		} else {
			signalIf(pid, s, g.holds)
		}
	})
	g.kill() // a list of processes may miss one
	for patience := time.Now().Add(DefaultGrace); !g.remove() && time.Now().Before(patience); {
		time.Sleep(time.Millisecond)
	}
	closeAll(&g.fd)
	return ended
}

// remove removes the cgroup and those below it. It returns false while they have processes.
func (g *cgroup) remove() bool {
	for _, dir := range g.all() {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return false
		}
	}
	return true
}
