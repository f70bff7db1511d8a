package flow

import (
	"strconv"
	"time"

	"swarm"
)

// A conduct is what every loop that is a whole run has: how far it has read, what was used, whether it is paused, when its time is
// over, and why it ends early.
type conduct struct {
	fx      Fx
	seen    int64 // the last record read
	usage   swarm.Usage
	wallEnd time.Time
	pausing time.Time       // since when no turn starts; zero = they do
	paused  bool            // and none runs
	stop    swarm.ErrorKind // why the run ends early, or ""
	replay  bool            // nothing outside is tried again: there is nothing to wait for before the next attempt
}

// next waits for the next record. While nobody drove the run its clocks stood: by is what is due later for that.
func (c *conduct) next(patience time.Duration) (s Signal, by time.Duration, err error) {
	before := c.fx.Now()
	if s, err = c.fx.Next(patience); err != nil {
		return s, 0, err
	}
	c.seen = max(c.seen, s.Seq)
	if s.Kind == SignalOwned && c.pausing.IsZero() {
		by = c.fx.Now().Sub(before)
		c.delay(by)
	}
	return s, by, nil
}

func (c *conduct) delay(by time.Duration) {
	if !c.wallEnd.IsZero() {
		c.wallEnd = c.wallEnd.Add(by)
	}
}

// pause stops the clocks, or lets them go on: what was due in ten seconds is due ten seconds after the run goes on, so by is what
// everything is put off. changed says whether anything is different now.
func (c *conduct) pause(on bool, seq int64) (changed bool, by time.Duration, err error) {
	at := strconv.FormatInt(seq, 10)
	switch {
	case on && c.pausing.IsZero():
		c.pausing, c.paused = c.fx.Now(), false
		return true, 0, c.fx.Tell(Fact{Kind: swarm.RunPausing, Key: "run_pausing:" + at})
	case !on && !c.pausing.IsZero():
		by = c.fx.Now().Sub(c.pausing)
		c.delay(by)
		c.pausing, c.paused = time.Time{}, false
		return true, by, c.fx.Tell(Fact{Kind: swarm.RunUnpaused, Key: "run_unpaused:" + at})
	}
	return false, 0, nil
}

// settlePause tells that the run is paused, when the last of its turns has ended.
func (c *conduct) settlePause(running int) error {
	if c.pausing.IsZero() || c.paused || running > 0 {
		return nil
	}
	c.paused = true
	return c.fx.Tell(Fact{Kind: swarm.RunPaused, Key: "run_paused:" + strconv.FormatInt(c.seen, 10)})
}

// wallOver says whether the run's time is over.
func (c *conduct) wallOver() bool {
	return c.stop == "" && c.pausing.IsZero() && !c.wallEnd.IsZero() && !c.fx.Now().Before(c.wallEnd)
}

// until is how long it is to the earliest of the times that are given and the end of the run's own; 0 = there is none, or the
// clocks stand.
func (c *conduct) until(due time.Time) time.Duration {
	if c.stop == "" {
		due = earlier(due, c.wallEnd)
	}
	if due.IsZero() || !c.pausing.IsZero() {
		return 0
	}
	return max(time.Millisecond, due.Sub(c.fx.Now()))
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// spent tells that the budget is used up, once.
func (c *conduct) spent(reason string) error {
	return c.fx.Tell(Fact{Kind: swarm.BudgetSpent, Key: string(swarm.BudgetSpent), Body: swarm.Reason{Reason: reason}})
}
