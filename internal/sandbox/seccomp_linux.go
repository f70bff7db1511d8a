package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Namespaces leave some ways out that no mount closes: sockets of families that have no namespace
// (vsock leads from a virtual machine to its host), the kernel's keyrings, and a few calls in which
// most kernel bugs are found. A filter of system calls closes them.

// families are the socket families that a program may use.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// deniedCalls are the system calls that a program may not use, and the error that it gets instead.
// Programs fall back from ENOSYS to older calls.
var deniedCalls = []struct {
	number uint32
	errno  unix.Errno
}{
	{unix.SYS_KEYCTL, unix.EPERM}, {unix.SYS_ADD_KEY, unix.EPERM}, {unix.SYS_REQUEST_KEY, unix.EPERM},
	{unix.SYS_BPF, unix.EPERM}, {unix.SYS_PERF_EVENT_OPEN, unix.EPERM}, {unix.SYS_USERFAULTFD, unix.EPERM},
	// It opens sockets without the call that is checked.
	{unix.SYS_IO_URING_SETUP, unix.ENOSYS}, {unix.SYS_IO_URING_ENTER, unix.ENOSYS}, {unix.SYS_IO_URING_REGISTER, unix.ENOSYS},
	// Its flags are in memory, where a filter cannot see them.
	{unix.SYS_CLONE3, unix.ENOSYS},
}

// sharedCalls are the system calls that share memory and messages with other programs of the
// machine. A program without namespaces of its own may not use them.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// auditArch is the name of an architecture in a filter. A call of another one, such as a 32-bit call
// on a 64-bit kernel, has other numbers.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
	dataArg1   = 24
)

// socketKind are the bits of a socket's type that are no flags.
const socketKind = 0xf

// x32 marks calls of the x32 interface, which have the same architecture and other numbers.
const x32 = 0x40000000

// callFilter makes the filter. shared says that the program shares its namespaces with the machine.
func callFilter(arch uint32, shared bool) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	// jump skips one instruction if the test fails.
	jump := func(test uint16, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: 0, Jf: 1}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	fail := func(e unix.Errno) unix.SockFilter { return end(unix.SECCOMP_RET_ERRNO | uint32(e)) }
	filter := []unix.SockFilter{
		load(dataArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: arch, Jt: 1, Jf: 0},
		end(unix.SECCOMP_RET_KILL_PROCESS),
		load(dataNumber),
		jump(unix.BPF_JGE, x32), fail(unix.ENOSYS),
	}
	for _, call := range deniedCalls {
		filter = append(filter, jump(unix.BPF_JEQ, call.number), fail(call.errno))
	}
	// check adds instructions that run for one call. They begin with the number of the call, and end
	// with an answer.
	check := func(call uint32, then ...unix.SockFilter) {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: 0, Jf: uint8(len(then))})
		filter = append(filter, then...)
	}
	// Most ways to break out of a kernel begin with a user namespace.
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		check(call, load(dataArg0), jump(unix.BPF_JSET, unix.CLONE_NEWUSER), fail(unix.EPERM), end(unix.SECCOMP_RET_ALLOW))
	}
	sockets := families
	if shared {
		for _, call := range sharedCalls {
			filter = append(filter, jump(unix.BPF_JEQ, call), fail(unix.EPERM))
		}
		// Limits of other processes of the same user. 0 is the process itself.
		check(unix.SYS_PRLIMIT64, load(dataArg0), jump(unix.BPF_JEQ, 0), end(unix.SECCOMP_RET_ALLOW), fail(unix.EPERM))
		// Landlock does not know of Unix sockets with a path: those of Docker, of the session's bus and
		// of SSH's agent. A pair is connected to itself for good, unless it is of datagrams.
		sockets = slices.DeleteFunc(slices.Clone(families), func(f uint32) bool { return f == unix.AF_UNIX })
		check(unix.SYS_SOCKETPAIR, load(dataArg1), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketKind},
			jump(unix.BPF_JEQ, unix.SOCK_DGRAM), fail(unix.EPERM), load(dataNumber))
	}
	among := func(families []uint32) []unix.SockFilter {
		then := []unix.SockFilter{load(dataArg0)}
		for _, family := range families {
			then = append(then, jump(unix.BPF_JEQ, family), end(unix.SECCOMP_RET_ALLOW))
		}
		return append(then, fail(unix.EAFNOSUPPORT))
	}
	check(unix.SYS_SOCKET, among(sockets)...)
	check(unix.SYS_SOCKETPAIR, among(families)...)
	return append(filter, end(unix.SECCOMP_RET_ALLOW))
}

// filterCalls applies the filter to this thread, and to the program that it becomes.
func filterCalls(shared bool) error {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return errors.New("there is no filter of system calls for " + runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := callFilter(arch, shared)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	runtime.KeepAlive(filter)
	return nil
}
