package home

import (
	"encoding/json"
	"os"
	"strconv"
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
	Problem string        `json:"problem,omitempty"` // why nothing more is known: its log cannot be read
}

func (s Summary) where() string {
	if s.Dir == "" {
		return "not known"
	}
	return s.Dir
}

// Save writes a run's summary. The owner calls it when the run starts and when it ends or is left. It is whole or not there at
// all; nobody waits for the disk, because it can be made again.
func (h *Home) Save(s Summary) error {
	b, err := json.Marshal(s)
	if err != nil {
		return &swarm.Error{Kind: swarm.Storage, Msg: "the run's summary cannot be written", Err: err}
	}
	path := h.summaryPath(s.ID)
	temp := path + "." + strconv.Itoa(os.Getpid())
	if err = os.WriteFile(temp, b, 0o600); os.IsNotExist(err) {
		if err = h.MakeRuns(); err == nil {
			err = os.WriteFile(temp, b, 0o600)
		}
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return &swarm.Error{Kind: swarm.Storage, File: path, Msg: "the run's summary cannot be written", Err: bare(err)}
	}
	return nil
}

// Summary is the run's summary as it is true now: a run that says it runs, and that nobody drives, was interrupted, or has
// ended without having said so here.
func (h *Home) Summary(run string) Summary {
	s, ok := h.saved(run)
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
	if s.Problem == "" && !s.Status.Ended() {
		s.Status = swarm.Interrupted
	}
	if h.Rebuild != nil && s.Problem == "" {
		_ = h.Save(s) // only so that the log need not be read again
	}
	return s
}

// saved is the summary as it was written last.
func (h *Home) saved(run string) (s Summary, ok bool) {
	b, err := os.ReadFile(h.summaryPath(run))
	ok = err == nil && json.Unmarshal(b, &s) == nil && s.ID == run && s.Status != ""
	if !ok {
		return Summary{ID: run}, false
	}
	return s, true
}

// rebuilt is the summary made from the log. What was saved stands in when the log cannot be read, and is kept where the log
// does not tell.
func (h *Home) rebuilt(run string, saved Summary) Summary {
	if h.Rebuild == nil {
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
		if saved, ok := h.saved(id); ok && !anywhere && saved.Dir != dir {
			continue // whether it still runs is not asked
		}
		if s := h.Summary(id); anywhere || s.Dir == dir {
			all = append(all, s)
		}
	}
	return all, nil
}
