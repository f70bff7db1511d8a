package turn

import (
	"context"
	"strconv"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/mail"
)

// sameCalls is how many identical calls in a row, with the same result, make the runner warn the
// agent.
const sameCalls = 10

// A callRepetition counts identical tool calls in a row. The result is part of the comparison: an
// agent that polls and gets a new result each time does not repeat itself.
type callRepetition struct {
	what    string // hash of the newest call and its result
	shown   string // the newest call, for people
	times   int    // how often in a row
	longest int
	most    swarm.Finding // the longest row, as a finding
	others  bool          // the agent has made other calls, too
}

// add counts a call and returns how often in a row it was made.
func (c *callRepetition) add(u swarm.ToolUse) int {
	what := string(swarm.HashOf([]byte(u.Name + "\x00" + string(u.Input) + "\x00" + u.Output)))
	if what != c.what {
		c.others = c.others || c.what != ""
		c.what, c.times = what, 0
		c.shown = shown(u)
	}
	if c.times++; c.times > c.longest {
		c.longest = c.times
		c.most = swarm.Finding{Kind: swarm.SameAction, About: what, Times: c.times, Evidence: c.shown}
	}
	return c.times
}

// shown formats a call in one line.
func shown(u swarm.ToolUse) string {
	return excerpt.Head(excerpt.OneLine(u.Name+" "+string(u.Input)), 200)
}

// nudge warns an agent that repeats the same call, while its turn still runs.
func (e *eventRecorder) nudge(u swarm.ToolUse) {
	if e.work.repetition.add(u) != sameCalls || e.work.handle == nil || e.work.plan.Team == nil {
		return
	}
	text := "You have made the same call " + strconv.Itoa(sameCalls) + " times in a row, with the same result: " + shown(u) +
		"\nDo something else, or say what keeps you from it."
	// The error may be dropped: a log that refuses this event also refuses the turn's end.
	_ = e.work.handle.Nudge(context.Background(), string(e.work.turn)+"/"+e.work.repetition.what, text)
}

// findings reports suspicious behaviour in a successful turn of a team: repeated calls, and
// messages that the output claims but the agent never sent. The team loop decides what to do about
// it.
func (r *Runner) findings(w *work, output []byte) (all []swarm.Finding, err error) {
	if r.AgentAPI == nil || w.plan.Team == nil {
		return nil, nil
	}
	if w.repetition.longest >= sameCalls || w.repetition.longest > 0 && !w.repetition.others {
		all = append(all, w.repetition.most)
	}
	if !mail.MayClaim(string(output)) {
		return all, nil
	}
	others, err := r.AgentAPI.Others(w.c.Agent)
	if err != nil {
		return nil, err
	}
	claims := mail.Claims(string(output), others)
	if len(claims) == 0 {
		return all, nil
	}
	// The output may still tell of messages from the agent's last turn.
	turns := append(earlier(w.c), w.turn)
	for n := 1; w.c.Iteration > 1; n++ {
		before := swarm.NewTurnID(w.c.Task, w.c.Iteration-1, n)
		if _, ok, err := r.Log.Find(swarm.StartKey(before, 1)); err != nil {
			return nil, err
		} else if !ok {
			break
		}
		turns = append(turns, before)
	}
	wrote, err := r.AgentAPI.Wrote(turns...)
	if err != nil {
		return nil, err
	}
	for _, c := range claims {
		if !wrote[c.Agent] {
			all = append(all, swarm.Finding{Kind: swarm.Unsent, About: c.Agent, Evidence: c.Quote})
		}
	}
	return all, nil
}
