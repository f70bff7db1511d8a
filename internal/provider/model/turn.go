package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/process"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/secret"
)

// maxRounds is the most requests of a turn. Budget and timeout usually end a turn long before. It is a
// variable so that tests need not make so many.
var maxRounds = 1000

// Limits of a turn. A model that needs more makes no progress.
const (
	maxSame      = 50       // answers in a row with the same calls, which gave the same results
	maxBadRounds = 3        // requests in a row that brought nothing but calls that cannot be done
	maxAnswer    = 16 << 20 // bytes of text in one answer
)

// A conversation is what the model is asked: what was said in earlier turns of its session, the
// prompt, and what was said since.
type conversation struct {
	model       string
	from        string // names model and server: raw messages of others mean nothing to them
	system      string
	messages    []swarm.ChatMessage
	prefill     string // the beginning of the answer
	tools       []swarm.ToolSpec
	maxTokens   int64
	temperature *float64
	effort      string
	thinking    string
	serviceTier string
	leftOut     map[option]bool // refused by the model
	cached      bool            // a later request probably begins with the same words, so they are marked for the cache
	cacheKey    string          // what requests have in common that begin with the same words
}

// rawOf returns a message as the server itself has sent it, or nil.
func (c *conversation) rawOf(m *swarm.ChatMessage) json.RawMessage {
	if m.From != c.from {
		return nil
	}
	return m.Raw
}

// An answer is what the model says to one request.
type answer struct {
	text   strings.Builder
	calls  []swarm.ToolCall
	stop   stop
	tokens providerkind.Tokens
	usd    *float64 // what the server says that the answer costs; nil = it does not say
	model  string   // that the server says has answered
	usage  swarm.Usage
	// unusable: a figure of the tokens was not one
	unusable bool
	heard    bool // something of it was understood
	shown    bool // some of its text was shown
	show     func(kind swarm.DeltaKind, text string) error
}

// message returns the answer as a message.
func (a *answer) message() swarm.ChatMessage {
	return swarm.ChatMessage{Role: swarm.RoleAssistant, Text: a.text.String(), Calls: a.calls}
}

// withRaw returns the answer as a message, with what the server has sent if text and calls alone
// would not give the same. encode encodes a message of the model.
func (a *answer) withRaw(sent any, encode func(*conversation, *swarm.ChatMessage) any) swarm.ChatMessage {
	m := a.message()
	if raw := encodeValue(sent); !bytes.Equal(raw, encodeValue(encode(&conversation{}, &m))) {
		m.Raw = raw
	}
	return m
}

// A stop is the reason why the model ended its answer.
type stop string

const (
	stopNot     stop = "" // the answer has not ended
	stopDone    stop = "done"
	stopLength  stop = "length"
	stopRefusal stop = "refusal"
)

// A turn is the state of one turn. One goroutine owns it.
type turn struct {
	*model
	key          string
	headers      http.Header // of each request, beside the key
	redactor     *secret.Redactor
	request      provider.Request
	live         func(swarm.Delta)
	conversation conversation
	begun        int                 // how many messages came before the answers of this turn
	added        []swarm.ChatMessage // the messages since, with the results that later requests leave out
	leftOut      int                 // how many results that are

	output    process.Tail // of the last answer
	usage     swarm.Usage
	began     time.Time
	requests  []swarm.ModelRequest
	short     bool // the limit of tokens ended the answer
	answered  bool // a model has begun to work, so the turn is not free
	ended     bool // the model has come to the end of the turn
	endless   bool // the model repeats the same call, or makes too many requests
	badRounds int
	last      swarm.Hash // of the calls of the last answer and their results
	same      int        // how often in a row they came
	images    int        // that the tools of the turn have shown
	lineOpen  bool       // the text that was shown last has not ended its line
	trouble   string     // why the last request failed; "" = it has not failed
}

// run asks the model until an answer calls no tools.
func (t *turn) run(ctx context.Context) error {
	for range maxRounds {
		t.output = process.Tail{}
		t.trimImages()
		t.trimResults()
		if err := t.reserve(); err != nil {
			return err
		}
		a, said, err := t.askModel(ctx)
		if errors.Is(err, errOption) {
			continue
		}
		if err != nil {
			return err
		}
		kind := swarm.NoResult
		if t.request.Plain != nil { // it may be asked for again with the reason, and not as often as a server that is not there
			kind = swarm.Unexpected
		}
		switch {
		case a.stop == stopLength && t.request.Plain != nil && a.text.Len() > 0:
			t.short = true
			return nil
		case a.stop == stopLength:
			return swarm.Errorf(kind, "the answer was cut off at the limit of tokens").
				WithHint("ask for less at once, or write max_tokens: N for the provider %q", t.spec.Name)
		case a.stop == stopRefusal:
			return swarm.Errorf(kind, "the model refused to answer%s", excerpt.Said(t.redactor.String(a.text.String()))).
				WithHint("ask for it in other words, or ask another model")
		case len(a.calls) > 0:
			if err := t.callTools(ctx, said); err != nil {
				return err
			}
			continue
		case a.text.Len() == 0 && len(t.conversation.messages) == t.begun:
			return swarm.Errorf(kind, "the model said nothing").
				WithHint("ask for it in other words, or ask another model")
		case a.text.Len() > 0: // servers refuse an answer without words
			t.append(said)
		}
		t.ended = true
		return nil
	}
	t.endless = true
	return swarm.Errorf(swarm.NoResult, "the model has called tools in %d answers and come to no end", maxRounds).
		WithHint("ask for less at once")
}

// append adds messages to the conversation.
func (t *turn) append(messages ...swarm.ChatMessage) {
	t.conversation.messages = append(t.conversation.messages, messages...)
	t.added = append(t.added, messages...)
}

// trimResults leaves out results of the turn's own tools if the next request would be too large. The
// oldest go first, until half of the room is free, so that most requests only add to the one before,
// which the server has cached. Results of the newest round are never left out.
func (t *turn) trimResults() {
	room := t.request.Context * 4
	if room == 0 || t.size() <= room {
		return
	}
	messages, before := t.conversation.messages, t.leftOut
	for i := t.begun; i < len(messages)-1 && t.size() > room/2; i++ {
		results := slices.Clone(messages[i].Results) // t.added has them too
		for j, x := range results {
			if results[j] = x.Shortened(); results[j].Text != x.Text {
				t.leftOut++
			}
		}
		messages[i].Results = results
	}
	if n := t.leftOut - before; n > 0 {
		t.live(swarm.Delta{Kind: swarm.DeltaStderr, Text: fmt.Sprintf("the turn has more than %d tokens: its %d oldest results of tools are left out from here on\n", t.request.Context, n)})
	}
}

// reserve reserves the next request in the budget. The conversation grows with each tool call, so
// the budget is checked before each request.
func (t *turn) reserve() error {
	if t.request.Reserve == nil {
		return nil
	}
	need := t.bound()
	need.Calls = 1
	return t.request.Reserve(t.usage.Plus(need))
}

// size returns how many bytes of the next request the model reads.
func (t *turn) size() int64 {
	size := int64(len(t.conversation.system))
	for i := range t.conversation.messages {
		size += t.conversation.messages[i].Size()
	}
	for i := range t.conversation.tools {
		size += t.conversation.tools[i].Size()
	}
	return size
}

// bound returns the most that the next request is known to cost.
func (t *turn) bound() swarm.Usage {
	answer := int64(0)
	if t.request.Plain != nil { // other answers are as long as the model likes
		answer = t.conversation.maxTokens
	}
	need := providerkind.Bound(&t.spec, t.conversation.model, t.size(), answer)
	if t.spec.Price != (swarm.Price{}) {
		need.USD = 0 // the whole usage is priced at once
	}
	need.Calls = 0 // the turn is the call
	return need
}

// endLine ends the line of the text so far. Else the text of the next answer would run on in it, and
// the tools, which have lines of their own, would stand before it.
func (t *turn) endLine() {
	if t.lineOpen {
		t.live(swarm.Delta{Kind: swarm.DeltaText, Text: "\n"})
		t.lineOpen = false
	}
}

// reply returns what came of a turn that ended with err.
func (t *turn) reply(err error) provider.Reply {
	r := provider.Reply{Output: t.output.Bytes(), Bytes: t.output.Len(), Usage: t.usage, Free: !t.answered, Short: t.short, Requests: t.requests, Trouble: t.redactor.String(t.trouble)}
	if t.request.Plain != nil || !t.ended && !t.keepsWork(err) {
		return r
	}
	if n := len(t.added); n > 0 && !t.ended {
		t.added[n-1].Text += "\nThe turn was cut off here: " + err.Error() + ". What you did until then stands. Go on from there."
	}
	for _, m := range t.added {
		r.Messages = append(r.Messages, m.MapTexts(t.redactor.String))
	}
	r.LeftOut = t.leftOut
	return r
}

// keepsWork says whether the next attempt goes on from the tool calls of a turn that failed with err.
// That is so if the calls are not what made it fail.
func (t *turn) keepsWork(err error) bool {
	switch swarm.KindOf(err) {
	case swarm.TimedOut, swarm.RateLimited, swarm.Unreachable:
		return true
	}
	return t.endless
}

// noteRequest keeps what a request came to, which OpenTelemetry is told.
func (t *turn) noteRequest(ctx context.Context, began time.Time, a *answer, err error) {
	if len(t.requests) == swarm.MaxRequests {
		return
	}
	r := swarm.ModelRequest{
		After: began.Sub(t.began), Took: time.Since(began), Model: t.conversation.model,
		Answered: excerpt.Head(t.redactor.String(a.model), maxQuoted), Finish: a.finish(), Usage: a.usage,
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		r.Kind = swarm.KindOf(swarm.CutError(ctx))
	case errors.Is(err, errOption):
		r.Kind = swarm.BadInput
	default:
		r.Kind = swarm.KindOf(err)
	}
	t.requests = append(t.requests, r)
}

// finish says why an answer ended, by the names that OpenTelemetry has for it.
func (a *answer) finish() string {
	switch {
	case a.stop == stopDone && len(a.calls) > 0:
		return "tool_calls"
	case a.stop == stopDone:
		return "stop"
	case a.stop == stopRefusal:
		return "content_filter"
	}
	return string(a.stop)
}

// newAnswer makes an answer whose text is shown while it comes. end shows what redaction held back.
func (t *turn) newAnswer() (a *answer, end func()) {
	streams := map[swarm.DeltaKind]*secret.Stream{}
	tell := func(kind swarm.DeltaKind, text string) {
		if text == "" {
			return
		}
		if kind == swarm.DeltaText {
			_, _ = t.output.Write([]byte(text))
			t.lineOpen = !strings.HasSuffix(text, "\n")
		}
		t.live(swarm.Delta{Kind: kind, Text: text})
	}
	a = &answer{}
	a.show = func(kind swarm.DeltaKind, text string) error {
		if text == "" {
			return nil
		}
		text = strings.ToValidUTF8(text, string(utf8.RuneError))
		if kind == swarm.DeltaText {
			if !a.shown {
				text = t.conversation.begin(text)
			}
			a.shown = true
			a.text.WriteString(text)
		}
		if streams[kind] == nil {
			streams[kind] = t.redactor.Stream()
		}
		tell(kind, streams[kind].Write(text))
		if a.text.Len() > maxAnswer {
			return swarm.Errorf(swarm.Protocol, "the answer is longer than %d MB", maxAnswer>>20)
		}
		return nil
	}
	return a, func() {
		for kind, s := range streams {
			tell(kind, s.Flush())
		}
	}
}

// addCut adds the cost of a request that was cut before its answer began, as it was reserved. The
// server has received the request, and the model may have worked on it.
func (t *turn) addCut(a *answer) {
	u := t.bound()
	u.Estimated, t.answered = true, true
	t.add(a, u)
}

// add adds the usage of an answer to that of the turn.
func (t *turn) add(a *answer, u swarm.Usage) {
	a.usage = u
	t.usage = t.usage.Plus(u)
	t.live(swarm.Delta{Kind: swarm.DeltaUsage, Usage: t.usage})
}

// addUsage adds the cost of an answer to a request of so many bytes. If the server reports no
// usage, or impossible figures, bytes give an estimate. Each tool call costs the whole conversation
// again.
func (t *turn) addUsage(a *answer, asked int64) {
	k := a.tokens
	unended := a.stop == stopNot // the final figures come at the end of the answer
	estimated := unended || a.unusable || k == (providerkind.Tokens{})
	if estimated && k.In+k.Read+k.Wrote == 0 {
		k.In = swarm.EstimateTokens(asked)
	}
	if said := swarm.EstimateTokens(int64(a.text.Len())); estimated && k.Out == 0 || unended && k.Out < said {
		k.Out = said
	}
	u := swarm.Usage{
		InputTokens:  k.In + k.Read + k.Wrote,
		OutputTokens: k.Out,
		CachedTokens: k.Read,
		Estimated:    estimated,
	}
	switch {
	case t.spec.Price != swarm.Price{}:
	case a.usd != nil:
		u.USD = *a.usd
	default:
		u.USD = providerkind.Cost(t.conversation.model, k)
	}
	t.add(a, u)
}

// begin puts the given beginning before an answer, unless the model has repeated it.
func (c *conversation) begin(answer string) string {
	begin := c.sentPrefill()
	if strings.HasPrefix(strings.TrimSpace(answer), begin) {
		return answer
	}
	return begin + answer
}
