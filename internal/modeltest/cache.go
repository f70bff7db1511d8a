package modeltest

import (
	"encoding/json"
	"slices"
	"strings"

	"swarm"
)

// A promptCache counts the tokens of requests as servers do that cache prompts: what a request has in
// common with earlier ones at its beginning is read from the cache. A token is four bytes.
type promptCache struct {
	written map[swarm.Hash]bool // beginnings that were marked
	before  []string            // requests of servers that need no marks
}

const (
	leastCached = 1024 // tokens: servers cache no shorter beginning
	cachedStep  = 128  // tokens, of servers that need no marks
	lookBack    = 20   // blocks before a mark in which an earlier mark is found
	mostMarks   = 4
)

// A promptPart is a part of a request, in the order in which the model reads it: first the tools,
// then the system prompt, then the messages.
type promptPart struct {
	text   string
	marked bool
}

// usage counts a request and remembers it.
func (c *promptCache) usage(r *Request) (u Usage) {
	parts := promptParts(r.Body)
	if r.Protocol == "anthropic" {
		return c.marked(parts)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
	}
	text, common := b.String(), 0
	for _, earlier := range c.before {
		n := 0
		for n < min(len(text), len(earlier)) && text[n] == earlier[n] {
			n++
		}
		common = max(common, n)
	}
	c.before = append(c.before, text)
	u.Input = swarm.EstimateTokens(int64(len(text)))
	if cached := int64(common) / 4 / cachedStep * cachedStep; cached >= leastCached {
		u.Cached = cached
	}
	return u
}

// marked counts a request in which the places are marked up to which it is cached.
func (c *promptCache) marked(parts []promptPart) (u Usage) {
	if c.written == nil {
		c.written = map[swarm.Hash]bool{}
	}
	begin, sizes, hashes := "", []int64{}, []swarm.Hash{}
	for _, p := range parts {
		begin += p.text
		sizes, hashes = append(sizes, swarm.EstimateTokens(int64(len(begin)))), append(hashes, swarm.HashOf([]byte(begin)))
	}
	u.Input = sizes[len(sizes)-1]
	marks, last := 0, int64(0)
	for i, p := range slices.Backward(parts) {
		if !p.marked {
			continue
		}
		if marks++; marks > mostMarks {
			panic("a request has more than 4 marks for the cache, which the API refuses")
		}
		for at := i; at >= max(0, i-lookBack+1); at-- {
			if c.written[hashes[at]] {
				u.Cached = max(u.Cached, sizes[at])
			}
		}
	}
	for i, p := range parts {
		if p.marked && sizes[i] >= leastCached {
			c.written[hashes[i]], last = true, sizes[i]
		}
	}
	u.Wrote = max(0, last-u.Cached)
	return u
}

// promptParts splits a request of any protocol.
func promptParts(body []byte) (parts []promptPart) {
	var q struct {
		Tools        []json.RawMessage `json:"tools"`
		System       json.RawMessage   `json:"system"`
		Instructions json.RawMessage   `json:"instructions"`
		Messages     []struct {
			Role    string
			Content json.RawMessage
		} `json:"messages"`
		Input []json.RawMessage `json:"input"`
	}
	var messages struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(body, &q) != nil || json.Unmarshal(body, &messages) != nil {
		return nil
	}
	add := func(raw json.RawMessage) {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			list = []json.RawMessage{raw}
		}
		for _, r := range list {
			var fields map[string]json.RawMessage
			if json.Unmarshal(r, &fields) != nil {
				parts = append(parts, promptPart{text: string(r)})
				continue
			}
			_, marked := fields["cache_control"]
			delete(fields, "cache_control")
			text, _ := json.Marshal(fields) // it was JSON before
			parts = append(parts, promptPart{string(text), marked})
		}
	}
	for _, t := range q.Tools {
		add(t)
	}
	add(q.System)
	add(q.Instructions)
	for i, m := range q.Messages {
		if m.Content[0] == '[' { // each block can be marked
			parts = append(parts, promptPart{text: m.Role})
			add(m.Content)
		} else {
			add(messages.Messages[i])
		}
	}
	for _, item := range q.Input {
		add(item)
	}
	return parts
}
