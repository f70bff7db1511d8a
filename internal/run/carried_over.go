package run

import (
	"cmp"
	"slices"

	"swarm"
	"swarm/internal/plan"
)

// firstCarriedOver is the number of the first event that is kept in the log of the new run: before it stand how the run began and its plan.
const firstCarriedOver = 3

// A carriedOver collects what is kept of a run: the ends of the turns that are not done again, and what they did to their run.
type carriedOver struct {
	ends   []swarm.Event
	turns  map[swarm.TurnID]bool // turns
	stored []swarm.Event         // mail, artifacts, entries of topics
	used   []swarm.Event         // which mail was read

	out    []swarm.Event                 // as they stand in the new log
	inputs map[swarm.TurnID]swarm.Inputs // by turn: the mail that it had read, by its numbers there
}

// collectCarriedOver reads the log of the run that is tried again. redo is, by task, the iteration from which on it is done again.
func collectCarriedOver(log swarm.RunLog, redo map[string]int) (*carriedOver, error) {
	k := &carriedOver{turns: map[swarm.TurnID]bool{}, inputs: map[swarm.TurnID]swarm.Inputs{}}
	for e, err := range swarm.Events(log, 0) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case swarm.HandoffStored, swarm.ArtifactStored, swarm.TopicPublished:
			k.stored = append(k.stored, *e)
		case swarm.HandoffConsumed:
			k.used = append(k.used, *e)
		case swarm.TurnEnded:
			end, err := swarm.Body[swarm.CallEnd](e)
			if err != nil {
				return nil, err
			}
			task, iteration := plan.OfTurn(e.Turn)
			if again, ok := redo[task]; end.Output != "" && (!ok || iteration < again) {
				k.ends, k.turns[e.Turn] = append(k.ends, *e), true
			}
		}
	}
	stays := func(e swarm.Event) bool { return k.turns[e.Turn] || e.Turn == "" && e.Agent == swarm.User }
	k.used = slices.DeleteFunc(k.used, func(e swarm.Event) bool { return !stays(e) })
	// A ref may stand in any text that is kept, so every artifact is.
	k.stored = slices.DeleteFunc(k.stored, func(e swarm.Event) bool { return e.Kind != swarm.ArtifactStored && !stays(e) })
	return k, nil
}

// arrange writes what is kept in the order of the new log. An inbox is read from its beginning there too, so the mail that kept turns have
// read stands before the rest of it, which may have come earlier: who had read that is done again.
func (c *carriedOver) arrange() error {
	readers, err := c.readers()
	if err != nil {
		return err
	}
	upto := make([]int64, len(c.used))
	var unread []swarm.Event
	for _, e := range c.stored {
		reader := -1
		if e.Kind == swarm.HandoffStored {
			if reader = readers.of(e); reader < 0 {
				unread = append(unread, e)
				continue
			}
		}
		if seq := c.add(e); reader >= 0 {
			upto[reader] = seq
		}
	}
	cursor := map[string]int64{}
	for i, e := range c.used {
		if upto[i] == 0 {
			continue
		}
		in := swarm.Inputs{From: cursor[e.Agent], Upto: upto[i]}
		cursor[e.Agent], c.inputs[e.Turn] = in.Upto, in
		e.Key, e.Data = swarm.UsedKey(e.Agent, in.From), swarm.Encode(in)
		c.add(e)
	}
	for _, e := range unread {
		c.add(e)
	}
	for _, e := range c.ends {
		end, err := swarm.Body[swarm.CallEnd](&e)
		if err != nil {
			return err
		}
		end.Inputs = c.inputs[e.Turn]
		c.add(swarm.Event{Kind: swarm.TurnCarriedOver, Key: swarm.CarriedOverKey(e.Turn), Task: e.Task, Agent: e.Agent, Turn: e.Turn, Data: swarm.Encode(end)})
	}
	return nil
}

// add adds an event, and returns its number in the new log.
func (c *carriedOver) add(e swarm.Event) int64 {
	c.out = append(c.out, swarm.Event{Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, To: e.To, Key: e.Key, Data: e.Data})
	return firstCarriedOver + int64(len(c.out)) - 1
}

// readers are who has read which mail, by receiver and in order.
type readers map[string][]reading

type reading struct {
	swarm.Inputs
	used int // which of carriedOver.used
}

func (c *carriedOver) readers() (readers, error) {
	all := readers{}
	for i, e := range c.used {
		in, err := swarm.Body[swarm.Inputs](&e)
		if err != nil {
			return nil, err
		}
		to := swarm.ToAgent(e.Agent)
		all[to] = append(all[to], reading{in, i})
	}
	return all, nil
}

// of is which of carriedOver.used has read an envelope; -1 = none.
func (r readers) of(e swarm.Event) int {
	box := r[e.To]
	i, _ := slices.BinarySearchFunc(box, e.Seq, func(r reading, seq int64) int { return cmp.Compare(r.Upto, seq) })
	if i == len(box) || e.Seq <= box[i].From {
		return -1
	}
	return box[i].used
}
