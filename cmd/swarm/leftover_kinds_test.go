//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
	"swarm/internal/process"
)

// leftoverKinds are the ways in which a program leaves a process behind. Each word is a trait of
// that process, see leave.
var leftoverKinds = map[string]string{
	"child":         "null",
	"nohup":         "null,nohup",
	"session":       "null,setsid",
	"daemon":        "null,setsid,fork",
	"closed":        "null,setsid,fork,close",
	"renamed":       "null,setsid,fork,rename",
	"deaf":          "null,setsid,fork,deaf",
	"stopped":       "null,setsid,fork,stop",
	"undumpable":    "null,setsid,fork,undumpable",
	"other-uid":     "null,setsid,fork,uid",
	"pipes":         "setsid,fork",
	"bare":          "null,bare",
	"bare-daemon":   "null,setsid,fork,bare",
	"bare-pipes":    "setsid,fork,bare",
	"bare-deaf":     "setsid,fork,bare,deaf,stop,undumpable",
	"wiped":         "null,setsid,fork,wipe,close", // as redis-server --daemonize yes, nginx and postgres
	"wiped-pipes":   "setsid,fork,wipe",
	"chain":         "null,setsid,fork,bare,chain",
	"tmux":          "tmux",  // where it is installed
	"redis":         "redis", // where it is installed
	"nested-daemon": "null,setsid,fork,nest",
	"unmarked":      "null,setsid,fork,bare,unlimit",
}

func init() { programs["leftover"] = leaveBehind }

// leaveBehind is an agent that leaves a process behind: leftover NAME TRAITS end|hang. It ends, or
// hangs, when that process has hidden as well as it can.
func leaveBehind() {
	if len(os.Args) == 5 {
		stage, _ := strconv.Atoi(os.Args[4])
		leave(os.Args[1], strings.Split(os.Args[2], ","), stage)
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	name, traits := os.Args[1], strings.Split(os.Args[2], ",")
	switch traits[0] {
	case "tmux":
		_ = exec.Command("tmux", "-S", "tmux", "new-session", "-d", "echo >ready-tmux; exec sleep 1000").Run()
	case "redis":
		_ = exec.Command("redis-server", "--port", "0", "--unixsocket", "./redis", "--daemonize", "yes", "--dir", ".", "--save", "").Run()
		for exec.Command("redis-cli", "-s", "./redis", "ping").Run() != nil {
			time.Sleep(time.Millisecond)
		}
		_ = os.WriteFile("ready-redis", nil, 0o600)
	default:
		respawn(name, traits, 1)
	}
	for !exists("ready-" + name) {
		time.Sleep(time.Millisecond)
	}
	if os.Args[3] == "hang" {
		time.Sleep(time.Hour)
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// respawn starts this program again as the next stage of a leftover.
func respawn(name string, traits []string, stage int) {
	cmd := exec.Command("/proc/self/exe", name, strings.Join(traits, ","), "-", strconv.Itoa(stage))
	cmd.Args[0] = os.Args[0]
	if !slices.Contains(traits, "null") {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: slices.Contains(traits, "setsid")}
	if stage == 2 && slices.Contains(traits, "uid") && os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	if slices.Contains(traits, "bare") {
		cmd.Env = []string{"GOCOVERDIR="}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// leave is the process that stays behind.
func leave(name string, traits []string, stage int) {
	has := func(trait string) bool { return slices.Contains(traits, trait) }
	if stage == 1 && has("fork") {
		respawn(name, traits, 2)
		os.Exit(0)
	}
	if has("nohup") {
		signal.Ignore(syscall.SIGHUP)
	}
	if has("deaf") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	if has("rename") {
		_ = os.WriteFile("/proc/self/comm", []byte("kworker/0:1"), 0)
	}
	if has("unlimit") {
		var limit unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_LOCKS, &limit)
		_ = unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: limit.Max, Max: limit.Max})
	}
	if has("undumpable") {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	if has("wipe") {
		wipeEnvironment()
	}
	ready := func() { _ = os.WriteFile("ready-"+name, []byte(strconv.Itoa(os.Getpid())), 0o666) }
	if has("chain") {
		time.Sleep(20 * time.Millisecond) // each link lives as long as a short program
		if stage == 5 {
			ready()
		}
		respawn(name, traits, stage+1)
		os.Exit(0)
	}
	if has("nest") {
		_ = exec.Command("sh", "-c", "setsid sh -c 'echo >ready-"+name+"; exec sleep 1000' & exec sleep 1000").Run()
	}
	ready()
	if has("close") {
		_ = unix.CloseRange(0, 2, 0)
	}
	if has("stop") {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	time.Sleep(time.Hour)
}

// wipeEnvironment overwrites the memory that /proc/self/environ shows, as programs do that change
// their title.
func wipeEnvironment() {
	text, _ := os.ReadFile("/proc/self/stat")
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	from, _ := strconv.ParseInt(fields[47], 10, 64)
	to, _ := strconv.ParseInt(fields[48], 10, 64)
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	if _, err := memory.WriteAt(make([]byte, to-from), from); err != nil {
		panic(err)
	}
	_ = memory.Close()
	if env, _ := os.ReadFile("/proc/self/environ"); len(bytes.Trim(env, "\x00")) > 0 {
		panic("the environment is not wiped")
	}
}

// leftoversAtEnd returns the kinds that must not survive an end of a turn.
func leftoversAtEnd(end string) map[string]string {
	_, _, err := process.Separation()
	kinds := maps.Clone(leftoverKinds)
	for name := range kinds {
		program := map[string]string{"tmux": "tmux", "redis": "redis-server"}[name]
		switch _, missing := exec.LookPath(program); {
		case program != "" && missing != nil,
			end == "kill" && (name == "chain" || name == "unmarked") && err != nil, // only a cgroup holds them
			end != "kill" && name == "unmarked":                                    // it ends with the run: other turns may have started it
			delete(kinds, name)
		}
	}
	return kinds
}

// No kind of process outlives its turn: neither a turn that ends well, nor one that times out, nor,
// after the next command, one whose driver was killed. All kinds run at once, so each process must
// be known as its own program's. A program of another turn is at work all the while.
func TestNoKindOfLeftoverSurvives(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	t.Parallel()
	for _, end := range []string{"well", "timeout", "kill"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			kinds := leftoversAtEnd(end)
			p := newStubbornPlace(t)
			p.check(os.Chmod(p.dir, 0o777))
			hang, timeout := "hang", ""
			switch end {
			case "well":
				hang = "end"
			case "timeout":
				timeout = ", timeout: 6s"
			}
			file := &strings.Builder{}
			fmt.Fprintln(file, "provider: sh\nmax_parallel: 100\nproviders: {sh: {kind: command, command: [sh, -c, 'exec $DO']}}")
			fmt.Fprintln(file, "tasks:\n  other: {prompt-string: x, env: {DO: sh other.sh}}")
			for name, traits := range kinds {
				fmt.Fprintf(file, "  %s: {prompt-string: x, env: {DO: 'leftover %s %s %s'}%s}\n", name, name, traits, hang, timeout)
			}
			p.check(os.WriteFile(filepath.Join(p.dir, "other.sh"), []byte("until [ -e release ]; do sleep 0.05; done"), 0o600))
			p.compose(file.String())
			d := p.drives("up")
			if end == "kill" {
				p.soon("all are ready", func() bool {
					for name := range kinds {
						if !exists(filepath.Join(p.dir, "ready-"+name)) {
							return false
						}
					}
					return true
				})
				d.kill()
				p.list()
			} else {
				for range kinds { // the driver and the other program still live then
					d.until(swarm.TurnEnded)
				}
			}
			for name := range kinds {
				if !exists(filepath.Join(p.dir, "ready-"+name)) {
					t.Errorf("%s was ended before it had left anything", name)
				}
			}
			survivors := 0
			for pid, line := range p.inside() {
				if pid != d.cmd.Process.Pid && !strings.Contains(line, "other.sh") && !strings.HasPrefix(line, "sleep 0.05") {
					t.Errorf("%d survives: %s", pid, line)
					survivors++
				}
			}
			t.Logf("%d kinds, %d survivors", len(kinds), survivors)
			p.check(os.WriteFile(filepath.Join(p.dir, "release"), nil, 0o600))
			d.ends()
			folder, release := process.Contain("") // where this test is in, and so its programs
			release()
			if left, _ := filepath.Glob(fmt.Sprintf("%s/swarm-*-%d", folder, d.cmd.Process.Pid)); len(left) != 0 {
				t.Errorf("cgroups are left: %v", left)
			}
		})
	}
}
