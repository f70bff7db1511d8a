package process

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"swarm"
)

// Peer returns the process at the other end of a connection within this machine. It searches the
// processes in among; nil = all. A process whose open files this one may not list is not found: it
// belongs to another user, or is not dumpable.
//
// Two processes may share a socket. Then Peer returns one of them.
func Peer(conn net.Conn, among []int) (pid int, err error) {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = secured.NetConn()
	}
	if c, ok := conn.(*net.UnixConn); ok {
		return unixPeer(c)
	}
	inode, _, err := peerSocket(conn)
	if err != nil {
		return 0, err
	}
	if among == nil {
		among = processes()
	}
	link := socketLink(inode)
	for _, pid := range among {
		if held, _ := holdsFile(pid, link); held {
			return pid, nil
		}
	}
	return 0, swarm.Errorf(swarm.NotFound, "no process that this one may look into holds the other end of the connection")
}

func socketLink(inode uint32) string { return "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]" }

// CheckOutside returns an error if the other end of a connection within this machine is held by a
// process inside a turn: below one of the drivers, or with the mark of a job, which also stays when
// the driver is killed. Connections of other machines pass.
//
// A process that cannot be found must not pass as somebody else. So two kinds are refused as well:
//   - A connection that its client has closed. The client waits for no answer.
//   - A connection that nobody visible holds, while a process inside a turn, of the same user as the
//     client, hides its open files because it is not dumpable. Without such a process the client may
//     be a tunnel of sshd, and passes.
func CheckOutside(conn net.Conn, drivers []int) error {
	if findsPeers() != nil {
		return nil //nolint:nilerr // this machine does not tell
	}
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = secured.NetConn()
	}
	inode, user, err := peerSocket(conn)
	switch {
	case isClosed(inode, err) && isLocal(conn):
		return swarm.Errorf(swarm.Denied, "the client has closed its connection, so nobody can tell whether it is an agent").
			WithHint("keep the connection open until the answer is there")
	case err != nil:
		return nil //nolint:nilerr // the client is on another machine
	}
	link := socketLink(inode)
	for range 2 { // the first search misses a process whose parent ends at this moment
		inside, hidden := Descendants(drivers), 0
		for _, pid := range programs.find() {
			if !slices.Contains(drivers, pid) && !slices.Contains(inside, pid) {
				inside = append(inside, pid)
			}
		}
		for _, pid := range inside {
			held, err := holdsFile(pid, link)
			if held {
				return errInside(pid)
			}
			if errors.Is(err, fs.ErrPermission) && userOf(pid) == user {
				hidden = pid
			}
		}
		if hidden != 0 && !slices.ContainsFunc(processes(), func(pid int) bool { held, _ := holdsFile(pid, link); return held }) {
			return errInside(hidden)
		}
	}
	return nil
}

// IsClosed reports whether the client of a connection within this machine has closed it. A program
// that ends closes its connections, also those whose request is on its way.
func IsClosed(conn net.Conn) bool {
	if _, ok := conn.(*net.UnixConn); ok {
		return false // the kernel remembers its client
	}
	inode, _, err := peerSocket(conn)
	return isClosed(inode, err) && isLocal(conn)
}

// isClosed reads an answer of [peerSocket]: the socket belongs to no process now, or is gone.
func isClosed(inode uint32, err error) bool { return err != nil || inode == 0 }

// CheckUser returns an error if the other end of a connection within this machine belongs to another
// user than this process. Root and other machines pass.
func CheckUser(conn net.Conn) error {
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = secured.NetConn()
	}
	_, user, err := peerSocket(conn)
	if err != nil || user == 0 || user == os.Geteuid() {
		return nil //nolint:nilerr // this machine does not tell, or the client is on another one
	}
	return swarm.Errorf(swarm.Denied, "this address is for another user of this machine").
		WithHint("the user who started swarm can open it")
}

func errInside(pid int) error {
	return swarm.Errorf(swarm.Denied, "the token of this server is for people, and process %d is inside an agent's turn", pid).
		WithHint("what an agent may do it does by its own tools")
}

// isLocal reports whether the other end of a connection is on this machine.
func isLocal(conn net.Conn) bool {
	theirs, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || theirs.Addr().Unmap().IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr() == theirs.Addr().Unmap().WithZone("")
	})
}

// A programFinder finds the processes with the mark of a job. It remembers for a second which ones
// have none, so that thousands of connections at once do not each read all of /proc. A pid is not
// reused within that time.
type programFinder struct {
	mu       sync.Mutex
	since    time.Time
	unmarked map[int]bool
}

var programs programFinder

func (f *programFinder) find() (pids []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unmarked == nil || time.Since(f.since) > time.Second {
		f.since, f.unmarked = time.Now(), map[int]bool{}
	}
	for _, pid := range processes() {
		switch {
		case f.unmarked[pid]:
		case readLimitMark(pid) == 0:
			f.unmarked[pid] = true
		default:
			pids = append(pids, pid)
		}
	}
	return pids
}

// unixPeer returns the process that connected to a Unix socket.
func unixPeer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var asked error
	err = raw.Control(func(fd uintptr) {
		peer, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = cmp.Or(err, asked); err != nil {
		return 0, err
	}
	if peer.Pid == 0 {
		return 0, swarm.Errorf(swarm.NotFound, "the process at the other end is in another pid namespace")
	}
	return int(peer.Pid), nil
}

// holdsFile reports whether a process has a file open that its link in /proc names, or why that
// cannot be known. Each thread may have open files of its own, and the first thread may have ended:
// then the process itself has none.
func holdsFile(pid int, link string) (bool, error) {
	proc := "/proc/" + strconv.Itoa(pid)
	held, err := lists(proc+"/fd", link)
	if held || err != nil || statOf(pid).threads < 2 {
		return held, err
	}
	threads, _ := os.ReadDir(proc + "/task")
	for _, thread := range threads {
		if held, _ := lists(proc+"/task/"+thread.Name()+"/fd", link); held {
			return true, nil
		}
	}
	return false, nil
}

// lists reports whether a folder of open files in /proc has one that its link names.
func lists(dir, link string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for i := len(names) - 1; i >= 0; i-- { // a new socket has a high number
		if to, err := os.Readlink(dir + "/" + names[i]); err == nil && to == link {
			return true, nil
		}
	}
	return false, nil
}

// userOf returns the user of a process; -1 = it is gone.
func userOf(pid int) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, _ := bytes.Cut(text, []byte("\nUid:"))
	fields := bytes.Fields(rest[:min(len(rest), 64)])
	if len(fields) < 2 {
		return -1
	}
	effective, _ := strconv.Atoi(string(fields[1])) // a socket belongs to the effective user
	return effective
}

// peerSocket returns the inode and the user of the socket at the other end of a TCP connection within
// this machine. A socket that its process has closed has the inode 0. It asks the kernel for that one socket (sock_diag(7)), which takes as long with ten
// thousand connections as with one. /proc/net/tcp lists them all.
func peerSocket(conn net.Conn) (inode uint32, user int, err error) {
	theirs, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return 0, 0, err
	}
	ours, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return 0, 0, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, 0, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, socketQuery(theirs, ours), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, 0, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, 0, os.NewSyscallError("recvfrom", err)
	}
	if answer = answer[:n]; n >= 20 && binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		err := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[16:])))
		return 0, 0, os.NewSyscallError("sock_diag", err)
	}
	const owner = 16 + 4 + 48 + 3*4 // header, state, addresses, three counters: struct inet_diag_msg
	if n < owner+8 {
		return 0, 0, swarm.Errorf(swarm.Protocol, "sock_diag answers with %d bytes", n)
	}
	return binary.NativeEndian.Uint32(answer[owner+4:]), int(binary.NativeEndian.Uint32(answer[owner:])), nil
}

// socketQuery is a request for the TCP socket with these addresses: struct inet_diag_req_v2.
func socketQuery(local, remote netip.AddrPort) []byte {
	const size = 16 + 8 + 48
	q := make([]byte, 0, size)
	q = binary.NativeEndian.AppendUint32(q, size)
	q = binary.NativeEndian.AppendUint16(q, unix.SOCK_DIAG_BY_FAMILY)
	q = binary.NativeEndian.AppendUint16(q, unix.NLM_F_REQUEST)
	q = append(q, make([]byte, 8)...) // sequence number, port
	family := byte(unix.AF_INET6)
	if local.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	q = append(q, family, unix.IPPROTO_TCP, 0, 0)
	q = binary.NativeEndian.AppendUint32(q, ^uint32(0)) // any state
	q = binary.BigEndian.AppendUint16(q, local.Port())
	q = binary.BigEndian.AppendUint16(q, remote.Port())
	for _, a := range []netip.AddrPort{local, remote} {
		var addr [16]byte
		copy(addr[:], a.Addr().Unmap().AsSlice())
		q = append(q, addr[:]...)
	}
	return append(q, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255) // any interface, no cookie
}
