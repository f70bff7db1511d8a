package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm"
	"swarm/internal/provider"
)

// FuzzWire gives a connection arbitrary output, at once and in pieces. It must not panic, and must
// hear the same both times.
func FuzzWire(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`+"\n"), 3)
	f.Add([]byte(`{"id":1,"result":{}}`+"\n"+`log line`+"\n\n"+`{"id":"x","method":"m"}`+"\n{"), 1)
	f.Add([]byte("\xff\x00\n[]\nnull\n{}\n{\"id\":null,\"method\":\"x\"}\n"), 2)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 || size > len(data) {
			size = len(data) + 1
		}
		whole, pieces := listen(string(data)), ""
		w, heard := quietWire()
		for rest := string(data); rest != ""; {
			n := min(size, len(rest))
			w.readPiece(rest[:n])
			rest = rest[n:]
		}
		if pieces = heard(); whole != pieces {
			t.Errorf("at once %q, in pieces %q", whole, pieces)
		}
	})
}

func listen(data string) string {
	w, heard := quietWire()
	w.readPiece(data)
	return heard()
}

// quietWire records notifications and stray lines, and answers nothing.
func quietWire() (w *conn, heard func() string) {
	var b strings.Builder
	w = newConn()
	w.onNotice = func(method string, params json.RawMessage) { fmt.Fprintf(&b, "%s %s\n", method, params) }
	w.onStray = func(line string) { fmt.Fprintf(&b, "noise %s\n", line) }
	w.onRequest = func(string, json.RawMessage) (any, *rpcError) { return nil, nil }
	return w, func() string { return b.String() + string(w.lines.Rest) }
}

// FuzzUpdate gives a turn arbitrary updates. All that it shows must be possible to store.
func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"},"messageId":"m"}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"tool_call","toolCallId":"1","title":"touch a","kind":"execute","status":"in_progress","rawInput":{"command":["touch"]}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"diff","path":"/a","newText":"x"},{"type":"content","content":{"type":"text","text":"y"}}]}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","rawOutput":{"formatted_output":"no"},"locations":[{"path":"/a"}],"_meta":{"claudeCode":{"toolName":"Edit"}}}`,
		`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}`,
		`{"sessionUpdate":"plan","entries":[]}`, `{"sessionUpdate":7}`, `[]`, `null`,
	} {
		f.Add([]byte(seed), []byte(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"and more"}}`))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var shown []swarm.Delta
		turn := newTurn(t.Context(), provider.Request{}, func(d swarm.Delta) { shown = append(shown, d) })
		turn.followSession("s", 0)
		for _, data := range [][]byte{first, second} {
			var u update
			if json.Unmarshal(data, &u) == nil {
				turn.handleUpdate("s", u)
			}
		}
		turn.finish(promptResult{Stop: "end_turn"})
		open := map[string]int{}
		for _, d := range shown {
			if _, err := json.Marshal(d); err != nil {
				t.Errorf("%+v cannot be stored: %v", d, err)
			}
			switch d.Kind {
			case swarm.DeltaTool:
				open[d.Tool.ID]++
			case swarm.DeltaToolDone:
				open[d.Tool.ID]--
			}
		}
		for id, n := range open {
			if n != 0 {
				t.Errorf("the tool %q began and did not end: %+v", id, shown)
			}
		}
		if turn.usage.USD < 0 {
			t.Errorf("it cost %v", turn.usage.USD)
		}
	})
}

// FuzzPermit: nothing is allowed that neither the list nor a person allows, and nothing is ever
// allowed for good.
func FuzzPermit(f *testing.F) {
	f.Add([]byte(`{"sessionId":"s","toolCall":{"toolCallId":"1","title":"mcp__swarm__send_handoff","kind":"other"},"options":[{"optionId":"a","kind":"allow_always"},{"optionId":"b","kind":"allow_once"},{"optionId":"c","kind":"reject_once"}]}`))
	f.Add([]byte(`{"toolCall":{"title":"rm","kind":"execute","content":[{"type":"content","content":{"text":"x"}}]},"options":[{"optionId":"b","kind":"allow_once"}]}`))
	f.Add([]byte(`{"options":[{"optionId":"a","kind":"allow_always"}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, params []byte) {
		turn := newTurn(t.Context(), provider.Request{Turn: "a/1/1", Ask: func(_ context.Context, a swarm.Approval) (bool, string, error) {
			if !json.Valid(a.Input) && len(a.Input) > 0 {
				t.Errorf("%s is asked", a.Input)
			}
			return false, "no", nil
		}}, nil)
		answer, _ := turn.decidePermission(params)
		var p permissionRequest
		if answer == nil || json.Unmarshal(params, &p) != nil {
			return
		}
		var asked tool
		asked.merge(p.Tool)
		chosen, _ := answer.(object)["outcome"].(object)["optionId"].(string)
		for _, o := range p.Options {
			if o.ID != chosen || chosen == "" {
				continue
			}
			if o.Kind == "allow_once" && chosen != p.option("reject_once") && !asked.isOurs() {
				t.Errorf("%s was allowed", params)
			}
		}
		if e := turn.deniedError(false); e != nil && (e.Hint == "" || !utf8.ValidString(e.Msg)) {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add("one\ntwo\nthree", 2, 1)
	f.Add("", 0, 0)
	f.Fuzz(func(t *testing.T, text string, from, limit int) {
		got := selectLines(text, from, limit)
		if !strings.Contains(text, got) || limit > 0 && strings.Count(got, "\n") > limit {
			t.Errorf("%q of %q", got, text)
		}
	})
}
