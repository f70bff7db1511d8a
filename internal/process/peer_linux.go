package process

import (
	"cmp"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"strconv"

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
	inode, err := peerInode(conn)
	if err != nil {
		return 0, err
	}
	if among == nil {
		among = processes()
	}
	link := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	for _, pid := range among {
		if holdsFile(pid, link) {
			return pid, nil
		}
	}
	return 0, swarm.Errorf(swarm.NotFound, "no process that this one may look into holds the other end of the connection")
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

// holdsFile reports whether a process has a file open that its link in /proc names.
func holdsFile(pid int, link string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for i := len(names) - 1; i >= 0; i-- { // a new socket has a high number
		if to, err := os.Readlink(dir + "/" + names[i]); err == nil && to == link {
			return true
		}
	}
	return false
}

// peerInode returns the inode of the socket at the other end of a TCP connection within this
// machine. It asks the kernel for that one socket (sock_diag(7)), which takes as long with ten
// thousand connections as with one. /proc/net/tcp lists them all.
func peerInode(conn net.Conn) (uint32, error) {
	theirs, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return 0, err
	}
	ours, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, socketQuery(theirs, ours), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, os.NewSyscallError("recvfrom", err)
	}
	if answer = answer[:n]; n >= 20 && binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		err := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[16:])))
		return 0, os.NewSyscallError("sock_diag", err)
	}
	const inode = 16 + 4 + 48 + 4*4 // header, state, addresses, four counters: struct inet_diag_msg
	if n < inode+4 {
		return 0, swarm.Errorf(swarm.Protocol, "sock_diag answers with %d bytes", n)
	}
	return binary.NativeEndian.Uint32(answer[inode:]), nil
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
