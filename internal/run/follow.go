package run

import (
	"errors"
	"strconv"
	"sync"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/home"
	"swarm/internal/provider"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
	"swarm/internal/view"
)

// foldName and foldEvery are the stored fold of a log: a shortcut that may be thrown away at any time.
const (
	foldName  = "view"
	foldEvery = 20_000
)

var foldVersion = strconv.Itoa(view.Version)

// View folds a log: from its stored fold, if there is one, and on from there.
func View(log *sqlite.Log, id string) (*view.Run, error) {
	v := view.New(id)
	if _, data, ok := log.LoadFold(foldName, foldVersion); ok {
		if stored, err := view.Unmarshal(data); err == nil {
			v = stored
		}
	}
	return v, log.Scan(v.Seq, v.Apply)
}

// SaveView stores the fold of a log when enough has come since the last one.
func SaveView(log *sqlite.Log, v *view.Run) error {
	seq, _, ok := log.LoadFold(foldName, foldVersion)
	if ok && v.Seq-seq < foldEvery || !ok && v.Seq < foldEvery {
		return nil
	}
	return log.SaveFold(foldName, foldVersion, v.Seq, v.Marshal())
}

// A follower folds the log of a run while it is driven, and shows it to the observer.
type follower struct {
	log      *sqlite.Log
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

func (f *follower) catchUp() error {
	return f.log.Scan(f.view.Seq, func(e *swarm.Event) error {
		if err := f.view.Apply(e); err != nil {
			return err
		}
		if f.observer != nil {
			f.observer.Event(e)
		}
		return nil
	})
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

// streams keeps what running turns say, with secrets taken out, for those who look now and those who come later.
type streams struct {
	home     *home.Home
	run      string
	redactor *secret.Redactor
	observer Observer

	mu   sync.Mutex
	open map[string]*stream // by turn
}

type stream struct {
	file *home.StreamWriter
	text map[provider.DeltaKind]*secret.Stream
}

func newStreams(h *home.Home, run string, r *secret.Redactor, o Observer) *streams {
	return &streams{home: h, run: run, redactor: r, observer: o, open: map[string]*stream{}}
}

// Delta is called by one goroutine at a time for each turn.
func (s *streams) Delta(c flow.Call, start int, d provider.Delta) {
	s.mu.Lock()
	t := s.open[c.ID]
	if t == nil {
		t = &stream{file: s.home.Stream(s.run, c.ID, start), text: map[provider.DeltaKind]*secret.Stream{}}
		s.open[c.ID] = t
	}
	s.mu.Unlock()
	if d.Text != "" {
		clean := t.text[d.Kind]
		if clean == nil {
			clean = s.redactor.Stream()
			t.text[d.Kind] = clean
		}
		d.Text = clean.Write(d.Text)
	}
	s.show(c, t, d)
}

func (s *streams) show(c flow.Call, t *stream, d provider.Delta) {
	if d.Text == "" && d.Tool == nil && d.File == "" {
		return
	}
	t.file.Write(string(d.Kind), streamText(d))
	if s.observer != nil {
		s.observer.Delta(c.Task, d)
	}
}

// streamText is what is kept of a delta for those who come later.
func streamText(d provider.Delta) string {
	switch {
	case d.Tool != nil && d.Kind == provider.DeltaToolDone:
		return d.Tool.Name + ": " + d.Tool.Output
	case d.Tool != nil:
		return d.Tool.Name + " " + string(d.Tool.Input)
	case d.File != "":
		return d.File
	}
	return d.Text
}

// Output keeps the copy for people.
func (s *streams) Output(c flow.Call, start int, text []byte) {
	s.mu.Lock()
	t := s.open[c.ID]
	delete(s.open, c.ID)
	s.mu.Unlock()
	if t != nil {
		s.end(c, t)
	}
	s.home.WriteOutput(s.run, c.Task, text)
}

func (s *streams) end(c flow.Call, t *stream) {
	for kind, clean := range t.text {
		s.show(c, t, provider.Delta{Kind: kind, Text: clean.Flush()})
	}
	t.file.Close()
}

// close ends the streams of turns that were cut.
func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.open {
		s.end(flow.Call{ID: id}, t)
	}
	clear(s.open)
}
