package modeltest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

func readOpenAI(body []byte, r *Request) error {
	var q struct {
		Model  string
		Stream bool
		Tools  []struct {
			Function struct{ Name string }
		}
		Messages []struct {
			Role    string
			Content content
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	r.Model, r.Stream = q.Model, q.Stream
	for _, t := range q.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for _, m := range q.Messages {
		switch m.Role {
		case "system", "developer":
			r.System += strings.Join(m.Content.texts(), "\n")
		case "user":
			r.addSaid(m.Content.texts()...)
		case "tool":
			r.Results = append(r.Results, strings.Join(m.Content.texts(), "\n"))
		}
	}
	return nil
}

func (a Answer) openaiStop() string {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (u Usage) openai() object {
	return object{
		"prompt_tokens":         u.Input,
		"completion_tokens":     u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.Cached, "cache_write_tokens": u.Wrote},
	}
}

func openaiCall(i int, c Call) object {
	return object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Args}}
}

func writeOpenAI(s *stage, a Answer) {
	id := "chatcmpl-" + rand.Text()
	if a.Plain {
		var calls []object
		for i, c := range a.Calls {
			calls = append(calls, openaiCall(i, c))
		}
		s.write(object{
			"id":     id,
			"object": "chat.completion",
			"model":  s.asked.Model,
			"usage":  a.Usage.or(a.Usage.openai()),
			"choices": []object{{"index": 0, "finish_reason": a.openaiStop(),
				"message": object{"role": "assistant", "content": a.Text, "tool_calls": calls}}},
		})
		return
	}
	chunk := func(delta object, stop any) {
		s.event(
			"",
			object{
				"id":      id,
				"object":  "chat.completion.chunk",
				"model":   s.asked.Model,
				"choices": []object{{"index": 0, "delta": delta, "finish_reason": stop}},
			},
		)
	}
	chunk(object{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(a.Thinking) {
		chunk(object{"reasoning_content": p}, nil)
	}
	parts := pieces(a.Text)
	for i, p := range parts {
		if s.trouble(i, len(parts)) {
			return
		}
		chunk(object{"content": p}, nil)
	}
	if len(parts) == 0 && s.trouble(0, 0) {
		return
	}
	for i, c := range a.Calls {
		first := c
		first.Args = ""
		chunk(object{"tool_calls": []object{openaiCall(i, first)}}, nil)
		for _, p := range pieces(c.Args) {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	chunk(object{}, a.openaiStop())
	s.event(
		"",
		object{
			"id":      id,
			"object":  "chat.completion.chunk",
			"model":   s.asked.Model,
			"choices": []any{},
			"usage":   a.Usage.or(a.Usage.openai()),
		},
	)
	fmt.Fprint(s, "data: [DONE]\n\n")
}
