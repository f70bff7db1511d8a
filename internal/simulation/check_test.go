package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/engine/replay"
	"swarm/internal/flow"
	"swarm/internal/mail"
	"swarm/internal/recording"
	"swarm/internal/view"
)

// check compares the log with the ledger.
func (w *world) check() {
	w.checkAcks()
	w.checkCalls()
	w.checkMail()
	w.checkReading()
	w.checkEdges()
	w.checkApprovals()
	w.checkWaits()
	w.checkBudget()
	w.checkEnd()
	w.checkReplay()
}

// checkAcks: nothing that was acknowledged is lost.
func (w *world) checkAcks() {
	for _, a := range w.acks {
		if a.seq < 1 || a.seq > int64(len(w.disk.events)) {
			w.fail("%s was told that event %d is stored, and the log has %d", a.who, a.seq, len(w.disk.events))
			continue
		}
		if err := a.want(w.disk.events[a.seq-1]); err != nil {
			w.fail("%s was told that event %d is stored: %v", a.who, a.seq, err)
		}
	}
	for i, e := range w.disk.events {
		if e.Seq != int64(i+1) {
			w.fail("event %d has the number %d", i+1, e.Seq)
		}
	}
}

// each calls f with the body of every event of a kind.
func each[T any](w *world, kind swarm.EventKind, f func(*swarm.Event, T)) {
	for i := range w.disk.events {
		if e := &w.disk.events[i]; e.Kind == kind {
			body, err := swarm.Body[T](e)
			if err != nil {
				w.fail("event %d: %v", e.Seq, err)
			}
			f(e, body)
		}
	}
}

// checkCalls: an agent is called after its turn's start is on disk, never after the turn's end, always
// with the same prompt, not twice at once by one process, and not by more turns at once than the plan
// allows.
func (w *world) checkCalls() {
	starts, ends := map[swarm.TurnID][]time.Time{}, map[swarm.TurnID]time.Time{}
	each(w, swarm.TurnStarted, func(e *swarm.Event, s swarm.TurnStart) { starts[e.Turn] = append(starts[e.Turn], e.Time) })
	each(w, swarm.TurnEnded, func(e *swarm.Event, end swarm.CallEnd) {
		if !ends[e.Turn].IsZero() {
			w.fail("%s has two ends", e.Turn)
		}
		ends[e.Turn] = e.Time
		if len(starts[e.Turn]) == 0 && !end.Unbegun {
			w.fail("%s has an end and no start", e.Turn)
		}
	})
	made := map[swarm.TurnID]int{}
	for i, c := range w.calls {
		n := made[c.turn]
		if first := w.calls[slices.IndexFunc(w.calls, func(d *call) bool { return d.turn == c.turn })]; !strings.HasPrefix(c.prompt, first.prompt) {
			w.fail("call %d of %s has another prompt than the first:\n%s\nand\n%s", n+1, c.turn, c.prompt, first.prompt)
		}
		made[c.turn]++
		if n >= len(starts[c.turn]) || starts[c.turn][n].After(c.began) {
			w.fail("call %d of %s has no start on disk before it", n+1, c.turn)
		}
		if end := ends[c.turn]; !end.IsZero() && c.began.Truncate(time.Microsecond).After(end) {
			w.fail("%s was called at %v, after its end at %v", c.turn, c.began, end)
		}
		parallel := 1
		for _, d := range w.calls[:i] {
			if d.process != c.process || !d.ended.IsZero() && !d.ended.After(c.began) {
				continue
			}
			if !d.waited(c.began) { // an agent that waits for others gives its place to another
				parallel++
			}
			if d.agent == c.agent {
				w.fail("%s has the turns %s and %s at once", c.agent, d.turn, c.turn)
			}
		}
		if most := w.plan.MaxParallel; most > 0 && parallel > most {
			w.fail("%d turns ran at once, and %d are allowed: %s", parallel, most, c.turn)
		}
	}
}

// checkMail: an agent reads its mail in order, none of it twice and none of it never. The ranges of
// committed turns follow each other, and what a committed turn was shown is its range.
func (w *world) checkMail() {
	inbox := map[string][]*swarm.Event{}
	text, urgent := map[int64]string{}, map[int64]bool{}
	each(w, swarm.HandoffStored, func(e *swarm.Event, env swarm.StoredEnvelope) {
		inbox[env.ToNodeID] = append(inbox[env.ToNodeID], e)
		text[e.Seq] = env.ID
		urgent[e.Seq] = mail.Urgent(env.Envelope)
	})
	returned := map[string]bool{}
	each(w, swarm.HandoffReturned, func(_ *swarm.Event, r swarm.Return) { returned[r.ID] = true })
	cursor := map[string]int64{}
	each(w, swarm.HandoffConsumed, func(e *swarm.Event, c swarm.Consumption) {
		if c.From < cursor[e.Agent] {
			w.fail("%s consumes its mail from %d, and has read it up to %d", c.Turn, c.From, cursor[e.Agent])
		}
		for _, m := range inbox[e.Agent] { // what an agent left unread when it ended went back to the senders
			if m.Seq > cursor[e.Agent] && m.Seq <= c.From && !returned[text[m.Seq]] {
				w.fail("%s consumes its mail from %d, and no turn has read %d", c.Turn, c.From, m.Seq)
			}
		}
		cursor[e.Agent] = c.Upto
		want := map[bool][]string{} // urgent mail may come before the rest
		for _, m := range inbox[e.Agent] {
			if m.Seq > c.From && m.Seq <= c.Upto {
				want[urgent[m.Seq]] = append(want[urgent[m.Seq]], text[m.Seq])
			}
		}
		if c.Turn == "" {
			return
		}
		i := lastCall(w.calls, c.Turn)
		if i < 0 {
			w.fail("%s consumed mail, and its agent was never called", c.Turn)
			return
		}
		got := map[bool][]string{}
		for _, m := range w.calls[i].read {
			if at := slices.IndexFunc(inbox[e.Agent], func(in *swarm.Event) bool { return text[in.Seq] == m }); at >= 0 {
				first := urgent[inbox[e.Agent][at].Seq]
				got[first] = append(got[first], m)
			}
		}
		if !slices.Equal(got[true], want[true]) || !slices.Equal(got[false], want[false]) {
			w.fail("%s has read %v, and consumed %v", c.Turn, got, want)
		}
	})
}

// checkReading: no message is shown to two turns that ended well.
func (w *world) checkReading() {
	shown := map[string]swarm.TurnID{} // by agent and id
	each(w, swarm.TurnEnded, func(e *swarm.Event, end swarm.CallEnd) {
		i := lastCall(w.calls, e.Turn)
		if end.Status != swarm.CallOK || i < 0 {
			return
		}
		for _, id := range w.calls[i].read {
			if other := shown[e.Agent+" "+id]; other != "" {
				w.fail("%s and %s were both shown %s", other, e.Turn, id)
			}
			shown[e.Agent+" "+id] = e.Turn
		}
	})
}

func lastCall(calls []*call, turn swarm.TurnID) int {
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].turn == turn {
			return i
		}
	}
	return -1
}

// checkEdges: an agent writes along an edge or a dependency, to a person, or as the one answer to a message.
func (w *world) checkEdges() {
	may := map[[2]string]int{}
	const always = 1 << 30
	each(w, swarm.PlanAdded, func(_ *swarm.Event, p swarm.Plan) {
		for _, e := range p.Edges {
			may[[2]string{e.From, e.To}] = always
			if e.Both {
				may[[2]string{e.To, e.From}] = always
			}
		}
	})
	doer := map[string]string{}
	for _, t := range w.plan.Tasks {
		doer[t.Name] = t.Agent
		for _, d := range t.DependsOn {
			may[[2]string{doer[d.Task], t.Agent}] = always
		}
	}
	each(w, swarm.HandoffStored, func(e *swarm.Event, env swarm.StoredEnvelope) {
		from, to := env.FromNodeID, env.ToNodeID
		if from != swarm.User && from != swarm.Orchestrator && to != swarm.User {
			if may[[2]string{from, to}]--; may[[2]string{from, to}] < 0 {
				w.fail("event %d: %s writes to %s without an edge", e.Seq, from, to)
			}
		}
		if from == swarm.Orchestrator { // a reminder allows one more answer
			var reminder struct{ Reminder, ReplyTo string }
			if json.Unmarshal(env.Payload.Structured, &reminder) == nil && reminder.Reminder != "" {
				may[[2]string{to, reminder.ReplyTo}]++
			}
		}
		if r := env.Payload.Response; r != nil && r.Expectation != "none" {
			back := from
			if r.ReplyTo != "" {
				back = r.ReplyTo
			}
			may[[2]string{to, back}]++
		}
	})
}

// checkApprovals: a question has one answer at most, and an agent that was told yes has one.
func (w *world) checkApprovals() {
	answers := map[string]swarm.ApprovalAnswer{}
	each(w, swarm.ApprovalAnswered, func(e *swarm.Event, a swarm.ApprovalAnswer) {
		if _, twice := answers[a.ID]; twice {
			w.fail("%s was answered twice", a.ID)
		}
		answers[a.ID] = a
	})
	for _, id := range w.granted {
		if !answers[id].OK {
			w.fail("an agent was told yes to %s, and no person said so", id)
		}
	}
}

// checkWaits: every wait ends, or the turn in which it began does.
func (w *world) checkWaits() {
	open := map[swarm.TurnID]int64{}
	for _, e := range w.disk.events {
		switch e.Kind {
		case swarm.WaitBegan:
			open[e.Turn] = e.Seq
		case swarm.WaitEnded, swarm.TurnEnded:
			delete(open, e.Turn)
		}
	}
	for turn, seq := range open {
		w.fail("the wait of %s, event %d, never ends", turn, seq)
	}
}

// checkBudget: no call is made beyond the budget. Tokens may exceed it by the last answers of the
// turns that were running.
func (w *world) checkBudget() {
	b := w.plan.Budget
	if b.Calls > 0 && int64(len(w.calls)) > b.Calls {
		w.fail("%d calls were made, and the budget has %d", len(w.calls), b.Calls)
	}
	if b.Tokens > 0 {
		used := int64(0)
		for _, c := range w.calls {
			used += c.used
		}
		if used > b.Tokens {
			w.fail("%d tokens were used, and the budget has %d", used, b.Tokens)
		}
	}
}

// checkEnd: the run has one end, and a reader of the log sees a run that has ended, with nothing that
// still runs or waits.
func (w *world) checkEnd() {
	v := w.fold()
	p := v.Picture()
	if !p.Status.Ended() {
		w.fail("the run is %s: %s", p.Status, p.Reason)
	}
	for _, t := range p.Tasks {
		if w.plan.Team == nil && !t.Status.Ended() || t.Status == swarm.Running {
			w.fail("the run has ended, and %s is %s", t.Name, t.Status)
		}
	}
	if p.Status == swarm.Completed && w.plan.Team != nil && p.Report == "" {
		for agent, box := range p.Mail {
			if n := box.Unread(); n > 0 && agent != swarm.User {
				w.fail("the run is completed, and %s has %d unread messages", agent, n)
			}
		}
	}
}

// fold returns the view of the whole log.
func (w *world) fold() *view.Run {
	v := view.New(runID)
	for i := range w.disk.events {
		if err := v.Apply(&w.disk.events[i]); err != nil {
			w.fail("event %d: %v", i+1, err)
		}
	}
	return v
}

// checkView: what a follower shows is what a reader of the whole log sees.
func (w *world) checkView(live *view.Run) {
	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	if got, want := live.Marshal(), w.fold().Marshal(); !bytes.Equal(got, want) {
		w.fail("a follower shows\n%s\nand a reader of the log\n%s", got, want)
	}
}

// checkReplay: a replay of the run has the same events in the same order until its end, and calls no
// agent.
func (w *world) checkReplay() {
	var file bytes.Buffer
	err := recording.Write(&file, recording.Header{Run: runID}, w.disk.open())
	rec, err2 := recording.Read(&file, "recording")
	again := newDisk(w.seed)
	if err = errors.Join(err, err2); err == nil {
		err = w.begin(again.open())
	}
	if err != nil {
		w.fail("the run cannot be recorded: %v", err)
		return
	}
	h, calls := again.open(), len(w.calls)
	owner, _ := h.Own(context.Background(), flow.Version, lease)
	if _, err := w.runEngine(context.Background(), replay.Engine(rec), h, owner); err != nil {
		w.fail("the run cannot be replayed: %v", err)
	}
	h.Close()
	if len(w.calls) != calls {
		w.fail("the replay called %d agents", len(w.calls)-calls)
	}
	was, is := tell(w.disk.events), tell(again.events)
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			w.fail("the replay leaves the run at its event %d of %d:\n%s\nand the replay\n%s", i+1, len(was), strings.Join(was[max(0, i-3):min(len(was), i+3)], "\n"), strings.Join(is[max(0, i-3):min(len(is), i+3)], "\n"))
			return
		}
	}
}

// tell returns what happened in a run until it ended. Owners are left out, because a replay has another
// one.
func tell(events []swarm.Event) (lines []string) {
	for _, e := range events {
		if e.Kind != swarm.RunOwned {
			lines = append(lines, fmt.Sprint(e.Kind, " ", e.Agent, " ", e.Task, " ", e.Turn))
		}
		if e.Kind == swarm.RunEnded {
			break
		}
	}
	return lines
}
