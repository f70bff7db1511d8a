package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// A tool is one action of an agent on its run.
type tool struct {
	name        string
	description string
	schema      string
	do          func(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error)
	team        bool // only for teams and swarms, whose agents have further turns
	growth      bool // only for agents that may request new agents or edges
	swarm       bool // only for swarms
}

// tools lists all tools, in the order in which agents see them.
var tools = []tool{
	{"send_handoff", sendDescription, sendSchema, sendHandoff, false, false, false},
	{"read_inbox", inboxDescription, inboxSchema, readInbox, false, false, false},
	{"publish_data", publishDescription, publishSchema, publishData, false, false, false},
	{"put_artifact", putDescription, putSchema, putArtifact, false, false, false},
	{"read_artifact", readDescription, readSchema, readArtifact, false, false, false},
	{"wait_for", waitDescription, waitSchema, waitFor, true, false, false},
	{"spawn_node", spawnDescription, spawnSchema, spawnNode, true, true, false},
	{"create_edge", edgeDescription, edgeSchema, createEdge, true, true, false},
	{"request_help", helpDescription, helpSchema, requestHelp, true, false, false},
	{"task_add", taskAddDescription, taskAddSchema, taskAdd, true, false, true},
	{"task_claim", taskClaimDescription, taskClaimSchema, taskClaim, true, false, true},
	{"report_done", doneDescription, doneSchema, reportDone, true, false, false},
}

// Knows says whether a tool is one of ours.
func Knows(name string) bool {
	return slices.ContainsFunc(tools, func(t tool) bool { return t.name == name })
}

// Coordinates says whether a tool is one of ours by which agents only talk. Using the task
// list is work: an agent that adds or claims a task makes progress.
func Coordinates(name string) bool { return Knows(name) && !IsTaskTool(name) }

// taskTools is how the names of the tools of the task list begin.
const taskTools = "task_"

// IsTaskTool says whether a tool is one of the task list.
func IsTaskTool(name string) bool { return strings.HasPrefix(name, taskTools) }

// alone says whether a member of a council has the tool: it leads to no other member.
func (t tool) alone() bool { return t.name == "read_inbox" || t.name == "report_done" }

// offered lists the tools of the run. In a pipeline an agent has no further turns, so the tools for
// teams are missing.
func (s *Service) offered() ([]tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return nil, err
	}
	if s.council() {
		return slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return !t.alone() }), nil
	}
	if s.growth.Swarm() {
		return tools, nil
	}
	if s.rules.Team() {
		return slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return t.swarm }), nil
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t tool) bool { return t.team }), nil
}

func (s *Service) findTool(name string) (tool, error) {
	if r := s.rulesOfSwarm(); r != nil && r.IsCouncil() && Knows(name) && !(tool{name: name}).alone() {
		return tool{}, swarm.Errorf(swarm.Denied, "a member of a council answers by itself: it cannot write to others, share with them or ask for help").
			WithHint("answer from what you find yourself; the members see each other's answers when all have ended")
	}
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name }); i >= 0 && !tools[i].team {
		return tools[i], nil // every run has it, so the log need not be read
	}
	offered, err := s.offered()
	if err != nil {
		return tool{}, err
	}
	names := make([]string, len(offered))
	for i, t := range offered {
		if t.name == name {
			return t, nil
		}
		names[i] = t.name
	}
	if strings.HasPrefix(name, "task_") && Knows(name) {
		return tool{}, swarm.Errorf(swarm.BadInput, "%s exists in swarms, and this run is none", name).
			WithHint("here there are: %s; a swarm is started with swarm solve", strings.Join(names, ", "))
	}
	if Knows(name) {
		return tool{}, onlyInTeams(name, names)
	}
	return tool{}, swarm.Errorf(swarm.BadInput, "there is no tool %s", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names))
}

func onlyInTeams(name string, here []string) error {
	return swarm.Errorf(swarm.BadInput, "%s exists in teams and swarms, and this run is neither", name).
		WithHint("here there are: %s; a team is started with swarm team", strings.Join(here, ", "))
}

// Refuse returns why an agent is not offered one of our tools. It returns nil for a tool that is
// offered or is not ours.
func (s *Service) Refuse(agent, name string) error {
	if !Knows(name) {
		return nil
	}
	t, err := s.findTool(name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.growth {
		return s.growth.May(agent, name)
	}
	return nil
}

// Tools lists the tools that an agent is offered. The description of send_handoff names the agents
// it may write to.
func (s *Service) Tools(agent string) []swarm.ToolSpec {
	offered, err := s.offered()
	if err != nil {
		offered = tools // a log that cannot be read makes the tools fail, with the reason
	}
	var to, answers []string
	swarms := false
	if err == nil {
		s.mu.Lock()
		swarms = s.growth.Swarm()
		to, answers = s.rules.Receivers(agent), s.rules.Answers(agent)
		offered = slices.DeleteFunc(slices.Clone(offered), func(t tool) bool { return t.growth && !s.growth.Offers(agent, t.name) })
		s.mu.Unlock()
	}
	specs := make([]swarm.ToolSpec, len(offered))
	for i, t := range offered {
		specs[i] = swarm.ToolSpec{Name: t.name, Description: t.description, Schema: json.RawMessage(t.schema)}
		if t.name == "request_help" && swarms {
			specs[i].Description = swarmHelpDescription
		}
		if t.team && !t.swarm {
			specs[i].Description += " Only teams and swarms have this tool."
		}
		if t.name == "send_handoff" && err == nil {
			specs[i].Description += " You may write to: " + receivers(to) + "."
			if len(answers) > 0 {
				specs[i].Description += " You may answer once, since they ask for a response: " + receivers(answers) + "."
			}
		}
	}
	return specs
}

// TaskTools lists the tools of the task list, if the run has one. They are the same for all agents.
func (s *Service) TaskTools() (specs []swarm.ToolSpec) {
	offered, err := s.offered()
	if err != nil {
		offered = tools // see Tools
	}
	for _, t := range offered {
		if IsTaskTool(t.name) {
			specs = append(specs, swarm.ToolSpec{Name: t.name, Description: t.description, Schema: json.RawMessage(t.schema)})
		}
	}
	return specs
}

func receivers(names []string) string {
	const most = 50
	if len(names) == 0 {
		return "nobody yet"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

const sendDescription = "Send a message to another agent of your team. It is delivered at once and wakes the receiver; your own turn goes on. " +
	"Keep the message short and self-contained: the receiver has not seen what you have seen. Put long texts into an artifact with put_artifact and " +
	"send its ref. When the receiver has to know what you were told in a context pack, pass the pack's ref on as contextRef: it then stands in the receiver's " +
	"prompt, and costs your message nothing. Leave it out when the message says all, or when the receiver has had it. The answer has the message's id and its number."

const sendSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["to", "message"],
  "properties": {
    "to": {"type": "string", "description": "The name of the agent that gets the message."},
    "message": {"type": "string", "description": "What you hand over or ask, in plain words, at most 8 KB."},
    "structured": {"description": "The same or more as data, for a receiver that computes with it: as a rule an object."},
    "artifacts": {
      "type": "array",
      "description": "Artifacts that belong to the message: by its ref one that is stored, or by type, name and content a text that is stored with the message.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "type": {"type": "string", "description": "What it is: diff, log, report, …"},
          "ref": {"type": "string", "description": "artifact://KIND/ID, as put_artifact answered it."},
          "name": {"type": "string", "description": "What people call the text."},
          "content": {"type": "string", "description": "The text itself, in the place of a ref."}
        }
      }
    },
    "status": {
      "type": "object",
      "description": "Whether what you report went well.",
      "additionalProperties": false,
      "required": ["ok"],
      "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}}
    },
    "response": {
      "type": "object",
      "description": "Whether you want an answer, and who should get it: you, or with replyTo somebody to whom the receiver may write. The receiver may answer this message even if it may not write to you otherwise.",
      "additionalProperties": false,
      "required": ["expectation"],
      "properties": {
        "expectation": {"type": "string", "enum": ["none", "optional", "required"]},
        "replyTo": {"type": "string"}
      }
    },
    "contextRef": {"type": "string", "description": "contextpack://pack/ID of this run: the one that you were given, or one that you stored with put_artifact."},
    "type": {"type": "string", "description": "handoff (the default); signal, which waits in the inbox and wakes nobody; or what kind of handoff it is: request, offer, accept, delegation, info, …"},
    "priority": {"type": "string", "enum": ["normal"], "description": "What every message of an agent has; best left out."},
    "id": {"type": "string", "description": "An id of your own; the same id with the same content is one message. Best left out."},
    "fromNodeId": {"type": "string", "description": "Your own name, which is known: best left out. Another's is refused."}
  }
}`

// A SendResult is the answer to a sender: the envelope is in its receiver's inbox.
type SendResult struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq"`
}

// sendHandoff stores an envelope in its receiver's inbox.
func sendHandoff(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	d, err := mail.ReadDraft(args)
	if err != nil {
		return nil, err
	}
	return h.send(ctx, d)
}

// SendFile sends a message that the agent wrote into a file. It is checked as send_handoff is.
func (h *TurnHandle) SendFile(ctx context.Context, d mail.Draft) error {
	if !h.enter() {
		return h.ended()
	}
	defer h.busy.Done()
	_, err := h.send(ctx, d)
	if err != nil {
		return h.service.clean(withoutPath(err))
	}
	return nil
}

// send checks a message by the rules, and stores it.
func (h *TurnHandle) send(ctx context.Context, d mail.Draft) (any, error) {
	s := h.service
	if s.Redact != nil {
		d = d.Redacted(s.Redact)
	}
	with, err := s.enclose(h.by(), &d)
	if err != nil {
		return nil, err
	}
	if err := s.checkType(&d); err != nil {
		return nil, err
	}
	var answers bool // it needs no edge, because it answers a message
	draft := func() (swarm.Envelope, error) {
		return s.write(func(r *mail.Rules) (swarm.Envelope, error) {
			e, err := r.Envelope(h.Agent, d, h.first(), s.now())
			if answers = e.ID != "" && !r.May(e.FromNodeID, e.ToNodeID); answers && err != nil && s.isStored(e) {
				return e, nil // the turn runs again, and its permission to answer is used up
			}
			return e, s.explainUnknown(d.To, err)
		})
	}
	e, err := draft()
	if limited := s.limitsMail(); err == nil && (answers || limited) { // of two at once, the second must see the first
		h.answering.Lock()
		defer h.answering.Unlock()
		if e, err = draft(); err == nil && limited {
			err = s.checkLimit(e)
		}
	}
	if err != nil {
		return nil, err
	}
	sent, err := s.store(ctx, e, h, with)
	for n := 2; errors.Is(err, errReturned) && d.ID == ""; n++ { // to a receiver that was started again, the same words are a new message
		again := e
		again.ID = derived("again", e.Ref()+"\x00"+strconv.Itoa(n))
		sent, err = s.store(ctx, again, h, with)
	}
	return sent, err
}

// errReturned refuses a message that was sent before and returned unread.
var errReturned = errors.New("it went back unread when its receiver ended")

// write makes an envelope by the current rules.
func (s *Service) write(make func(*mail.Rules) (swarm.Envelope, error)) (swarm.Envelope, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(); err != nil {
		return swarm.Envelope{}, err
	}
	return make(s.rules)
}

// store puts an envelope into its receiver's inbox, in one batch with the events of with before it.
// It fails if the receiver has ended meanwhile, and if the same envelope was returned unread.
func (s *Service) store(ctx context.Context, e swarm.Envelope, from *TurnHandle, with swarm.Batch) (SendResult, error) {
	stored := swarm.StoredEnvelope{Envelope: e, Client: s.Client}
	event := swarm.Event{Kind: swarm.HandoffStored, To: swarm.ToAgent(e.ToNodeID), Key: swarm.MailKey(e.Ref()), Agent: e.FromNodeID}
	if from != nil {
		event.Task, event.Turn, stored.Read = from.Task, from.Turn, from.upto()
	}
	event.Data = swarm.Encode(stored)
	if e.ContextRef != "" {
		if _, err := s.findPack(e.ContextRef); err != nil {
			return SendResult{}, err
		}
	}
	if err := s.readable(e, with.Events); err != nil {
		return SendResult{}, err
	}
	b := swarm.Batch{Absent: []string{swarm.AgentEndedKey(e.ToNodeID, s.starts(e.ToNodeID)), swarm.ReturnedKey(e.Ref())}, Events: append(with.Events, event), Bodies: with.Bodies}
	write := s.append
	if from != nil {
		write = from.append
	}
	seq, there, err := write(ctx, b)
	if errors.Is(err, swarm.ErrStale) && !errors.Is(err, errReplaced) {
		_, err = s.write(func(r *mail.Rules) (swarm.Envelope, error) { return r.Accept(e.FromNodeID, e) })
		if err == nil { // the receiver has not ended, or was started again
			err = &swarm.Error{Kind: swarm.BadInput, Msg: "message " + swarm.Quote(e.ID), Err: errReturned, Hint: "send it under another id"}
		}
	}
	if err != nil {
		return SendResult{}, err
	}
	if there != nil { // another time alone does not make another message
		stored, err := swarm.Body[swarm.Envelope](there)
		if err != nil {
			return SendResult{}, err
		}
		if !mail.Same(stored, e) {
			return SendResult{}, &swarm.Error{Kind: swarm.BadInput, Msg: "message " + swarm.Quote(e.ID), Err: swarm.ErrConflict, Hint: "leave id out, or choose another one"}
		}
	}
	return SendResult{e.ID, seq}, nil
}

const inboxDescription = "Read the messages that other agents have sent you since your turn began. Each message is shown once; those that you were given " +
	"with your task are not shown again. An empty list means that nothing new has come. Answer a message that asks for a response with send_handoff, to its sender or to whom it names in replyTo."

const inboxSchema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "max": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many messages at most; 20 when left out."}
  }
}`

// An inboxResult answers read_inbox.
type inboxResult struct {
	Envelopes []mail.Item `json:"envelopes"`
	More      bool        `json:"more,omitempty"` // there is more mail: read again
}

// readInbox shows the mail that came since the prompt was made, or since the last call.
func readInbox(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "max")
	most := a.Int("max", shownMail, 1, mostMail)
	if err := a.Err(); err != nil {
		return nil, err
	}
	h.reading.Lock()
	defer h.reading.Unlock()
	items, more, err := h.service.unread(h.Agent, h.upto(), int(most), shownBytes)
	if err != nil {
		return nil, err
	}
	if len(items) > 0 {
		h.show(ctx, items)
	} else {
		items = []mail.Item{}
	}
	return inboxResult{items, more}, nil
}
