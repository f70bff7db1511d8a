package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockVersion returns the version of the kernel's interface; 0 = there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// A ruleset is the kernel's landlock_ruleset_attr.
type ruleset struct{ files, network, scoped uint64 }

// landlockScopes is the version that knows abstract Unix sockets.
const landlockScopes = 6

// hideAbstractSockets keeps the program from sockets without a path that others listen on. They
// belong to the network namespace, so a program that has the machine's network would reach them. An
// older kernel cannot do it; what is left open there is a part of `network: all`.
func hideAbstractSockets() error {
	if landlockVersion() < landlockScopes {
		return nil
	}
	rules := ruleset{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}
