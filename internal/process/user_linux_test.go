package process

import (
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAnotherUserIsRefused: a socket belongs to the user of the thread that made it. Only root can
// make one for somebody else.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, user := range []int{0, 65534} {
		dialed := make(chan net.Conn, 1)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its user
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0)); errno != 0 {
				t.Error(errno)
			}
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
			}
			dialed <- conn
		}()
		ours, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		theirs := <-dialed
		if err := CheckUser(ours); (err != nil) != (user != 0) {
			t.Errorf("user %d: %v", user, err)
		}
		theirs.Close()
		ours.Close()
	}
}
