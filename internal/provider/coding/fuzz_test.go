package coding

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// fuzzListener gives a listener arbitrary lines. It must not panic, must fail only with an error
// that says what is wrong, and must show only text that can be stored.
func fuzzListener(f *testing.F, kind, folder string, l launch) {
	recordings, _ := filepath.Glob(streams(folder, "*.jsonl"))
	if len(recordings) == 0 && folder != "" {
		f.Fatal("there are no recordings")
	}
	for _, name := range recordings {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if len(line) < 4000 {
				f.Add(line)
			}
		}
		if len(data) < 20_000 {
			f.Add(data)
		}
	}
	a, err := open(swarm.ProviderSpec{Name: kind, Kind: kind}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var shown []swarm.Delta
		turn := a.newTurn(provider.Request{Agent: "coder", Session: "s"}, func(d swarm.Delta) { shown = append(shown, d) }, "x", l, false)
		turn.attach(&program{})
		defer turn.modelWait.Stop()
		defer turn.endAsks()
		l := process.Lines{Max: maxLine}
		if !l.Write(string(data), turn.hearLine) {
			t.Fatal("a line is too long")
		}
		if len(l.Rest) > 0 {
			turn.hearRest(l.Rest)
		}
		turn.flush()
		if turn.fatal != nil && swarm.KindOf(turn.fatal) != swarm.Protocol {
			t.Errorf("it ends with %v", turn.fatal)
		}
		if turn.fault != nil && (turn.fault.Kind == "" || turn.fault.Msg == "") {
			t.Errorf("it fails with %+v", turn.fault)
		}
		for _, d := range shown {
			if _, err := json.Marshal(d); err != nil {
				t.Errorf("%+v cannot be stored: %v", d, err)
			}
			const most = 3 * 2000
			if d.Tool != nil && (len(d.Tool.Input) > most || len(d.Tool.Output) > most) {
				t.Errorf("too much is shown of a tool: %d and %d bytes", len(d.Tool.Input), len(d.Tool.Output))
			}
		}
	})
}

func FuzzClaude(f *testing.F) { fuzzListener(f, "claude-code", "claude", launch{}) }

func FuzzCodex(f *testing.F) { fuzzListener(f, "codex", "codex", launch{}) }

func FuzzCodexServer(f *testing.F) {
	for line := range strings.Lines(codexConversation) {
		f.Add([]byte(line))
	}
	f.Add([]byte(codexConversation))
	fuzzListener(f, "codex", "", launch{talks: true})
}

// codexConversation is what `codex app-server` 0.166.0 writes in a turn, without the fields that are
// not read.
const codexConversation = `{"id":1,"result":{"userAgent":"swarm/0.166.0 (Debian 12.0.0; x86_64) unknown (swarm; 1)"}}
{"method":"configWarning","params":{"summary":"Codex could not find bubblewrap on PATH.","details":null}}
{"id":2,"result":{"thread":{"id":"s-1"},"model":"gpt-5.4","approvalPolicy":"on-request","sandbox":{"type":"workspaceWrite"}}}
{"id":3,"result":{"turn":{"id":"t-1","items":[],"status":"inProgress","error":null}}}
{"method":"error","params":{"error":{"message":"Reconnecting... 1/5","codexErrorInfo":{"responseStreamDisconnected":{"httpStatusCode":429}},"additionalDetails":"exceeded retry limit, last status: 429 Too Many Requests"},"willRetry":true,"threadId":"s-1","turnId":"t-1"}}
{"method":"item/started","params":{"item":{"type":"userMessage","id":"u-1","content":[{"type":"text","text":"Say hello."}]},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/completed","params":{"item":{"type":"reasoning","id":"r-1","summary":["A greeting."],"content":[]},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/started","params":{"item":{"type":"commandExecution","id":"c-1","command":"/bin/bash -lc 'touch /var/x'","status":"inProgress","aggregatedOutput":null},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"s-1","turnId":"t-1","itemId":"c-1","reason":"May I?","command":"/bin/bash -lc 'touch /var/x'","cwd":"/work"}}
{"method":"serverRequest/resolved","params":{"threadId":"s-1","requestId":0}}
{"method":"item/completed","params":{"item":{"type":"commandExecution","id":"c-1","command":"/bin/bash -lc 'touch /var/x'","status":"declined","aggregatedOutput":null,"exitCode":null},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/started","params":{"item":{"type":"fileChange","id":"f-1","changes":[{"path":"/var/y","kind":{"type":"add"},"diff":"abc\n"}],"status":"inProgress"},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/fileChange/requestApproval","id":1,"params":{"threadId":"s-1","turnId":"t-1","itemId":"f-1","reason":null,"grantRoot":null}}
{"method":"item/started","params":{"item":{"type":"mcpToolCall","id":"m-1","server":"github","tool":"list_things","status":"inProgress","arguments":{"n":1},"result":null,"error":null},"threadId":"s-1","turnId":"t-1"}}
{"method":"mcpServer/elicitation/request","id":2,"params":{"threadId":"s-1","turnId":"t-1","serverName":"github","mode":"form","_meta":{"codex_approval_kind":"mcp_tool_call","tool_params":{"n":1}},"message":"Allow the github MCP server to run tool \"list_things\"?"}}
{"method":"item/completed","params":{"item":{"type":"mcpToolCall","id":"m-1","server":"github","tool":"list_things","status":"completed","arguments":{"n":1},"result":{"content":[{"type":"text","text":"three things"}]},"error":null},"threadId":"s-1","turnId":"t-1"}}
{"method":"item/agentMessage/delta","params":{"threadId":"s-1","turnId":"t-1","itemId":"a-1","delta":"Hello."}}
{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"a-1","text":"Hello.","phase":null},"threadId":"s-1","turnId":"t-1"}}
{"method":"thread/tokenUsage/updated","params":{"threadId":"s-1","turnId":"t-1","tokenUsage":{"total":{"totalTokens":1230,"inputTokens":1200,"cachedInputTokens":1000,"outputTokens":30,"reasoningOutputTokens":0}}}}
{"method":"turn/completed","params":{"threadId":"s-1","turn":{"id":"t-1","items":[],"status":"completed","error":null}}}
`
