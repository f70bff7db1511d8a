package coding

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"swarm"
	"swarm/internal/provider"
)

// A codexServer speaks JSON-RPC with `codex app-server` in one turn, one message per line. It
// initializes, starts or resumes the thread, and starts the turn. Each step waits for the answer to
// the step before. Notifications report the work of the agent, and requests ask for permissions.
// The protocol is that of version 0.120 and later.
type codexServer struct {
	codexItems
	thread  string                        // the session's name
	current string                        // the name of the turn, once Codex has said it
	started map[string]codexItem          // what the agent does now, by id
	asked   map[string]context.CancelFunc // by id: Codex's open requests
}

// The numbers of our requests.
const (
	initializeRequest = "1"
	threadRequest     = "2"
	turnRequest       = "3"
)

// codexHello is the first request. It lists notifications that Codex is to leave out: they may be
// long, and the completed items contain the same text.
const codexHello = `{"id":` + initializeRequest + `,"method":"initialize","params":{"clientInfo":{"name":"swarm","title":"swarm","version":"1"},` +
	`"capabilities":{"experimentalApi":false,"optOutNotificationMethods":["item/commandExecution/outputDelta","item/fileChange/outputDelta",` +
	`"item/reasoning/summaryTextDelta","item/reasoning/textDelta","turn/diff/updated"]}}}` + "\n"

// A codexMessage is a request, an answer or a notification.
type codexMessage struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

func (e *codexServer) hearLine(line []byte) error {
	var m codexMessage
	if err := e.decode(line, &m); err != nil {
		return err
	}
	switch {
	case m.Method != "" && len(m.ID) > 0:
		return e.handleRequest(&m)
	case m.Method != "":
		return e.handleNotification(m.Method, m.Params)
	case m.Error != nil:
		e.handleError(&m)
		return nil
	}
	return e.handleAnswer(string(m.ID), m.Result)
}

// send writes messages in their order. It does not block: a long prompt waits until Codex has read
// it, and reading its stream must not wait for that.
func (e *codexServer) send(messages ...object) {
	var lines []byte
	for _, m := range messages {
		b, _ := json.Marshal(m)
		lines = append(append(lines, b...), '\n')
	}
	if proc := e.program.proc; proc != nil {
		e.asking.Go(func() { _, _ = proc.Write(lines) }) // a program that has ended needs none
	}
}

func newRequest(id, method string, params object) object {
	return object{"id": json.RawMessage(id), "method": method, "params": params}
}

// handleAnswer handles the answer to one of our requests, and sends the next request.
func (e *codexServer) handleAnswer(id string, result json.RawMessage) error {
	switch id {
	case initializeRequest:
		var hello struct{ UserAgent string }
		if err := e.decode(result, &hello); err != nil {
			return err
		}
		if isOldCodex(hello.UserAgent) {
			e.unfit = true
			e.fail(swarm.Errorf(swarm.NoResult, "this version of Codex cannot be used as app-server"))
			return nil
		}
		e.send(object{"method": "initialized"}, e.openThread())
	case threadRequest:
		var v struct{ Thread struct{ ID string } }
		if err := e.decode(result, &v); err != nil {
			return err
		}
		e.thread = v.Thread.ID
		e.setSession(e.thread)
		text := strings.ToValidUTF8(e.prompt, "\uFFFD")
		e.send(newRequest(turnRequest, "turn/start", object{"threadId": e.thread, "input": []object{{"type": "text", "text": text}}}))
	case turnRequest:
		var v struct{ Turn struct{ ID string } }
		if err := e.decode(result, &v); err != nil {
			return err
		}
		e.current = v.Turn.ID
	}
	return nil
}

// isOldCodex reports whether a user agent such as codex_cli_rs/0.58.0 belongs to a version that
// cannot run as app-server. Old versions ignore settings in their arguments, or act without asking
// for all permissions. 0.0.0 is a local build, and counts as new.
func isOldCodex(userAgent string) bool {
	_, version, _ := strings.Cut(userAgent, "/")
	return version != "" && !strings.HasPrefix(version, "0.0.0") && !atLeast(version, 0, 120, 0)
}

// openThread makes the request that starts or resumes the thread. A thread keeps its model, folder
// and policy, so a resumed thread gets those of this turn. A new thread gets no folder: older
// versions would mark the folder as trusted in the user's settings. A person decides on approvals,
// and no second model does.
func (e *codexServer) openThread() object {
	params := object{"approvalPolicy": approvalPolicy(e.request), "approvalsReviewer": "user"}
	if e.request.Model != "" {
		params["model"] = e.request.Model
	}
	method := "thread/start"
	if session := e.request.Session; session != "" {
		method = "thread/resume"
		params["threadId"] = session
		params["cwd"] = e.dir
	}
	return newRequest(threadRequest, method, params)
}

// handleError handles the refusal of one of our requests, which ends the turn.
func (e *codexServer) handleError(m *codexMessage) {
	if e.request.Session != "" && strings.Contains(m.Error.Message, e.facts.sessionGone) {
		e.failSessionLost()
		return
	}
	e.fail(e.failure(0, m.Error.Message))
}

// A codexNote holds the parameters of the notifications that are understood.
type codexNote struct {
	ThreadID, TurnID, ItemID string
	Delta                    string
	Message                  string
	WillRetry                bool
	RequestID                json.RawMessage
	Error                    codexError
	Turn                     struct {
		ID, Status string
		Error      codexError
	}
	TokenUsage struct {
		Total provider.Reported[struct{ InputTokens, CachedInputTokens, OutputTokens int64 }]
	}
}

// A codexError is an error of a turn.
type codexError struct {
	Message string
	Details string          `json:"additionalDetails"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

// text returns the text of the error. For an error that Codex retries, the reason is in the
// details.
func (c codexError) text() string {
	if c.Details == "" {
		return c.Message
	}
	return c.Message + ": " + c.Details
}

// status returns the HTTP status of the model's server, or the status that Codex's name for the
// error stands for; 0 = unknown.
func (c codexError) status() int {
	var word string
	if json.Unmarshal(c.Info, &word) == nil {
		return map[string]int{
			"usageLimitExceeded": 429, "rateLimitExceeded": 429, "serverOverloaded": 503, "unauthorized": 401,
		}[word]
	}
	var by map[string]struct{ HTTPStatusCode int }
	_ = json.Unmarshal(c.Info, &by) // newer versions may have other forms
	for _, v := range by {
		return v.HTTPStatusCode
	}
	return 0
}

// handleNotification handles a notification. It ignores unknown ones, because newer versions add
// some, and those of other threads, which belong to subagents.
func (e *codexServer) handleNotification(method string, params json.RawMessage) error {
	switch method {
	case "item/started", "item/completed":
		return e.hearItem(method == "item/completed", params)
	case "item/agentMessage/delta", "error", "turn/completed", "thread/tokenUsage/updated", "warning", "serverRequest/resolved":
	default:
		return nil
	}
	var n codexNote
	if err := e.decode(params, &n); err != nil {
		return err
	}
	switch method {
	case "warning":
		e.writeStderr(n.Message + "\n")
		return nil
	case "serverRequest/resolved":
		e.withdraw(string(n.RequestID))
		return nil
	}
	if n.ThreadID != e.thread || e.current != "" && cmp.Or(n.TurnID, n.Turn.ID, e.current) != e.current {
		return nil
	}
	switch method {
	case "item/agentMessage/delta":
		e.modelWait.Stop()
		if e.streamed != n.ItemID {
			e.endLine()
			e.streamed = n.ItemID
		}
		e.showText(n.Delta)
	case "thread/tokenUsage/updated":
		total := n.TokenUsage.Total
		e.reportUsage(codexUsage{total.Value.InputTokens, total.Value.CachedInputTokens, total.Value.OutputTokens}, total.Unusable)
	case "error":
		e.handleTurnError(n.Error, n.WillRetry)
	case "turn/completed":
		e.modelWait.Stop()
		if n.Turn.Status == "completed" {
			e.finish()
		} else { // failed, or interrupted
			e.fail(e.failure(n.Turn.Error.status(), cmp.Or(n.Turn.Error.text(), "its turn has the status "+n.Turn.Status)))
		}
	}
	return nil
}

// handleTurnError handles an error that Codex retries, or reports again at the end of the turn.
// Codex is silent between its attempts, for as long as the model's server has told it to wait.
func (e *codexServer) handleTurnError(c codexError, retried bool) {
	e.modelWait.Stop()
	text := c.text()
	status, limit := c.status(), provider.Busy(c.status())
	if status == 0 {
		status, limit, _ = provider.Blame(text)
	}
	switch {
	case !retried:
	case limit || status >= 500:
		e.waitForModel(text)
	default:
		e.writeStderr(text + "\n")
	}
}

// hearItem decodes the start or the end of an item. Items of unknown types may have any form.
func (e *codexServer) hearItem(done bool, params json.RawMessage) error {
	var kind struct {
		ThreadID string
		Item     struct{ Type string }
	}
	if err := e.decode(params, &kind); err != nil {
		return err
	}
	if kind.ThreadID != e.thread || codexKinds[kind.Item.Type] == "" {
		return nil
	}
	var v struct{ Item codexItem }
	if err := e.decode(params, &v); err != nil {
		return err
	}
	e.modelWait.Stop()
	if done {
		delete(e.started, v.Item.ID)
	} else {
		e.started[v.Item.ID] = v.Item
	}
	e.handleItem(&v.Item, done)
	return nil
}
