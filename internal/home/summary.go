package home

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"swarm"
)

// A Summary is what a list of runs shows of one.
type Summary struct {
	ID      string        `json:"id"`
	Kind    swarm.RunKind `json:"kind,omitempty"`
	Name    string        `json:"name,omitempty"`
	Dir     string        `json:"dir,omitempty"`
	Status  swarm.Status  `json:"status,omitempty"` // "" = not known, see Problem
	Started time.Time     `json:"started,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
	Exit    int           `json:"exit,omitempty"`
	Tasks   int           `json:"tasks,omitempty"`
	Done    int           `json:"done,omitempty"` // of them, those that are completed
	Usage   swarm.Usage   `json:"usage,omitzero"`
	PID     int           `json:"pid,omitempty"`     // of the process that drives it, or did
	Asked   *swarm.Asked  `json:"asked,omitempty"`   // the message of another program by which it was begun
	Problem string        `json:"problem,omitempty"` // why nothing more is known: its log cannot be read
}

func (s Summary) where() string {
	if s.Dir == "" {
		return "not known"
	}
	return s.Dir
}

// maxSummary is how large a file of summaries may become. Runs that end after a few changes never get there.
const maxSummary = 64 << 10

// Save writes a run's summary: a line at the end of a file, of which the last counts. The owner calls it when the run starts and
// when it ends or is left. A reader finds the whole line or the one before it. Nobody waits for the disk: putting a new file in
// the old one's place would make some file systems do so, and what is lost can be made again.
func (h *Home) Save(s Summary) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = h.save(h.summaryPath(s.ID), append(b, '\n'))
	}
	if err != nil {
		return &swarm.Error{Kind: swarm.Storage, File: h.summaryPath(s.ID), Msg: "the run's summary cannot be written", Err: bare(err)}
	}
	return nil
}

func (h *Home) save(path string, line []byte) error {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND | syscall.O_NOFOLLOW
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := h.MakeRuns(); err != nil {
			return err
		}
		f, err = os.OpenFile(path, flags, 0o600)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > maxSummary {
		if err := f.Truncate(0); err != nil { // whoever reads at this instant makes it from the log
			return err
		}
		size = 0
	}
	if size > 0 { // should the last line be half a one
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	return err
}

// Summary is the run's summary as it is true now: a run that says it runs, and that nobody drives, was interrupted, or has
// ended without having said so here.
func (h *Home) Summary(run string) Summary {
	s, ok := h.saved(run)
	return h.present(run, s, ok)
}

// present makes of what was saved, if it was, what is true now.
func (h *Home) present(run string, s Summary, ok bool) Summary {
	if ok && s.Status.Ended() {
		return s
	}
	if h.Live(run) {
		if !ok || s.Status == swarm.Interrupted {
			s = h.rebuilt(run, s)
			if s.Status == "" || s.Status == swarm.Interrupted {
				s.Status = swarm.Running
			}
		}
		return s
	}
	if ok && s.Status == swarm.Interrupted {
		return s
	}
	s = h.rebuilt(run, s)
	if !s.begun() {
		return s
	}
	if s.Problem == "" && !s.Status.Ended() {
		s.Status = swarm.Interrupted
	}
	if h.Rebuild != nil && s.Problem == "" {
		_ = h.Save(s) // only so that the log need not be read again
	}
	return s
}

// begun says of a summary that was made from a log whether there is a run at all. A process that makes one may not have written its
// beginning yet, and may have died before it could.
func (s Summary) begun() bool { return s.Status != "" || s.Problem != "" }

// saved is the summary as it was written last.
func (h *Home) saved(run string) (s Summary, ok bool) {
	b, err := os.ReadFile(h.summaryPath(run))
	if err != nil {
		return Summary{ID: run}, false
	}
	for end := bytes.LastIndexByte(b, '\n'); end >= 0; end = bytes.LastIndexByte(b, '\n') {
		b = b[:end]
		line := b[bytes.LastIndexByte(b, '\n')+1:]
		if s = (Summary{}); json.Unmarshal(line, &s) == nil && s.ID == run && s.Status != "" {
			return s, true
		}
	}
	return Summary{ID: run}, false
}

// rebuilt is the summary made from the log. What was saved stands in when the log cannot be read, and is kept where the log
// does not tell.
func (h *Home) rebuilt(run string, saved Summary) Summary {
	if h.Rebuild == nil {
		if saved.Status == "" {
			saved.Status = swarm.Interrupted
		}
		return saved
	}
	s, err := h.Rebuild(h.RunPath(run))
	if err != nil {
		saved.Problem = err.Error()
		return saved
	}
	s.ID = run
	if s.PID == 0 {
		s.PID = saved.PID
	}
	return s
}

// List is the summaries of all runs that were started in dir, or anywhere, the newest first.
func (h *Home) List(dir string, anywhere bool) ([]Summary, error) {
	ids, err := h.ids()
	if err != nil {
		return nil, err
	}
	var all []Summary
	for _, id := range ids {
		s, ok := h.saved(id)
		if ok && !anywhere && s.Dir != dir {
			continue // whether it still runs is not asked
		}
		if s = h.present(id, s, ok); s.begun() && (anywhere || s.Dir == dir) {
			all = append(all, s)
		}
	}
	return all, nil
}
