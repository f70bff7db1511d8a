package coding

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// actVariable makes this test's own program a stand-in for a coding agent. The variable says what
// it does.
const actVariable = "CODING_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		one := slices.Contains(os.Args, "exec") || slices.Contains(os.Args, "run")
		s := &standIn{in: bufio.NewReader(os.Stdin), codex: one, server: slices.Contains(os.Args, "app-server")}
		s.play(act)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A standIn plays a coding agent: it prints a recording, or misbehaves.
type standIn struct {
	in     *bufio.Reader
	codex  bool // or opencode: the prompt is all of the input
	server bool // it is `codex app-server`
}

// prompt reads the next prompt. The stand-in exits at the end of its input.
func (s *standIn) prompt() (text, id string) {
	if s.codex {
		b, _ := io.ReadAll(s.in)
		return string(b), ""
	}
	if s.server {
		s.answer("initialize", object{"userAgent": "swarm/0.166.0 (Debian 12.0.0; x86_64) unknown (swarm; 1)"})
		s.read("initialized")
		s.answer("thread/", object{"thread": object{"id": "s-1"}})
		params := s.answer("turn/start", object{"turn": object{"id": "t-1"}})
		return params.Input[0].Text, ""
	}
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	var m struct {
		UUID    string
		Message struct{ Content string }
	}
	if json.Unmarshal(line, &m) != nil {
		os.Exit(99)
	}
	return m.Message.Content, m.UUID
}

// A codexParams holds the parameters of our requests to Codex.
type codexParams struct {
	ThreadID, Cwd, Model, ApprovalPolicy string
	Input                                []struct{ Text string }
}

// read reads a message of ours to `codex app-server`.
func (s *standIn) read(method string) (id json.RawMessage, params codexParams) {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params codexParams
	}
	if json.Unmarshal(line, &m) != nil || !strings.HasPrefix(m.Method, method) {
		os.Exit(95)
	}
	return m.ID, m.Params
}

// answer reads a request of ours to `codex app-server`, and answers it.
func (s *standIn) answer(method string, result object) codexParams {
	id, params := s.read(method)
	s.say(object{"id": id, "result": result})
	return params
}

// note sends a notification of `codex app-server`.
func (s *standIn) note(method string, params object) {
	s.say(object{"method": method, "params": with(params, "threadId", "s-1")})
}

func (s *standIn) say(v any) {
	b, _ := json.Marshal(v)
	fmt.Println(string(b))
}

// begin names the session.
func (s *standIn) begin(id string) {
	if s.server {
		return // it has told it already
	}
	if s.codex {
		s.say(object{"type": "thread.started", "thread_id": "s-1"})
		return
	}
	s.say(object{"type": "system", "subtype": "init", "session_id": "s-1"})
	s.say(object{"type": "user", "uuid": id, "isReplay": true, "message": object{"role": "user", "content": "…"}})
}

// result reports the end of a turn.
func (s *standIn) result(text string) {
	if s.server {
		s.note("item/completed", object{"item": object{"id": "item_1", "type": "agentMessage", "text": text}})
		s.note("thread/tokenUsage/updated", object{"tokenUsage": object{"total": object{"inputTokens": 10, "outputTokens": 1}}})
		s.note("turn/completed", object{"turn": object{"id": "t-1", "status": "completed"}})
		return
	}
	if s.codex {
		s.say(object{"type": "item.completed", "item": object{"id": "item_1", "type": "agent_message", "text": text}})
		s.say(object{"type": "turn.completed", "usage": object{"input_tokens": 10, "output_tokens": 1}})
		return
	}
	s.say(object{"type": "assistant", "session_id": "s-1", "message": object{"content": []object{{"type": "text", "text": text}}}})
	s.say(object{"type": "result", "subtype": "success", "session_id": "s-1", "result": text})
}

// message shows text before the result, as each program does: in pieces, or at once.
func (s *standIn) message(text string) {
	if s.server {
		s.note("item/agentMessage/delta", object{"itemId": "item_" + text, "delta": text})
		return
	}
	if s.codex {
		s.say(object{"type": "item.completed", "item": object{"id": "item_0", "type": "agent_message", "text": text}})
		return
	}
	piece := func(event object) { s.say(object{"type": "stream_event", "session_id": "s-1", "event": event}) }
	piece(object{"type": "content_block_start", "content_block": object{"type": "text"}})
	piece(object{"type": "content_block_delta", "delta": object{"type": "text_delta", "text": text}})
}

// askCodex sends requests in the manner of `codex app-server`, each with the item that waits for the
// answer. One with "withdraw" is taken back. The result is the answers.
func (s *standIn) askCodex(requests []string) {
	var told []string
	for i, text := range requests {
		var r struct {
			Method       string
			Params, Item object
			Withdraw     bool
		}
		if json.Unmarshal([]byte(text), &r) != nil {
			os.Exit(97)
		}
		if r.Item != nil {
			s.note("item/started", object{"item": r.Item})
		}
		s.say(object{"id": i, "method": r.Method, "params": r.Params})
		if r.Withdraw {
			s.note("serverRequest/resolved", object{"requestId": i})
			continue
		}
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var answer struct {
			ID            *int
			Result, Error map[string]any
		}
		if json.Unmarshal(line, &answer) != nil || answer.ID == nil || *answer.ID != i {
			os.Exit(96)
		}
		b, _ := json.Marshal(answer.Result)
		if answer.Error != nil {
			b = []byte(answer.Error["message"].(string))
		}
		told = append(told, string(b))
		if r.Item != nil {
			status := "completed"
			if strings.Contains(string(b), "decline") {
				status = "declined"
			}
			s.note("item/completed", object{"item": with(r.Item, "status", status)})
		}
	}
	s.result(strings.Join(told, "\n"))
}

// ask sends requests in the manner of Claude Code, each as the body of a control_request. One with
// "withdraw" is taken back. The result is the answers.
func (s *standIn) ask(requests []string) {
	var told []string
	denials := []object{}
	for i, text := range requests {
		var request object
		if json.Unmarshal([]byte(text), &request) != nil {
			os.Exit(97)
		}
		s.say(object{"type": "control_request", "request_id": fmt.Sprint("r", i), "request": request})
		if request["withdraw"] != nil {
			s.say(object{"type": "control_cancel_request", "request_id": fmt.Sprint("r", i)})
			continue
		}
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var answer struct {
			Type     string
			Response struct {
				ID       string `json:"request_id"`
				Error    string
				Response map[string]any
			}
		}
		if json.Unmarshal(line, &answer) != nil || answer.Type != "control_response" || answer.Response.ID != fmt.Sprint("r", i) {
			os.Exit(96)
		}
		b, _ := json.Marshal(answer.Response.Response)
		told = append(told, strings.TrimPrefix(string(b)+answer.Response.Error, "null"))
		if answer.Response.Response["behavior"] == "deny" {
			denials = append(denials, object{"tool_name": request["tool_name"], "tool_use_id": "t", "tool_input": request["input"]})
		}
	}
	s.say(object{"type": "result", "subtype": "success", "session_id": "s-1", "result": strings.Join(told, "\n"), "permission_denials": denials})
}

func (s *standIn) play(act string) {
	name, value, _ := strings.Cut(act, ":")
	switch name {
	case "stream": // a recording, and how its program ended
		s.prompt()
		data, err := os.ReadFile(value + ".jsonl")
		if err != nil {
			os.Exit(98)
		}
		noise, _ := os.ReadFile(value + ".stderr")
		_, _ = os.Stderr.Write(noise)
		_, _ = os.Stdout.Write(data)
		exit := 0
		ended, _ := os.ReadFile(value + ".exit")
		_, _ = fmt.Sscanf(string(ended), "exit status %d", &exit)
		if strings.HasPrefix(string(ended), "signal: terminated") {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			select {}
		}
		os.Exit(exit)
	case "echo": // each prompt is the answer
		for {
			text, id := s.prompt()
			s.begin(id)
			s.result(text)
			if s.codex || s.server {
				return
			}
		}
	case "asks": // what each line of the prompt asks, and answers with what it was told
		for {
			text, id := s.prompt()
			s.begin(id)
			if s.server {
				s.askCodex(strings.Split(text, "\n"))
				return
			}
			s.ask(strings.Split(text, "\n"))
		}
	case "cannot ask": // as old versions, and counts its starts
		starts, _ := os.OpenFile(value, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		_, _ = starts.WriteString("started\n")
		if s.server {
			s.answer("initialize", object{"userAgent": "codex_cli_rs/0.58.0 (Debian 12.0.0; x86_64) unknown (swarm; 1)"})
			_, _ = s.in.ReadBytes('\n') // nothing but its end
			return
		}
		if slices.Contains(os.Args, "--permission-prompt-tool=stdio") {
			fmt.Fprintln(os.Stderr, "error: unknown option '--permission-prompt-tool=stdio'")
			os.Exit(1)
		}
		s.play("echo")
	case "tell": // how it was started
		env := map[string]string{}
		for _, kv := range os.Environ() {
			k, v, _ := strings.Cut(kv, "=")
			env[k] = v
		}
		b, _ := json.Marshal(object{"args": os.Args[1:], "env": env, "pid": os.Getpid()})
		_ = os.WriteFile(value, b, 0o600)
		s.play("echo")
	case "speaks": // and then does what the rest of the act names
		_, id := s.prompt()
		s.begin(id)
		s.message("I have read the plan.")
		s.message("The test fails in line " + os.Getenv("MY_SECRET"))
		s.misbehave(value)
	default:
		_, id := s.prompt()
		s.begin(id)
		s.misbehave(name)
	}
}

// misbehave does what no program should.
func (s *standIn) misbehave(how string) {
	forever := func() { select {} }
	switch how {
	case "one line of 1 GB":
		piece := strings.Repeat("x", 1<<20)
		for range 1 << 10 {
			if _, err := os.Stdout.WriteString(piece); err != nil {
				return
			}
		}
	case "100 MB of log":
		piece := strings.Repeat(strings.Repeat("y", 63)+"\n", 1<<14)
		for range 100 {
			_, _ = os.Stdout.WriteString(piece)
		}
		s.result("done")
	case "5 MB of words":
		out := bufio.NewWriterSize(os.Stdout, 1<<20)
		for range 5 << 20 / 128 {
			if s.server {
				_, _ = out.WriteString(`{"method":"item/agentMessage/delta","params":{"threadId":"s-1","itemId":"i","delta":"` + strings.Repeat("y", 39) + `"}}` + "\n")
			} else if s.codex {
				_, _ = out.WriteString(`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"` + strings.Repeat("y", 47) + `"}}` + "\n")
			} else {
				_, _ = out.WriteString(`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + strings.Repeat("y", 25) + `"}}}` + "\n")
			}
		}
		_ = out.Flush()
		s.result("done")
	case "hangs":
		forever()
	case "ignores TERM":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "ready")
		forever()
	case "forks":
		child := exec.Command("sleep", "600")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = child.Start()
		fmt.Fprintln(os.Stderr, "ready")
		forever()
	case "is killed":
		fmt.Fprintln(os.Stderr, "out of memory")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
	case "exits 137":
		os.Exit(137)
	case "exits 3":
		fmt.Fprintln(os.Stderr, "the disk is full")
		os.Exit(3)
	case "says nothing":
	case "half a line":
		fmt.Print(`{"type":"result","subtype":"succ`)
	case "a log line":
		fmt.Println("2026-11-15 WARN something is slow")
		fmt.Println("{not JSON either")
		s.result("done")
	case "two results":
		s.result("first")
		s.result("second")
	case "another tongue":
		fmt.Println(`{"type":"result","result":{"a":1}}`)
		fmt.Println(`{"type":"item.completed","item":"much"}`)
		s.note("item/completed", object{"item": object{"id": "i", "type": "agentMessage", "text": object{}}})
	case "5 MB":
		s.result(strings.Repeat("€", 5<<20/3) + "end")
	case "does not end":
		s.result("done")
		forever()
	case "no end of the line":
		fmt.Print(`{"type":"result","subtype":"success","session_id":"s-1","result":"done"}`)
	case "tells all":
		secrets := os.Getenv("ANTHROPIC_API_KEY") + os.Getenv("OPENAI_API_KEY") + " " + os.Getenv("SWARM_AGENT_TOKEN") + " " + os.Getenv("MY_SECRET")
		cut := strings.Repeat("x", 280) + " " // an error's text ends inside of the secret
		fmt.Fprintln(os.Stderr, secrets)
		fmt.Println("log " + secrets)
		if s.server {
			s.note("warning", object{"message": secrets})
			for i := range secrets { // one byte after the other
				s.note("item/agentMessage/delta", object{"itemId": "item_0", "delta": secrets[i : i+1]})
			}
			s.note("item/completed", object{"item": object{"id": "item_1", "type": "reasoning", "summary": []string{secrets}}})
			s.note("item/completed", object{"item": object{"id": "item_2", "type": "commandExecution", "command": secrets, "aggregatedOutput": secrets, "status": "completed"}})
			s.note("turn/completed", object{"turn": object{"id": "t-1", "status": "failed", "error": object{"message": cut + secrets}}})
			return
		}
		if s.codex {
			s.say(object{"type": "item.completed", "item": object{"id": "item_0", "type": "reasoning", "text": secrets}})
			s.say(object{"type": "item.completed", "item": object{"id": "item_2", "type": "command_execution", "command": secrets, "aggregated_output": secrets, "status": "completed"}})
			s.say(object{"type": "item.completed", "item": object{"id": "item_3", "type": "agent_message", "text": secrets}})
			s.say(object{"type": "turn.failed", "error": object{"message": cut + secrets}})
			os.Exit(1)
		}
		for i := range secrets { // one byte after the other
			s.say(object{"type": "stream_event", "event": object{"type": "content_block_delta", "delta": object{"text": secrets[i : i+1], "thinking": secrets[i : i+1]}}})
		}
		s.say(object{"type": "assistant", "message": object{"content": []object{{"type": "tool_use", "id": "t", "name": "Write", "input": object{"file_path": "/" + secrets}}}}})
		s.say(object{"type": "user", "message": object{"content": []object{{"type": "tool_result", "tool_use_id": "t", "content": secrets}}}})
		s.say(object{"type": "result", "is_error": true, "result": cut + secrets})
	}
}

// stand makes a provider whose program is a stand-in. The kind "codex exec" is Codex with a key that
// only `codex exec` reads.
func stand(t testing.TB, kind, act string, more ...string) *agent {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	environ := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), actVariable + "=" + act}, more...)
	kind, exec := strings.CutSuffix(kind, " exec")
	if exec {
		environ = append(environ, "CODEX_API_KEY=key-codex")
	}
	a, err := open(swarm.ProviderSpec{Name: kind, Kind: kind, Command: []string{self}}, provider.Options{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// streams is the folder of recordings of the real programs.
func streams(program, name string) string {
	path, _ := filepath.Abs(filepath.Join("..", "..", "modeltest", "testdata", "streams", program, name))
	return path
}
