package acp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"swarm"
	"swarm/internal/httpd"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/provider/acp"
)

// The test binary is also the agent, when this variable says which one. One agent uses another
// implementation of the protocol than ours, and some break the protocol.
const playing = "SWARM_TEST_ACP_AGENT"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "mcp" { // as swarm itself
		door := swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
		if err := httpd.Stdio(context.Background(), door, "1", os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	switch part := os.Getenv(playing); part {
	case "":
		os.Exit(m.Run())
	case "good", "poor", "claude", "codex":
		play(part)
	default:
		if misbehave[part] == nil {
			panic("there is no agent " + part)
		}
		misbehave[part]()
	}
}

// play is an agent that does what its prompts say, one word on each line. A poor one knows only
// what the protocol requires of every agent.
func play(part string) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	a := &actor{poor: part == "poor", name: actorNames[part], cancels: map[sdk.SessionId]chan struct{}{}}
	heard, hears := io.Pipe()
	a.conn = sdk.NewAgentSideConnection(a, os.Stdout, heard)
	_, _ = io.Copy(hears, os.Stdin) // not before it knows its connection
}

var actorNames = map[string]string{"claude": "@agentclientprotocol/claude-agent-acp", "codex": "@agentclientprotocol/codex-acp"}

type actor struct {
	sdk.Agent
	name string
	conn *sdk.AgentSideConnection
	poor bool

	mu       sync.Mutex
	sessions int
	cancels  map[sdk.SessionId]chan struct{}
	servers  string // what it was told of tool servers
	model    string
	mode     string
}

func (a *actor) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	can := sdk.AgentCapabilities{}
	if !a.poor {
		can = sdk.AgentCapabilities{LoadSession: true, McpCapabilities: sdk.McpCapabilities{Http: true}}
	}
	return sdk.InitializeResponse{ProtocolVersion: 1, AgentCapabilities: can, AgentInfo: &sdk.Implementation{Name: cmp.Or(a.name, "actor"), Version: "1.2.3"}}, nil
}

func (a *actor) NewSession(_ context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	id := sdk.SessionId(fmt.Sprintf("session-%d-%d", os.Getpid(), a.sessions))
	a.learn(id, p.McpServers)
	return sdk.NewSessionResponse{SessionId: id, ConfigOptions: a.options(), Modes: a.modes()}, nil
}

// modes are those of codex-acp. Others have an option for it, or none.
func (a *actor) modes() *sdk.SessionModeState {
	if a.name != actorNames["codex"] {
		return nil
	}
	a.mode = "agent"
	return &sdk.SessionModeState{CurrentModeId: "agent", AvailableModes: []sdk.SessionMode{{Id: "read-only"}, {Id: "workspace-write"}, {Id: "agent"}, {Id: "agent-full-access"}}}
}

func (a *actor) SetSessionMode(_ context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = string(p.ModeId)
	return sdk.SetSessionModeResponse{}, nil
}

func (a *actor) options() []sdk.SessionConfigOption {
	if a.poor {
		return nil
	}
	models := sdk.SessionConfigSelectOptionsUngrouped{{Name: "Small", Value: "small"}, {Name: "Large", Value: "large"}}
	modes := sdk.SessionConfigSelectOptionsUngrouped{{Name: "Ask", Value: "ask"}, {Name: "Code", Value: "code"}}
	model, mode := sdk.SessionConfigOptionCategory("model"), sdk.SessionConfigOptionCategory("mode")
	all := []sdk.SessionConfigOption{{Select: &sdk.SessionConfigOptionSelect{Id: "model", Name: "Model", Type: "select", Category: &model, CurrentValue: "small",
		Options: sdk.SessionConfigSelectOptions{Ungrouped: &models}}}}
	if a.name == "" {
		all = append(all, sdk.SessionConfigOption{Select: &sdk.SessionConfigOptionSelect{Id: "permissions", Name: "Mode", Type: "select", Category: &mode, CurrentValue: "ask",
			Options: sdk.SessionConfigSelectOptions{Ungrouped: &modes}}})
	}
	return all
}

func (a *actor) learn(id sdk.SessionId, servers []sdk.McpServer) {
	a.cancels[id] = make(chan struct{}, 1)
	b, _ := json.Marshal(servers)
	a.servers = string(b)
}

func (a *actor) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.HasPrefix(string(p.SessionId), "lost") {
		return sdk.LoadSessionResponse{}, &sdk.RequestError{Code: -32002, Message: "Resource not found"}
	}
	a.learn(p.SessionId, p.McpServers)
	_ = a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: p.SessionId, Update: sdk.UpdateAgentMessageText("what was said long ago")})
	return sdk.LoadSessionResponse{}, nil
}

func (a *actor) SetSessionConfigOption(_ context.Context, p sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.ValueId.ConfigId == "permissions" {
		a.mode = string(p.ValueId.Value)
	} else {
		a.model = string(p.ValueId.Value)
	}
	return sdk.SetSessionConfigOptionResponse{ConfigOptions: a.options()}, nil
}

func (a *actor) Cancel(_ context.Context, p sdk.CancelNotification) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels[p.SessionId] <- struct{}{}
	return nil
}

func (a *actor) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	s := stage{actor: a, ctx: ctx, session: p.SessionId, stop: sdk.StopReasonEndTurn}
	for line := range strings.Lines(p.Prompt[0].Text.Text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := s.act(word, rest); err != nil {
			return sdk.PromptResponse{}, err
		}
	}
	return sdk.PromptResponse{StopReason: s.stop, Usage: s.usage}, nil
}

// A stage is one turn of the acting agent.
type stage struct {
	*actor
	ctx     context.Context
	session sdk.SessionId
	stop    sdk.StopReason
	usage   *sdk.Usage
	tool    sdk.ToolCallId
}

func (s *stage) tell(u sdk.SessionUpdate) {
	_ = s.conn.SessionUpdate(s.ctx, sdk.SessionNotification{SessionId: s.session, Update: u})
}

func (s *stage) say(format string, args ...any) {
	s.tell(sdk.UpdateAgentMessageText(fmt.Sprintf(format, args...)))
}

func (s *stage) act(word, rest string) error {
	switch word {
	case "say":
		s.say("%s", rest)
	case "think":
		s.tell(sdk.UpdateAgentThoughtText(rest))
	case "who":
		s.mu.Lock()
		model := s.model
		s.mu.Unlock()
		s.say("%d %s %s", os.Getpid(), s.session, model)
	case "mode":
		s.mu.Lock()
		mode := s.mode
		s.mu.Unlock()
		s.say("%s", mode)
	case "servers":
		s.mu.Lock()
		servers := s.servers
		s.mu.Unlock()
		s.say("%s", servers)
	case "variable":
		s.say("%s", os.Getenv(rest))
	case "mutter":
		fmt.Fprintln(os.Stderr, os.ExpandEnv(rest))
	case "log":
		fmt.Println(rest)
	case "plan":
		s.tell(sdk.UpdatePlan(sdk.PlanEntry{Content: rest, Priority: "high", Status: "pending"}))
	case "tool": // of a kind, with a title
		kind, title, _ := strings.Cut(rest, " ")
		s.tool = sdk.ToolCallId("call-" + strconv.Itoa(len(s.tool)))
		s.tell(sdk.StartToolCall(s.tool, title, sdk.WithStartKind(sdk.ToolKind(kind)), sdk.WithStartStatus("pending"), sdk.WithStartRawInput(map[string]any{"a": title})))
	case "tool-at": // of a kind, at a path
		kind, path, _ := strings.Cut(rest, " ")
		s.tool = sdk.ToolCallId("call-" + strconv.Itoa(len(s.tool)))
		s.tell(sdk.StartToolCall(s.tool, "Change a file", sdk.WithStartKind(sdk.ToolKind(kind)), sdk.WithStartStatus("pending"), sdk.WithStartLocations([]sdk.ToolCallLocation{{Path: path}})))
	case "done":
		s.tell(sdk.UpdateToolCall(s.tool, sdk.WithUpdateStatus("completed"), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(rest))})))
	case "edited":
		s.tell(sdk.UpdateToolCall(s.tool, sdk.WithUpdateStatus("completed"), sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolDiffContent(rest, "new", "old")})))
	case "ask", "ask-for-good":
		return s.ask(word == "ask", sdk.ToolCallUpdate{ToolCallId: s.tool})
	case "permission":
		var call sdk.ToolCallUpdate
		if err := json.Unmarshal([]byte(rest), &call); err != nil {
			return err
		}
		return s.ask(true, call)
	case "read":
		r, err := s.conn.ReadTextFile(s.ctx, sdk.ReadTextFileRequest{SessionId: s.session, Path: rest, Line: sdk.Ptr(2), Limit: sdk.Ptr(1)})
		s.say("read %q %v\n", r.Content, err != nil)
	case "write":
		path, text, _ := strings.Cut(rest, " ")
		_, err := s.conn.WriteTextFile(s.ctx, sdk.WriteTextFileRequest{SessionId: s.session, Path: path, Content: text})
		s.say("written %v\n", err == nil)
	case "terminal":
		_, err := s.conn.CreateTerminal(s.ctx, sdk.CreateTerminalRequest{SessionId: s.session, Command: "true"})
		var no *sdk.RequestError
		s.say("terminal %v", errors.As(err, &no) && no.Code == -32601)
	case "cost":
		amount, _ := strconv.ParseFloat(rest, 64)
		s.tell(sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{Size: 100, Used: 10, Cost: &sdk.Cost{Amount: amount, Currency: "USD"}}})
	case "tokens":
		s.usage = &sdk.Usage{InputTokens: 5, OutputTokens: 7, CachedReadTokens: sdk.Ptr(11), CachedWriteTokens: sdk.Ptr(13), TotalTokens: 36}
	case "obey": // a cancel, but not before a file is there
		s.say("waiting")
		s.mu.Lock()
		cancelled := s.cancels[s.session]
		s.mu.Unlock()
		<-cancelled
		for {
			if _, err := os.Stat(rest); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		s.stop = sdk.StopReasonCancelled
	case "stop":
		s.stop = sdk.StopReason(rest)
	case "fail":
		code, text, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(code)
		return &sdk.RequestError{Code: n, Message: os.ExpandEnv(text)}
	case "many":
		n, _ := strconv.Atoi(rest)
		for i := range n {
			s.say("%d\n", i)
		}
	case "wait": // obeys a cancel
		s.say("waiting")
		s.mu.Lock()
		cancelled := s.cancels[s.session]
		s.mu.Unlock()
		<-cancelled
		s.stop = sdk.StopReasonCancelled
	case "hang":
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("setsid", "sleep", "1000")
		if err := child.Start(); err != nil {
			return err
		}
		s.say("hanging")
		select {}
	case "die":
		s.say("dying")
		if rest == "9" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		code, _ := strconv.Atoi(rest)
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(code)
	}
	return nil
}

func (s *stage) ask(once bool, call sdk.ToolCallUpdate) error {
	options := []sdk.PermissionOption{{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always", OptionId: "always"}}
	if once {
		options = append(options, sdk.PermissionOption{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Once", OptionId: "once"},
			sdk.PermissionOption{Kind: sdk.PermissionOptionKindRejectOnce, Name: "No", OptionId: "no"})
	}
	r, err := s.conn.RequestPermission(s.ctx, sdk.RequestPermissionRequest{SessionId: s.session, ToolCall: call, Options: options})
	if err != nil {
		return err
	}
	if r.Outcome.Selected == nil {
		s.say("cancelled")
		return nil
	}
	s.say("%s", r.Outcome.Selected.OptionId)
	return nil
}

// misbehave are programs that break the protocol.
var misbehave = map[string]func(){
	"mute": func() { select {} },
	"deaf": func() { // asks and does not listen
		begin()
		for i := range 10_000 {
			fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`+"\n", i)
		}
		select {}
	},
	"half": func() {
		begin()
		fmt.Print(`{"jsonrpc":"2.0","id":3,"result":{"stopRe`)
	},
	"flood": func() {
		begin()
		chunk := strings.Repeat("x", 1<<20)
		for range 1 << 10 {
			fmt.Print(chunk)
		}
	},
	"chatter": func() { // 16 MB of what is no message, and then an answer
		begin()
		line := strings.Repeat("y", 1023) + "\n"
		for range 16 << 10 {
			fmt.Print(line)
		}
		fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"after all"}}}}`)
		fmt.Println(`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"odd": func() { // sends many unknown messages
		begin()
		for _, line := range []string{`[]`, `null`, `{}`, `{"id":99,"result":{}}`, `{"id":"x","result":{}}`, `{"method":"_ext/thing","params":7}`, `{"method":"session/update"}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"new_in_version_9","content":[1,2]}}}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":7}}}`,
			`{"method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not ours"}}}}`,
			`{"id":1,"method":"no/such","params":{}}`, `{"id":"two","method":"session/request_permission","params":[]}`,
			`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"still here"}}}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","and":"more"}}`} {
			fmt.Println(line)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	"future": func() {
		answer(`{"protocolVersion":99}`)
		select {}
	},
	"nonsense": func() {
		answer(`"hello"`)
		select {}
	},
	"nameless": func() {
		answer(`{"protocolVersion":1}`, `{}`)
		select {}
	},
	"shell": func() { // no agent at all
		fmt.Fprintln(os.Stderr, "usage: shell FILE")
		os.Exit(2)
	},
}

// begin answers as an agent does until it has a prompt.
func begin() {
	answer(`{"protocolVersion":1}`, `{"sessionId":"s"}`)
	var m json.RawMessage
	_ = asked.Decode(&m)
}

var asked = json.NewDecoder(os.Stdin)

// answer answers the first requests.
func answer(results ...string) {
	for i, result := range results {
		var m json.RawMessage
		if asked.Decode(&m) != nil {
			os.Exit(1)
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%d,"result":%s}`+"\n", i+1, result)
	}
}

// A theatre is where the acting agents work.
type theatre struct {
	testing.TB
	agent provider.Provider
	dir   string

	mu     sync.Mutex
	deltas []swarm.Delta
	heard  chan swarm.Delta // text, for those who wait for it
}

func newTheatre(t testing.TB, part string, changes ...func(*swarm.ProviderSpec)) *theatre {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &theatre{TB: t, dir: t.TempDir(), heard: make(chan swarm.Delta, 100)}
	spec := swarm.ProviderSpec{Name: "actors", Kind: "acp", Command: []string{self}, Env: map[string]string{playing: part, "MY_API_KEY": "$CANARY"}}
	for _, change := range changes {
		change(&spec)
	}
	h.agent, err = acp.Open(spec, provider.Options{Environ: append(os.Environ(), "CANARY="+modelKey), Hidden: []string{h.dir + "/state"}, Grace: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func (h *theatre) run() swarm.RunID { return swarm.RunID("run-" + h.dir) }

// close ends the acting agents, and checks that none is left.
func (h *theatre) close() {
	h.Helper()
	if err := h.agent.(provider.Closer).Close(); err != nil {
		h.Error(err)
	}
	if left := process.OfRun(h.run()); len(left) > 0 {
		h.Errorf("left behind: %v", left)
	}
}

func (h *theatre) request(prompt ...string) provider.Request {
	return provider.Request{Run: h.run(), Turn: "plan/1/1", Task: "plan", Agent: "planner", Iteration: 1, Attempt: 1, Prompt: strings.Join(prompt, "\n"), Dir: h.dir,
		Door: swarm.ToolEndpoint{URL: "http://127.0.0.1:9", Token: agentToken}}
}

func (h *theatre) live(d swarm.Delta) {
	h.mu.Lock()
	h.deltas = append(h.deltas, d)
	h.mu.Unlock()
	if d.Kind == swarm.DeltaText {
		select {
		case h.heard <- d:
		default:
		}
	}
}

func (h *theatre) turn(r provider.Request) (provider.Reply, error) {
	return h.agent.Turn(h.Context(), r, h.live)
}

// good does a turn that must succeed.
func (h *theatre) good(r provider.Request) provider.Reply {
	h.Helper()
	reply, err := h.turn(r)
	if err != nil {
		h.Fatalf("%v (%s)", err, reply.Stderr)
	}
	return reply
}

// told lists what happened, one line each.
func (h *theatre) told() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, d := range h.deltas {
		fmt.Fprintf(&b, "%s %s", d.Kind, strings.TrimSpace(d.Text))
		if d.Tool != nil {
			fmt.Fprintf(&b, "%s %s %s %s %v", d.Tool.ID, d.Tool.Name, d.Tool.Input, d.Tool.Output, d.Tool.Failed)
		}
		if d.Usage != (swarm.Usage{}) {
			fmt.Fprintf(&b, "%+v", d.Usage)
		}
		b.WriteString(d.File + "\n")
	}
	return strings.ReplaceAll(b.String(), filepath.Clean(h.dir), "DIR")
}
