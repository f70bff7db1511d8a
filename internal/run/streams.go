package run

import (
	"encoding/json"
	"sync"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/secret"
	"swarm/internal/statedir"
)

// streams stores the deltas of running turns, without secrets, and passes them to the observer. It
// also writes the copies of outputs.
//
// The mutex guards the map only. The deltas of one turn come from one goroutine at a time, so a
// stream needs none.
type streams struct {
	secrets *secret.Redactor
	files   *statedir.StreamsWriter
	observe func(task, turn string, d swarm.Delta) // passes a delta to the observer
	copies  copies

	mu   sync.Mutex
	open map[string]*stream // by turn
}

type stream struct {
	file *statedir.StreamWriter
	text map[swarm.DeltaKind]*secret.Stream
}

func newStreams(h *statedir.Home, run swarm.RunID, k *secret.Redactor, observe func(task, turn string, d swarm.Delta)) *streams {
	return &streams{secrets: k, files: h.WriteStreams(run), observe: observe, open: map[string]*stream{},
		copies: copies{write: func(task string, text []byte) error { return h.WriteOutput(run, task, text) }}}
}

// Delta removes the secrets from a delta, stores it and passes it on. It is called by one goroutine
// at a time for each turn.
func (s *streams) Delta(c flow.Call, start int, d swarm.Delta) {
	s.mu.Lock()
	t := s.open[c.ID]
	if t == nil {
		t = &stream{file: s.files.Turn(c.ID, start), text: map[swarm.DeltaKind]*secret.Stream{}}
		s.open[c.ID] = t
	}
	s.mu.Unlock()
	if d.Text != "" {
		clean := t.text[d.Kind]
		if clean == nil {
			clean = s.secrets.Stream()
			t.text[d.Kind] = clean
		}
		if d.Text = clean.Write(d.Text); d.Text == "" {
			return
		}
	}
	redactor := s.secrets
	d.File, d.Session = redactor.String(d.File), redactor.String(d.Session)
	if d.Tool != nil && !redactor.Empty() {
		clean := *d.Tool
		clean.ID, clean.Name = redactor.Cut(clean.ID), redactor.Cut(clean.Name)
		clean.Input, clean.Output = json.RawMessage(redactor.Cut(string(clean.Input))), redactor.Cut(clean.Output)
		d.Tool = &clean
	}
	s.show(c, t, d)
}

func (s *streams) show(c flow.Call, t *stream, d swarm.Delta) {
	if text := streamText(d); text != "" {
		kind := d.Kind
		if d.Kind == swarm.DeltaToolDone && d.Tool != nil && d.Tool.Failed {
			kind = swarm.DeltaToolFailed
		}
		t.file.Write(string(kind), text)
	}
	s.observe(c.Task, c.ID, d)
}

// streamText returns what the stream file stores of a delta.
func streamText(d swarm.Delta) string {
	switch {
	case d.Tool != nil && d.Kind == swarm.DeltaToolDone:
		return d.Tool.Name + ": " + d.Tool.Output
	case d.Tool != nil:
		return d.Tool.Name + " " + string(d.Tool.Input)
	case d.File != "":
		return d.File
	}
	return d.Text
}

// Silent ends the stream of a turn. Text that was withheld because it could have been the beginning
// of a secret is written now.
func (s *streams) Silent(c flow.Call) {
	s.mu.Lock()
	t := s.open[c.ID]
	delete(s.open, c.ID)
	s.mu.Unlock()
	if t == nil {
		return
	}
	for kind, clean := range t.text {
		if text := clean.Flush(); text != "" {
			s.show(c, t, swarm.Delta{Kind: kind, Text: text})
		}
	}
	t.file.Close()
}

// Output queues the copy of a turn's output.
func (s *streams) Output(c flow.Call, text []byte) { s.copies.add(c, text) }

// close writes the waiting copies and returns the first error.
func (s *streams) close() error {
	_ = s.files.Close() // streams are only for observers: losing them is no reason to fail
	return s.copies.close()
}
