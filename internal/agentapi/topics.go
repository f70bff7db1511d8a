package agentapi

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/strictjson"
)

// maxData limits the bytes of a topic entry.
const maxData = 1 << 20

const publishDescription = "Publish a finding for your whole team. The newest findings of each topic stand in every teammate's next prompts, of a long one the beginning; " +
	"nobody is given a turn for it. Use it for facts that others can build on, not for questions: those go to one agent with send_handoff. " +
	"Put a long text into an artifact with put_artifact, and publish what it says in a sentence, with its ref."

const publishSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["topic", "data"],
  "properties": {
    "topic": {"type": "string", "description": "A short name that findings of one kind share: a-z, 0-9, - and _."},
    "data": {"description": "The finding: a text, or any JSON value; at most 1 MB."}
  }
}`

// A publishResult answers publish_data.
type publishResult struct {
	Seq int64 `json:"seq"`
}

// topicKey is the prefix of the keys of topic entries.
const topicKey = "topic:"

// publishData adds an entry to a topic. Its key comes from the turn and the content, so a turn that
// runs again, or a retry, publishes nothing twice.
func publishData(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "topic", "data")
	a.Need("topic", "data")
	topic, data := a.Text("topic"), a.JSON("data")
	if err := a.Err(); err != nil {
		return nil, err
	}
	entry, err := h.service.entry(topic, data)
	if err != nil {
		return nil, err
	}
	e := swarm.Event{Kind: swarm.TopicPublished, To: swarm.ToTopics, Key: topicKey + h.first() + ":" + string(swarm.HashOf(entry)[:24]),
		Agent: h.Agent, Task: h.Task, Turn: h.Turn, Data: entry}
	seq, before, err := h.append(ctx, swarm.Batch{Events: []swarm.Event{e}})
	if err == nil && before != nil {
		err = swarm.ErrConflict // two texts with the same hash
	}
	if err != nil {
		return nil, err
	}
	return publishResult{seq}, nil
}

// entry makes the body of a topic entry, checked and without secrets.
func (s *Service) entry(topic string, data json.RawMessage) (json.RawMessage, error) {
	entry := swarm.TopicEntry{Topic: strings.ToLower(strings.TrimSpace(topic)), Data: data}
	if err := swarm.CheckTopicName(entry.Topic); err != nil {
		return nil, err
	}
	if s.Redact != nil {
		entry.Data = strictjson.Redact(entry.Data, s.Redact)
	}
	if n := len(entry.Data); n > maxData {
		return nil, swarm.Errorf(swarm.BadInput, "the data has %d bytes; %d are allowed", n, maxData).
			WithHint("store it with put_artifact and publish its ref")
	}
	return swarm.Encode(entry), nil
}

// Publish adds a person's entry to a topic and returns its sequence number.
func (s *Service) Publish(ctx context.Context, topic string, data json.RawMessage) (int64, error) {
	entry, err := s.entry(topic, data)
	if err != nil {
		return 0, s.clean(err)
	}
	if err := s.goesOn(); err != nil {
		return 0, err
	}
	seq, _, err := s.append(ctx, swarm.Batch{Events: []swarm.Event{{Kind: swarm.TopicPublished, To: swarm.ToTopics, Agent: swarm.User, Data: entry}}})
	return seq, err
}

// A Finding is a topic entry as prompts show it.
type Finding struct {
	Seq   int64
	Agent string       // the publisher
	Turn  swarm.TurnID // the publishing turn; "" = a person published it
	Topic string
	Text  string // shortened to the limit of characters
}

// topics is a fold of the topic entries, oldest first. Only the newest of each topic are kept.
type topics struct {
	read    int64 // sequence number of the last event read
	entries []Finding
}

// roomForFindings limits the bytes of all findings in a prompt, however many topics there are.
const roomForFindings = 64 << 10

// Newest as the limit of [Service.Findings] means the newest entry there is.
const Newest = math.MaxInt64

// Findings returns the newest entries of each topic, oldest first, and the sequence number of the
// newest entry read. Entries after upto do not count.
func (s *Service) Findings(upto int64) ([]Finding, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.plans) == 0 { // the first plan has the limits
		// Most runs publish nothing. This check saves folding the log, which is as large as the plan.
		if first, err := s.Log.Read(0, 1, swarm.ToTopics); err != nil || len(first) == 0 {
			return nil, 0, err
		}
		if err := s.follow(); err != nil {
			return nil, 0, err
		}
	}
	limits := swarm.DefaultTopics
	if len(s.plans) > 0 && s.plans[0].Topics != nil {
		limits = *s.plans[0].Topics
	}
	t := &s.topics
	if t.read > upto { // the fold may have dropped entries that were among the newest then
		t = &topics{}
	}
	if err := t.follow(s.Log, upto, limits); err != nil {
		return nil, 0, err
	}
	shown := slices.Clone(t.entries)
	room := max(roomForFindings, limits.Entries*limits.Chars)
	for i := len(shown) - 1; i >= 0; i-- {
		if room -= len(shown[i].Text); room < 0 {
			return shown[i+1:], t.read, nil
		}
	}
	return shown, t.read, nil
}

// follow reads the entries that were appended since the last call, up to a sequence number.
func (t *topics) follow(log swarm.Log, upto int64, limits swarm.TopicLimits) error {
	for done := false; !done; {
		events, err := log.Read(t.read, page/10, swarm.ToTopics)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			e := &events[i]
			if done = e.Seq > upto; done {
				break
			}
			entry, err := swarm.Body[swarm.TopicEntry](e)
			if err != nil {
				return err
			}
			t.entries = append(t.entries, Finding{e.Seq, e.Agent, e.Turn, entry.Topic, snippet(entry.Text(), limits.Chars)})
			t.read = e.Seq
		}
		t.entries = newest(t.entries, limits.Entries)
	}
	return nil
}

// newest keeps the last entries of each topic, in order.
func newest(all []Finding, each int) (kept []Finding) {
	count := map[string]int{}
	for _, f := range slices.Backward(all) {
		if count[f.Topic]++; count[f.Topic] <= each {
			kept = append(kept, f)
		}
	}
	slices.Reverse(kept)
	return kept
}

// snippet shortens a text to its first characters.
func snippet(text string, chars int) string {
	text = strings.TrimSpace(text)
	n := 0
	for i := range text {
		if n == chars {
			return strings.TrimSpace(text[:i]) + "…"
		}
		n++
	}
	return text
}
