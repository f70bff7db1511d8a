package agentapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/growth"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// A Decision is a person's answer to an agent's request.
type Decision struct {
	OK     bool
	Reason string // of a denial, for the agent
	Actor  swarm.Actor
	Edit   []byte // JSON of what is allowed instead of the request; nil = the request itself
	// Message is the id of the message in which another program answered. It is stored with the
	// answer.
	Message string
}

// ErrAnswered means that the request has an answer already.
var ErrAnswered = errors.New("it is answered already")

const maxReason = 2000 // bytes

// Verb is the name of the decision in commands and protocols.
func (d Decision) Verb() string {
	if d.OK {
		return "approve"
	}
	return "deny"
}

// Decide answers an agent's request: the use of a tool, or a growth request. When it returns, the
// answer is on disk, as one event under a unique key. The waiting turn and the loop read that
// event. The first answer counts.
func (s *Service) Decide(ctx context.Context, id string, d Decision) error {
	asked, err := s.question(id)
	if err != nil {
		return err
	}
	if asked.ID == "" {
		return swarm.Errorf(swarm.NotFound, "there is no request %s in run %s", swarm.Quote(id), s.Run).WithHint("`swarm approve` lists the open requests")
	}
	if err := errors.Join(s.goesOn(), s.unanswered(id)); err != nil {
		return err
	}
	if d.Reason = strings.TrimSpace(string(s.redact([]byte(d.Reason)))); len(d.Reason) > maxReason {
		return swarm.Errorf(swarm.BadInput, "the reason has %d bytes; %d are allowed", len(d.Reason), maxReason)
	}
	switch {
	case d.Edit != nil && !d.OK:
		return swarm.Errorf(swarm.BadInput, "a denied request cannot be edited").WithHint("approve it with the edit, or say why not")
	case asked.Growth == nil && asked.Retry == nil && !swarm.AsksAboutPlan(id) && d.Edit != nil:
		return swarm.Errorf(swarm.BadInput, "the use of a tool can be approved or denied, and not edited").WithHint("deny it, and write to @%s what to do instead", asked.by)
	}
	answer := swarm.ApprovalAnswer{ID: id, OK: d.OK, Reason: d.Reason, Actor: d.Actor, Message: d.Message}
	var changes *swarm.Event
	switch {
	case d.Edit != nil && swarm.AsksAboutPlan(id):
		if changes, err = s.editPlan(asked, s.redact(d.Edit), &answer); err != nil {
			return s.clean(err)
		}
	case d.Edit != nil && asked.Retry != nil:
		if answer.Retry, err = readRetry(*asked.Retry, s.redact(d.Edit)); err != nil {
			return s.clean(err)
		}
	case d.Edit != nil:
		if answer.Growth, err = s.edited(asked, d.Edit); err != nil {
			return s.clean(err)
		}
	}
	return s.answer(ctx, asked, answer, changes)
}

// answer appends an answer, after the plan with a person's changes, if there are any. Its address is
// control, which turns and loops subscribe to.
func (s *Service) answer(ctx context.Context, asked question, answer swarm.ApprovalAnswer, changes *swarm.Event) error {
	b := swarm.Batch{Absent: []string{string(swarm.RunEnded)}, Events: []swarm.Event{{Kind: swarm.ApprovalAnswered, Key: swarm.AnsweredKey(asked.ID), To: swarm.ToControl,
		Agent: asked.by, Task: asked.task, Turn: asked.turn, Data: swarm.Encode(answer)}}}
	if changes != nil {
		b.Events = slices.Insert(b.Events, 0, *changes)
	}
	_, there, err := s.append(ctx, b)
	switch {
	case errors.Is(err, swarm.ErrStale):
		return s.ended()
	case err == nil && there != nil:
		return s.unanswered(asked.ID) // another answer came first
	}
	return err
}

// A question is an agent's request for approval, and the turn that made it.
type question struct {
	swarm.Approval
	by, task string
	turn     swarm.TurnID
}

// question finds a question. If there is none, its ID is "".
func (s *Service) question(id string) (q question, err error) {
	e, ok, err := s.Log.Find(swarm.AskedKey(id))
	if err != nil || !ok {
		return q, err
	}
	q.by, q.task, q.turn = e.Agent, e.Task, e.Turn
	q.Approval, err = swarm.Body[swarm.Approval](&e)
	return q, err
}

// unanswered returns an error with the existing answer if the question has one.
func (s *Service) unanswered(id string) error {
	how, there, err := s.Answered(id)
	if err != nil || !there {
		return err
	}
	return &swarm.Error{Kind: swarm.BadInput, Msg: how, Err: ErrAnswered}
}

// Answered describes the answer to a question, who gave it and when. ok is false if there is none.
func (s *Service) Answered(id string) (how string, ok bool, err error) {
	e, there, err := s.Log.Find(swarm.AnsweredKey(id))
	if err != nil || !there {
		return "", false, err
	}
	a, err := swarm.Body[swarm.ApprovalAnswer](&e)
	if err != nil {
		return "", false, err
	}
	if how = a.ID + " was denied"; a.OK {
		how = a.ID + " was approved"
	}
	if a.By != "" {
		how += " by " + a.Actor.String()
	}
	return how + " at " + e.Time.Local().Format(time.TimeOnly), true, nil
}

// readRetry reads a person's changes to the next attempt of a task.
func readRetry(asked swarm.RetryRequest, text []byte) (*swarm.RetryRequest, error) {
	args := strictjson.ReadArgs(text, "inputs", "note")
	edit := &swarm.RetryRequest{Note: args.Text("note"), Inputs: maps.Clone(asked.Inputs)}
	names := slices.Sorted(maps.Keys(asked.Inputs))
	inputs := args.Object("inputs", names...)
	for _, name := range names {
		if task := inputs.Text(name); task != "" {
			edit.Inputs[name] = task
			if err := swarm.CheckTaskName(task); err != nil {
				return nil, err
			}
		}
	}
	return edit, args.Err()
}

// edited reads a person's changes to a growth request and checks the result.
func (s *Service) edited(q question, text []byte) (*swarm.GrowthRequest, error) {
	w, err := growth.ReadEdit(*q.Growth, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	w = s.growth.Fill(q.by, growth.Clean(w, s.Redact))
	return &w, s.growth.Check(q.ID, q.by, w, s.rules)
}

// Grant carries out the answer to a growth request: it adds to the plan, sends the new agent its
// instructions, and tells the requester the outcome. The driver appends all of it in one batch.
// Repeating Grant finds the batch in the log and does nothing. If the request has become
// impossible, Grant tells the requester why. It returns the sequence number of the envelope with
// the outcome.
func (s *Service) Grant(ctx context.Context, fence int64, id string) (int64, error) {
	asked, err := s.question(id)
	answer, ok, err2 := swarm.FindBody[swarm.ApprovalAnswer](s.Log, swarm.AnsweredKey(id))
	if err := errors.Join(err, err2); err != nil {
		return 0, err
	}
	if !ok || asked.Growth == nil {
		return 0, swarm.Errorf(swarm.Storage, "the log has no answer to the growth request %s", id)
	}
	for _, sender := range []string{swarm.Orchestrator, swarm.Supervisor} {
		if told, done, err := s.Log.Find(swarm.MailKey(answerID(sender, id))); err != nil || done {
			return told.Seq, err
		}
	}
	events, err := s.grants(asked, answer)
	if err != nil {
		return 0, err
	}
	seqs, err := s.Log.Append(ctx, swarm.Batch{Fence: fence, Events: events})
	if err != nil {
		return 0, err
	}
	return seqs[len(seqs)-1], nil
}

// grants makes the events that carry out the answer to a growth request.
func (s *Service) grants(q question, answer swarm.ApprovalAnswer) (events []swarm.Event, err error) {
	asked, agent := *q.Growth, q.by
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	reply := swarm.Envelope{Kind: swarm.Handoff, ID: answerID(swarm.Orchestrator, answer.ID), FromNodeID: swarm.Orchestrator, ToNodeID: agent, CreatedAt: s.now().UTC(),
		Meta: swarm.Encode(mail.Meta{Type: "approval"})}
	if s.growth.Swarm() { // its workers know the supervisor, and the five types of messages
		reply.ID, reply.FromNodeID = answerID(swarm.Supervisor, answer.ID), swarm.Supervisor
		reply.Meta = swarm.Encode(mail.Meta{Type: "info", InReplyTo: answer.ID})
	}
	granted := asked
	if answer.Growth != nil {
		granted = *answer.Growth
	}
	why := error(nil)
	if answer.OK {
		why = s.growth.Check(answer.ID, agent, granted, s.rules)
	}
	switch {
	case !answer.OK:
		reason := cmp.Or(answer.Reason, "a person said no")
		reply.Payload = outcome{Request: answer.ID}.payload("Denied: "+reason+". You had asked to "+describeRequest(asked)+".", reason)
	case why != nil:
		reply.Payload = outcome{Request: answer.ID}.payload("Allowed, but it cannot be done: "+why.Error()+". You had asked to "+describeRequest(asked)+".", why.Error())
	case s.growth.Swarm() && granted.Spawn != nil:
		p := s.growth.Worker(s.Run, agent, *granted.Spawn)
		events = append(events, swarm.Event{Kind: swarm.PlanAdded, Key: swarm.GrantedKey(answer.ID), To: swarm.ToLoop(swarm.RootLoop), Agent: agent, Data: swarm.Encode(p)})
		spawn := *granted.Spawn
		spawn.Name = p.Agents[0].Name
		named := swarm.GrowthRequest{Spawn: &spawn}
		reply.Payload = outcome{answer.ID, &named}.payload(describeGrant(asked, named), "")
	default:
		p := s.growth.Grown(agent, granted)
		events = append(events, swarm.Event{Kind: swarm.PlanAdded, Key: swarm.GrantedKey(answer.ID), To: swarm.ToLoop(swarm.RootLoop), Agent: agent, Data: swarm.Encode(p)})
		if spawn := granted.Spawn; spawn != nil {
			events = append(events, inbound(swarm.Envelope{Kind: swarm.Handoff, ID: derived("m-spawn", answer.ID), FromNodeID: agent, ToNodeID: spawn.Name, CreatedAt: s.now().UTC(),
				Payload: swarm.Payload{Message: spawn.Instructions}}))
		}
		reply.Payload = outcome{answer.ID, &granted}.payload(describeGrant(asked, granted), "")
	}
	return append(events, inbound(reply)), nil
}

// describeGrant says that a growth request was granted, and how the grant differs from the request.
func describeGrant(asked, granted swarm.GrowthRequest) string {
	var text string
	if e := granted.Edge; e != nil {
		if text = fmt.Sprintf("Granted: %s may write to %s now", e.From, e.To); e.Bidirectional {
			text += ", and " + e.To + " to " + e.From
		}
	} else {
		text = fmt.Sprintf("Granted: %s has joined the team and has its instructions. You may write to it", granted.Spawn.Name)
	}
	if changes := changed(asked, granted); len(changes) > 0 {
		text += ". Not as you asked: " + strings.Join(changes, "; ")
	}
	return text + "."
}

func changed(asked, granted swarm.GrowthRequest) (changes []string) {
	note := func(what, before, after string) {
		if before != after {
			changes = append(changes, fmt.Sprintf("%s is %q instead of %q", what, after, before))
		}
	}
	if a, g := asked.Edge, granted.Edge; a != nil && g != nil {
		note("from", a.From, g.From)
		note("to", a.To, g.To)
		note("bidirectional", fmt.Sprint(a.Bidirectional), fmt.Sprint(g.Bidirectional))
		return changes
	}
	a, g := asked.Spawn, granted.Spawn
	if !asksForHelp(asked) {
		note("name", a.Name, g.Name)
	}
	note("role", a.Role, g.Role)
	note("provider", a.Provider, g.Provider)
	note("edges", strings.Join(a.Edges, ", "), strings.Join(g.Edges, ", "))
	if a.Instructions != g.Instructions {
		changes = append(changes, "its instructions are others: "+head(g.Instructions))
	}
	return changes
}

// An outcome is the result of a growth request, as data for the requester.
type outcome struct {
	Request string               `json:"request"`
	Granted *swarm.GrowthRequest `json:"granted,omitempty"`
}

func (o outcome) payload(text, reason string) swarm.Payload {
	return swarm.Payload{Message: text, Structured: swarm.Encode(o), Status: &swarm.PayloadStatus{OK: o.Granted != nil, Reason: reason}}
}

// answerID is the id of the envelope that answers a growth request, by its sender. No agent can
// choose such an id, not even the supervisor.
func answerID(sender, request string) string { return derived(answerPrefix(sender), request) }

func answerPrefix(sender string) string {
	if sender == swarm.Supervisor {
		return swarm.MadeID + "answer"
	}
	return "answer"
}

// AnswerTo returns the id of the growth request that an envelope answers, if it does. Only the run
// itself writes such envelopes, in a swarm in the name of the supervisor.
func AnswerTo(e *swarm.Event) (id string, ok bool, err error) {
	if e.Kind != swarm.HandoffStored || e.Agent != swarm.Orchestrator && e.Agent != swarm.Supervisor ||
		!strings.HasPrefix(e.Key, swarm.MailKey(answerPrefix(e.Agent)+"-")) {
		return "", false, nil
	}
	env, err := swarm.Body[struct {
		Payload struct {
			Structured outcome `json:"structured"`
		} `json:"payload"`
	}](e)
	if err != nil {
		return "", false, err
	}
	return env.Payload.Structured.Request, true, nil
}
