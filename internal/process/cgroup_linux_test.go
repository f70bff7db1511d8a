package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"swarm"
)

// contained returns a job in a cgroup, and that cgroup's path, which the job's first program makes.
func contained(t *testing.T, line string) (j Job, path string, release func()) {
	t.Helper()
	if err := checkCgroup(); err != nil {
		t.Skip("no cgroup can be made here:", err)
	}
	j = job(t, line)
	folder, release := Contain(j.Run)
	t.Cleanup(release)
	return j, filepath.Join(folder, "swarm-"+string(j.Run)+"-"+strconv.Itoa(os.Getpid())), release
}

// unknown is a daemon without any mark, in a cgroup that it has made for itself below its own.
const unknown = `prlimit --pid $$ --locks=1; own=$PLACE/own; mkdir $own; echo $$ >$own/cgroup.procs; ` + daemon

// A process without any mark ends with its run, even while programs of other runs may have started
// it, and takes the cgroups with it that it has made.
func TestCgroupEndsUnknownLeftovers(t *testing.T) {
	defer hold(t)()
	j, path, release := contained(t, unknown)
	j.Env = append(j.Env, "PLACE="+path)
	pid := pidIn(t, run(t, j))
	if isGone(pid) {
		t.Fatalf("%d was ended while others may have started it", pid)
	}
	release()
	if !isGone(pid) {
		t.Errorf("%d lives", pid)
	}
	if isCgroup(path) {
		t.Errorf("%s is left", path)
	}
	noOrphans(t)
}

// Without a program there is no cgroup, and without its folder nothing is ended.
func TestCgroupIsMadeByTheFirstProgram(t *testing.T) {
	j, path, release := contained(t, "cat /proc/self/cgroup")
	if isCgroup(path) {
		t.Errorf("%s was made before a program needed it", path)
	}
	if said := run(t, j); !strings.Contains(said, "/"+filepath.Base(path)+"\n") {
		t.Errorf("the program is in %s", said)
	}
	if g := cgroupOf(filepath.Dir(path), j.Run, os.Getpid()); g == nil || len(g.pids()) != 0 {
		t.Errorf("the next command finds %v", g)
	}
	release()
	if isCgroup(path) {
		t.Errorf("%s is left", path)
	}
}

// A new cgroup takes the place of those that killed drivers have left empty. Others stay: that of a
// driver that lives, and one with a process.
func TestEmptyCgroupsOfDeadDriversAreSwept(t *testing.T) {
	dead, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.Wait(); err != nil {
		t.Fatal(err)
	}
	j, path, _ := contained(t, "true")
	folder := filepath.Dir(path)
	ofDead := func(name string) string { return filepath.Join(folder, "swarm-"+name+"-"+strconv.Itoa(dead.Pid)) }
	empty, full, live := ofDead("swept"), ofDead("full"), filepath.Join(folder, "swarm-live-"+strconv.Itoa(os.Getpid()))
	for _, dir := range []string{empty, filepath.Join(empty, "own"), full, live} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (&cgroup{dir, -1}).remove() })
	}
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	if err := os.WriteFile(filepath.Join(full, "cgroup.procs"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	run(t, j)
	if isCgroup(empty) || !isCgroup(full) || !isCgroup(live) || !isCgroup(path) {
		t.Errorf("left: empty %v, full %v, live %v, own %v", isCgroup(empty), isCgroup(full), isCgroup(live), isCgroup(path))
	}
}

// A driver that has lost its run, and with it the cgroup, starts programs without one.
func TestProgramsStartWithoutTheirCgroup(t *testing.T) {
	j, path, _ := contained(t, "echo started")
	run(t, j)
	if _, all := Reap(j.Run, os.Getpid(), filepath.Dir(path)); !all || isCgroup(path) {
		t.Fatalf("%s is left", path)
	}
	if said := run(t, j); said != "started\n" {
		t.Errorf("it says %q", said)
	}
}

// The folder is read from a file that agents may write. It cannot lead to other files or other
// cgroups.
func TestOnlyTheRunsOwnCgroupIsEnded(t *testing.T) {
	j, path, _ := contained(t, "exit 0")
	run(t, j)
	plain := t.TempDir()
	if err := os.Mkdir(filepath.Join(plain, filepath.Base(path)), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"", "/", plain, path, filepath.Join(path, "nowhere")} {
		if g := cgroupOf(folder, j.Run, os.Getpid()); g != nil {
			t.Errorf("%q leads to %s", folder, g.path)
		}
	}
	if g := cgroupOf(filepath.Dir(path), "another", os.Getpid()); g != nil {
		t.Errorf("another run leads to %s", g.path)
	}
}

// A command inside an orphaned program spares the cgroup, because it is in it.
func TestCgroupOfTheCallerIsSpared(t *testing.T) {
	if folder := os.Getenv("REAP_IN"); folder != "" {
		driver, _ := strconv.Atoi(os.Getenv("SWARM_DRIVER"))
		g := cgroupOf(folder, swarm.RunID(os.Getenv("SWARM_RUN_ID")), driver)
		g.end(0)
		os.Stdout.WriteString("alive " + strconv.FormatBool(isCgroup(g.path)) + "\n")
		return
	}
	j, path, _ := contained(t, os.Args[0]+" -test.run '^TestCgroupOfTheCallerIsSpared$'")
	j.Env = append(j.Env, "REAP_IN="+filepath.Dir(path))
	if said := run(t, j); !strings.HasPrefix(said, "alive true\n") {
		t.Errorf("it says %q", said)
	}
}

// Kill ends a process that has no mark, together with the others of its run.
func TestKillEndsTheCgroup(t *testing.T) {
	defer hold(t)()
	j, path, _ := contained(t, unknown)
	j.Env = append(j.Env, "PLACE="+path)
	pid := pidIn(t, run(t, j))
	Kill(j.Run)
	for !isGone(pid) { // it is about to die
		family.reap()
		runtime.Gosched()
	}
}
