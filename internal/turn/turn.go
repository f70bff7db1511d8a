// Package turn does one turn: it gathers what the turn reads, makes the prompt, writes down that it starts, has the provider
// do it, holds the result against what was expected, and writes down how it ended. It is the same under every engine: what it
// obeys while the provider works are control records in the run's log, not the engine.
package turn

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// A Hand does the turns of one run.
type Hand struct {
	Run      string
	Log      swarm.Log
	Fence    int64
	Dir      string                                              // where the run was started
	Provider func(swarm.ProviderSpec) (provider.Provider, error) // is asked once for each
	Redact   func([]byte) []byte                                 // takes secrets out of what is stored; nil = there are none
	Watch    Watcher                                             // nil = nobody
	Kept     bool                                                // the run tries another one again and keeps some of its turns

	mu        sync.Mutex
	plans     map[string]*loadedPlan
	providers map[string]provider.Provider
	templates map[swarm.Hash]prompt.Template
	ledger    ledger
	meter     *meter
}

// A Watcher sees turns while they run, and their outputs when they are on disk. Its methods must not block for long.
type Watcher interface {
	Delta(c flow.Call, start int, d provider.Delta)
	Silent(c flow.Call) // the provider has nothing more to say
	Output(c flow.Call, text []byte)
}

// work is one turn on its way.
type work struct {
	c      flow.Call
	task   *swarm.Task
	agent  *swarm.Agent
	spec   swarm.ProviderSpec
	start  int
	prompt string
	model  string
}

// Do does the turn that a loop calls for, or finds that it was done before. An error means that this process has to stop, and
// says nothing about the turn.
func (h *Hand) Do(ctx context.Context, loop string, c flow.Call) (flow.Result, error) {
	if h.Kept {
		if e, ok, err := h.Log.Find(swarm.KeptKey(c.ID)); err != nil || ok {
			if err != nil {
				return flow.Result{}, err
			}
			return h.keep(ctx, loop, c, e)
		}
	}
	w, err := h.gather(c)
	if err != nil {
		return flow.Result{}, err
	}
	made, again, err := h.firstPrompt(w)
	if err == nil && !again {
		made, err = h.makePrompt(w)
	}
	if err != nil {
		return h.refuse(ctx, loop, c, err)
	}
	h.mu.Lock()
	m, err := h.openMeter(c)
	if err == nil {
		err = m.reserve(c.ID, int64(len(made.Text)), w.spec.Price)
	}
	h.mu.Unlock()
	if err != nil {
		return h.refuse(ctx, loop, c, err)
	}
	end, err := h.begin(ctx, w, made)
	if err != nil || end != nil {
		h.settle(c.ID, swarm.Usage{})
		if err != nil {
			return flow.Result{}, err
		}
		return *end, nil
	}
	reply, verdicts, err := h.perform(ctx, w)
	if stop := stops(ctx, err); stop != nil {
		return flow.Result{}, stop
	}
	return h.conclude(ctx, loop, w, reply, verdicts, err)
}

// stops is why this process has to stop, if that is what err comes from: then it tells nothing about the turn, which has no end
// and runs again under its id. What cuts a turn for good ends another context than the process's.
func stops(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, swarm.ErrFenced), swarm.KindOf(err) == swarm.Storage:
		return err
	}
	return nil
}

// gather finds the turn's task, agent and provider.
func (h *Hand) gather(c flow.Call) (*work, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.plan(c.Ref)
	if err != nil {
		return nil, err
	}
	w := &work{c: c, task: p.tasks[c.Task], agent: p.agents[c.Agent]}
	if w.task == nil || w.agent == nil {
		return nil, swarm.Errorf(swarm.Storage, "the plan has no task %q of agent %q", c.Task, c.Agent)
	}
	w.spec = p.providers[w.agent.Provider]
	w.model = chooseModel(w.task, w.agent, w.spec)
	return w, nil
}

func chooseModel(t *swarm.Task, a *swarm.Agent, spec swarm.ProviderSpec) string {
	for _, tier := range []struct{ model, tier string }{{t.Model, t.Tier}, {a.Model, a.Tier}} {
		if tier.model != "" {
			return tier.model
		}
		if tier.tier != "" {
			return spec.Models[tier.tier]
		}
	}
	return spec.Model
}

// begin writes down, on disk, that the turn starts. When an earlier process had started it, it goes on with that one's prompt;
// when it had ended it, its end is the answer.
func (h *Hand) begin(ctx context.Context, w *work, made prompt.Prompt) (*flow.Result, error) {
	w.start, w.prompt = 1, made.Text
	start := swarm.TurnStart{Iteration: w.c.Iteration, Attempt: w.c.Attempt, Start: 1, Owner: h.Fence, Provider: w.spec.Name, Model: w.model,
		Prompt: swarm.HashOf([]byte(made.Text)), Bytes: len(made.Text), Spans: made.Spans}
	for {
		_, err := h.Log.Append(ctx, swarm.Batch{Fence: h.Fence, Bodies: [][]byte{[]byte(w.prompt)}, Events: []swarm.Event{{Kind: swarm.TurnStarted,
			Key: swarm.StartKey(w.c.ID, w.start), Task: w.c.Task, Agent: w.c.Agent, Turn: w.c.ID, Data: encode(start)}}})
		if !errors.Is(err, swarm.ErrConflict) {
			return nil, err
		}
		if end, ok, err := h.Log.Find(swarm.EndKey(w.c.ID)); err != nil || ok {
			r, err2 := Answer(end)
			return &r, errors.Join(err, err2)
		}
		if start, err = h.earlierStart(w); err != nil {
			return nil, err
		}
	}
}

// firstPrompt is the prompt with which an earlier owner had started the turn, if one had: what it was made from may be another
// by now.
func (h *Hand) firstPrompt(w *work) (made prompt.Prompt, ok bool, err error) {
	if h.Fence <= 1 {
		return made, false, nil // there was none
	}
	e, ok, err := h.Log.Find(swarm.StartKey(w.c.ID, 1))
	if err != nil || !ok {
		return made, false, err
	}
	var start swarm.TurnStart
	if err := json.Unmarshal(e.Data, &start); err != nil {
		return made, true, swarm.Errorf(swarm.Storage, "event %d cannot be read: %v", e.Seq, err)
	}
	text, err := h.Log.Body(start.Prompt)
	return prompt.Prompt{Text: string(text), Spans: start.Spans}, true, err
}

// earlierStart is a start after those in the log, with the prompt of the first of them.
func (h *Hand) earlierStart(w *work) (start swarm.TurnStart, err error) {
	for w.start = 1; ; w.start++ {
		e, ok, err := h.Log.Find(swarm.StartKey(w.c.ID, w.start))
		if err != nil {
			return start, err
		}
		if !ok {
			break
		}
		if err := json.Unmarshal(e.Data, &start); err != nil {
			return start, swarm.Errorf(swarm.Storage, "event %d cannot be read: %v", e.Seq, err)
		}
	}
	text, err := h.Log.Body(start.Prompt)
	w.prompt = string(text)
	start.Start, start.Owner = w.start, h.Fence
	return start, err
}

// perform has the provider do the turn, and looks at what it made.
func (h *Hand) perform(ctx context.Context, w *work) (provider.Reply, []swarm.Verdict, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	if w.task.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.task.Timeout, swarm.Errorf(swarm.TimedOut, "timed out after %s", w.task.Timeout))
		defer stop()
	}
	h.obey(ctx, w.c, cut)
	if cause := context.Cause(ctx); cause != nil {
		return provider.Reply{}, nil, cause
	}
	p, err := h.provider(w.spec)
	if err != nil {
		return provider.Reply{}, nil, err
	}
	live := func(d provider.Delta) {}
	if h.Watch != nil {
		live = func(d provider.Delta) { h.Watch.Delta(w.c, w.start, d) }
	}
	reply, err := p.Turn(ctx, h.request(w), live)
	if h.Watch != nil {
		h.Watch.Silent(w.c)
	}
	if err == nil && w.task.Expect != nil {
		verdicts := reply.Verdicts
		if verdicts == nil {
			verdicts = h.examine(ctx, w, reply.Output)
		}
		if cause := context.Cause(ctx); cause != nil {
			return reply, nil, cause
		}
		return reply, verdicts, judge(verdicts)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return reply, nil, err
}

func (h *Hand) request(w *work) provider.Request {
	env := map[string]string{}
	for _, from := range []map[string]string{w.agent.Env, w.task.Env} {
		for k, v := range from {
			env[k] = v
		}
	}
	return provider.Request{Run: h.Run, Turn: w.c.ID, Task: w.c.Task, Agent: w.c.Agent, Iteration: w.c.Iteration, Attempt: w.c.Attempt,
		Prompt: w.prompt, Model: w.model, Dir: h.workdir(w), Env: env, Tools: w.agent.Tools}
}

func (h *Hand) workdir(w *work) string {
	if w.task.Workdir != "" {
		return w.task.Workdir
	}
	return h.Dir
}

// obey cuts the turn when a control record that came after its loop's last look says so. It has looked once when it returns,
// and goes on looking until ctx ends.
func (h *Hand) obey(ctx context.Context, c flow.Call, cut context.CancelCauseFunc) {
	wake, off := h.Log.Watch(swarm.ToControl)
	after, over := h.look(c, c.Since, cut)
	if over {
		off()
		return
	}
	go func() {
		defer off()
		for !over {
			select {
			case <-wake:
				after, over = h.look(c, after, cut)
			case <-ctx.Done():
				return
			}
		}
	}()
}

// look reads the control records after a number and says up to where it has read, and whether the turn was cut.
func (h *Hand) look(c flow.Call, after int64, cut context.CancelCauseFunc) (int64, bool) {
	for {
		events, err := h.Log.Read(after, 1000, swarm.ToControl)
		if err != nil {
			cut(swarm.Errorf(swarm.Storage, "control records cannot be read: %v", err))
			return after, true
		}
		for _, e := range events {
			after = e.Seq
			if kind := wantsCut(e, c); kind != "" {
				cut(swarm.Errorf(kind, "%s", kind))
				return after, true
			}
		}
		if len(events) == 0 {
			return after, false
		}
	}
}

func wantsCut(e swarm.Event, c flow.Call) swarm.ErrorKind {
	var k swarm.ControlWord
	if json.Unmarshal(e.Data, &k) != nil || k.Target != "" && k.Target != c.Task && k.Target != c.Agent && k.Target != c.ID {
		return ""
	}
	switch k.Word {
	case swarm.WordCancel:
		return swarm.CutByCancel
	case swarm.WordInterrupt:
		return swarm.CutToSpeak
	}
	return ""
}
