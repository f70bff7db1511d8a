package telemetry

import (
	"slices"
	"strconv"
	"time"

	"swarm"
	"swarm/internal/providerkind"
)

// A fold makes spans and measures from a run's events. It reads the log from the beginning, even if
// a part was exported before, because another process may have begun a turn that ends now. Only
// what was not exported before becomes output.
type fold struct {
	run     string
	trace   traceID
	outer   link                    // the span in which this process was started
	body    func(swarm.Hash) string // the text with this hash; nil = texts are not exported
	before  progress
	seq     int64 // of the last event
	replay  bool
	root    span
	kinds   map[string]string      // of providers, by their names
	turns   map[swarm.TurnID]*turn // that run
	letters map[string][]letter

	spans    []span // that have ended
	measures []measure
}

// A turn is a turn that runs.
type turn struct {
	span
	provider, model string
	began           time.Time // its last start
	starts          int64
	upto            int64 // the last envelope in its prompt
	prompt          swarm.Hash
}

// A letter is an envelope that is not consumed yet.
type letter struct {
	seq              int64
	at               time.Time
	id, kind, sender string
	turn             swarm.TurnID // of the sender, or ""
}

func newFold(run swarm.RunID, before progress) *fold {
	return &fold{
		run:     string(run),
		trace:   traceOf(run),
		before:  before,
		kinds:   map[string]string{},
		turns:   map[swarm.TurnID]*turn{},
		letters: map[string][]letter{},
	}
}

// apply takes the next event. A body that cannot be decoded is ignored here; the views report it.
func (f *fold) apply(e *swarm.Event) {
	f.seq = e.Seq
	switch e.Kind {
	case swarm.RunStarted:
		useBody(e, f.runStarted)
	case swarm.RunEnded:
		useBody(e, f.runEnded)
	case swarm.PlanAdded:
		useBody(e, f.planAdded)
	case swarm.TurnStarted:
		useBody(e, f.turnStarted)
	case swarm.TurnTool:
		useBody(e, f.toolUsed)
	case swarm.TurnEnded:
		useBody(e, f.turnEnded)
	case swarm.HandoffStored:
		useBody(e, f.stored)
	case swarm.HandoffConsumed:
		useBody(e, f.consumed)
	default:
		f.mark(e)
	}
}

func useBody[T any](e *swarm.Event, take func(*swarm.Event, T)) {
	_ = swarm.UseBody(e, func(body T) { take(e, body) })
}

func (f *fold) planAdded(_ *swarm.Event, p swarm.Plan) {
	for _, spec := range p.Providers {
		f.kinds[spec.Name] = spec.Kind
	}
}

// runStarted begins the root span. Its name holds no content.
func (f *fold) runStarted(e *swarm.Event, start swarm.RunStart) {
	name := string(start.Kind) // the goal of a team and the text of a line are content, so they are not used
	if start.Kind == swarm.PipelineRun && start.Name != "" {
		name = start.Name
	}
	f.replay = start.Replay
	f.root = span{trace: f.trace, id: f.rootID(), name: invokeWorkflow + " " + name, kind: kindInternal, start: e.Time,
		attrs: []attr{
			{keyOperation, invokeWorkflow},
			{keyWorkflow, name},
			{keyRun, f.run},
			{keyKind, string(start.Kind)},
		}}
	if start.Replay {
		f.root.attrs = append(f.root.attrs, attr{keyReplay, true})
	}
	if start.From != "" {
		again := traceOf(start.From)
		f.root.addLink(link{again, spanOf(again, "run", string(start.From)), []attr{{keyRun, string(start.From)}}})
	}
	if f.outer.id != (spanID{}) {
		f.root.addLink(f.outer)
	}
}

func (f *fold) rootID() spanID { return spanOf(f.trace, "run", f.run) }

func (f *fold) turnID(turn swarm.TurnID) spanID { return spanOf(f.trace, "turn", string(turn)) }

// runEnded ends the root span. A cancelled run has no error status.
func (f *fold) runEnded(e *swarm.Event, end swarm.RunEnd) {
	root := f.root
	root.attrs = append(slices.Clip(root.attrs), attr{keyStatus, string(end.Status)}, attr{keyExit, int64(end.Exit)})
	switch end.Status {
	case swarm.Completed:
		root.status = statusOK
	case swarm.Failed:
		root.status, root.message = statusError, string(end.Status)
		root.attrs = append(root.attrs, attr{keyError, string(end.Status)})
	}
	f.endSpan(root, e)
	f.measure(runs, 1, attr{keyKind, f.attrOfRoot(keyKind)}, attr{keyStatus, string(end.Status)})
}

func (f *fold) attrOfRoot(key string) any {
	for _, a := range f.root.attrs {
		if a.key == key {
			return a.value
		}
	}
	return ""
}

// turnStarted begins a turn's span. A second start of the same turn is a retry after a crash.
func (f *fold) turnStarted(e *swarm.Event, start swarm.TurnStart) {
	if t := f.turns[e.Turn]; t != nil { // a crash has cut it, and this is the retry
		t.began, t.starts = e.Time, int64(start.Start)
		t.addEvent(e.Time, "swarm.turn_retried")
		return
	}
	t := f.newTurn(e, start.Provider, start.Model, start.Iteration, start.Attempt)
	t.upto, t.prompt = start.Inputs.Upto, start.Prompt
	t.attrs = text(t.attrs, keyConversation, start.Session)
	f.turns[e.Turn] = t
}

// newTurn makes a turn's span, with the vendor's name by the conventions.
func (f *fold) newTurn(e *swarm.Event, provider, model string, iteration, attempt int) *turn {
	kind := f.kinds[provider]
	if kind == "" {
		kind = provider
	}
	t := &turn{provider: providerkind.Of(kind).VendorName(), model: model, began: e.Time, starts: 1}
	t.span = span{
		trace:  f.trace,
		id:     f.turnID(e.Turn),
		parent: f.rootID(),
		name:   invokeAgent + " " + e.Agent,
		kind:   kindClient,
		start:  e.Time,
	}
	t.attrs = text([]attr{{keyOperation, invokeAgent}}, keyProvider, t.provider)
	t.attrs = text(append(t.attrs, attr{keyAgent, e.Agent}), keyModel, model)
	t.attrs = append(t.attrs, attr{keyRun, f.run}, attr{keyTurn, string(e.Turn)}, attr{keyTask, e.Task})
	if iteration > 0 {
		t.attrs = append(t.attrs, attr{keyIteration, int64(iteration)}, attr{keyAttempt, int64(attempt)})
	}
	t.attrs = text(t.attrs, keyReachedBy, provider)
	return t
}

// turnEnded ends a turn's span, and measures the turn.
func (f *fold) turnEnded(e *swarm.Event, end swarm.CallEnd) {
	if end.CarriedOver { // the turn belongs to another run
		return
	}
	t := f.turns[e.Turn]
	if t == nil { // it was refused before it began
		t = f.newTurn(e, "", "", 0, 0)
	}
	delete(f.turns, e.Turn)
	f.requestsSent(t, e, end.Requests)
	t.attrs = append(t.attrs, attr{keyOutcome, string(end.Status)})
	if t.starts > 1 {
		t.attrs = append(t.attrs, attr{keyStarts, t.starts})
	}
	f.addUsage(t, end)
	var failed []attr
	switch end.Status {
	case swarm.CallOK:
		t.status = statusOK
	case swarm.CallFailed:
		kind := string(end.Kind)
		if kind == "" {
			kind = "_OTHER"
		}
		failed = []attr{{keyError, kind}}
		t.attrs = append(t.attrs, failed...)
		t.status, t.message = statusError, kind
		if f.body != nil {
			t.message = end.Reason // it may repeat the agent's text
		}
	}
	f.endSpan(t.span, e)

	of := text(text([]attr{{keyOperation, invokeAgent}}, keyProvider, t.provider), keyModel, t.model)
	f.measure(turns, 1, attr{keyAgent, e.Agent}, attr{keyOutcome, string(end.Status)})
	f.measure(duration, e.Time.Sub(t.began).Seconds(), append(slices.Clip(of), failed...)...)
	for kind, n := range map[string]int64{"input": end.Usage.InputTokens, "output": end.Usage.OutputTokens} {
		if n > 0 {
			f.measure(tokens, float64(n), append(slices.Clip(of), attr{keyTokenType, kind})...)
		}
	}
}

// requestsSent makes the spans of a turn's requests to a model over HTTP. The turn's end has them.
// The last start of the turn sent them, and they lie within it whatever the clocks say.
func (f *fold) requestsSent(t *turn, e *swarm.Event, all []swarm.ModelRequest) {
	for i, r := range all {
		s := span{
			trace:  f.trace,
			id:     spanOf(f.trace, "request", string(e.Turn)+" "+strconv.FormatInt(t.starts, 10)+" "+strconv.Itoa(i)),
			parent: t.id,
			name:   chat + " " + r.Model,
			kind:   kindClient,
			start:  t.began.Add(r.After),
			attrs:  text([]attr{{keyOperation, chat}}, keyProvider, t.provider),
		}
		s.attrs = text(append(s.attrs, attr{keyModel, r.Model}), keyAnswered, r.Answered)
		if r.Finish != "" {
			s.attrs = append(s.attrs, attr{keyFinish, []string{r.Finish}})
		}
		s.attrs = usageOf(s.attrs, r.Usage)
		s.attrs = append(s.attrs, attr{keyAgent, e.Agent}, attr{keyRun, f.run}, attr{keyTurn, string(e.Turn)})
		if r.Kind != "" {
			s.status, s.message = statusError, string(r.Kind)
			s.attrs = append(s.attrs, attr{keyError, string(r.Kind)})
		}
		s.start = earlier(s.start, e.Time)
		f.endSpanAt(s, e, earlier(s.start.Add(r.Took), e.Time))
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// usageOf adds what a turn or a request has cost.
func usageOf(attrs []attr, u swarm.Usage) []attr {
	if u.Tokens() > 0 {
		attrs = append(attrs, attr{keyInputTokens, u.InputTokens}, attr{keyOutputTokens, u.OutputTokens})
	}
	if u.CachedTokens > 0 {
		attrs = append(attrs, attr{keyCachedTokens, u.CachedTokens})
	}
	if u.USD > 0 {
		attrs = append(attrs, attr{keyCost, u.USD})
	}
	if u.Estimated {
		attrs = append(attrs, attr{keyEstimated, true})
	}
	return attrs
}

// addUsage adds what the turn has cost and, if wanted, its prompt and output.
func (f *fold) addUsage(t *turn, end swarm.CallEnd) {
	t.attrs = usageOf(t.attrs, end.Usage)
	if end.Session != "" && !slices.ContainsFunc(t.attrs, func(a attr) bool { return a.key == keyConversation }) {
		t.attrs = append(t.attrs, attr{keyConversation, end.Session})
	}
	if f.body != nil {
		t.attrs = text(t.attrs, keyInput, messageJSON("user", f.body(t.prompt), ""))
		t.attrs = text(
			t.attrs,
			keyOutput,
			messageJSON(
				"assistant", f.body(end.Output),
				map[bool]string{true: "stop", false: "error"}[end.Status == swarm.CallOK]),
		)
	}
}

// messageJSON encodes a message as the conventions define it.
func messageJSON(role, content, finish string) string {
	if content == "" {
		return ""
	}
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	return string(swarm.Encode([]struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}{{role, []part{{"text", content}}, finish}}))
}

// toolUsed makes the span of a tool call. The log has only its end and its duration, so a start
// before the turn's is moved to the turn's.
func (f *fold) toolUsed(e *swarm.Event, use swarm.ToolUse) {
	t := f.turns[e.Turn]
	if t == nil {
		return
	}
	start := e.Time.Add(-use.Took)
	if start.Before(t.start) {
		start = t.start
	}
	s := span{
		trace:  f.trace,
		id:     spanOf(f.trace, "tool", string(e.Turn)+" "+strconv.FormatInt(e.Seq, 10)),
		parent: t.id,
		name:   executeTool + " " + use.Name,
		kind:   kindInternal,
		start:  start,
		attrs:  []attr{{keyOperation, executeTool}, {keyTool, use.Name}},
	}
	s.attrs = text(s.attrs, keyToolCall, use.ID)
	s.attrs = append(s.attrs, attr{keyAgent, e.Agent}, attr{keyRun, f.run}, attr{keyTurn, string(e.Turn)})
	if use.Failed {
		s.status, s.message = statusError, "tool_error"
		s.attrs = append(s.attrs, attr{keyError, "tool_error"})
	}
	if f.body != nil {
		s.attrs = text(text(s.attrs, keyToolInput, string(use.Input)), keyToolOutput, use.Output)
	}
	f.endSpan(s, e)
}

// stored notes an envelope, so that the turn which consumes it can link to its sender.
func (f *fold) stored(e *swarm.Event, env swarm.Envelope) {
	f.letters[env.ToNodeID] = append(
		f.letters[env.ToNodeID], letter{e.Seq, e.Time, env.ID, string(env.Kind), env.FromNodeID, e.Turn})
	f.where(e).
		addEvent(e.Time, "swarm."+string(e.Kind), attr{keyEnvelope, env.ID}, attr{keyEnvKind, string(env.Kind)}, attr{keyEnvFrom, env.FromNodeID}, attr{keyEnvTo, env.ToNodeID}, attr{keySeq, e.Seq})
}

// consumed links a turn to the turns that have sent the envelopes which it read.
func (f *fold) consumed(e *swarm.Event, c swarm.Consumption) {
	t, left := f.turns[e.Turn], f.letters[e.Agent][:0]
	for _, l := range f.letters[e.Agent] {
		if l.seq <= c.From || l.seq > c.Upto {
			left = append(left, l)
			continue
		}
		about := []attr{{keyEnvelope, l.id}, {keyEnvKind, l.kind}, {keyEnvFrom, l.sender}, {keySeq, l.seq}}
		injected := e.Time
		if t != nil && l.seq <= t.upto {
			injected = t.start
		}
		if t != nil && l.turn != "" {
			t.addLink(link{f.trace, f.turnID(l.turn), about})
		}
		f.where(e).addEvent(injected, "swarm."+string(e.Kind), about...)
		f.measure(delivery, max(0, injected.Sub(l.at).Seconds()))
	}
	f.letters[e.Agent] = left
}

// where returns the span of an event: its turn's, or the run's.
func (f *fold) where(e *swarm.Event) *span {
	if t := f.turns[e.Turn]; t != nil {
		return &t.span
	}
	return &f.root
}

// mark adds an event to a span, if it is worth a mark.
func (f *fold) mark(e *swarm.Event) {
	var attrs []attr
	switch e.Kind {
	case swarm.ApprovalAsked:
		a, _ := swarm.Body[swarm.Approval](e)
		attrs = text([]attr{{keyApproval, a.ID}}, keyTool, a.Tool)
	case swarm.ApprovalAnswered:
		a, _ := swarm.Body[swarm.ApprovalAnswer](e)
		attrs = []attr{{keyApproval, a.ID}, {keyApproved, a.OK}}
	case swarm.BudgetSpent:
		r, _ := swarm.Body[swarm.Reason](e)
		attrs = text(nil, keyReason, r.Reason)
	case swarm.HandoffReturned, swarm.ReplyOverdue:
		r, _ := swarm.Body[swarm.Return](e)
		attrs = []attr{{keyEnvelope, r.ID}}
	case swarm.RunOwned:
		if o, _ := swarm.Body[swarm.Ownership](e); o.Fence <= 1 {
			return // the span itself shows the first owner
		}
	case swarm.RunPausing, swarm.RunPaused, swarm.RunUnpaused, swarm.RunInterrupted,
		swarm.AgentEnded, swarm.AgentRestarted, swarm.AgentPaused, swarm.AgentResumed, swarm.WaitBegan, swarm.WaitEnded,
		swarm.IterationStarted, swarm.TaskRetrying, swarm.LimitReached, swarm.LimitEnded, swarm.TaskBlocked, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
	default:
		return
	}
	attrs = text(text(attrs, keyTask, e.Task), keyAgent, e.Agent)
	f.where(e).addEvent(e.Time, "swarm."+string(e.Kind), attrs...)
}

// endSpan ends a span at the time of an event, unless it was exported before.
func (f *fold) endSpan(s span, e *swarm.Event) { f.endSpanAt(s, e, e.Time) }

func (f *fold) endSpanAt(s span, e *swarm.Event, end time.Time) {
	if e.Seq > f.before.Spans {
		s.seq, s.end = e.Seq, end
		f.spans = append(f.spans, s)
	}
}

// measure counts a value, unless it was counted before. A replay costs nothing and takes no time,
// so it is not counted.
func (f *fold) measure(of *instrument, value float64, attrs ...attr) {
	if f.seq > f.before.Metrics && !f.replay {
		f.measures = append(f.measures, measure{of, value, attrs})
	}
}
