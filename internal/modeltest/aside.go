package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// aside says what a request is for if it is no turn of an agent, or "". Coding agents are known by how they name themselves.
func aside(r Request) string {
	return ""
}

// blandly answers what is asked aside.
func blandly(r Request) Answer {
	return Answer{Text: "A conversation", Usage: Usage{Input: 10, Output: 2}}
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

var _ = strings.Contains
