package modeltest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzAsked: whatever a client sends, the server answers, if only to say that it does not
// understand.
func FuzzAsked(f *testing.F) {
	paths := []string{"/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/m:streamGenerateContent", "/v1beta/models/m:countTokens"}
	for path := range paths {
		f.Add(path, []byte(`{"stream": true, "messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]}], "tools": [{"name": ""}]}`))
		f.Add(path, []byte(`{"messages": [{"role": "tool", "content": "x"}], "tools": [{"function": {"name": "_"}}, {"name": "a", "tools": [{"name": "b_add"}]}]}`))
		f.Add(path, []byte(`{"input": [{"role": "user", "content": "x"}, {"type": "function_call_output", "output": [{"text": "y"}]}], "text": {"format": {"schema": {"type": "object"}}}}`))
		f.Add(path, []byte(`{"contents": [{"role": "user", "parts": [{"text": "x"}, {"functionResponse": {"response": {"output": "y"}}}]}], "generationConfig": {"responseSchema": {"enum": [[]]}}}`))
	}
	s := Start(Answer{Thinking: "hm", Text: "{prompt}", Calls: []Call{{Name: "add", Args: `{}`}}})
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, path int, body []byte) {
		if path < 0 || path >= len(paths) {
			return
		}
		for _, agent := range []string{"", "claude-cli/2"} {
			r := httptest.NewRequest(http.MethodPost, paths[path], bytes.NewReader(body))
			r.Header.Set("User-Agent", agent)
			w := httptest.NewRecorder()
			s.http.Config.Handler.ServeHTTP(w, r)
			if w.Code != http.StatusOK && w.Code != http.StatusBadRequest || w.Body.Len() == 0 {
				t.Errorf("%d %s for %s", w.Code, w.Body, body)
			}
		}
		s.mu.Lock()
		s.requests, s.asides = nil, nil
		s.mu.Unlock()
	})
}
