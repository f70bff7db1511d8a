package turn

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
)

// A conversation is a session that the log keeps: what each of its turns has added to it. Its id is
// the turn that began it.
type conversation struct {
	session string
	turns   []exchanged
	first   []byte                   // what the first turn was sent; nil = not read yet
	history map[string]swarm.History // by provider: what its last turn was sent of it
}

// An exchanged is a turn of a conversation.
type exchanged struct {
	swarm.Exchange
	turn   swarm.TurnID
	output swarm.Hash
	short  []swarm.ChatMessage // the messages without the results of tools; nil = not made yet
	text   string              // the turn in one line of a summary; "" = not made yet
}

// Defaults of [swarm.ContextLimits]. A model whose context window is known is sent at most half of
// it. More than mostTokens costs much with each turn, and some models cost more by then.
const (
	defaultTokens = 32_000
	mostTokens    = 80_000
	defaultKeep   = 3
)

const (
	summaryPart  = 160 // bytes of each part of a line of a summary
	summaryLine  = 3 * summaryPart
	summaryShare = 8 // a summary is at most this part of the limit
	leastRoom    = 4 // the turns after a long first prompt have at least this part of the limit
)

// continues says whether the turn continues its agent's session. A desk is another folder each time.
func (w *work) continues() bool {
	return w.kind().Sessions != providerkind.NoSessions && w.agent.Session != swarm.NoSession && w.worker() == "" &&
		(w.kind().Sessions != providerkind.LogSessions || w.remembers())
}

// remembers says whether the log keeps what the turn adds to its session. In a swarm the prompt of
// each iteration has the iterations before.
func (w *work) remembers() bool {
	return w.kind().Sessions == providerkind.LogSessions && w.agent.Session != swarm.NoSession && w.c.Want == plan.WantMail &&
		w.plan.Swarm == nil && w.task.Swarm == nil && w.worker() == ""
}

// contextLimits returns how much of its session the agent is sent.
func (w *work) contextLimits() swarm.ContextLimits {
	a, p := w.agent.Context, w.spec.Context
	tokens := int64(defaultTokens)
	if window := providerkind.ContextWindow(w.model); window > 0 {
		tokens = min(window/2, mostTokens)
	}
	return swarm.ContextLimits{Tokens: cmp.Or(a.Tokens, p.Tokens, tokens), Keep: cmp.Or(a.Keep, p.Keep, defaultKeep)}
}

// isLater says whether the agent probably has later turns in this session. The caller holds the
// runner's mutex.
func (w *work) isLater() bool {
	if !w.remembers() {
		return false
	}
	if w.plan.counts == nil {
		w.plan.counts = map[string]int{}
		for i := range w.plan.Tasks {
			w.plan.counts[w.plan.Tasks[i].Agent]++
		}
	}
	return w.plan.Team != nil || w.plan.Open || w.plan.More || w.plan.counts[w.c.Agent] > 1 || w.c.Of > w.c.Iteration
}

// prepare decides what the provider is sent: the prompt or the part of it that is new to the
// session, and before it what the log has of the session.
func (r *Runner) prepare(w *work) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.recall(w); err != nil {
		return err
	}
	w.later = w.isLater()
	switch {
	case w.session != "":
		w.sent = w.made.Fresh()
	case w.kind().Sessions == providerkind.LogSessions && w.c.Want == plan.WantMail && w.task.Swarm == nil:
		w.sent, w.stable = w.made.StableFirst()
	default:
		w.sent = w.made.Text
	}
	return nil
}

// recall finds the messages of the session that the turn continues.
func (r *Runner) recall(w *work) error {
	if w.session == "" || !w.remembers() {
		return nil
	}
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	c, err := r.cutSession(w)
	if err == nil && c != nil {
		w.history, err = r.historyMessages(c, *w.recalled, w.contextLimits())
	}
	return err
}

// cutSession decides how much of its session the turn is sent, if the log keeps the session. A
// session that the log does not have begins anew. The caller has followed the log.
func (r *Runner) cutSession(w *work) (*conversation, error) {
	if w.session == "" || !w.remembers() {
		return nil, nil
	}
	c := r.fold.conversations[w.sessionKey()]
	if c == nil || c.session != w.session {
		w.session, w.recalled = "", nil
		return nil, nil
	}
	if c.first == nil {
		var err error
		if c.first, err = r.Log.Body(c.turns[0].Sent); err != nil {
			return nil, err
		}
	}
	if w.recalled == nil || w.recalled.Turns != len(c.turns) { // otherwise an earlier start has decided
		cut := c.cut(c.history[w.spec.Name], w.contextLimits())
		w.recalled = &cut
	}
	return c, nil
}

// cut decides which turns of a conversation are sent whole, short, or as a line of the summary. It
// starts from h, the cut of the provider's last turn. If the result is too large now, it frees half of the room,
// so that most turns only append to what the server has cached:
//
//  1. The oldest turns lose the results of their tools.
//  2. If the newest Keep turns take more than half of the room, they lose their results too, except
//     for the very newest turn. Otherwise each turn would need a cut, and caching would be useless.
//  3. Of the oldest turns, those whose line has all of their words become that line. So the turns
//     without results do not make each step larger than the one before.
//  4. The oldest turns lose everything but a line.
//
// The texts of the newest Keep turns are cut only if these texts alone do not fit. The first prompt
// is never cut. However long it is, the turns have at least 1/leastRoom of the limit.
func (c *conversation) cut(h swarm.History, limits swarm.ContextLimits) swarm.History {
	h.Turns = len(c.turns)
	most, first := limits.Tokens*4, int64(len(c.first))
	room := max(most-first, most/leastRoom)
	size := func() int64 { return c.size(h, most) - first }
	if size() > room {
		old := max(0, h.Turns-limits.Keep)
		for h.Short < old && size() > room/2 {
			h.Short++
		}
		kept := int64(0)
		for _, t := range c.turns[old:] {
			kept += t.Bytes
		}
		for h.Short < h.Turns-1 && kept > room/2 && size() > room/2 {
			h.Short++
		}
		for h.Dropped < min(old, h.Short) && c.turns[h.Dropped].Line > 0 && c.lines(h.Dropped+1) <= most/summaryShare {
			h.Dropped++
		}
		if size() > room*3/4 {
			for h.Dropped < old && size() > room/2 {
				h.Dropped++
			}
		}
		for h.Short < h.Turns && size() > room {
			h.Short++
		}
		for h.Dropped < h.Turns-1 && size() > room {
			h.Dropped++
		}
		h.Short = max(h.Short, h.Dropped)
	}
	h.Tokens = swarm.EstimateTokens(size() + first)
	return h
}

// size estimates the bytes of a history.
func (c *conversation) size(h swarm.History, most int64) (n int64) {
	if h.Dropped > 0 {
		n = int64(len(c.first)) + min(c.lines(h.Dropped), most/summaryShare)
	}
	for i := h.Dropped; i < h.Turns; i++ {
		if n += c.turns[i].Bytes; i < h.Short {
			n -= c.turns[i].Results
		}
	}
	return n
}

// lines estimates the bytes of the lines of the oldest n turns.
func (c *conversation) lines(n int) (all int64) {
	for i := range c.turns[:n] {
		all += cmp.Or(c.turns[i].Line, summaryLine)
	}
	return all
}

// historyMessages makes the messages of a history. The first prompt of the session is always there: it has
// the agent's role, the rules and the goal.
func (r *Runner) historyMessages(c *conversation, h swarm.History, limits swarm.ContextLimits) (all []swarm.ChatMessage, err error) {
	begin := string(c.first)
	if h.Dropped > 0 {
		summary, err := r.summarize(c.turns[:h.Dropped], limits.Tokens*4/summaryShare)
		if err != nil {
			return nil, err
		}
		begin += "\n" + summary
	}
	for i := h.Dropped; i < h.Turns; i++ {
		t := &c.turns[i]
		m := swarm.ChatMessage{Role: swarm.RoleUser}
		if i > 0 {
			text, err := r.Log.Body(t.Sent)
			if err != nil {
				return nil, err
			}
			m.Text = string(text)
		}
		if i == h.Dropped { // one message: some servers want the roles to alternate
			if m.Text != "" {
				begin += "\n"
			}
			m.Text, m.Stable = begin+m.Text, c.turns[0].Stable
		}
		said, err := r.said(t, i < h.Short)
		if err != nil {
			return nil, err
		}
		all = append(append(all, m), said...)
	}
	return all, nil
}

// said returns the messages of a turn after its prompt, short or whole.
func (r *Runner) said(t *exchanged, short bool) ([]swarm.ChatMessage, error) {
	if short && t.short != nil {
		return t.short, nil
	}
	all, err := swarm.ReadMessages(r.Log.Body, t.Exchange, t.output)
	if err != nil || !short {
		return all, err
	}
	for i := range all {
		for j := range all[i].Results {
			all[i].Results[j] = all[i].Results[j].Shortened()
		}
	}
	t.short = all
	return all, nil
}

// summarize describes turns by rule, one line each. The oldest lines have no room if there are many.
func (r *Runner) summarize(turns []exchanged, room int64) (string, error) {
	var lines []string
	for i := len(turns) - 1; i >= 0; i-- {
		t := &turns[i]
		if err := r.describe(t, i == 0); err != nil {
			return "", err
		}
		if room -= int64(len(t.text)); room < 0 {
			lines = append(lines, fmt.Sprintf("- %d earlier turns are not listed\n", i+1))
			break
		}
		lines = append(lines, t.text)
	}
	slices.Reverse(lines)
	return "The turns after this were left out to save room. A summary of them, oldest first: what you were told, did and answered.\n" + strings.Join(lines, ""), nil
}

// describe makes the line of a turn, if it is not made yet.
func (r *Runner) describe(t *exchanged, first bool) error {
	if t.text != "" {
		return nil
	}
	told, err := r.Log.Body(t.Sent)
	if err != nil {
		return err
	}
	said, err := swarm.ReadMessages(r.Log.Body, t.Exchange, t.output)
	if err == nil {
		t.text = summaryOf(t.turn, prompt.Words(string(told[t.Stable:])), said, first)
	}
	return err
}

// summaryOf makes the line of a turn: all of its words, if they have room in one. Otherwise it has
// the text of the task and the mail, the messages that the agent sent, and its answer.
func summaryOf(turn swarm.TurnID, told string, said []swarm.ChatMessage, first bool) string {
	if line := wholeLine(turn, told, said, first); line != "" {
		return line
	}
	head := func(text string) string { return excerpt.Head(excerpt.OneLine(text), summaryPart) }
	line := "- " + string(turn) + ": " + head(told)
	var used []string
	for _, m := range said {
		for _, c := range m.Calls {
			what := c.Name
			if agentapi.Coordinates(c.Name) {
				what += " " + head(c.Args)
			}
			if !slices.Contains(used, what) {
				used = append(used, what)
			}
		}
	}
	if len(used) > 0 {
		line += "; tools: " + excerpt.List(used, 5)
	}
	if n := len(said); n > 0 && said[n-1].Role == swarm.RoleAssistant {
		line += "; answer: " + head(said[n-1].Text)
	} else {
		line += "; no answer"
	}
	return line + "\n"
}

// wholeLine makes a line that has all words of a turn, except for long results of tools. It is empty
// if the words have no room in a line. Those of the session's first prompt are in the session anyway.
func wholeLine(turn swarm.TurnID, told string, said []swarm.ChatMessage, first bool) string {
	if first {
		told = "the text above"
	}
	line := "- " + string(turn) + ": " + strings.TrimSpace(told)
	for i, m := range said {
		for _, r := range m.Results {
			if len(r.Text) <= swarm.ShortResult {
				line += " = " + r.WithoutImages().Text
			}
		}
		switch {
		case i == len(said)-1 && m.Role == swarm.RoleAssistant:
			line += "; answer: " + m.Text
		case m.Text != "":
			line += "; said: " + m.Text
		}
		for _, c := range m.Calls {
			line += "; " + c.Name + " " + c.Args
		}
		if len(line) > summaryLine {
			return ""
		}
	}
	if n := len(said); n == 0 || said[n-1].Role != swarm.RoleAssistant {
		line += "; no answer"
	}
	if line = excerpt.OneLine(line) + "\n"; len(line) > summaryLine {
		return ""
	}
	return line
}

// exchange returns what a turn adds to its session, and its messages as they are stored. The output
// is not stored twice.
func (r *Runner) exchange(w *work, reply provider.Reply, output []byte) (*swarm.Exchange, []byte) {
	x := swarm.Exchange{Sent: swarm.HashOf([]byte(w.sent)), Stable: w.stable, Bytes: int64(len(w.sent)), LeftOut: reply.LeftOut}
	stored, said := make([]swarm.ChatMessage, len(reply.Messages)), make([]swarm.ChatMessage, len(reply.Messages))
	for i, m := range reply.Messages {
		m = m.MapTexts(func(text string) string { return string(r.redact([]byte(text))) })
		x.Bytes, said[i] = x.Bytes+m.Size(), m
		for _, result := range m.Results {
			x.Results += max(0, int64(len(result.Text))-swarm.ShortResult) + result.ImagesSize()
		}
		if i == len(stored)-1 && m.Role == swarm.RoleAssistant && m.Text == string(output) {
			m.Text, m.IsOutput = "", true
		}
		stored[i] = m
	}
	x.Line = int64(len(wholeLine(swarm.TurnID(w.c.ID), prompt.Words(w.sent[w.stable:]), said, w.session == "")))
	text := swarm.Encode(stored)
	x.Messages = swarm.HashOf(text)
	return &x, text
}

// withHistory is a key that only the start of a turn in a session of the log contains.
var withHistory = []byte(`"history":{`)

// noteHistory records what a turn was sent of its session.
func (l *logFold) noteHistory(e *swarm.Event) error {
	if len(l.conversations) == 0 || !bytes.Contains(e.Data, withHistory) {
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	c := l.conversations[sessionKey(e.Agent, "", true)]
	if err == nil && c != nil && start.History != nil && start.Session == c.session {
		put(&c.history, start.Provider, *start.History)
	}
	return err
}

// addExchange adds a turn to its session. The beginning of a session is missing in a run that retries
// another one and does its first turn again: then there is no session to go on with.
func (l *logFold) addExchange(e *swarm.Event, end swarm.CallEnd) (known bool) {
	if end.Exchange == nil {
		return true
	}
	if string(e.Turn) == end.Session {
		put(&l.conversations, sessionOf(e, &end), &conversation{session: end.Session})
	}
	c := l.conversations[sessionOf(e, &end)]
	if c == nil || c.session != end.Session {
		return false
	}
	c.turns = append(c.turns, exchanged{Exchange: *end.Exchange, turn: e.Turn, output: end.Output})
	return true
}
