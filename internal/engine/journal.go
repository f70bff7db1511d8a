package engine

import (
	"time"

	"swarm"
	"swarm/internal/flow"
)

// A Journal is what an engine must know of one loop to give it the records of its log in their order
// and to make each of its calls once. It does no I/O: the engine reads the records. It belongs to the
// loop's goroutine.
type Journal struct {
	loop   flow.Call
	in     []swarm.Event          // records that were read, and not yet given to the loop
	loaded int64                  // the last record that was in the log when the loop was begun or resumed
	owners int                    // number of owners among them
	owned  int64                  // the last change of owner among them; 0 = there is none
	given  int64                  // the last record given
	now    time.Time              // the time of that record
	ended  map[string]flow.Result // ends by call, as the log had them when the loop was resumed
	known  map[string]bool        // facts by key, as the log had them then
	asked  map[string]*open       // calls whose end was not given yet
}

// An open call is one that the loop has made, and whose end it was not given yet.
type open struct {
	call    flow.Call // as first made, with the newest Timeout
	started bool      // since the loop was begun or resumed
}

// NewJournal returns the journal of a loop whose run began at a time.
func NewJournal(loop flow.Call, began time.Time) *Journal {
	return &Journal{loop: loop, now: began, ended: map[string]flow.Result{}, known: map[string]bool{}, asked: map[string]*open{}}
}

// Load adds records that the log had when the loop was begun or resumed. It is called before the
// loop begins, with one page after the other.
func (j *Journal) Load(events []swarm.Event) error {
	for _, e := range events {
		j.loaded = e.Seq
		s, ok, err := Signal(e)
		switch {
		case err != nil:
			return err
		case !ok:
			j.known[e.Key] = true
			continue
		case ends(s):
			j.ended[s.Result.ID] = s.Result
		case e.Kind == swarm.RunOwned:
			if j.owners++; j.owners > 1 {
				j.owned = e.Seq
			}
		case e.Kind == swarm.ApprovalAsked: // an agent's approval, or the loop's own
			j.known[e.Key] = true
		}
		j.in = append(j.in, e)
	}
	return nil
}

// Add adds newer records.
func (j *Journal) Add(events []swarm.Event) { j.in = append(j.in, events...) }

// Before returns the result of a call that the log had when the loop was resumed. A different call
// under the same id means that the loop is not the one that wrote the log.
func (j *Journal) Before(c flow.Call) (flow.Result, bool, error) {
	r, ok := j.ended[c.ID]
	if ok && r.Call != c.Print() {
		return r, ok, swarm.Errorf(swarm.Storage, "the log has %q under %s, and the loop asks for %q: the run was made by another version of the program",
			r.Call, c.ID, c.Print())
	}
	return r, ok, nil
}

// Issue adds the facts to a call that only the engine knows. Again says that an earlier owner may
// have made the call. It can have done so only if its loop was given the same events. So a call
// that follows from a newer event is made for the first time. So is every call of a run's first
// owner, whose fence is 1.
func (j *Journal) Issue(c flow.Call) flow.Call {
	c.Fence = j.loop.Fence
	c.Again = c.Fence > 1 && j.given <= j.loaded
	return c
}

// Start notes that the loop makes a long call, and says whether the engine has to start it. A call
// that the loop makes again after a change of owner starts once, after the last one.
func (j *Journal) Start(c flow.Call) (call flow.Call, start bool, err error) {
	o := j.asked[c.ID]
	if o == nil {
		o = &open{call: j.Issue(c)}
		j.asked[c.ID] = o
	}
	o.call.Timeout = c.Timeout
	if _, ok, err := j.Before(o.call); ok || err != nil {
		return c, false, err
	}
	if o.started || o.call.Reissued && j.given < j.owned {
		return c, false, nil
	}
	o.started = true
	return o.call, true, nil
}

// Told reports whether a fact was in the log when the loop was resumed. A resumed loop decides such
// facts again. They are not written again.
func (j *Journal) Told(f flow.Fact) bool {
	told := j.known[f.Key]
	delete(j.known, f.Key)
	return told
}

// Next returns the next record for the loop; ok is false if more have to be read.
func (j *Journal) Next() (s flow.Signal, ok bool, err error) {
	for len(j.in) > 0 {
		e := j.in[0]
		j.in = j.in[1:]
		s, ok, err := Signal(e)
		if err != nil {
			return s, false, err
		}
		if !ok || e.Kind == swarm.CallEnded { // The result of a short call was given by Do.
			continue
		}
		if id := s.Result.ID; ends(s) && j.asked[id] != nil {
			delete(j.asked, id)
			delete(j.ended, id)
		} else if ends(s) {
			return s, false, swarm.Errorf(swarm.Storage, "the log has the end of %s, for which the loop never asked: the run was made by another version of the program", id)
		}
		j.given, j.now = e.Seq, e.Time
		return s, true, nil
	}
	return s, false, nil
}

// Open returns how many calls have no end that the loop was given.
func (j *Journal) Open() int { return len(j.asked) }

// Given returns the number of the last record that the loop was given, and whether it came after
// those that the log had when the loop was begun or resumed.
func (j *Journal) Given() (seq int64, later bool) { return j.given, j.given > j.loaded }

// Now returns the time of the last record given. A resumed loop so sees the same times.
func (j *Journal) Now() time.Time { return j.now }

// End makes the event by which a loop ends. All facts that it has told go before it.
func (j *Journal) End(parent string, r flow.Result) swarm.Event {
	end := r.CallEnd
	end.ID, end.Call = j.loop.ID, j.loop.Print()
	e := swarm.Event{Kind: swarm.LoopEnded, Key: swarm.EndKey(j.loop.ID), Agent: j.loop.Agent, Data: swarm.Encode(end)}
	if parent != "" {
		e.To = swarm.ToLoop(parent)
	}
	return e
}

// ends reports whether a signal is the end of a call.
func ends(s flow.Signal) bool {
	_, is := s.Body.(swarm.CallEnd)
	return is
}
