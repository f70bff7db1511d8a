package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/process"
	"swarm/internal/statedir"
	"swarm/internal/tool"
)

// A Confirmation is what a person has to confirm once before a compose file is run: that it hands a
// key to somebody else than the key's vendor, that it names the store of runs, or that it uses a file
// which an agent has changed. Its id is made from exactly that, so an unrelated edit of the file asks
// nothing again.
type Confirmation struct {
	ID        string        `json:"id"`
	Text      string        `json:"text"` // a sentence
	File      string        `json:"file"` // the compose file, absolute
	Confirmed bool          `json:"confirmed"`
	Idle      bool          `json:"idle,omitempty"` // the variable is not set, so nothing would be handed on now
	at        compose.Place // in the file
	args      string        // of `swarm trust`: the file, and what the command line changes in it
}

// Open reports whether it keeps a run from starting.
func (c *Confirmation) Open() bool { return !c.Confirmed && !c.Idle }

// Refusal is the error of a run that cannot start while nobody has confirmed it.
func (c *Confirmation) Refusal() *swarm.Error {
	e := swarm.Errorf(swarm.Unconfirmed, "a person has to confirm this first: %s", c.Text).
		WithHint("to see it all and to confirm it: swarm trust %s", c.args)
	return c.at.Blame(e)
}

// An Asker asks the person at the terminal. It returns false for a no.
type Asker func(Confirmation) bool

// A fileUse is the use of a compose file by a run.
type fileUse struct {
	plan      *swarm.Plan
	places    compose.Places
	dir, file string
	set       []string // what the command line changes in the file
	provider  string   // the provider that the command line prefers
	reads     []string // the files that are read to make the plan; none if the plan is that of an earlier run
	store     string   // the store that the file names; "" = none
}

// StoreVariable names the store of runs that several machines share. It goes before a compose file's
// store.
const StoreVariable = "SWARM_STORE"

// CheckStore checks the address of that variable. Its messages do not repeat the address: it may hold a
// password.
func CheckStore(address string) error {
	if _, ok := compose.ParseStore(address); !ok {
		return swarm.Errorf(swarm.BadInput, StoreVariable+" is not the address of a store").
			WithHint("write it as postgres://user@host:port/database, or unset it: runs are in the state folder then; " +
				"a password with one of / ? # : @ %% belongs in PGPASSWORD")
	}
	return nil
}

// storePassword is the variable whose value is sent to the server of a store.
const storePassword = "PGPASSWORD"

// StoreConfirmation is what a person has to confirm before the store of a compose file is used. A
// stranger's file could name a server of their own. That server is sent the password of another one,
// reads all that the runs say, and answers their approvals. set is what the command line changes in
// the file.
func StoreConfirmation(h *statedir.Home, dir, file string, set []string, address string, at compose.Place) (c Confirmation, needed bool) {
	u := &fileUse{plan: &swarm.Plan{}, places: compose.Places{Store: at}, dir: dir, file: file, set: set, store: address}
	for _, c := range u.confirmations(h) {
		return c, true
	}
	return Confirmation{}, false
}

// confirmations returns all that the use needs, confirmed or not.
func (u *fileUse) confirmations(h *statedir.Home) (all []Confirmation) {
	path, args := absolute(u.dir, u.file), u.trustArgs()
	add := func(c Confirmation, identity ...string) {
		c.ID = string(swarm.HashOf([]byte(strings.Join(identity, "\x00"))))[:16]
		if !slices.ContainsFunc(all, func(o Confirmation) bool { return o.ID == c.ID }) {
			c.File, c.args, c.Confirmed = path, args, c.Confirmed || h.Confirmed(c.ID)
			all = append(all, c)
		}
	}
	for _, use := range keyUses(u.plan) {
		c := Confirmation{at: u.places.Providers[use.provider], Text: fmt.Sprintf("the provider %q %s", use.provider, use.text)}
		if use.server != "" {
			c.at, c.Text = u.places.Servers[use.server], fmt.Sprintf("the tool server %q %s", use.server, use.text)
		}
		value, set := process.Lookup(nil, use.variable)
		c.Idle = !set || strings.TrimSpace(value) == ""
		add(c, "key", path, use.variable, use.to, use.detail)
	}
	if used := os.Getenv(StoreVariable); u.store != "" && (used == "" || used == u.store) {
		// It is asked without PGPASSWORD too: a password file may have a password for every server. The
		// variable has the store of a file only after a person has confirmed it, else it is the person's own.
		text := "runs are stored at " + u.store + ", which is sent " + storePassword + " or the password of a password file, and all that the runs say"
		add(Confirmation{at: u.places.Store, Text: text, Confirmed: used != ""}, "store", path, u.store)
	}
	for _, used := range tool.NewGuard(u.plan, u.dir, "", u.reads).Paths {
		used = absolute(u.dir, used)
		if last, ok := h.LastChange(used); ok && isContent(used, last.Hash) { // else a person has changed it since
			const text = "%s was changed during the turn %s of @%s (run %s)"
			add(Confirmation{Text: fmt.Sprintf(text, shown(u.dir, used), last.Turn, last.Agent, last.Run)}, "changed", used, string(last.Hash))
		}
	}
	return all
}

// trustArgs returns the arguments with which `swarm trust` confirms this use, as they are typed in a
// shell.
func (u *fileUse) trustArgs() string {
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	args := u.file
	if strings.ContainsFunc(args, func(r rune) bool { return r > '~' || strings.ContainsRune(" \t\n'\"\\$`&;|<>()*?[]#~!{}", r) }) {
		args = quoted(args)
	}
	for _, change := range u.set {
		args += " --set " + quoted(change)
	}
	if u.provider != "" {
		args += " --provider " + u.provider // a name: compose refuses all others
	}
	return args
}

func isContent(path string, hash swarm.Hash) bool {
	text, err := os.ReadFile(path)
	return err == nil && swarm.HashOf(text) == hash
}

// absolute returns the path of a file without links, so that each file has one name.
func absolute(dir, file string) string {
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	return file
}

// shown returns a path relative to the person's folder, if it is in it.
func shown(dir, path string) string {
	if rel, err := filepath.Rel(absolute(dir, "."), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// confirm asks a person about everything that is not confirmed yet, and remembers each yes. Without a
// yes it returns the refusal of the first that is open.
func (u *fileUse) confirm(h *statedir.Home, ask Asker) error {
	for _, c := range u.confirmations(h) {
		switch {
		case !c.Open():
			continue
		case ask == nil || !ask(c):
			return c.Refusal()
		}
		if err := Confirm(h, c); err != nil {
			return err
		}
	}
	return nil
}

// Confirm remembers a person's yes.
func Confirm(h *statedir.Home, c Confirmation) error {
	return h.Confirm(statedir.Confirmation{ID: c.ID, File: c.File, Text: c.Text, Time: time.Now().UTC()})
}

// Revoke forgets all that was confirmed about a file, and returns how much that was.
func Revoke(h *statedir.Home, path string) (n int, err error) {
	for _, c := range h.Confirmations() {
		if c.File != path {
			continue
		}
		if err := h.Revoke(c.ID); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Confirmations returns all that a file needs, whichever of its tasks and agents work. file is its
// absolute path.
func (c *Control) Confirmations(r Request) (file string, all []Confirmation, err error) {
	o, p, err := c.Compose(r)
	file = absolute(o.Dir, o.File)
	if err != nil {
		return file, nil, err
	}
	defer p.Close()
	all, err = c.ConfirmationsOf(o)
	return file, all, err
}

// ConfirmationsOf returns all that the file of the options needs, whatever they select.
func (c *Control) ConfirmationsOf(o compose.Options) (all []Confirmation, err error) {
	o = o.ReadOnce()
	o.Stdin = func() ([]byte, error) { return nil, nil }
	tasks, err := compose.CompileAll(o)
	if err != nil {
		return nil, err
	}
	bundles := []*compose.Bundle{tasks}
	if team, err := compose.CompileTeam(o); err == nil { // else its agents cannot work without tasks
		bundles = append(bundles, team)
	}
	for _, b := range bundles {
		u := (&Begin{Bundle: b, File: o.File, Dir: o.Dir, Set: o.Set, Provider: o.Provider}).fileUse()
		for _, found := range u.confirmations(c.Home) {
			if !slices.ContainsFunc(all, func(o Confirmation) bool { return o.ID == found.ID }) {
				all = append(all, found)
			}
		}
	}
	return all, nil
}
