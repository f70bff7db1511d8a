package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
	"swarm/internal/view"
)

// This file serves seed 002's routes. A task is the run of a swarm, its id is the id of the run, and
// its fields have the seed's names.

// A task is the row of a task in a list, and the answer to the request that began it.
type task struct {
	TaskID      swarm.RunID  `json:"task_id"`
	WorkflowID  swarm.RunID  `json:"workflow_id"` // the same
	SessionID   string       `json:"session_id"`
	Query       string       `json:"query"` // in a list, its beginning
	Status      swarm.Status `json:"status"`
	CreatedAt   time.Time    `json:"created_at"`
	CompletedAt time.Time    `json:"completed_at,omitzero"`
	Usage       taskUsage    `json:"usage"`
}

type taskUsage struct {
	InputTokens   int64   `json:"input_tokens"`
	OutputTokens  int64   `json:"output_tokens"`
	TotalTokens   int64   `json:"total_tokens"`
	EstimatedCost float64 `json:"estimated_cost"` // in USD
}

// A fullTask is all of a task.
type fullTask struct {
	task
	UpdatedAt  time.Time        `json:"updated_at"`
	Result     string           `json:"result,omitempty"`     // the answer
	References []view.Reference `json:"references,omitempty"` // the turns that the answer names
	Unsourced  bool             `json:"unsourced,omitempty"`  // it names none, although it was made of several results
	Error      string           `json:"error,omitempty"`      // why it failed or was cancelled
	Waiting    string           `json:"waiting,omitempty"`    // what it waits for, such as a person's approval, if it has not ended and nothing happens
	Votes      []view.Vote      `json:"votes,omitempty"`      // of a council that has voted, the best answer first
	Tie        bool             `json:"tie,omitempty"`        // the first two of these are level
	Agents     []taskAgent      `json:"agents"`
}

// A taskAgent is an agent of a task.
type taskAgent struct {
	AgentID    string        `json:"agent_id"`
	Task       string        `json:"task,omitempty"` // its subtask
	Status     swarm.Status  `json:"status"`
	Reason     swarm.Outcome `json:"reason,omitempty"`  // how it has ended, as in agent_completed
	Message    string        `json:"message,omitempty"` // why it has ended, or what its last failure was
	Iterations int           `json:"iterations"`        // that it has begun
	Model      string        `json:"model,omitempty"`
	Provider   string        `json:"provider,omitempty"`
	Usage      taskUsage     `json:"usage"`
}

func taskOf(s swarm.RunSummary) task {
	return task{s.ID, s.ID, control.SessionOf(s), s.Name, s.Status, s.Started, s.Ended, usageOf(s.Usage)}
}

func usageOf(u swarm.Usage) taskUsage {
	return taskUsage{u.InputTokens, u.OutputTokens, u.Tokens(), u.USD}
}

type taskList struct {
	Tasks []task      `json:"tasks"`
	Next  swarm.RunID `json:"next,omitempty"` // the value of before for the next page
}

// listTasks lists tasks, the newest first.
func (a *API) listTasks(r *http.Request) (reply, error) {
	q := ask(r, "before", "limit", "status", "session_id")
	before, limit, status, session := q.text("before"), q.limit(), q.runStatus(), q.text("session_id")
	if q.err != nil {
		return reply{}, q.err
	}
	list := taskList{Tasks: []task{}}
	for s, err := range a.Control.Tasks(session, before) {
		if err != nil {
			return reply{}, err
		}
		if status != "" && s.Status != status {
			continue
		}
		if len(list.Tasks) == limit {
			list.Next = list.Tasks[limit-1].TaskID
			break
		}
		list.Tasks = append(list.Tasks, taskOf(s))
	}
	return ok(list)
}

// showTask returns a task with its query, its answer and its agents.
func (a *API) showTask(r *http.Request) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	s, err := a.Control.FindTask(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	l, err := a.Control.OpenReader(s.ID)
	if err != nil {
		return reply{}, err
	}
	defer l.Close()
	p, err := l.Picture()
	if err != nil {
		return reply{}, err
	}
	full := fullTask{task: taskOf(s), UpdatedAt: p.Time, Agents: []taskAgent{}, Votes: p.Votes, Tie: p.Tie}
	full.Status, full.CreatedAt, full.CompletedAt, full.Usage = p.Status, p.Started, p.Ended, usageOf(p.Usage)
	if full.Query, err = l.Query(); err != nil {
		return reply{}, err
	}
	switch {
	case !p.Status.Ended():
		full.Waiting = p.Reason
	case p.Status != swarm.Completed:
		full.Error = p.Reason
	}
	if p.Answer != "" {
		answer, err := l.Answer()
		if err != nil {
			return reply{}, err
		}
		full.Result, full.References, full.Unsourced = answer.Text, answer.References, answer.Unsourced
	}
	for _, t := range p.Tasks {
		full.Agents = append(full.Agents, agentOf(&t))
	}
	return ok(full)
}

func agentOf(t *view.Task) taskAgent {
	a := taskAgent{feed.SeedAgent(t.Agent), "", t.Status, t.Outcome, t.Reason, t.Iteration, t.Model, t.Provider, usageOf(t.Usage)}
	if a.Reason == "" && (t.Status == swarm.Cancelled || t.Status == swarm.Failed) {
		a.Reason = swarm.OutcomeAborted
		if t.Status == swarm.Cancelled {
			a.Reason = swarm.Outcome(swarm.Cancelled)
		}
	}
	if t.Subtask != nil {
		a.Task = t.Subtask.Description
	}
	return a
}

// startTask starts a task. The reply is sent when its run is on disk.
func (a *API) startTask(r *http.Request) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	s, begun, err := a.beginTask(r, 0)
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK // an earlier request with the same key began it
	if begun {
		status = http.StatusCreated
	}
	return reply{status, taskOf(s)}, nil
}

// streamTask starts a task and streams its run. The client that comes back with the same
// Idempotency-Key and its Last-Event-ID continues where it was. The run does not end with the
// stream.
func (a *API) streamTask(w http.ResponseWriter, r *http.Request) {
	c, err := a.newClient(w, r, ask(r, "after", "type", "names"))
	if err != nil {
		refuse(w, err)
		return
	}
	s, _, err := a.beginTask(r, c.Sent)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("X-Workflow-ID", string(s.ID))
	w.Header().Set("Link", "</api/v1/tasks/"+string(s.ID)+"/events>; rel=stream")
	if err := a.serveStream(c, r, string(s.ID)); err != nil {
		refuse(w, err)
	}
}

// followTask streams the run of a task.
func (a *API) followTask(w http.ResponseWriter, r *http.Request) {
	c, err := a.newClient(w, r, ask(r, "after", "type", "names"))
	if err == nil {
		_, err = a.Control.FindTask(r.PathValue("id"))
	}
	if err == nil {
		err = a.serveStream(c, r, r.PathValue("id"))
	}
	if err != nil {
		refuse(w, err)
	}
}

// beginTask reads a request for a task and begins it, or finds it. A client that has received events
// of it wants it found: a new task has none, so none is begun for that client.
func (a *API) beginTask(r *http.Request, received int64) (s swarm.RunSummary, begun bool, err error) {
	var body struct {
		Query     string          `json:"query"`
		SessionID string          `json:"session_id"`
		Context   json.RawMessage `json:"context"`
	}
	if err := readBody(r, &body, "query", "session_id", "context"); err != nil {
		return s, false, err
	}
	var in struct {
		ForceSwarm bool `json:"force_swarm"`
	}
	var w control.Request
	if len(body.Context) > 0 && string(body.Context) != "null" {
		context := strictjson.ReadObject("the context", body.Context, httpd.MaxBody, "force_swarm", "agents", "iterations", "strategy", "approve_plan", "provider", "dir", "file", "set")
		err = cmp.Or(context.Into(&in), context.Into(&w))
	}
	switch {
	case err != nil:
		return s, false, err
	case body.Query == "":
		return s, false, swarm.Errorf(swarm.BadInput, "the task has no query").WithHint("write what is to be found out: %s", taskExample)
	case !in.ForceSwarm:
		return s, false, swarm.Errorf(swarm.BadInput, "a task runs in swarm mode only, and this one does not ask for it").
			WithHint("write %s; for pipelines and teams: POST /api/v1/runs", taskExample)
	}
	w.Query = body.Query
	if err := a.place(&w); err != nil {
		return s, false, err
	}
	start := a.Start
	if received > 0 {
		start = func(context.Context, control.Request) (string, error) {
			return "", swarm.Errorf(swarm.BadInput, "a task that begins now has no event %d", received).
				WithHint("leave out after and Last-Event-ID; to go on with a task: GET /api/v1/tasks/ID/events, or the Idempotency-Key that began it")
		}
	}
	s, begun, err = a.Control.StartTask(r.Context(), w, body.SessionID, r.Header.Get("Idempotency-Key"), start)
	return s, begun, notStarted(err)
}

const taskExample = `{"query": "…", "context": {"force_swarm": true}}`

// A taskAction is a command to a task that is on disk.
type taskAction struct {
	TaskID     swarm.RunID `json:"task_id"`
	WorkflowID swarm.RunID `json:"workflow_id"`
	Action     string      `json:"action"` // pause, resume or cancel
}

// steerTask makes the handler of a command to a task.
func (a *API) steerTask(do func(ctx context.Context, id swarm.RunID) (control.CommandResult, error)) func(*http.Request) (reply, error) {
	return func(r *http.Request) (reply, error) {
		result, err := a.command(r, a.Control.FindTask, do)
		return reply{http.StatusAccepted, taskAction{result.Run, result.Run, result.Command}}, err
	}
}

type sentToTask struct {
	TaskID     swarm.RunID `json:"task_id"`
	WorkflowID swarm.RunID `json:"workflow_id"`
	ID         string      `json:"id"`
	Seq        int64       `json:"seq"`
}

// messageTask sends a person's message to the supervisor of a swarm.
func (a *API) messageTask(r *http.Request) (reply, error) {
	var m struct {
		Message   string `json:"message"`
		ID        string `json:"id"`
		Interrupt bool   `json:"interrupt"`
	}
	if err := errors.Join(ask(r).err, readBody(r, &m, "message", "id", "interrupt")); err != nil {
		return reply{}, err
	}
	s, err := a.Control.FindTask(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	sent, err := a.deliver(r.Context(), s, mail.Draft{To: swarm.Supervisor, Message: m.Message, Interrupt: m.Interrupt, ID: cmp.Or(m.ID, r.Header.Get("Idempotency-Key"))})
	return reply{http.StatusCreated, sentToTask{s.ID, s.ID, sent.ID, sent.Seq}}, err
}
