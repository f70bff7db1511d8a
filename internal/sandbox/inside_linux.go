package sandbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInside prepares the sandbox from inside, and becomes the program. It returns only if it fails.
func runInside(text, path string, argv []string) int {
	var in inside
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return complain("the arguments of a sandbox cannot be read: %v", err)
	}
	proxy, err := in.openListeners()
	if err != nil {
		return complain("the sandbox has no way to its network: %v", err)
	}
	env := in.environ(os.Environ(), proxy)
	if err := in.dropRights(); err != nil {
		return complain("the sandbox could not be closed: %v", err)
	}
	// A descriptor that was inherited from far above may lead anywhere.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return complain("the sandbox could not be closed: %v", err)
	}
	err = syscall.Exec(path, argv, env)
	fmt.Fprintf(os.Stderr, "swarm: %s could not be started in the sandbox: %v\n", path, err)
	return exitNoProgram
}

// openListeners listens on the loopback interface of the sandbox and sends the listeners to the
// outer stage. It returns the address of the proxy.
func (in inside) openListeners() (proxy string, err error) {
	control, err := connOf(controlFD)
	if err != nil {
		return "", err
	}
	defer control.Close()
	addresses := in.Doors
	if in.Proxy {
		addresses = append(slices.Clone(addresses), "127.0.0.1:0")
	}
	var fds []int
	var opened []bool
	for i, address := range addresses {
		l, err := net.Listen("tcp", address)
		if opened = append(opened, err == nil); err != nil {
			continue // a port that needs rights
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return "", err
		}
		defer file.Close()
		fds = append(fds, int(file.Fd()))
		if i == len(in.Doors) {
			proxy = l.Addr().String()
		}
		defer l.Close()
	}
	told, err := json.Marshal(opened)
	if err != nil {
		return "", err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = control.WriteMsgUnix(told, rights, nil)
	return proxy, err
}

// receiveListeners receives what openListeners sends. The listener of an address that could not be
// opened is nil.
func receiveListeners(control *net.UnixConn) ([]net.Listener, error) {
	told, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*253))
	n, have, _, _, err := control.ReadMsgUnix(told, rights)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, io.EOF
	}
	var opened []bool
	if err := json.Unmarshal(told[:n], &opened); err != nil {
		return nil, err
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(rights[:have])
	if err != nil {
		return nil, err
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, more...)
	}
	listeners := make([]net.Listener, len(opened))
	for i, ok := range opened {
		if !ok {
			continue
		}
		if len(fds) == 0 {
			return nil, errors.New("a listener is missing")
		}
		file := os.NewFile(uintptr(fds[0]), "listener")
		fds = fds[1:]
		l, err := net.FileListener(file)
		file.Close()
		if err != nil {
			return nil, err
		}
		listeners[i] = l
	}
	return listeners, nil
}

// gone are variables that lead to what a sandbox hides.
var gone = []string{"XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "GPG_AGENT_INFO", "DOCKER_HOST"}

// environ changes the environment to what is true inside.
func (in inside) environ(env []string, proxy string) []string {
	drop := slices.Clone(gone)
	var added []string
	if in.Alone {
		drop = append(drop, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
	}
	if proxy != "" {
		// Node.js uses a proxy only if it is told to.
		added = append(added, "HTTP_PROXY=http://"+proxy, "HTTPS_PROXY=http://"+proxy, "NODE_USE_ENV_PROXY=1",
			"http_proxy=http://"+proxy, "https_proxy=http://"+proxy,
			"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
	}
	if in.Temp != "" {
		drop, added = append(drop, "TMPDIR"), append(added, "TMPDIR="+in.Temp)
	}
	caches := false
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		caches = caches || name == "XDG_CACHE_HOME"
		return slices.Contains(drop, strings.ToUpper(name))
	})
	if !caches { // ~/.cache is read-only: what compilers keep there, others run
		added = append(added, "XDG_CACHE_HOME="+cmp.Or(in.Temp, "/tmp")+"/.cache")
	}
	return append(env, added...)
}

// dropRights gives up what bubblewrap leaves to a program, or everything that Landlock can hold.
func (in inside) dropRights() error {
	if in.Landlock == nil {
		if err := hideAbstractSockets(); err != nil {
			return err
		}
		return filterCalls(false)
	}
	if err := in.Landlock.confineByLandlock(thisMachine(os.Getenv("HOME"))); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	// It ends with the outer stage, as a program in bubblewrap does.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	return filterCalls(true)
}

// dropCapabilities gives up the capabilities of root. No program that it starts has them again,
// because no new privileges are allowed.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
