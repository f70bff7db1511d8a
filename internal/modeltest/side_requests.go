package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// codingAgents are the beginnings of coding agents' User-Agent headers.
var codingAgents = []string{"claude-cli/", "codex", "GeminiCLI", "opencode/"}

// sideRequest says what a request is for if it is not a turn of an agent, or "". A coding agent
// always offers tools in its turns, and never when it wants a title, a summary or a guess. Gemini
// CLI also asks for the length of its prompt, by a call of its own. Other clients have only turns.
func sideRequest(r Request) string {
	agent := r.Header.Get("User-Agent")
	switch {
	case strings.HasSuffix(r.Path, ":countTokens"):
		return "the length of a prompt"
	case len(r.Said) > 0 && strings.HasPrefix(r.Said[len(r.Said)-1], "[SUGGESTION MODE:"): // of qwen-code
		return "what a person might type next"
	case len(r.Tools) > 0 || !slices.ContainsFunc(codingAgents, func(name string) bool { return strings.HasPrefix(agent, name) }):
		return ""
	}
	return "something without tools"
}

// answerSideRequest answers a side request: with a few words, or in the form that is asked for.
func answerSideRequest(r Request) Answer {
	a := Answer{Text: "A conversation", Usage: Usage{Input: 10, Output: 2}}
	var q struct {
		GenerationConfig struct{ ResponseSchema, ResponseJSONSchema *form } // gemini
		OutputConfig     struct{ Format struct{ Schema *form } }            `json:"output_config"` // anthropic
		ResponseFormat   struct {                                           // openai
			JSONSchema struct{ Schema *form } `json:"json_schema"`
		} `json:"response_format"`
		Text struct{ Format struct{ Schema *form } } // responses
	}
	if json.Unmarshal(r.Body, &q) != nil {
		return a
	}
	f := cmp.Or(
		q.GenerationConfig.ResponseSchema, q.GenerationConfig.ResponseJSONSchema, q.OutputConfig.Format.Schema,
		q.ResponseFormat.JSONSchema.Schema, q.Text.Format.Schema)
	if f != nil {
		text, err := json.Marshal(f.example())
		if err != nil {
			panic(err) // only values that JSON can hold
		}
		a.Text = string(text)
	}
	return a
}

// A form is the part of JSON Schema that side requests use.
type form struct {
	Type       any
	Enum       []any
	Properties map[string]form
}

func (f form) example() any {
	if len(f.Enum) > 0 {
		return f.Enum[0]
	}
	switch kind, _ := f.Type.(string); strings.ToLower(kind) {
	case "object":
		all := object{}
		for name, property := range f.Properties {
			all[name] = property.example()
		}
		return all
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return false
	}
	return "a conversation"
}

// serveRest serves what clients ask beside the model: whether the server is there, the list of
// models, the length of a text.
func (s *Server) serveRest(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	for _, path := range []string{"GET /v1/models", "GET /v1beta/models"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			reply(w, object{"object": "list", "data": []any{}, "models": []any{}})
		})
	}
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		reply(w, object{"input_tokens": r.ContentLength / 4})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.strays = append(s.strays, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		reply(
			w,
			object{"error": object{"type": "not_found_error", "message": fmt.Sprintf("there is no %s", r.URL.Path)}},
		)
	})
}

func reply(w http.ResponseWriter, v object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that no longer reads is part of the test
}
