package process

import (
	"golang.org/x/sys/unix"

	"swarm"
)

// ForbidInspection keeps other processes of the same user away from this one: they can no longer
// read its environment, memory and open files in /proc, nor attach a debugger. So an agent with a
// shell does not read the keys that were kept out of its own environment. Root still can. Programs
// that this process starts are not affected: the kernel permits inspection again at exec.
//
// It is called first in main. Until then, some milliseconds after the start, the process is open.
func ForbidInspection() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// AllowInspection undoes [ForbidInspection] in a command that acts as an agent. It has no secret
// but the agent's, and the run's driver must see which job it belongs to: see [CheckToken].
func AllowInspection() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) }

// Separation reports what separates programs of the same user on this machine; nil = it does.
//   - keys: they cannot read the keys of this process, see [ForbidInspection].
//   - tokens: they cannot use each other's tokens, see [CheckToken].
//   - leftovers: they cannot outlive their run, see [Contain].
func Separation() (keys, tokens, leftovers error) {
	if mayInspectAll() {
		keys = swarm.Errorf(swarm.Other, "agents run as root here, who may read the environment of every process").
			WithHint("run swarm as another user")
	}
	if err := findsPeers(); err != nil {
		tokens = swarm.Errorf(swarm.Other, "this machine does not tell which process holds a connection: %w", err).
			WithHint("an agent with a shell may use the token of another one")
	}
	if err := checkCgroup(); err != nil {
		leftovers = swarm.Errorf(swarm.Other, "no cgroup can be made, so leftover processes are found by descent and by marks: %w", err).
			WithHint("a process that hides on purpose may outlive a killed swarm; " +
				"`systemd-run --user --scope -p Delegate=yes swarm up` gives it a cgroup")
	}
	return keys, tokens, leftovers
}

// mayInspectAll reports whether this process, and so every program that it starts, may inspect all
// others. Usually root may.
func mayInspectAll() bool {
	var held [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &held[0])
	return err == nil && held[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
