package main

import (
	"bytes"
	"context"
	"iter"
	"os"
	"strings"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/control"
	"swarm/internal/postgres"
	"swarm/internal/project"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// localStore opens the runs of a state folder. A test puts a store that kills the program in its place.
var localStore statedir.StoreOpener = sqlite.NewStore

// chooseStore returns the store of runs: the database that the environment or the compose file names,
// or the state folder. The variable is set from the file, so that processes that this one starts for
// itself use the same store, and agents' programs get neither the address nor the password.
func (a *app) chooseStore() (statedir.StoreOpener, error) {
	address := os.Getenv(control.StoreVariable)
	a.storeFrom = control.StoreVariable
	if address == "" {
		var err error
		if address, err = a.storeOfFile(); err != nil {
			return func(string) swarm.Store { return refusingStore{err} }, nil //nolint:nilerr // every use of the store returns it
		}
		if address == "" {
			return localStore, nil
		}
		if err := os.Setenv(control.StoreVariable, address); err != nil {
			return nil, swarm.Errorf(swarm.BadInput, "the address of the store cannot be used")
		}
	}
	if err := control.CheckStore(address); err != nil {
		return nil, err
	}
	store, err := postgres.NewStore(address)
	if err != nil {
		return nil, err
	}
	return func(string) swarm.Store { return store }, nil
}

// storeOfFile returns the store that the compose file of this folder names, "" if it names none. A
// file that cannot be read names none: the command that needs it reports that.
func (a *app) storeOfFile() (string, error) {
	dir, err := a.dir()
	if err != nil {
		return "", nil // reported by commands that need the folder
	}
	p := project.Open(dir, a.file, "")
	defer p.Close()
	file, text, err := p.Compose()
	set := strings.Contains(strings.Join(a.sets, "\n"), "store")
	if err != nil || !set && !bytes.Contains(text, []byte("store")) { // parsing takes longer
		return "", nil // as above
	}
	address, at, err := compose.StoreOf(compose.Options{File: file, Source: text, Set: a.sets, Dir: dir})
	if err != nil || address == "" {
		return "", err
	}
	h, err := statedir.Open(sqlite.NewStore) // for what is confirmed
	if err != nil {
		return "", err
	}
	if q, needed := control.StoreConfirmation(h, dir, file, a.sets, address, at); needed && q.Open() {
		return "", q.Refusal()
	}
	a.storeFrom = file
	return address, nil
}

// A refusingStore is in the place of a store that must not be used. Commands that need no runs work.
type refusingStore struct{ why error }

func (s refusingStore) Name() string { return "none" }

func (s refusingStore) Create(context.Context, swarm.RunID) (swarm.RunLog, error) { return nil, s.why }

func (s refusingStore) Open(context.Context, swarm.RunID, swarm.Access) (swarm.RunLog, error) {
	return nil, s.why
}

func (s refusingStore) Runs(context.Context, swarm.RunQuery) iter.Seq2[swarm.RunEntry, error] {
	return func(yield func(swarm.RunEntry, error) bool) { yield(swarm.RunEntry{}, s.why) }
}

func (s refusingStore) Save(context.Context, swarm.RunSummary) error { return s.why }

func (s refusingStore) Remove(context.Context, swarm.RunID, swarm.RemoveOptions) (swarm.Removed, error) {
	return swarm.Removed{}, s.why
}

func (s refusingStore) Removed(context.Context, []swarm.RunID) ([]swarm.RunID, error) {
	return nil, s.why
}

func (s refusingStore) Lock(context.Context, string) (swarm.StoreLock, error) { return nil, s.why }

func (s refusingStore) Examine(context.Context) (swarm.StoreHealth, error) {
	return swarm.StoreHealth{}, s.why
}

func (s refusingStore) Close() error { return nil }
