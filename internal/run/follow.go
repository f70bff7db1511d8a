package run

import (
	"errors"
	"strconv"
	"sync"

	"swarm"
	"swarm/internal/view"
)

// foldName and foldEvery are the stored fold of a log: a shortcut that may be thrown away at any time.
const (
	foldName  = "view"
	foldEvery = 20_000
)

var foldVersion = strconv.Itoa(view.Version)

// View folds a log: from its stored fold, if there is one, and on from there.
func View(log swarm.RunLog, id string) (*view.Run, error) {
	v := view.New(id)
	if _, data, ok := log.LoadFold(foldName, foldVersion); ok {
		if stored, err := view.Unmarshal(data); err == nil {
			v = stored
		}
	}
	return v, log.Scan(v.Seq, v.Apply)
}

// SaveView stores the fold of a log when enough has come since the last one.
func SaveView(log swarm.RunLog, v *view.Run) error {
	seq, _, ok := log.LoadFold(foldName, foldVersion)
	if ok && v.Seq-seq < foldEvery || !ok && v.Seq < foldEvery {
		return nil
	}
	return log.SaveFold(foldName, foldVersion, v.Seq, v.Marshal())
}

// A follower folds the log of a run while it is driven, and shows it to the observer.
type follower struct {
	log      swarm.RunLog
	view     *view.Run
	observer Observer
	quit     chan struct{}
	done     sync.WaitGroup
	err      error
}

func (d *driver) follow() *follower {
	f := &follower{log: d.log, view: view.New(d.ID), observer: d.options.Observer, quit: make(chan struct{})}
	if f.observer == nil {
		return f
	}
	f.done.Add(1)
	go func() {
		defer f.done.Done()
		wake, off := f.log.Watch()
		defer off()
		for {
			if f.err = f.catchUp(); f.err != nil {
				return
			}
			select {
			case <-wake:
			case <-f.quit:
				return
			}
		}
	}()
	return f
}

// catchUp reads what the log keeps in memory: what is followed has just been written.
func (f *follower) catchUp() error {
	for {
		events, err := f.log.Read(f.view.Seq, 256)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			if err := f.view.Apply(&events[i]); err != nil {
				return err
			}
			if f.observer != nil {
				f.observer.Event(&events[i])
			}
		}
	}
}

// stop folds what is left and gives the last picture.
func (f *follower) stop() (view.Picture, error) {
	close(f.quit)
	f.done.Wait()
	err := errors.Join(f.err, f.catchUp())
	if err == nil {
		err = SaveView(f.log, f.view)
	}
	return f.view.Picture(), err
}
