package a2a

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// These are cases of the official compatibility kit (a2aproject/a2a-tck) that once failed, under the
// names that the kit has for them.

// TestACardIsWhatTheProtoDefines (CARD-STRUCT-001): clients in other languages are generated from
// the proto, and read cards as strictly as protojson does.
func TestACardIsWhatTheProtoDefines(t *testing.T) {
	h := open(t)
	h.project("")
	for _, path := range []string{"/.well-known/agent-card.json", "/a2a/coder/.well-known/agent-card.json"} {
		_, text := h.text(h.request("GET", path, ""))
		var card a2apb.AgentCard
		if err := protojson.Unmarshal([]byte(text), &card); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if len(card.GetSecurityRequirements()) != 1 || card.GetSecurityRequirements()[0].GetSchemes()["bearer"] == nil ||
			card.GetSecuritySchemes()["bearer"].GetHttpAuthSecurityScheme().GetScheme() != "Bearer" {
			t.Errorf("%s: the token is asked for as %v, %v", path, card.GetSecurityRequirements(), card.GetSecuritySchemes())
		}
		if len(card.GetSupportedInterfaces()) != 2 || !card.GetCapabilities().GetStreaming() || len(card.GetSkills()) != 1 {
			t.Errorf("%s: %v", path, &card)
		}
	}
}

// TestACardIsCached (CARD-CACHE-001, 002, 003): a client that has it is told so.
func TestACardIsCached(t *testing.T) {
	h := open(t)
	h.project("")
	const path = "/a2a/coder/.well-known/agent-card.json"
	_, header, _ := h.get(h.request("GET", path, ""))
	etag := header.Get("ETag")
	if etag == "" || header.Get("Last-Modified") == "" || !strings.Contains(header.Get("Cache-Control"), "max-age=") {
		t.Errorf("the card has the headers %v", header)
	}
	again := h.request("GET", path, "")
	again.Header.Set("If-None-Match", etag)
	if status, text := h.text(again); status != http.StatusNotModified || text != "" {
		t.Errorf("asked again: %d %s", status, text)
	}
	again.URL.Path = "/a2a/chief/.well-known/agent-card.json"
	if status, header, _ := h.get(again); status != http.StatusOK || header.Get("ETag") == etag {
		t.Errorf("another card: %d %v", status, header)
	}
}

// TestAnAddressMayEndInASlash: the kit, and every client that joins paths to the address, posts
// there.
func TestAnAddressMayEndInASlash(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: here}\n")
	_, text := h.text(h.request("GET", "/a2a", ""))
	var list struct{ Agents []listed }
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Agents) != 3 {
		t.Fatalf("%v in %s", err, text)
	}
	chief := strings.TrimPrefix(list.Agents[0].URL, h.server.URL())
	if chief != "/a2a/chief/" || list.Agents[0].Card != h.server.URL()+"/a2a/chief/.well-known/agent-card.json" {
		t.Errorf("the chief is at %+v", list.Agents[0])
	}
	body := `{"jsonrpc":"2.0","id":"x","method":"SendMessage","params":` + message("m", "x") + `}`
	if status, text := h.text(h.request("POST", chief, body)); status != http.StatusOK || !strings.Contains(text, "TASK_STATE_COMPLETED") {
		t.Errorf("%d %s", status, text)
	}
}

// TestAnEndedTaskIsNotStreamed (STREAM-SUB-003): in either binding.
func TestAnEndedTaskIsNotStreamed(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: done}\n")
	task := h.good("chief", "SendMessage", message("m", "x"))
	h.bad("chief", "SubscribeToTask", named(task.ID), -32004)
	for _, method := range []string{"GET", "POST"} {
		_, text := h.text(h.request(method, "/a2a/chief/v1/tasks/"+string(task.ID)+":subscribe", ""))
		if !strings.Contains(text, "UNSUPPORTED_OPERATION") || strings.Contains(text, `"task"`) {
			t.Errorf("%s is answered with %s", method, text)
		}
	}
}

// Over HTTP+JSON a refused stream has the status of its error, like any other call. A stream that
// begins sends its events.
func TestARefusedStreamHasItsStatus(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: done}\n")
	task := h.good("chief", "SendMessage", message("m", "x"))
	for _, c := range []struct {
		path, body   string
		status       int
		kind, reason string
	}{
		{"tasks/" + string(task.ID) + ":subscribe", "", 400, "application/json", "UNSUPPORTED_OPERATION"},
		{"tasks/nosuch:subscribe", "", 404, "application/json", "TASK_NOT_FOUND"},
		{"message:stream", `{"message":{"messageId":"n","role":"ROLE_USER","taskId":"nosuch","parts":[{"text":"x"}]}}`, 404, "application/json", "TASK_NOT_FOUND"},
		{"message:stream", message("o", "x"), 200, "text/event-stream", "TASK_STATE_COMPLETED"},
	} {
		status, header, text := h.get(h.request("POST", "/a2a/chief/v1/"+c.path, c.body))
		var got struct{ Error struct{ Code int } }
		err := json.Unmarshal([]byte(text), &got)
		if status != c.status || header.Get("Content-Type") != c.kind || !strings.Contains(text, c.reason) || status != 200 && (err != nil || got.Error.Code != status) {
			t.Errorf("%s: %d %s %s", c.path, status, header.Get("Content-Type"), text)
		}
	}
}

// TestErrorsBeforeACallAreTheProtocolsOwn (HTTP_JSON-ERR-001, 002, HTTP_JSON-STATUS-001,
// JSONRPC-ERR-001, 003): also where the guard or the router answers.
func TestErrorsBeforeACallAreTheProtocolsOwn(t *testing.T) {
	h := open(t)
	h.project("")
	type refused struct {
		JSONRPC string
		ID      any
		Error   struct {
			Code          int
			Status        string
			Message       string
			Details, Data []struct {
				Type                 string `json:"@type"`
				Reason, Domain, Hint string
			}
		}
	}
	for _, c := range []struct {
		method, path, header, value string
		status, code                int // code 0: HTTP+JSON
		reason                      string
	}{
		{"POST", "/a2a/chief", "Authorization", "", 401, -31401, "UNAUTHENTICATED"},
		{"POST", "/a2a/chief/", "Authorization", "Bearer wrong-wrong-wrong-wrong", 401, -31401, "UNAUTHENTICATED"},
		{"POST", "/a2a/chief", "Origin", "http://evil.example", 403, -31403, "UNAUTHORIZED"},
		{"POST", "/a2a/chief", "Content-Type", "text/plain", 415, -32005, "CONTENT_TYPE_NOT_SUPPORTED"},
		{"POST", "/a2a/nosuch", "", "", 404, -32601, "METHOD_NOT_FOUND"},
		{"POST", "/a2a/chief/v1/message:send", "Authorization", "", 401, 0, "UNAUTHENTICATED"},
		{"POST", "/a2a/chief/v1/message:send", "Content-Type", "text/plain", 415, 0, "CONTENT_TYPE_NOT_SUPPORTED"},
		{"POST", "/a2a/nosuch/v1/message:send", "", "", 404, 0, "METHOD_NOT_FOUND"},
		{"GET", "/a2a/chief/v1/nosuch", "", "", 404, 0, "METHOD_NOT_FOUND"},
		{"DELETE", "/a2a/chief/v1/message:send", "", "", 404, 0, "METHOD_NOT_FOUND"},
		{"GET", "/a2a/chief/nosuch", "", "", 404, 0, "METHOD_NOT_FOUND"},
		{"GET", "/a2a/nosuch/.well-known/agent-card.json", "", "", 404, 0, "METHOD_NOT_FOUND"},
		{"GET", "/.well-known/agent-card.json", "Authorization", "", 401, 0, "UNAUTHENTICATED"},
	} {
		r := h.request(c.method, c.path, "{}")
		if r.Header.Set(c.header, c.value); c.header == "" || c.value == "" {
			r.Header.Del(c.header)
		}
		status, text := h.text(r)
		var got refused
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%+v: %v in %s", c, err, text)
		}
		want, details := c.status, got.Error.Details
		if c.code != 0 {
			want, details = c.code, got.Error.Data
		}
		if status != c.status || got.Error.Code != want || (got.JSONRPC == "2.0") != (c.code != 0) || (got.Error.Status == "") != (c.code != 0) || got.Error.Message == "" {
			t.Errorf("%+v: %d %s", c, status, text)
			continue
		}
		if len(details) != 2 || details[0].Hint == "" || details[1].Reason != c.reason || details[1].Domain != "a2a-protocol.org" || !strings.HasSuffix(details[1].Type, "google.rpc.ErrorInfo") {
			t.Errorf("%+v: the details are %+v", c, details)
		}
	}
	// Other paths keep their format.
	r := h.request("GET", "/api/v1/runs", "")
	r.Header.Del("Authorization")
	if _, text := h.text(r); !strings.HasPrefix(text, `{"error":"`) {
		t.Errorf("the API answers with %s", text)
	}
}

// TestMediaTypes (CORE-SEND-003): a part that no agent takes is refused by its own error, and JSON
// may be called by the name that the protocol has for it.
func TestMediaTypes(t *testing.T) {
	h := open(t)
	h.project("- {agent: chief, say: taken}\n")
	odd := `{"message":{"messageId":"odd","role":"ROLE_USER","parts":[{"raw":"dGNr","mediaType":"application/x-unsupported"}]}}`
	h.bad("chief", "SendMessage", odd, -32005)
	if status, text := h.text(h.request("POST", "/a2a/chief/v1/message:send", odd)); status != http.StatusBadRequest || !strings.Contains(text, "CONTENT_TYPE_NOT_SUPPORTED") {
		t.Errorf("%d %s", status, text)
	}
	r := h.request("POST", "/a2a/chief/v1/message:send", message("m", "x"))
	r.Header.Set("Content-Type", "application/a2a+json")
	if status, text := h.text(r); status != http.StatusOK || !strings.Contains(text, "TASK_STATE_COMPLETED") {
		t.Errorf("%d %s", status, text)
	}
}
