package modeltest

import (
	"crypto/rand"
	"encoding/json"
	"strings"
)

func readAnthropic(body []byte, r *Request) error {
	var q struct {
		Model    string
		Stream   bool
		System   content
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content content
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	r.Model, r.Stream, r.System = q.Model, q.Stream, strings.Join(q.System.texts(), "\n")
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	for _, m := range q.Messages {
		for _, c := range m.Content {
			if c.Type == "tool_result" {
				r.Results = append(r.Results, strings.Join(c.Content.texts(), "\n"))
			}
		}
		if m.Role == "user" {
			r.addSaid(m.Content.texts()...)
		}
	}
	return nil
}

func (a Answer) anthropicStop() string {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (u Usage) anthropicInput() object {
	return object{
		"input_tokens":                u.Input - u.Cached - u.Wrote,
		"cache_read_input_tokens":     u.Cached,
		"cache_creation_input_tokens": u.Wrote,
		"output_tokens":               1,
	}
}

func writeAnthropic(s *stage, a Answer) {
	id := "msg_" + rand.Text()
	if a.Plain {
		usage := a.Usage.anthropicInput()
		usage["output_tokens"] = a.Usage.Output
		content := []object{}
		if a.Text != "" {
			content = append(content, object{"type": "text", "text": a.Text})
		}
		for _, c := range a.Calls {
			content = append(
				content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Args)})
		}
		s.write(object{
			"id":          id,
			"type":        "message",
			"role":        "assistant",
			"model":       s.asked.Model,
			"content":     content,
			"stop_reason": a.anthropicStop(),
			"usage":       a.Usage.or(usage),
		})
		return
	}
	s.event(
		"message_start",
		object{
			"message": object{
				"id":      id,
				"type":    "message",
				"role":    "assistant",
				"model":   s.asked.Model,
				"content": []any{},
				"usage":   a.Usage.or(a.Usage.anthropicInput()),
			},
		},
	)
	s.event("ping", object{})
	index := 0
	block := func(start object, key, kind string, parts []string) bool {
		s.event("content_block_start", object{"index": index, "content_block": start})
		for i, p := range parts {
			if kind == "text_delta" && s.trouble(i, len(parts)) {
				return false
			}
			s.event("content_block_delta", object{"index": index, "delta": object{"type": kind, key: p}})
		}
		s.event("content_block_stop", object{"index": index})
		index++
		return true
	}
	if a.Thinking != "" || a.Signature != "" {
		s.event(
			"content_block_start",
			object{"index": index, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}},
		)
		for _, p := range pieces(a.Thinking) {
			s.event(
				"content_block_delta",
				object{"index": index, "delta": object{"type": "thinking_delta", "thinking": p}},
			)
		}
		s.event(
			"content_block_delta",
			object{"index": index, "delta": object{"type": "signature_delta", "signature": a.Signature}},
		)
		s.event("content_block_stop", object{"index": index})
		index++
	}
	if a.Text == "" && s.trouble(0, 0) ||
		a.Text != "" && !block(object{"type": "text", "text": ""}, "text", "text_delta", pieces(a.Text)) {
		return
	}
	for _, c := range a.Calls {
		block(
			object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, "partial_json",
			"input_json_delta", pieces(c.Args))
	}
	s.event(
		"message_delta",
		object{"delta": object{"stop_reason": a.anthropicStop()}, "usage": a.Usage.or(object{"output_tokens": a.Usage.Output})},
	)
	s.event("message_stop", object{})
}
