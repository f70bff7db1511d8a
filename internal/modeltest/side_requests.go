package modeltest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// codingAgents is how they begin to name themselves.
var codingAgents = []string{"claude-cli/", "codex", "GeminiCLI", "opencode/"}

// aside says what a request is for if it is no turn of an agent, or "". A coding agent always offers tools in its turns, and never
// when it wants a title, a summary or a guess; that and the length of its prompt, for which Gemini has a call of its own, is all there
// is to know. Whoever is no coding agent has nothing but turns.
func aside(r Request) string {
	agent := r.Header.Get("User-Agent")
	switch {
	case strings.HasSuffix(r.Path, ":countTokens"):
		return "the length of a prompt"
	case len(r.Tools) > 0 || !slices.ContainsFunc(codingAgents, func(name string) bool { return strings.HasPrefix(agent, name) }):
		return ""
	}
	return "something without tools"
}

// blandly answers what is asked aside: with a few words, or in the form that is asked for.
func blandly(r Request) Answer {
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
	f := cmp.Or(q.GenerationConfig.ResponseSchema, q.GenerationConfig.ResponseJSONSchema, q.OutputConfig.Format.Schema, q.ResponseFormat.JSONSchema.Schema, q.Text.Format.Schema)
	if f != nil {
		text, err := json.Marshal(f.example())
		if err != nil {
			panic(err) // it holds nothing but what JSON can
		}
		a.Text = string(text)
	}
	return a
}

// A form is as much of a JSON Schema as clients ask aside with.
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

// serveRest serves what clients ask that is nothing to a model: whether somebody is there, which models there are, how long a
// text is.
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
		reply(w, object{"error": object{"type": "not_found_error", "message": fmt.Sprintf("there is no %s", r.URL.Path)}})
	})
}

func reply(w http.ResponseWriter, v object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who no longer reads is part of the test
}
