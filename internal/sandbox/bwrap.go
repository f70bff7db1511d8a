package sandbox

import (
	"slices"
	"strconv"
)

// Descriptors of bubblewrap. Those from firstEmpty on are empty files, one for each hidden file.
const (
	controlFD  = 3 // a socket to the outer stage
	firstEmpty = 4
)

// namespaces are the arguments that separate the program from the machine. They need no knowledge of
// the policy, so they are also those of the check.
var namespaces = []string{
	"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
	"--cap-drop", "ALL", "--die-with-parent",
}

// bwrapArguments returns the arguments of bubblewrap before the program's own, and how many empty
// files they take.
func (p *policy) bwrapArguments(m machine) (args []string, empty int) {
	args = slices.Clone(namespaces)
	if !p.Online {
		args = append(args, "--unshare-net")
	}
	args = append(args,
		"--ro-bind", "/", "/",
		"--dev", "/dev",
		// A program that opens its terminal could type into it.
		"--ro-bind", "/dev/null", "/dev/tty",
		// Files below /proc/sys belong to root, and who is root without any rights may still write them.
		"--proc", "/proc", "--remount-ro", "/proc")
	var sealed []string
	for _, one := range p.mounts(m) {
		switch {
		case one.mode == readOnly:
			args = append(args, "--ro-bind", one.path, one.path)
		case one.mode == writable:
			args = append(args, "--bind", one.path, one.path)
		case one.file:
			args = append(args, "--ro-bind-data", strconv.Itoa(firstEmpty+empty), one.path)
			empty++
		case one.mode == private:
			args = append(args, "--tmpfs", one.path)
		default:
			args = append(args, "--tmpfs", one.path)
			sealed = append(sealed, one.path)
		}
	}
	for _, path := range sealed { // only now: mounts below it needed places in it
		args = append(args, "--remount-ro", path)
	}
	return append(args, "--chdir", p.Dir), empty
}
