package control

import (
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A Caller is the person or agent that acts. The zero value is a person.
type Caller struct {
	swarm.TurnRef                    // the turn in which this program runs; its parts are "" when unknown
	Door          swarm.ToolEndpoint // the agent's tools
	How           string             // the way that the caller acts, as [swarm.Actor.How]
	// Key is what an MCP client may do that drives runs; nil = the caller is none.
	Key *ClientKey
	// Agent says that this program runs inside a turn of this state folder. What is a person's to
	// do is refused then, but in the runs that the turn began.
	Agent  bool
	driver int // the process above this one that drives runs of this state folder; 0 = none was found
}

// CallerFromEnv returns the caller by the environment variables that the runtime sets for agents'
// programs. It does not know of [Caller.Agent].
func CallerFromEnv() Caller {
	return Caller{TurnRef: swarm.TurnRef{Run: swarm.RunID(os.Getenv("SWARM_RUN_ID")), Turn: swarm.TurnID(os.Getenv("SWARM_TURN_ID"))},
		Door: swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}}
}

// FindCaller returns the caller of this program. The environment says which turn it is in. An agent
// can unset or change these variables, so two other signs count too:
//   - An ancestor of this process drives a run of the state folder. Then this process is inside a turn
//     of that run.
//   - The limit that programs of runs inherit: see [process.Inside]. It stays when the driver is
//     killed, and in a pid namespace. It names neither the turn nor the state folder, so it counts
//     in every state folder except those that an agent made itself.
//
// This is no sandbox. Both are known on Linux only, and a process that another service starts for
// the agent (cron, systemd, sshd, a container) has neither.
func FindCaller(h *statedir.Home, how string) Caller {
	c := CallerFromEnv()
	c.How = how
	driver, runs := driverAbove(h, os.Getpid())
	c.driver = driver
	switch {
	case driver == 0 && process.Inside() && !h.OfAgent():
		c.Agent, c.TurnRef = true, swarm.TurnRef{}
	case driver == 0:
		// The agent of another state folder is free in this one.
		c.Agent = c.Turn != "" && (c.Run == "" || h.Exists(c.Run) || h.HasMark(c.Run)) // agents get no address of a shared store
	case c.Turn != "" && slices.Contains(runs, c.Run):
		c.Agent = true
	default: // the variables are gone, or name another run
		c.Agent, c.TurnRef = true, swarm.TurnRef{}
		if len(runs) == 1 {
			c.Run = runs[0]
		}
	}
	return c
}

// CheckPeer refuses a connection whose other end is a process inside a turn. The token of a server
// is a person's, but the programs of agents can read its file.
//
// This is no sandbox, as with [FindCaller]: see [process.CheckOutside].
func CheckPeer(h *statedir.Home, conn net.Conn) error {
	var drivers []int
	for _, m := range h.Marks() {
		if isDriver(h, m, process.IDOf(m.PID)) {
			drivers = append(drivers, m.PID)
		}
	}
	return process.CheckOutside(conn, drivers)
}

// CheckBrowser is [CheckPeer] for one-time codes and cookies of a server. Other users of this machine
// are refused as well: they can see the command line of the program that opens a browser, with the
// code in it. And a browser sends its cookie to every server of this machine, whatever its port.
func CheckBrowser(h *statedir.Home, conn net.Conn) error {
	if err := CheckPeer(h, conn); err != nil {
		return err
	}
	return process.CheckUser(conn)
}

// driverAbove returns the nearest ancestor of a process that drives runs, and these runs. The runs of
// drivers further up are those that it is nested in. pid is 0 if there is none.
func driverAbove(h *statedir.Home, child int) (pid int, runs []swarm.RunID) {
	marks := h.Marks()
	if len(marks) == 0 { // no process drives a run, and /proc need not be read
		return 0, nil
	}
	for _, above := range process.Ancestors(child) {
		for _, m := range marks {
			if isDriver(h, m, above) {
				runs = append(runs, m.Run)
			}
		}
		if len(runs) > 0 {
			return above.PID, runs
		}
	}
	return 0, nil
}

// isDriver reports whether a process is the one that a mark names, and still drives its run. A
// process of another container may have the same pid, but not the same start time.
func isDriver(h *statedir.Home, m statedir.Mark, p process.ID) bool {
	return m.PID == p.PID && (m.Started == p.Started || m.Started == 0) && h.Alive(m)
}

// InTurn reports whether the caller is an agent that can use its own tools.
func (c Caller) InTurn() bool { return c.Door.URL != "" && c.Door.Token != "" }

// Actor returns the caller as logs name it. Whose token a request had is not known, so a caller at
// a server has no user name.
func (c Caller) Actor() swarm.Actor {
	a := swarm.Actor{By: swarm.ByPerson, How: c.How}
	switch {
	case c.Agent:
		a.By, a.Agent = swarm.ByAgent, c.Parent()
	case c.Key != nil:
		a.By, a.Client = swarm.ByClient, c.Key.Name
	case c.How != swarm.HowHTTP && c.How != swarm.HowA2A:
		a.User = userName()
	}
	return a
}

// userName returns the name of the user whose process this is, or the number if it has no name.
// Variables such as $USER do not count, because a program can set them.
func userName() string {
	id := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}

// Parent returns the turn in which the caller begins a run; nil = a person begins it.
func (c Caller) Parent() *swarm.TurnRef {
	if !c.Agent || c.Run == "" {
		return nil
	}
	return &c.TurnRef
}

// Person refuses an agent what only a person may do in the state folder.
func (c Caller) Person(what string) error {
	if !c.Agent {
		return nil
	}
	err := swarm.Errorf(swarm.Denied, "%s is for a person to do, not for an agent", what)
	switch {
	case c.Turn == "" && c.driver == 0:
		return err.WithHint("%s", "this process is inside an agent's turn: its lowered hard limit of file locks (ulimit -H -x) says so")
	case c.Turn == "":
		return err.WithHint("this process is inside an agent's turn: process %d above it drives a run", c.driver)
	}
	return err.WithHint("%s", "what an agent may do it does by its own tools, or by swarm send, inbox, publish, wait-for, spawn; to ask a person: swarm ask \"…\"; to report that all is done, which ends the lead's run: swarm done \"…\"")
}

// Steer refuses an agent what only a person may do in a run, unless the agent's turn began the run:
// itself, or by a run that it began, however deep the nesting. It refuses an MCP client all runs but
// those of its key.
func (c Caller) Steer(h *statedir.Home, id swarm.RunID, what string) error {
	if c.Key != nil {
		return c.Key.steer(h, id)
	}
	if !c.Agent || c.Run != "" && c.began(h, id) {
		return nil
	}
	return c.Person(what)
}

// began reports whether the caller's turn began a run. A run whose log cannot be read was begun by
// nobody, as was one whose parent is deleted.
func (c Caller) began(h *statedir.Home, id swarm.RunID) bool {
	const most = 100 // a log that names its own run as its parent ends here
	for range most {
		start, err := run.ReadStart(h, id)
		if err != nil || start.Parent == nil {
			return false
		}
		if *start.Parent == c.TurnRef {
			return true
		}
		id = start.Parent.Run
	}
	return false
}

// OwnRun refuses an agent any other run of the same state folder, because no edge leads there.
func (c Caller) OwnRun(id swarm.RunID) error {
	if !c.Agent || id == c.Run {
		return nil
	}
	return ErrOtherRun()
}

// ErrOtherRun refuses an agent any run but its own.
func ErrOtherRun() error {
	return swarm.Errorf(swarm.BadInput, "an agent acts in its own run only").WithHint("leave --run out")
}
