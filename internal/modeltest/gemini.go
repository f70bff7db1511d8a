package modeltest

import (
	"crypto/rand"
	"encoding/json"
	"path"
	"strings"
)

func readGemini(body []byte, r *Request) error {
	var q struct {
		SystemInstruction struct{ Parts content }
		Tools             []struct {
			FunctionDeclarations []struct{ Name string }
		}
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse *struct{ Response json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	model, method, _ := strings.Cut(path.Base(r.Path), ":")
	r.Model, r.Stream = model, method == "streamGenerateContent"
	r.System = strings.Join(q.SystemInstruction.Parts.texts(), "\n")
	for _, t := range q.Tools {
		for _, f := range t.FunctionDeclarations {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	for _, c := range q.Contents {
		var texts []string
		for _, p := range c.Parts {
			switch {
			case p.FunctionResponse != nil:
				r.Results = append(r.Results, geminiResult(p.FunctionResponse.Response))
			case c.Role == "user":
				texts = append(texts, p.Text)
			}
		}
		r.addSaid(texts...)
	}
	return nil
}

// geminiResult returns the text in a tool's result, or all of it.
func geminiResult(response json.RawMessage) string {
	var one struct{ Output string }
	if json.Unmarshal(response, &one) == nil && one.Output != "" {
		return one.Output
	}
	return string(response)
}

func (u Usage) gemini() object {
	return object{
		"promptTokenCount":        u.Input,
		"cachedContentTokenCount": u.Cached,
		"candidatesTokenCount":    u.Output,
		"totalTokenCount":         u.Input + u.Output,
	}
}

func writeGemini(s *stage, a Answer) {
	if strings.HasSuffix(s.request.URL.Path, ":countTokens") {
		s.write(object{"totalTokens": len(s.asked.Body) / 4})
		return
	}
	id := rand.Text()
	chunk := func(stop string, parts ...object) object {
		candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if stop != "" {
			candidate["finishReason"] = stop
		}
		return object{
			"candidates":    []object{candidate},
			"usageMetadata": a.Usage.gemini(),
			"modelVersion":  s.asked.Model,
			"responseId":    id,
		}
	}
	stop := "STOP"
	if a.Stop != "" {
		stop = a.Stop
	}
	var calls []object
	for _, c := range a.Calls {
		if !json.Valid([]byte(c.Args)) {
			stop = "MALFORMED_FUNCTION_CALL" // Gemini itself checks what its model writes
			continue
		}
		calls = append(
			calls, object{"functionCall": object{"id": c.ID, "name": c.Name, "args": json.RawMessage(c.Args)}})
	}
	if a.Plain {
		s.write(chunk(stop, append([]object{{"text": a.Text}}, calls...)...))
		return
	}
	for _, p := range pieces(a.Thinking) {
		s.event("", chunk("", object{"text": p, "thought": true}))
	}
	parts := pieces(a.Text)
	for i, p := range parts {
		if s.trouble(i, len(parts)) {
			return
		}
		s.event("", chunk("", object{"text": p}))
	}
	if len(parts) == 0 && s.trouble(0, 0) {
		return
	}
	s.event("", chunk(stop, append([]object{{"text": ""}}, calls...)...))
}
