package run

import (
	"cmp"
	"slices"

	"swarm"
)

// firstCarriedOver is the number of the first carried over event in the log of the new run. The
// run's start and its plan come before it.
const firstCarriedOver = 3

// A carriedOver collects what a retried run takes over from the old one: the ends of the turns that
// are not done again, and their effects.
type carriedOver struct {
	ends   []swarm.Event
	turns  map[swarm.TurnID]bool // the turns that are carried over
	stored []swarm.Event         // mail, artifacts, topic entries
	used   []swarm.Event         // which mail was consumed
	// collected is what workers delivered at desks, by turn: those that depend on them get it again.
	collected map[swarm.TurnID]swarm.Event

	out    []swarm.Event                 // the events in the order of the new log
	inputs map[swarm.TurnID]swarm.Inputs // by turn: the mail that it had consumed, by its new numbers
}

// collectCarriedOver reads the log of the run that is retried or forked, up to an event. keeps says of
// the end of a turn whether it is carried over.
func collectCarriedOver(log swarm.RunLog, keeps func(end *swarm.Event) bool, before int64) (*carriedOver, error) {
	k := &carriedOver{turns: map[swarm.TurnID]bool{}, inputs: map[swarm.TurnID]swarm.Inputs{}, collected: map[swarm.TurnID]swarm.Event{}}
	for e, err := range swarm.Events(log, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq >= before {
			break
		}
		switch e.Kind {
		case swarm.HandoffStored, swarm.ArtifactStored, swarm.TopicPublished:
			k.stored = append(k.stored, *e)
		case swarm.DeskCollected:
			k.collected[e.Turn] = *e
		case swarm.HandoffConsumed:
			k.used = append(k.used, *e)
		case swarm.TurnEnded:
			end, err := swarm.Body[swarm.CallEnd](e)
			if err != nil {
				return nil, err
			}
			if end.Output != "" && keeps(e) {
				k.ends, k.turns[e.Turn] = append(k.ends, *e), true
			}
		}
	}
	stays := func(e swarm.Event) bool { return k.turns[e.Turn] || e.Turn == "" && e.Agent == swarm.User }
	k.used = slices.DeleteFunc(k.used, func(e swarm.Event) bool { return !stays(e) })
	// Any carried over text may name an artifact, so all artifacts are carried over.
	k.stored = slices.DeleteFunc(k.stored, func(e swarm.Event) bool { return e.Kind != swarm.ArtifactStored && !stays(e) })
	return k, nil
}

// arrange puts the events into the order of the new log.
//
// An inbox is read from its beginning in the new run, too. Mail that carried over turns have read
// therefore comes before unread mail, even if that was older: its reader is done again.
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
		if delivered, ok := c.collected[e.Turn]; ok {
			c.add(delivered)
		}
	}
	return nil
}

// add appends an event and returns its number in the new log.
func (c *carriedOver) add(e swarm.Event) int64 {
	c.out = append(c.out, swarm.Event{Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, To: e.To, Key: e.Key, Data: e.Data})
	return firstCarriedOver + int64(len(c.out)) - 1
}

// readers say which turn has read which mail, by receiver and in order.
type readers map[string][]reading

type reading struct {
	swarm.Inputs
	used int // index into carriedOver.used
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

// of returns the index in carriedOver.used of the turn that has read an envelope; -1 = none.
func (r readers) of(e swarm.Event) int {
	box := r[e.To]
	i, _ := slices.BinarySearchFunc(box, e.Seq, func(r reading, seq int64) int { return cmp.Compare(r.Upto, seq) })
	if i == len(box) || e.Seq <= box[i].From {
		return -1
	}
	return box[i].used
}
