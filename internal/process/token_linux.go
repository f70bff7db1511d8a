package process

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"swarm"
)

// CheckToken returns an error unless the process at the other end of a connection belongs to a
// program that this process started with the token in its environment. So a token is of no use to
// another agent's program, which can read it there.
//
// A process belongs to a program by descent, or by the program's session when its parent has ended.
// Neither can be forged: only a fork puts a process there. Marks do not count, because every process
// can change its own. So a daemon, which has left both, may not use the token.
//
// Where the machine does not tell which process holds a connection, every process may use a token:
// see [Separation].
func CheckToken(conn net.Conn, token string) error {
	if findsPeers() != nil {
		return nil //nolint:nilerr // as said above
	}
	// A process whose parent ends during the search moves to another place in the tree.
	for range 3 {
		owners := family.processesWith(token)
		if pid, err := Peer(conn, owners); err == nil && slices.Contains(owners, pid) {
			return nil
		}
	}
	return swarm.Errorf(swarm.Denied, "this token is of another agent's program, or of one that has ended").
		WithHint("use the SWARM_AGENT_TOKEN of your own turn, from a process that the turn's program has started; " +
			"a daemon, a container and a process of another user are not known as the turn's")
}

// processesWith returns the processes of the programs that were started with a token, the newest
// first, because those are the likeliest to have opened a new connection.
func (c *children) processesWith(token string) []int {
	c.once.Do(c.setUp)
	c.mu.Lock()
	defer c.mu.Unlock()
	programs := c.programsWith(token)
	for slices.Contains(programs, 0) { // it runs, and its pid is about to be known
		c.started.Wait()
		programs = c.programsWith(token)
	}
	all := []int{} // nil would mean all
	for _, pid := range programs {
		if c.leaders[pid] != nil {
			all = append(all, pid)
		}
	}
	if len(programs) > 0 {
		for _, pid := range c.pids() {
			if session, err := unix.Getsid(pid); err == nil && c.leaders[pid] == nil && slices.Contains(programs, session) {
				all = append(all, pid)
			}
		}
	}
	all = append(all, Descendants(all)...)
	slices.Reverse(all)
	return all
}

// programsWith returns the pids of the programs that were started with a token; 0 = not known yet.
// A pid whose program has ended is not reused while a process of its session is left.
func (c *children) programsWith(token string) (pids []int) {
	for _, p := range c.jobs {
		if p.token == token {
			pids = append(pids, p.group.id)
		}
	}
	return pids
}

// Descendants returns all processes below some processes, parents before their children. A process
// whose parent ends during the search moves to another place in the tree, and may be missed.
func Descendants(of []int) []int {
	all := slices.Clone(of)
	for i := 0; i < len(all); i++ {
		all = append(all, childrenOf(all[i])...)
	}
	return all[len(of):]
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) (pids []int) {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	dir, err := os.Open(threads)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		list, err := os.ReadFile(threads + name + "/children")
		if err != nil && name == strconv.Itoa(pid) { // the kernel has no such list
			return slices.DeleteFunc(processes(), func(other int) bool { return statOf(other).parent != pid })
		}
		for text := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(text); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// findsPeers returns why [Peer] does not work on this machine; nil = it does. A sandbox may forbid
// it.
var findsPeers = sync.OnceValue(func() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		return err
	}
	defer far.Close()
	_, err = Peer(far, []int{os.Getpid()})
	return err
})
