package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"swarm"
	"swarm/internal/provider"
)

// agents are the agents of one process. They write what they see and do into the ledger of the
// world, which no crash takes from them.
type agents struct {
	*world
	process *handle
}

// A call is one call of an agent, as the agent saw it.
type call struct {
	process      int
	turn         swarm.TurnID
	agent        string
	began, ended time.Time // ended is zero while it works
	prompt       string
	read         []string       // the marks of messages, in the order in which they were read
	used         int64          // tokens
	waits        [][2]time.Time // when it waited for others
}

// An ack is an event that someone was told is stored.
type ack struct {
	seq  int64
	who  string
	want func(swarm.Event) error
}

// mark returns the words by which a message is found again. A repeated attempt writes the same.
func mark(turn swarm.TurnID, n int) string {
	return fmt.Sprintf("(%s.%d)", swarm.FirstAttempt(turn), n)
}

// header finds the beginning of a message in a prompt.
var header = regexp.MustCompile(`(?m)^--- Message \d+ from \S+ \([^)]*\bid (\S+)\) ---$`)

// show notes the messages that a text shows.
func (c *call) show(text string) {
	for _, m := range header.FindAllStringSubmatch(text, -1) {
		c.read = append(c.read, m[1])
	}
}

var marks = regexp.MustCompile(`\([a-z0-9-]+/\d+/\d+\.\d+\)`)

// wait sleeps, or returns the cause when ctx ends. An agent does not stop at once then: how long it
// takes is random, too.
func (a *agents) wait(ctx context.Context, most time.Duration, what ...any) error {
	a.disk.mu.Lock()
	long := a.disk.length(0, most, append(what, a.process.number)...)
	a.disk.mu.Unlock()
	t := time.NewTimer(long)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		a.disk.delay(0, 5*time.Second, append(what, "stops", a.process.number)...)
		return context.Cause(ctx)
	}
}

func (a *agents) Turn(ctx context.Context, req provider.Request, live func(swarm.Delta)) (reply provider.Reply, err error) {
	c, nth := a.begin(req)
	defer a.end(c)
	defer func() { reply.Usage = swarm.Usage{InputTokens: c.used, OutputTokens: reply.Bytes} }() // also beside an error
	of := string(req.Turn)
	if a.fickle { // an agent that is asked again does something else
		of = fmt.Sprint(of, "#", nth)
	}
	r := dice(a.seed, "agent", of)
	if chance(r, 5) { // the connection breaks before anything is done
		return provider.Reply{}, swarm.Errorf(swarm.Protocol, "the connection was reset")
	}
	reply = provider.Reply{Session: one(r, "", "", "session of "+req.Agent)}
	for n := range r.IntN(5) {
		if err := a.wait(ctx, 20*time.Second, "acts", req.Turn, nth, n); err != nil {
			return reply, err
		}
		if req.Reserve != nil {
			need := c.used + int64(r.IntN(200))
			if err := req.Reserve(swarm.Usage{InputTokens: need}); err != nil {
				return reply, err
			}
			c.used = need
		}
		if err := a.act(ctx, r, req, c, n); err != nil {
			return reply, err
		}
	}
	if err := a.wait(ctx, time.Minute, "works", req.Turn, nth); err != nil {
		if chance(r, 20) { // it was done before it saw that it should stop
			return answer(reply, "good, but late"), nil
		}
		return reply, err
	}
	switch n := r.IntN(100); {
	case n < 8:
		return answer(reply, "bad"), nil
	case n < 16: // the connection breaks after everything was done
		return reply, swarm.Errorf(one(r, swarm.Protocol, swarm.Exited, swarm.RateLimited, swarm.NoResult, swarm.Crashed), "the connection was reset")
	case n < 19:
		e := swarm.Errorf(swarm.RateLimited, "the limit is reached")
		e.Until = time.Now().Add(time.Duration(r.IntN(180)) * time.Second)
		return reply, e
	}
	return answer(reply, "good output of "+of), nil
}

func answer(r provider.Reply, text string) provider.Reply {
	r.Output, r.Bytes = []byte(text), int64(len(text))
	return r
}

func (a *agents) begin(req provider.Request) (c *call, nth int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		if c.turn == req.Turn {
			nth++
		}
	}
	c = &call{process: a.process.number, turn: req.Turn, agent: req.Agent, began: time.Now(), prompt: req.Prompt}
	c.show(req.Prompt)
	a.calls = append(a.calls, c)
	return c, nth
}

// waited says whether the call waited for other agents at a time, or just before. The loop learns late
// that a wait is over.
func (c *call) waited(at time.Time) bool {
	return slices.ContainsFunc(c.waits, func(w [2]time.Time) bool { return !at.Before(w[0]) && !at.After(w[1].Add(time.Second)) })
}

func (a *agents) end(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.ended = time.Now()
}

// act does one random thing with the tools. The answer of a tool that fails is an answer; an error
// ends the turn.
func (a *agents) act(ctx context.Context, r *rand.Rand, req provider.Request, c *call, n int) error {
	text := mark(req.Turn, n)
	anyone := func() string {
		if chance(r, 10) {
			return one(r, swarm.User, "nobody", req.Agent)
		}
		return a.plan.Agents[r.IntN(len(a.plan.Agents))].Name
	}
	args, tool := map[string]any{}, ""
	last := c.turn != swarm.FirstAttempt(c.turn) || req.Iteration > 5 // or a team would never come to an end
	switch k := r.IntN(100); {
	case k < 45 && !last, k < 20:
		tool = "send_handoff"
		args["to"], args["message"] = anyone(), "message "+text
		if chance(r, 30) {
			args["response"] = map[string]any{"expectation": one(r, "required", "required", "optional", "none")}
		}
		if chance(r, 10) {
			args["type"] = one(r, "signal", "request", "info")
		}
	case k < 60:
		tool = "read_inbox"
	case k < 65:
		tool = "publish_data"
		args["topic"], args["data"] = "notes", "finding of "+string(req.Turn)
	case k < 70:
		tool = "put_artifact"
		args["kind"], args["name"], args["content"] = "report", "report", fmt.Sprint("content of ", req.Turn, n)
	case k < 80 && req.Ask != nil:
		return a.ask(ctx, req, n)
	case k < 88:
		tool = "wait_for"
		args["agents"], args["timeout"] = []string{anyone()}, 1+r.IntN(120)
	case k < 92:
		tool = "spawn_node"
		args["name"], args["instructions"] = one(r, "e", "f", "g"), "help "+text
	case k < 94:
		tool = "create_edge"
		args["from"], args["to"] = anyone(), anyone()
	case k < 96:
		tool = "request_help"
		args["help_description"] = "help " + text
	default:
		if tool = "report_done"; req.Agent == "lead" && req.Iteration < 2 {
			return nil
		}
		args["response"] = "all done"
	}
	for range one(r, 1, 1, 1, 2) { // sometimes a request is sent twice
		if err := a.use(ctx, req, c, tool, swarm.Encode(args), text); err != nil {
			return err
		}
		aside, err := req.Aside(ctx, tool)
		if err != nil {
			return err
		}
		c.show(aside)
	}
	return nil
}

func (a *agents) use(ctx context.Context, req provider.Request, c *call, tool string, args json.RawMessage, text string) error {
	began := time.Now()
	answer, err := req.Call(ctx, tool, args)
	if tool == "wait_for" {
		c.waits = append(c.waits, [2]time.Time{began, time.Now()})
	}
	if cause := context.Cause(ctx); cause != nil {
		a.disk.delay(0, time.Second, "cut", req.Turn, text, a.process.number)
		return cause
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.refused++
	case tool == "send_handoff":
		var sent struct {
			ID  string
			Seq int64
		}
		if err := json.Unmarshal([]byte(answer), &sent); err != nil {
			return err
		}
		a.acks = append(a.acks, ack{sent.Seq, string(req.Turn), func(e swarm.Event) error {
			env, err := swarm.Body[swarm.Envelope](&e)
			if err == nil && (e.Kind != swarm.HandoffStored || env.ID != sent.ID || env.FromNodeID != req.Agent || marks.FindString(env.Payload.Message) != text) {
				err = fmt.Errorf("%s is not the message %s %s of %s", e.Data, sent.ID, text, req.Agent)
			}
			return err
		}})
	case tool == "read_inbox":
		var inbox struct{ Envelopes []struct{ ID string } }
		if err := json.Unmarshal([]byte(answer), &inbox); err != nil {
			return err
		}
		for _, e := range inbox.Envelopes {
			c.read = append(c.read, e.ID)
		}
	}
	return nil
}

// ask asks a person for permission.
func (a *agents) ask(ctx context.Context, req provider.Request, n int) error {
	id := fmt.Sprintf("%s/%d", req.Turn, n)
	ok, _, err := req.Ask(ctx, swarm.Approval{ID: id, What: "run a tool", Tool: "tool"})
	if err != nil {
		a.disk.delay(0, time.Second, "unanswered", id, a.process.number)
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ok && a.plan.Approvals.Tools != "auto" {
		a.granted = append(a.granted, id)
	}
	return nil
}
