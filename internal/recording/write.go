package recording

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"

	"swarm"
)

// Create writes a run's log to a file. It writes a temporary file, syncs it, renames it and syncs
// the folder. So a crash leaves the old file or the new one, whole, and perhaps a temporary file
// beside it.
func Create(path string, h Header, log swarm.Log) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".cassette-*") // its mode is 0600
	if err != nil {
		return &swarm.Error{Kind: swarm.Storage, Msg: "the recording cannot be written",
			Hint: "choose a folder that is there and may be written to", Err: err}
	}
	defer func() {
		if err != nil {
			temp.Close()
			_ = os.Remove(temp.Name())
			if e := (*swarm.Error)(nil); !errors.As(err, &e) {
				err = &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the recording could not be written",
					Hint: "is the disk full?", Err: err}
			}
		}
	}()
	if err := Write(temp, h, log); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Write writes a run's log. The end is not part of its own checksum, so it goes around the writer
// that sums.
func Write(to io.Writer, h Header, log swarm.Log) error {
	w := &writer{sum: sha256.New(), texts: map[swarm.Hash]bool{swarm.NoText: true}}
	w.out = bufio.NewWriterSize(io.MultiWriter(to, w.sum), 64<<10)
	h.Version = Version
	if err := w.line(h); err != nil {
		return err
	}
	for e, err := range swarm.Events(log, 0) {
		if err == nil {
			err = w.event(*e, log)
		}
		if err != nil {
			return err
		}
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	end := swarm.Encode(line{Events: &w.events, Sum: hex.EncodeToString(w.sum.Sum(nil))})
	_, err := to.Write(append(end, '\n'))
	return err
}

// A writer writes the lines of a recording.
type writer struct {
	out    *bufio.Writer
	sum    hash.Hash
	texts  map[swarm.Hash]bool // the texts that were written: each is written once
	events int
}

// line writes a value as one line.
func (w *writer) line(v any) error {
	b := swarm.Encode(v)
	if len(b) > maxLine {
		return swarm.Errorf(swarm.BadInput, "a text of the run has %d MB, and a recording has room for %d MB of each",
			len(b)>>20, maxLine>>20).
			WithHint("have the agent leave large texts in files")
	}
	_, err := w.out.Write(append(b, '\n'))
	return err
}

// event writes one event, after the texts that it refers to.
func (w *writer) event(e swarm.Event, log swarm.Log) error {
	e, keep, err := portable(e)
	if err != nil || !keep {
		return err
	}
	for _, h := range references(e.Data) {
		if w.texts[h] {
			continue
		}
		text, err := log.Body(h)
		if errors.Is(err, swarm.ErrNoBody) {
			continue
		}
		if err != nil {
			return err
		}
		w.texts[h] = true
		if err := w.line(textLine(h, text)); err != nil {
			return err
		}
	}
	w.events++
	return w.line(eventLine(&e))
}

// portable returns an event without private facts of the machine that recorded it: folders, command
// lines, processes, user names and snapshots. A recording is kept beside a project, and other people replay it
// on other machines.
func portable(e swarm.Event) (_ swarm.Event, keep bool, err error) {
	switch e.Kind {
	case swarm.TreeRecorded:
		return e, false, nil
	case swarm.RunStarted:
		start, err := swarm.Body[swarm.RunStart](&e)
		start.Dir, start.File, start.NoFile, start.Args, start.Set, start.Parent, start.Workspace, start.AnswerTo = "", "", false, nil, nil, nil, "", ""
		e.Data = swarm.Encode(start)
		return e, true, err
	case swarm.PlanAdded:
		p, err := swarm.Body[swarm.Plan](&e)
		for i := range p.Tasks {
			p.Tasks[i].Workdir = ""
			if s := p.Tasks[i].Swarm; s != nil {
				s.Workspace = ""
			}
		}
		for i := range p.Agents {
			p.Agents[i].Root = ""
		}
		if s := p.Swarm; s != nil {
			s.Worker.Root, s.Workspace = "", ""
			for i := range s.Roles {
				s.Roles[i].Root = ""
			}
		}
		e.Data = swarm.Encode(p)
		return e, true, err
	case swarm.RunOwned: // loops count time by it, and it names no process
		if len(e.Data) == 0 { // so does an older replay
			return e, true, nil
		}
		owned, err := swarm.Body[swarm.Ownership](&e)
		e.Data = swarm.Encode(swarm.Ownership{Lived: owned.Lived})
		return e, true, err
	case swarm.ApprovalAnswered:
		answer, err := swarm.Body[swarm.ApprovalAnswer](&e)
		answer.User = ""
		e.Data = swarm.Encode(answer)
		return e, true, err
	case swarm.Control:
		c, err := swarm.Body[swarm.ControlCommand](&e)
		c.User = ""
		e.Data = swarm.Encode(c)
		return e, true, err
	case swarm.TurnStarted:
		start, err := swarm.Body[swarm.TurnStart](&e)
		if start.Snapshots != nil {
			start.Snapshots = nil
			e.Data = swarm.Encode(start)
		}
		return e, true, err
	}
	return e, true, nil
}
