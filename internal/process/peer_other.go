//go:build unix && !linux

package process

import (
	"net"

	"swarm"
)

// Peer returns an error: only Linux tells which process holds a socket.
func Peer(net.Conn, []int) (pid int, err error) {
	return 0, swarm.Errorf(swarm.Other, "this system does not tell which process holds a connection")
}

// CheckOutside refuses nobody: only Linux tells which process holds a connection.
func CheckOutside(net.Conn, []int) error { return nil }

// CheckUser refuses nobody, for the same reason.
func CheckUser(net.Conn) error { return nil }

// IsClosed returns false: it is of use only where a connection can be refused.
func IsClosed(net.Conn) bool { return false }
