package mcpdrive

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// Limits of what a tool returns at once.
const (
	usualRuns     = 20
	usualMessages = 50
	usualOutput   = 20_000 // bytes
	maxHappened   = 60     // lines of one wait; older ones are left out
	maxWait       = 600    // seconds
	usualWait     = 45     // seconds: some clients give up after a minute
)

// A shownRun is one run of a list.
type shownRun struct {
	Run     swarm.RunID   `json:"run"`
	Kind    swarm.RunKind `json:"kind,omitempty"`
	Name    string        `json:"name,omitempty"`
	Status  swarm.Status  `json:"status"`
	Mine    bool          `json:"mine,omitempty"`
	Started time.Time     `json:"started,omitzero"`
	Tasks   int           `json:"tasks,omitempty"`
	Done    int           `json:"done,omitempty"`
	Usage   swarm.Usage   `json:"usage,omitzero"`
	Problem string        `json:"problem,omitempty"`
}

func (s *Server) mine(key string) bool { k := s.Control.Caller.Key; return k != nil && k.Name == key }

func (s *Server) listRuns(_ context.Context, a struct {
	Limit int  `json:"limit"`
	Mine  bool `json:"mine"`
},
) (any, error) {
	if a.Limit == 0 {
		a.Limit = usualRuns
	}
	list := []shownRun{}
	for r, err := range s.Control.Runs("") {
		if err != nil {
			return nil, err
		}
		if len(list) == a.Limit {
			break
		}
		if mine := s.mine(r.Key); mine || !a.Mine {
			list = append(list, shownRun{r.ID, r.Kind, r.Name, r.Status, mine, r.Started, r.Tasks, r.Done, r.Usage, r.Problem})
		}
	}
	return struct {
		Runs []shownRun `json:"runs"`
	}{list}, nil
}

// open opens the run that a client names, for reading.
func (s *Server) open(ref string) (*run.Reader, error) {
	r, err := s.find(ref)
	if err != nil {
		return nil, err
	}
	return s.Control.OpenReader(r.ID)
}

// A shownApproval is what an agent asks a person for.
type shownApproval struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Asks  string `json:"asks"`
}

// A shownWait is what has happened in a run.
type shownWait struct {
	Run       swarm.RunID     `json:"run"`
	Status    swarm.Status    `json:"status"`
	Reason    string          `json:"reason,omitempty"`
	Exit      *int            `json:"exit,omitempty"` // of a run that has ended
	Goal      *view.Goal      `json:"goal,omitempty"` // of a team: whether its goal was checked
	Tasks     int             `json:"tasks"`
	Done      int             `json:"done"`
	Happened  []string        `json:"happened"`
	LeftOut   int             `json:"left_out,omitempty"` // older lines
	Seq       int64           `json:"seq"`
	Approvals []shownApproval `json:"approvals,omitempty"`
	Usage     swarm.Usage     `json:"usage,omitzero"`
	Next      string          `json:"next"`
}

func (s *Server) waitRun(ctx context.Context, a struct {
	Run     string   `json:"run"`
	After   int64    `json:"after"`
	Timeout *float64 `json:"timeout"`
},
) (any, error) {
	l, err := s.open(a.Run)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	seconds := float64(usualWait)
	if a.Timeout != nil {
		seconds = min(*a.Timeout, maxWait)
	}
	within, stop := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer stop()
	w := shownWait{Run: l.ID, Happened: []string{}}
	w.Seq, err = l.Follow(within, a.After, func(e *swarm.Event) bool {
		if text := view.DescribeEvent(e); text != "" {
			if who := e.Task + e.Agent; who != "" {
				if who = e.Task; who == "" {
					who = "@" + e.Agent
				}
				text = who + ": " + text
			}
			w.Happened = append(w.Happened, text)
			swarm.ReportProgress(ctx, text)
		}
		return e.Kind != swarm.ApprovalAsked && e.Kind != swarm.LimitReached
	})
	if ctx.Err() != nil {
		return nil, swarm.CutError(ctx)
	}
	if err != nil {
		return nil, err
	}
	if n := len(w.Happened) - maxHappened; n > 0 {
		w.Happened, w.LeftOut = w.Happened[n:], n
	}
	p, err := l.Living()
	if err != nil {
		return nil, err
	}
	w.fill(&p, s.Control.MayAnswer(l.ID) == nil, time.Now())
	return w, nil
}

// fill adds the state of the run, and what to do next.
func (w *shownWait) fill(p *view.Picture, mayAnswer bool, now time.Time) {
	w.Status, w.Reason, w.Tasks, w.Usage, w.Goal = p.Status, p.Reason, len(p.Tasks), p.Usage, p.Goal
	for i := range p.Tasks {
		if p.Tasks[i].Status == swarm.Completed {
			w.Done++
		}
	}
	for _, q := range p.Approvals {
		w.Approvals = append(w.Approvals, shownApproval{q.ID, q.Agent, view.DescribeApproval(q.Approval)})
	}
	id := string(p.ID)
	limit, limited := p.HeldBack()
	switch {
	case p.Status.Ended():
		w.Exit, w.Next = &p.Exit, "read_run with run "+id+" for its outputs"
	case p.Status == swarm.Interrupted:
		w.Next = "no process drives it: resume_run with run " + id
	case p.Status == swarm.Paused:
		w.Next = "it is paused: resume_run with run " + id
	case len(w.Approvals) > 0 && mayAnswer:
		w.Next = "answer_approval, then wait_run again"
	case len(w.Approvals) > 0:
		w.Next = "tell the person to answer with `swarm approve` or `swarm deny`, then wait_run again"
	case limited:
		w.Reason = "the run waits for " + limit.String()
		w.Next = "nothing happens for " + max(0, limit.Until.Sub(now)).Round(time.Second).String() +
			": tell the person, and call wait_run with after = seq only after that time, or cancel_run"
	default:
		w.Next = "wait_run again with after = seq"
	}
}

// A shownTask is the state of a task.
type shownTask struct {
	Name   string       `json:"name"`
	Agent  string       `json:"agent"`
	Status swarm.Status `json:"status"`
	Reason string       `json:"reason,omitempty"`
	Waits  string       `json:"waits,omitempty"`
	Bytes  int64        `json:"output_bytes,omitempty"`
}

// A shownState is the state of a run, with the text that was asked for.
type shownState struct {
	Run    swarm.RunID  `json:"run"`
	Kind   string       `json:"kind"`
	Status swarm.Status `json:"status"`
	Reason string       `json:"reason,omitempty"`
	Tasks  []shownTask  `json:"tasks,omitempty"`
	Report string       `json:"report,omitempty"` // of a team's lead
	Goal   *view.Goal   `json:"goal,omitempty"`   // of a team: whether its goal was checked
	Task   string       `json:"task,omitempty"`   // whose output this is; a swarm's answer has none
	Output string       `json:"output,omitempty"`
	Bytes  int          `json:"bytes,omitempty"`  // of the whole output
	Offset int          `json:"offset,omitempty"` // of the next part; 0 = this was the last
	Usage  swarm.Usage  `json:"usage,omitzero"`
	Next   string       `json:"next,omitempty"`
}

func (s *Server) readRun(_ context.Context, a struct {
	Run    string `json:"run"`
	Task   string `json:"task"`
	Offset int    `json:"offset"`
	Max    int    `json:"max"`
},
) (any, error) {
	l, err := s.open(a.Run)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	p, err := l.Living()
	if err != nil {
		return nil, err
	}
	shown := shownState{Run: l.ID, Kind: string(p.Kind), Status: p.Status, Reason: p.Reason, Report: p.Report, Goal: p.Goal, Usage: p.Usage}
	var names []string
	for i := range p.Tasks {
		t := &p.Tasks[i]
		names = append(names, t.Name)
		one := shownTask{Name: t.Name, Agent: t.Agent, Status: t.Status, Reason: t.Reason, Bytes: t.Output.Bytes}
		if len(t.Waits) > 0 {
			one.Waits = view.Waiting(t.Waits)
		}
		shown.Tasks = append(shown.Tasks, one)
	}
	var text []byte
	switch {
	case a.Task != "":
		text, err = output(l, &p, strings.TrimPrefix(a.Task, "@"), names)
		shown.Task, shown.Tasks = a.Task, nil
	case p.Answer != "":
		answer, answerErr := l.Answer()
		text, err = []byte(answer.Text), answerErr
	case len(p.Tasks) == 1:
		shown.Task = p.Tasks[0].Name
		text, err = l.Text(p.Tasks[0].Output.Hash)
	case len(names) > 0:
		shown.Next = "read_run with a task for its output"
	}
	if err != nil {
		return nil, err
	}
	if a.Max == 0 {
		a.Max = usualOutput
	}
	shown.Output, shown.Bytes = part(text, a.Offset, a.Max), len(text)
	if end := a.Offset + len(shown.Output); end < len(text) {
		shown.Offset, shown.Next = end, "read_run with the same task and this offset for the rest"
	}
	return shown, nil
}

// output returns the last output of a task, or of the task of an agent.
func output(l *run.Reader, p *view.Picture, name string, names []string) ([]byte, error) {
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Name == name || t.Agent == name {
			if t.Output.Hash == "" {
				return nil, swarm.Errorf(swarm.NotFound, "%s has no output yet: it is %s", t.Name, t.Status).WithHint("call wait_run, or why")
			}
			return l.Text(t.Output.Hash)
		}
	}
	return nil, swarm.Errorf(swarm.NotFound, "the run has no task %s", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names))
}

// part returns at most so many bytes of a text. It cuts no character.
func part(text []byte, offset, most int) string {
	text = text[min(max(offset, 0), len(text)):]
	if len(text) <= most {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == 0 {
		end = most
	}
	return string(text[:end])
}

// A shownMessage is a message between agents.
type shownMessage struct {
	Seq     int64  `json:"seq"`
	From    string `json:"from"`
	To      string `json:"to"`
	Message string `json:"message"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
}

func (s *Server) readMessages(_ context.Context, a struct {
	Run   string `json:"run"`
	Agent string `json:"agent"`
	After int64  `json:"after"`
	Limit int    `json:"limit"`
},
) (any, error) {
	l, err := s.open(a.Run)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	d, err := l.Details()
	if err != nil {
		return nil, err
	}
	if a.Limit == 0 {
		a.Limit = usualMessages
	}
	agent, list, more := strings.TrimPrefix(a.Agent, "@"), []shownMessage{}, false
	for _, e := range d.Envelopes {
		switch {
		case e.Receipt.Seq <= a.After, agent != "" && e.FromNodeID != agent && e.ToNodeID != agent:
		case len(list) == a.Limit:
			more = true
		default:
			list = append(list, shownMessage{e.Receipt.Seq, e.FromNodeID, e.ToNodeID, e.Payload.Message, e.Receipt.State, e.Receipt.Reason})
		}
	}
	return struct {
		Messages []shownMessage `json:"messages"`
		More     bool           `json:"more,omitempty"` // call again with after = the last seq
	}{list, more}, nil
}

func (s *Server) why(_ context.Context, a struct {
	Run  string `json:"run"`
	Name string `json:"name"`
},
) (any, error) {
	l, err := s.open(a.Run)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	why, err := l.Why(a.Name)
	if err != nil {
		return nil, err
	}
	if len(why.Chain) == 0 {
		return nil, errors.New("nothing is known about it")
	}
	return struct {
		Run    swarm.RunID  `json:"run"`
		Status swarm.Status `json:"status"`
		Path   view.Chain   `json:"path"`
		Cycle  []string     `json:"cycle,omitempty"` // the members of a deadlock
	}{why.ID, why.Status, why.Chain, why.Chain.Cycle()}, nil
}
