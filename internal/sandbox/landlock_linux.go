package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"unsafe"

	"golang.org/x/sys/unix"

	"swarm/internal/process"
)

// landlockVersion returns the version of the kernel's interface; 0 = there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlockName says which version the kernel has.
func landlockName(version int) string {
	if version == 0 {
		return "missing"
	}
	return fmt.Sprintf("too old (version %d of %d)", version, landlockScopes)
}

// landlockScopes is the version that keeps a program from abstract Unix sockets and from signals to
// processes outside. Linux has it since 6.12.
const landlockScopes = 6

// A ruleset is the kernel's landlock_ruleset_attr.
type ruleset struct{ files, network, scoped uint64 }

// Rights of Landlock. Making devices is allowed nowhere.
const (
	mayRead     = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayWriteOne = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	mayWrite    = mayWriteOne | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	mayNowhere = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// rights returns what Landlock is to allow.
func (g grant) rights() (rights uint64) {
	rights = mayRead
	if g.write {
		rights |= mayWrite
	}
	if !g.dir { // the kernel refuses rights that a file cannot have
		rights &= unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | mayWriteOne
	}
	return rights
}

// hideAbstractSockets keeps the program from sockets without a path that others listen on. They
// belong to the network namespace, so a program that has the machine's network would reach them. An
// older kernel cannot do it; what is left open there is a part of `network: all`.
func hideAbstractSockets() error {
	if landlockVersion() < landlockScopes {
		return nil
	}
	return restrictSelf(ruleset{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}, nil)
}

// confineByLandlock confines this thread, and the program that it becomes, to the policy. The kernel
// then also refuses it to mount, and to trace or signal a process that is not confined with it.
func (p *policy) confineByLandlock(m machine) error {
	if v := landlockVersion(); v < landlockScopes {
		return errors.New("the kernel's Landlock is " + landlockName(v))
	}
	return restrictSelf(ruleset{
		files:  mayRead | mayWrite | mayNowhere,
		scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}, p.grants(m))
}

func restrictSelf(rules ruleset, grants []grant) error {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	for _, g := range grants {
		if err := addGrant(fd, g); err != nil {
			return fmt.Errorf("landlock: %s: %w", g.path, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func addGrant(ruleset uintptr, g grant) error {
	flags := unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW
	if g.dir {
		flags |= unix.O_DIRECTORY
	}
	at, err := unix.Open(g.path, flags, 0)
	if err != nil {
		return nil // it has gone or changed since, or cannot be reached: it is not allowed
	}
	defer func() { _ = unix.Close(at) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: g.rights(), Parent_fd: int32(at)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// prepareLandlock makes what bubblewrap's namespaces would be: a folder for temporary files, and a
// parent for every process that the program leaves behind.
func (p *policy) prepareLandlock() (err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	// When the driver is gone, a message of this stage goes to a broken pipe. It must not end the
	// stage before cleanLandlock has. Unlike an ignored signal, the program does not inherit this.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	p.Temp, err = os.MkdirTemp("", "swarm-sandbox-")
	return err
}

// cleanLandlock ends every process below this one, and deletes their temporary files. The program
// cannot mount, so deleting them leads nowhere else.
func (p *policy) cleanLandlock() {
	self := []int{os.Getpid()}
	for {
		for _, pid := range process.Descendants(self) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		// A process that was started meanwhile is found when its parent has ended.
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			break
		}
	}
	_ = os.RemoveAll(p.Temp)
}
