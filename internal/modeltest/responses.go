package modeltest

import (
	"crypto/rand"
	"encoding/json"
	"strings"
)

func readResponses(body []byte, r *Request) error {
	var q struct {
		Model        string
		Stream       bool
		Instructions string
		Tools        []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		Input json.RawMessage
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	r.Model, r.Stream, r.System = q.Model, q.Stream, q.Instructions
	for _, t := range q.Tools {
		for _, member := range t.Tools {
			r.Tools = append(r.Tools, t.Name+"/"+member.Name)
		}
		if len(t.Tools) == 0 && t.Name != "" {
			r.Tools = append(r.Tools, t.Name)
		}
	}
	var text string
	if json.Unmarshal(q.Input, &text) == nil {
		r.addSaid(text)
		return nil
	}
	var items []struct {
		Type, Role string
		Content    content
		Output     content
	}
	if err := json.Unmarshal(q.Input, &items); err != nil {
		return err
	}
	for _, item := range items {
		switch {
		case item.Type == "function_call_output":
			r.Results = append(r.Results, strings.Join(item.Output.texts(), "\n"))
		case item.Role == "user":
			r.addSaid(item.Content.texts()...)
		}
	}
	return nil
}

func (u Usage) responses() object {
	return object{
		"input_tokens":          u.Input,
		"input_tokens_details":  object{"cached_tokens": u.Cached, "cache_write_tokens": u.Wrote},
		"output_tokens":         u.Output,
		"output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens":          u.Input + u.Output,
	}
}

// A response is sent item by item, and whole at the end.
type response struct {
	*stage
	id    string
	items []object
	sent  int
}

func (r *response) event(name string, v object) {
	v["sequence_number"] = r.sent
	r.sent++
	r.stage.event(name, v)
}

func (r *response) whole(status string) object {
	whole := object{
		"id":     r.id,
		"object": "response",
		"status": status,
		"model":  r.asked.Model,
		"output": r.items,
		"usage":  r.answer.Usage.or(r.answer.Usage.responses()),
	}
	if r.answer.Stop != "" {
		whole["incomplete_details"] = object{"reason": r.answer.Stop}
	}
	return whole
}

// status is how the response ends: completed, or incomplete for the reason that the script gives.
func (r *response) status() string {
	if r.answer.Stop != "" {
		return "incomplete"
	}
	return "completed"
}

// item sends one item: empty, then in pieces, then whole. It is false when the stream has ended.
func (r *response) item(empty, whole object, kind string, texts []string, more object) bool {
	id := "item_" + rand.Text()
	empty["id"], whole["id"] = id, id
	index := len(r.items)
	r.event("response.output_item.added", object{"output_index": index, "item": empty})
	for i, text := range texts {
		if kind == "response.output_text.delta" && r.trouble(i, len(texts)) {
			return false
		}
		delta := object{"item_id": id, "output_index": index, "delta": text}
		for key, value := range more {
			delta[key] = value
		}
		r.event(kind, delta)
	}
	r.items = append(r.items, whole)
	r.event("response.output_item.done", object{"output_index": index, "item": whole})
	return true
}

func writeResponses(s *stage, a Answer) {
	r := &response{stage: s, id: "resp_" + rand.Text(), items: []object{}}
	if a.Plain {
		r.items = a.responseItems()
		s.write(r.whole(r.status()))
		return
	}
	r.event(
		"response.created",
		object{
			"response": object{
				"id":     r.id,
				"object": "response",
				"status": "in_progress",
				"model":  r.asked.Model,
				"output": []any{},
			},
		},
	)
	if a.Text == "" && r.trouble(0, 0) {
		return
	}
	for _, whole := range a.responseItems() {
		var over bool
		switch whole["type"] {
		case "reasoning":
			over = !r.item(
				object{"type": "reasoning", "summary": []any{}}, whole, "response.reasoning_summary_text.delta",
				pieces(a.Thinking), object{"summary_index": 0})
		case "message":
			over = !r.item(
				object{"type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}, whole,
				"response.output_text.delta", pieces(a.Text), object{"content_index": 0})
		default:
			empty := object{}
			for key, value := range whole {
				empty[key] = value
			}
			empty["arguments"], empty["status"] = "", "in_progress"
			over = !r.item(
				empty, whole, "response.function_call_arguments.delta", pieces(whole["arguments"].(string)), nil)
		}
		if over {
			return
		}
	}
	r.event("response."+r.status(), object{"response": r.whole(r.status())})
}

func (a Answer) responseItems() (items []object) {
	if a.Thinking != "" || a.Signature != "" {
		reasoning := object{"type": "reasoning", "summary": []object{}, "encrypted_content": nil}
		if a.Thinking != "" {
			reasoning["summary"] = []object{{"type": "summary_text", "text": a.Thinking}}
		}
		if a.Signature != "" {
			reasoning["encrypted_content"] = a.Signature
		}
		items = append(items, reasoning)
	}
	if a.Text != "" {
		items = append(items, object{"type": "message", "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": a.Text, "annotations": []any{}}}})
	}
	for _, c := range a.Calls {
		call := object{
			"type":      "function_call",
			"call_id":   c.ID,
			"name":      c.Name,
			"arguments": c.Args,
			"status":    "completed",
		}
		if group, name, found := strings.Cut(c.Name, "/"); found {
			call["namespace"], call["name"] = group, name
		}
		items = append(items, call)
	}
	return items
}
