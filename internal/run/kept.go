package run

import (
	"cmp"
	"slices"

	"swarm"
	"swarm/internal/plan"
)

// firstKept is the number of the first event that is kept in the log of the new run: before it stand how the run began and its plan.
const firstKept = 3

// A keeper collects what is kept of a run: the ends of the turns that are not done again, and what they did to their run.
type keeper struct {
	ends   []swarm.Event
	kept   map[string]bool // turns
	things []swarm.Event   // mail, artifacts, entries of topics
	used   []swarm.Event   // which mail was read

	out    []swarm.Event           // as they stand in the new log
	inputs map[string]swarm.Inputs // by turn: the mail that it had read, by its numbers there
}

// collect reads the log of the run that is tried again. redo is, by task, the iteration from which on it is done again.
func collect(log swarm.RunLog, redo map[string]int) (*keeper, error) {
	k := &keeper{kept: map[string]bool{}, inputs: map[string]swarm.Inputs{}}
	for e, err := range Events(log) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case swarm.HandoffStored, swarm.ArtifactStored, swarm.TopicPublished:
			k.things = append(k.things, e)
		case swarm.HandoffConsumed:
			k.used = append(k.used, e)
		case swarm.TurnEnded:
			end, err := swarm.Body[swarm.CallEnd](&e)
			if err != nil {
				return nil, err
			}
			task, iteration := plan.OfTurn(e.Turn)
			if again, ok := redo[task]; end.Output != "" && (!ok || iteration < again) {
				k.ends, k.kept[e.Turn] = append(k.ends, e), true
			}
		}
	}
	stays := func(e swarm.Event) bool { return k.kept[e.Turn] || e.Turn == "" && e.Agent == swarm.User }
	k.used = slices.DeleteFunc(k.used, func(e swarm.Event) bool { return !stays(e) })
	// A ref may stand in any text that is kept, so every artifact is.
	k.things = slices.DeleteFunc(k.things, func(e swarm.Event) bool { return e.Kind != swarm.ArtifactStored && !stays(e) })
	return k, nil
}

// arrange writes what is kept in the order of the new log. An inbox is read from its beginning there too, so the mail that kept turns have
// read stands before the rest of it, which may have come earlier: who had read that is done again.
func (k *keeper) arrange() error {
	readers, err := k.readers()
	if err != nil {
		return err
	}
	upto := make([]int64, len(k.used))
	var unread []swarm.Event
	for _, e := range k.things {
		reader := -1
		if e.Kind == swarm.HandoffStored {
			if reader = readers.of(e); reader < 0 {
				unread = append(unread, e)
				continue
			}
		}
		if seq := k.add(e); reader >= 0 {
			upto[reader] = seq
		}
	}
	cursor := map[string]int64{}
	for i, e := range k.used {
		if upto[i] == 0 {
			continue
		}
		in := swarm.Inputs{From: cursor[e.Agent], Upto: upto[i]}
		cursor[e.Agent], k.inputs[e.Turn] = in.Upto, in
		e.Key, e.Data = swarm.UsedKey(e.Agent, in.From), swarm.Encode(in)
		k.add(e)
	}
	for _, e := range unread {
		k.add(e)
	}
	for _, e := range k.ends {
		end, err := swarm.Body[swarm.CallEnd](&e)
		if err != nil {
			return err
		}
		end.Inputs = k.inputs[e.Turn]
		k.add(swarm.Event{Kind: swarm.TurnCarriedOver, Key: swarm.CarriedOverKey(e.Turn), Task: e.Task, Agent: e.Agent, Turn: e.Turn, Data: swarm.Encode(end)})
	}
	return nil
}

// add adds an event, and returns its number in the new log.
func (k *keeper) add(e swarm.Event) int64 {
	k.out = append(k.out, swarm.Event{Kind: e.Kind, Agent: e.Agent, Task: e.Task, Turn: e.Turn, To: e.To, Key: e.Key, Data: e.Data})
	return firstKept + int64(len(k.out)) - 1
}

// readers are who has read which mail, by receiver and in order.
type readers map[string][]reading

type reading struct {
	swarm.Inputs
	used int // which of keeper.used
}

func (k *keeper) readers() (readers, error) {
	all := readers{}
	for i, e := range k.used {
		in, err := swarm.Body[swarm.Inputs](&e)
		if err != nil {
			return nil, err
		}
		to := swarm.ToAgent(e.Agent)
		all[to] = append(all[to], reading{in, i})
	}
	return all, nil
}

// of is which of keeper.used has read an envelope; -1 = none.
func (r readers) of(e swarm.Event) int {
	box := r[e.To]
	i, _ := slices.BinarySearchFunc(box, e.Seq, func(r reading, seq int64) int { return cmp.Compare(r.Upto, seq) })
	if i == len(box) || e.Seq <= box[i].From {
		return -1
	}
	return box[i].used
}
