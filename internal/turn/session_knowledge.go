package turn

import (
	"bytes"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/prompt"
	"swarm/internal/providerkind"
)

// A sessionKnowledge is what an agent's session has been told beside its mail. A turn that
// continues the session gets only what is new.
type sessionKnowledge struct {
	packs  map[string]swarm.TurnID // by ref of the context pack: the turn that brought it
	topics []toldTopics            // the turns that brought topic entries, in order
}

// A toldTopics is a turn whose prompt had all topic entries after one sequence number, up to another.
type toldTopics struct {
	turn        swarm.TurnID
	since, upto int64
}

// A begunTurn is what the prompt of an agent's last turn contains.
type begunTurn struct {
	packs   map[string]bool // by ref of the context pack: the session did not have it
	topics  int64           // the newest topic entry
	dropped int             // the turns of its session that were sent as one line
}

// knownTopics returns the newest topic entry up to which a session has all entries.
func (l *logFold) knownTopics(key string, dropped int) (known int64) {
	c := l.conversations[key]
	for _, t := range l.given[key].topics {
		if t.since <= known && !c.leavesOut(t.turn, dropped) {
			known = max(known, t.upto)
		}
	}
	return known
}

// leavesOut reports whether the prompt of a turn is left out of its session. The first prompt
// stays.
func (c *conversation) leavesOut(turn swarm.TurnID, dropped int) bool {
	if c == nil || dropped == 0 {
		return false
	}
	i := slices.IndexFunc(c.turns, func(t exchanged) bool { return t.turn == turn })
	return i > 0 && i < dropped
}

// dropped returns how many turns of its session are sent to the turn as one line each.
func (w *work) dropped() int {
	if w.recalled == nil {
		return 0
	}
	return w.recalled.Dropped
}

// sessionKey names the sessions of an agent: its provider's, or those of another provider that does
// its turns while a limit is reached. A session that the log keeps is the agent's own: whatever model
// does a turn is sent all of it.
func sessionKey(agent, substitute string, inLog bool) string {
	switch {
	case inLog:
		return agent + "/"
	case substitute == "":
		return agent
	}
	return agent + "/" + substitute
}

// ofAgent returns whether a key names a session of an agent.
func ofAgent[V any](agent string) func(key string, _ V) bool {
	return func(key string, _ V) bool { return key == agent || strings.HasPrefix(key, agent+"/") }
}

func (w *work) sessionKey() string {
	return sessionKey(w.c.Agent, w.substitute(), w.kind().Sessions == providerkind.LogSessions)
}

// sessionOf names the session that the end of a turn belongs to.
func sessionOf(e *swarm.Event, end *swarm.CallEnd) string {
	return sessionKey(e.Agent, end.Provider, end.Exchange != nil)
}

// published returns the team's findings for the prompt. A remote agent gets none: only messages
// along an edge leave the run for another server.
func (r *Runner) published(w *work) (all []prompt.Finding, err error) {
	if k := w.kind(); r.AgentAPI == nil || k.Person || k.Tools == providerkind.NoTools {
		return nil, nil
	}
	newest := int64(agentapi.Newest)
	if w.begun != nil {
		newest = w.begun.Topics
	}
	found, upto, err := r.AgentAPI.Findings(newest)
	if err != nil {
		return nil, err
	}
	w.topics = upto
	known := int64(0)
	if w.session != "" {
		known = r.fold.knownTopics(w.sessionKey(), w.dropped())
	}
	for _, f := range found {
		all = append(all, prompt.Finding{Agent: f.Agent, Turn: f.Turn, Topic: f.Topic, Text: f.Text, Known: f.Seq <= known})
	}
	return all, nil
}

// Bytes that only the start of a turn with packs or findings contains. Searching for them avoids
// decoding every start of a long log.
var (
	fromPack   = []byte(`{"from":"` + prompt.FromPack + `"`)
	withTopics = []byte(`"topics":`)
)

// begin records what the prompt of a turn contains.
func (l *logFold) begin(e *swarm.Event) error {
	if !bytes.Contains(e.Data, fromPack) && !bytes.Contains(e.Data, withTopics) {
		delete(l.begun, e.Agent)
		return nil
	}
	start, err := swarm.Body[swarm.TurnStart](e)
	if err != nil {
		return err
	}
	now := begunTurn{packs: map[string]bool{}, topics: start.Topics}
	if start.History != nil {
		now.dropped = start.History.Dropped
	}
	for _, s := range start.Spans {
		if s.From == prompt.FromPack {
			for _, ref := range strings.Fields(s.Name) {
				now.packs[ref] = s.Turn == ""
			}
		}
	}
	put(&l.begun, e.Agent, now)
	return nil
}

// recordKnowledge updates what an agent's session has been told, when a turn ends. A failed turn
// does not count: its provider may not have read the prompt.
func (l *logFold) recordKnowledge(e *swarm.Event, end swarm.CallEnd) {
	if end.Session == "" {
		return
	}
	key := sessionOf(e, &end)
	if end.Forgotten || l.sessions[key] != end.Session {
		delete(l.given, key) // the session is another one
	}
	if end.Forgotten || end.Status != swarm.CallOK {
		return
	}
	now, has := l.begun[e.Agent], l.given[key]
	if has.packs == nil {
		has.packs = map[string]swarm.TurnID{}
	}
	for ref, isNew := range now.packs {
		if isNew || has.packs[ref] == "" {
			has.packs[ref] = e.Turn
		}
	}
	if known := l.knownTopics(key, now.dropped); now.topics > known {
		has.topics = append(has.topics, toldTopics{e.Turn, known, now.topics})
	}
	put(&l.given, key, has)
}

// recordTotal keeps what a session has cost in all. A session that a turn of this run has begun
// cost nothing before its program's first report, even if that turn was cut.
func (l *logFold) recordTotal(e *swarm.Event, end swarm.CallEnd) {
	_, known := l.totals[end.Session]
	switch began := l.sessions[sessionOf(e, &end)] != end.Session && !end.CarriedOver; {
	case end.Session == "" || end.Forgotten:
	case end.SessionTotal != nil:
		put(&l.totals, end.Session, *end.SessionTotal)
	case !known && began:
		put(&l.totals, end.Session, swarm.Usage{})
	}
}

// sessionTotal returns what a session has cost in all, or nil if that is unknown.
func (r *Runner) sessionTotal(session string) (*swarm.Usage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return nil, err
	}
	total, known := r.fold.totals[session]
	if !known {
		return nil, nil
	}
	return &total, nil
}
