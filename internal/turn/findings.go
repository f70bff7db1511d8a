package turn

import (
	"context"
	"strconv"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/mail"
)

// sameCalls is how often in a row an agent does the same, with the same result, before it is told so while it still works.
const sameCalls = 10

// A callRepetition is what an agent does by its tools, as far as it repeats itself. What brings something new each time is none, although the
// words are the same: who looks again and again whether something has come waits for it.
type callRepetition struct {
	what    string // the newest call and its result
	shown   string // the same, to be read
	times   int    // in a row
	longest int
	most    swarm.Finding // the longest row
	others  bool          // it has done something else, too
}

// add notes a call, and says how often in a row it was made.
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

// shown is a call in one line.
func shown(u swarm.ToolUse) string {
	return excerpt.Head(excerpt.OneLine(u.Name+" "+string(u.Input)), 200)
}

// nudge tells the agent of a turn that it does the same again and again, while it does it.
func (e *eventRecorder) nudge(u swarm.ToolUse) {
	if e.work.repetition.add(u) != sameCalls || e.work.handle == nil || e.work.plan.Team == nil {
		return
	}
	text := "You have made the same call " + strconv.Itoa(sameCalls) + " times in a row, with the same result: " + shown(u) +
		"\nDo something else, or say what keeps you from it."
	// What the log does not take now, it does not take at the turn's end either.
	_ = e.work.handle.Nudge(context.Background(), string(e.work.turn)+"/"+e.work.repetition.what, text)
}

// findings are what is strange about a turn of a team that has gone well.
func (r *Runner) findings(w *work, output []byte) (all []swarm.Finding, err error) {
	if r.AgentAPI == nil || w.plan.Team == nil {
		return nil, nil
	}
	if w.repetition.longest >= sameCalls || w.repetition.longest > 0 && !w.repetition.others {
		all = append(all, w.repetition.most)
	}
	others, err := r.AgentAPI.Others(w.c.Agent)
	if err != nil {
		return nil, err
	}
	claims := mail.Claims(string(output), others)
	if len(claims) == 0 {
		return all, nil
	}
	// What it did in its last turn it may still tell of in this one.
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
