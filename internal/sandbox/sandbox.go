// Package sandbox confines the programs of agents by means of the operating system.
//
// A provider asks its [Box] to wrap a command line. The wrapped line starts our own program again,
// which builds the sandbox and runs the agent's program in it. Package process starts the wrapped
// line and knows nothing of sandboxes.
//
// The wrapped line has two stages, each a start of our own program:
//
//   - [Main] runs outside, as the root of the job. It starts the inner stage, in bubblewrap if that
//     works on this machine. It admits connections to the hosts of the network list, and ends when
//     the program or the driver ends.
//   - The inner stage runs inside. It opens the listeners of the relay, hands them to the outer
//     stage, gives up what is left of its rights, and becomes the program by exec. Without
//     bubblewrap it confines itself by Landlock first.
//
// The outer stage accepts the connections of the program itself: a socket belongs to the network
// namespace in which it was made, whichever process holds it. So no byte needs a copy inside, and
// every connection to the driver comes from a process of the job.
//
// Landlock has no namespaces, so it holds less: docs/providers.md says what. A network that it cannot
// hold is an error, and so is a machine that has neither.
package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/hostrule"
)

// The commands of our own program that build a sandbox. No help lists them.
const (
	outerCommand = "sandbox-outside"
	innerCommand = "sandbox-inside"
)

// A Box is the sandbox of a provider's programs. A nil Box confines nothing.
type Box struct {
	spec swarm.Sandbox
	opt  Options
}

// Options are what a sandbox needs beside its description in the plan.
type Options struct {
	Dir     string   // relative paths of the description start here; "" = the current folder
	Hidden  []string // our own state; absolute
	Guarded []string // files of the project that swarm executes or obeys: read-only; absolute
	Login   []string // folders that the programs need for their login, in the home folder
	Obeyed  []string // files in them that a person's own program would obey: read-only
}

// New makes the sandbox that spec describes, or nil if spec is nil.
func New(spec *swarm.Sandbox, opt Options) *Box {
	if spec == nil {
		return nil
	}
	if opt.Dir == "" {
		opt.Dir, _ = os.Getwd()
	}
	return &Box{*spec, opt}
}

// A Workspace is what one program works on.
type Workspace struct {
	Dir   string   // where it is started; absolute
	Write []string // what it may write; absolute
	Read  []string // files for it that a sandbox hides, such as in the temporary folder; absolute
}

// A policy is what one program may do. It stands in the arguments of the wrapped line, so it holds
// no secret.
type policy struct {
	Bwrap  string   `json:"bwrap,omitempty"` // the program bubblewrap; "" = Landlock
	Self   string   `json:"self"`            // our own program
	Dir    string   `json:"dir"`
	Write  []string `json:"write,omitempty"`  // the workspace
	Login  []string `json:"login,omitempty"`  // in the home folder
	Obeyed []string `json:"obeyed,omitempty"` // in the home folder
	Guard  []string `json:"guard,omitempty"`
	Hide   []string `json:"hide,omitempty"`
	Needed []string `json:"needed,omitempty"` // read-only, where it would not be visible
	// Of the compose file:
	MayWrite []string `json:"may_write,omitempty"`
	MayRead  []string `json:"may_read,omitempty"`
	Online   bool     `json:"online,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`
	// Of the outer stage:
	Temp string `json:"temp,omitempty"` // the folder of temporary files, if Landlock confines
}

// Wrap returns the command line that runs a program in the sandbox.
func (b *Box) Wrap(path string, argv []string, w Workspace) (string, []string, error) {
	if b == nil {
		return path, argv, nil
	}
	how := machineSupport()
	if err := how.holds(b.spec); err != nil {
		return "", nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return "", nil, swarm.Errorf(swarm.Other, "the sandbox cannot find the program swarm: %w", err)
	}
	if w.Dir == "" {
		w.Dir = b.opt.Dir
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Dir, path)
	}
	if _, err := os.Stat(path); err != nil {
		return "", nil, err
	}
	home := os.Getenv("HOME")
	p := policy{
		Bwrap:    how.bwrap,
		Self:     self,
		Dir:      w.Dir,
		Write:    slices.DeleteFunc(slices.Clone(w.Write), func(path string) bool { return path == "" }),
		Login:    b.opt.Login,
		Obeyed:   b.opt.Obeyed,
		Guard:    b.opt.Guarded,
		Hide:     slices.Concat(b.opt.Hidden, absolute(b.spec.Hide, home, b.opt.Dir)),
		Needed:   append([]string{self, path}, w.Read...),
		MayWrite: absolute(b.spec.Write, home, b.opt.Dir),
		MayRead:  absolute(b.spec.Read, home, b.opt.Dir),
		Online:   b.spec.Network == swarm.NetworkAll,
		Hosts:    b.spec.Hosts,
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "", nil, err
	}
	return self, slices.Concat([]string{"swarm", outerCommand, string(text), path}, argv), nil
}

// Check reports whether the sandbox can be had on this machine, by starting a program in one.
func (b *Box) Check() error {
	if b == nil {
		return nil
	}
	if err := machineSupport().holds(b.spec); err != nil {
		return err
	}
	for _, path := range absolute(slices.Concat(b.spec.Write, b.spec.Read), os.Getenv("HOME"), b.opt.Dir) {
		if _, err := os.Stat(path); err != nil {
			return swarm.Errorf(swarm.NotFound, "the sandbox names %s, which is not there", path).
				WithHint("make it, or take it out of `sandbox`")
		}
	}
	return nil
}

// A support is what a machine offers.
type support struct {
	bwrap   string // the program bubblewrap, which works; "" = Landlock
	without string // why bubblewrap does not
	err     error  // why there is no sandbox
}

// holds returns why the machine cannot hold a program to spec.
func (s support) holds(spec swarm.Sandbox) error {
	if s.err == nil && s.bwrap == "" && spec.Network != swarm.NetworkAll {
		return swarm.Errorf(swarm.NotFound, "`network` of a sandbox cannot be held on this machine: %s, and Landlock knows ports but no hosts", s.without).
			WithHint("%s; or write network: all, with which Landlock confines the rest", installBwrap)
	}
	return s.err
}

const installBwrap = "install bubblewrap: apt install bubblewrap, dnf install bubblewrap or apk add bubblewrap"

// Describe says what kind of sandbox works on this machine, or why none does.
func Describe() (string, error) {
	how := machineSupport()
	if how.bwrap == "" {
		return "Landlock, which holds less than bubblewrap and no list of hosts: " + how.without, how.err
	}
	return "bubblewrap (" + how.bwrap + ")", how.err
}

// IsLandlock reports whether this machine confines by Landlock.
func IsLandlock() bool {
	how := machineSupport()
	return how.err == nil && how.bwrap == ""
}

// absolute makes paths of a compose file absolute. ~/ is the home folder.
func absolute(paths []string, home, dir string) []string {
	out := make([]string, len(paths))
	for i, path := range paths {
		switch rest, inHome := strings.CutPrefix(path, "~/"); {
		case inHome || path == "~":
			out[i] = filepath.Join(home, strings.TrimPrefix(rest, "~"))
		case filepath.IsAbs(path):
			out[i] = filepath.Clean(path)
		default:
			out[i] = filepath.Join(dir, path)
		}
	}
	return out
}

// ParseHost parses an entry of a network list.
func ParseHost(entry string) (hostrule.Rule, error) {
	return hostrule.Parse(entry, func(host string) string { return host })
}
