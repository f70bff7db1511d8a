package flow

import (
	"strconv"
	"time"

	"swarm"
	"swarm/internal/plan"
)

// A team is the state of one Team loop. A member has a turn when it has mail that wants one; the truth about mail is in the log, and
// what is kept here is only how far each has come.
type team struct {
	conduct
	rules   swarm.Team
	most    int         // turns at once; 0 = no limit
	order   *plan.Order // of a replay; nil = they begin when they can
	running int
	waiting int // of those that run: who waits for others in its turn, and needs no slot
	members []member
	at      map[string]int
	asks    []ask
	between circle // who wrote to whom last
	wishes  wishes // what agents ask of the run
	owed    int64  // the newest envelope by which the run itself has given somebody a turn: until it has come by, nobody seems to have mail
	halted  bool   // it went in a circle, and was or would have been paused
	begun   bool   // it is known what the log held when the run was taken up: before that nobody seems to have mail
	done    bool   // the lead has reported, or a person has closed the run
	report  string // what the lead has reported
}

type member struct {
	name    string
	ref     string    // the plan it came with
	mail    int64     // the newest envelope that wants a turn
	read    int64     // up to where its mail is consumed
	turns   int       // begun so far
	attempt int       // of the last one
	tries   int       // attempts of it that failed
	trouble string    // why the last of them did
	busy    bool      //
	turn    string    // the one that it has, or had last
	waits   bool      // in its turn, for others
	began   int64     // how far the loop had read when its turn began
	due     time.Time // of the next attempt
	outputs circle    // what it said last
	deeds   circle    // what it did last
	wrote   words     // what it wrote last
	claims  int       // in how many turns in a row it said that it had written, and had not
	held    time.Time // since when a person has it paused; zero = it is not
	told    bool      // that the run waits for it
	leaving bool      // it ends when its turn does
	again   bool      // and is then started again
	ended   bool      // it has no turn any more
	gone    int64     // what came before this went back when it ended
	starts  int       // how often it was started again
	failed  bool      // because it could not do its work
	why     swarm.TaskEnd
}

// An ask is an envelope that wants a reply, and has none.
type ask struct {
	Mail
	seq      int64
	since    time.Time
	reminded bool
}

// attempts is how often a turn of a team is tried before its agent is given up.
const attempts = 3

// Team runs agents that live on and hand work to each other, until nothing is left to do or somebody says so.
func Team(fx Fx, c Call) (Result, error) {
	t := &team{conduct: conduct{fx: fx}, at: map[string]int{}}
	if err := t.begin(c.Ref); err != nil {
		return Result{}, err
	}
	for {
		if err := t.advance(); err != nil {
			return Result{}, err
		}
		if over, err := t.over(); err != nil {
			return Result{}, err
		} else if over {
			return t.finish()
		}
		s, by, err := t.next(t.patience())
		if err != nil {
			return Result{}, err
		}
		t.delayTimers(by)
		if err := t.take(s); err != nil {
			return Result{}, err
		}
	}
}

func (t *team) begin(ref string) error {
	p, err := t.add("plan", ref)
	if err != nil || p == nil {
		return err
	}
	if p.Team != nil {
		t.rules = *p.Team
	}
	t.most, t.order, t.replay = p.MaxParallel, plan.NewOrder(p.Order), len(p.Order) > 0
	if p.Budget.Wall > 0 {
		t.wallEnd = t.fx.Now().Add(p.Budget.Wall)
	}
	return nil
}

// add takes the agents of a stored plan in.
func (t *team) add(id, ref string) (*swarm.Plan, error) {
	r, err := t.fx.Do(Call{ID: id, Kind: KindPlan, Ref: ref})
	if err != nil || r.Plan == nil {
		return nil, err
	}
	for _, a := range r.Plan.Agents {
		if _, known := t.at[a.Name]; !known {
			t.at[a.Name] = len(t.members)
			t.members = append(t.members, member{name: a.Name, ref: ref})
		}
	}
	return r.Plan, nil
}

// advance gives a turn to everybody who has mail for one.
func (t *team) advance() error {
	t.endWithRecording()
	for began := true; began; { // one that begins may be what another has waited for, in a replay
		began = false
		if err := t.grant(false); err != nil {
			return err
		}
		var first *member // of those that others go before
		for i := range t.members {
			m := &t.members[i]
			if !t.wants(m) || t.beyond(m) || m.busy || t.stop != "" || t.done || !t.pausing.IsZero() || !m.held.IsZero() || !m.due.IsZero() || t.most > 0 && t.running-t.waiting >= t.most {
				continue
			}
			if !t.order.Lets(m.nextTurn()) {
				if first == nil || t.order.Before(m.nextTurn(), first.nextTurn()) {
					first = m
				}
				continue
			}
			if err := t.give(m); err != nil {
				return err
			}
			began = t.order != nil
		}
		if first != nil && t.begun && t.running == t.waiting && !t.awaited() { // what was recorded before it does not come: the plan has changed
			if err := t.give(first); err != nil {
				return err
			}
			began = true
		}
	}
	if t.begun && t.running == t.waiting && t.heard() && !t.awaited() {
		if err := t.grant(true); err != nil {
			return err
		}
	}
	if err := t.tellHeld(); err != nil {
		return err
	}
	return t.settlePause(t.running - t.waiting)
}

// give gives somebody a turn.
func (t *team) give(m *member) error {
	turn := m.nextTurn()
	t.order.Began(turn)
	if m.attempt == 0 {
		m.turns++
	}
	m.attempt++
	m.busy, m.turn, m.began = true, turn, t.seen
	t.running++
	return t.fx.Go(Call{ID: turn, Kind: KindTurn, Task: m.name, Agent: m.name, Iteration: m.turns, Attempt: m.attempt, Ref: m.ref,
		Answered: t.wishes.dealt, Since: t.seen})
}

// nextTurn is the id of the turn that it would begin now.
func (m *member) nextTurn() string {
	if m.attempt == 0 {
		return swarm.TurnID(m.name, m.turns+1, 1)
	}
	return swarm.TurnID(m.name, m.turns, m.attempt+1)
}

func (t *team) wants(m *member) bool { return m.mail > m.read && !m.ended }

// over says whether the run is through. When everybody is idle nothing but a reminder can bring a reply that is still wanted.
func (t *team) over() (bool, error) {
	if t.running > 0 || !t.begun || !t.heard() {
		return false, nil
	}
	if t.stop != "" || t.done {
		return true, nil
	}
	if !t.pausing.IsZero() || t.wishing() {
		return false, nil
	}
	for i := range t.members {
		if t.wants(&t.members[i]) {
			return false, nil
		}
	}
	switch {
	case t.order.Through(): // nobody says anything more in a replay that is through
		return true, nil
	case t.rules.Mode == swarm.InteractiveMode && (!t.replay || len(t.asks) == 0):
		return false, nil
	case len(t.asks) == 0:
		return true, nil
	}
	for _, a := range t.asks {
		if _, member := t.at[a.To]; !member && !t.replay || t.holds(a.To) {
			return false, nil // a person is asked, or somebody whom a person holds, and has the time that there is
		}
	}
	for i := range t.asks {
		if t.asks[i].reminded {
			continue
		}
		if err := t.remind(&t.asks[i]); err != nil || !t.heard() {
			return false, err
		}
	}
	for len(t.asks) > 0 {
		if err := t.giveUp(0); err != nil {
			return false, err
		}
	}
	return t.over()
}

// heard says whether all has come by that the run itself wrote to somebody who has a turn for it.
func (t *team) heard() bool { return t.seen >= t.owed }

// write has something written in the name of the run.
func (t *team) write(c Call) (Result, error) {
	r, err := t.fx.Do(c)
	t.owed = max(t.owed, r.Wrote)
	return r, err
}

// take acts on one record.
func (t *team) take(s Signal) error {
	switch s.Kind {
	case SignalOwned:
		t.begun = true
		for i := range t.members { // who waited begins its turn again, and has not asked for anything yet
			t.rest(&t.members[i], false)
		}
	case SignalWaits, SignalGoes:
		return t.waits(s.ID, s.Kind == SignalWaits)
	case SignalMail:
		t.hear(s.Mail, s.Seq)
		if err := t.passed(s.Mail); err != nil {
			return err
		}
	case SignalEnd:
		return t.turnEnded(s)
	case SignalGrow:
		_, err := t.add("plan/"+strconv.FormatInt(s.Seq, 10), s.Ref)
		return err
	case SignalAsked:
		t.wished(s.ID)
	case SignalAnswered:
		return t.answered(s)
	case SignalKind(swarm.WordPause), SignalKind(swarm.WordResume):
		on := s.Kind == SignalKind(swarm.WordPause)
		if s.ID != "" {
			return t.hold(s.ID, on, s.Seq)
		}
		_, by, err := t.pause(on, s.Seq)
		t.delayTimers(by)
		return err
	case SignalKind(swarm.WordStart):
		return t.start(s.ID)
	case SignalKind(swarm.WordReset):
		t.reset(s.ID)
	case SignalKind(swarm.WordCancel):
		return t.cancel(s.ID)
	case SignalKind(swarm.WordClose):
		t.done = true
	}
	return t.clock()
}

// hear notes an envelope: who has to have a turn for it, whether it wants a reply, and which it is the reply to.
func (t *team) hear(m Mail, seq int64) {
	if i, ok := t.at[m.To]; ok && m.Wakes {
		t.members[i].mail = seq
	}
	i, member := t.at[m.From]
	if member || m.Answers != "" {
		began := int64(0)
		if member {
			began = t.members[i].began
		}
		kept := t.asks[:0]
		for _, a := range t.asks {
			if a.ID != m.Answers && (a.To != m.From || a.ReplyTo != m.To || a.seq > began) { // what came after its turn began, it had not read
				kept = append(kept, a)
			}
		}
		t.asks = kept
	}
	if m.Required {
		t.asks = append(t.asks, ask{Mail: m, seq: seq, since: t.fx.Now()})
	}
}

// clock does what its time has come for.
func (t *team) clock() error {
	now := t.fx.Now()
	if t.wallOver() {
		t.stop = swarm.OverBudget
		if err := t.spent("the run's wall time is over"); err != nil {
			return err
		}
	}
	if !t.pausing.IsZero() {
		return nil
	}
	for i := range t.members {
		if m := &t.members[i]; !m.due.IsZero() && !now.Before(m.due) {
			m.due = time.Time{}
		}
	}
	for i := len(t.asks) - 1; i >= 0; i-- {
		a := &t.asks[i]
		switch {
		case t.untimed(a.To):
		case !now.Before(a.since.Add(t.rules.ReplyTimeout)):
			if err := t.giveUp(i); err != nil {
				return err
			}
		case !a.reminded && !now.Before(a.since.Add(t.rules.ReplyTimeout/2)):
			if err := t.remind(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// remind tells the receiver that its reply is still wanted, once.
func (t *team) remind(a *ask) error {
	a.reminded = true
	err := t.fx.Tell(Fact{Kind: swarm.ReplyOverdue, Key: "overdue:" + a.ID, Agent: a.To, Body: swarm.Overdue{ID: a.ID}})
	if _, member := t.at[a.To]; err != nil || !member {
		return err
	}
	_, err = t.write(Call{ID: "remind/" + a.ID, Kind: KindRemind, Agent: a.To, Ref: a.ID})
	return err
}

// giveUp waits no longer for a reply, and tells who wanted it.
func (t *team) giveUp(i int) error {
	a := t.asks[i]
	t.asks = append(t.asks[:i:i], t.asks[i+1:]...)
	err := t.fx.Tell(Fact{Kind: swarm.ReplyOverdue, Key: "overdue:" + a.ID + "/over", Agent: a.To, Body: swarm.Overdue{ID: a.ID, Over: true}})
	if n, member := t.at[a.From]; err != nil || !member || t.members[n].ended {
		return err
	}
	_, err = t.write(Call{ID: "giveup/" + a.ID, Kind: KindGiveUp, Agent: a.From, Ref: a.ID})
	return err
}

// untimed says of whom a reply is never overdue by the clock: of who is paused; and of nobody in a replay, which knows what came.
func (t *team) untimed(agent string) bool {
	return t.rules.ReplyTimeout <= 0 || t.replay || t.holds(agent)
}

// patience is how long to wait for the next record before the clock has something to do.
func (t *team) patience() time.Duration {
	var due time.Time
	for i := range t.members {
		due = earlier(due, t.members[i].due)
	}
	for _, a := range t.asks {
		switch {
		case t.untimed(a.To):
		case a.reminded:
			due = earlier(due, a.since.Add(t.rules.ReplyTimeout))
		default:
			due = earlier(due, a.since.Add(t.rules.ReplyTimeout/2))
		}
	}
	return t.until(due)
}

func (t *team) delayTimers(by time.Duration) {
	for i := range t.members {
		if m := &t.members[i]; !m.due.IsZero() {
			m.due = m.due.Add(by)
		}
		if m := &t.members[i]; !m.held.IsZero() { // what is put off now is not put off once more when it is resumed
			m.held = earlier(m.held.Add(by), t.fx.Now())
		}
	}
	for i := range t.asks {
		t.asks[i].since = t.asks[i].since.Add(by)
	}
}
