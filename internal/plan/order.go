package plan

// An Order has turns begin in the order in which they began in a recording. Each is let go when all that were recorded before it
// have begun.
//
// A replay needs it because a replayed turn waits, inside its agent's place, for the mail that the recorded one had found. Begun
// in another order, two turns could wait for each other. In this one they cannot: whatever a turn waited for, the end of another
// or its mail, stands before it in the recorded log and came of a turn that had begun by then. So of all that is still to happen, what
// was recorded first has nothing to wait for. This only holds if no limit keeps back what the recording had let go: a replay
// has none.
type Order struct {
	at    map[string]int // where each turn stands
	begun []bool
	next  int // the first that has not begun
}

// NewOrder is the order of some turns, by their ids; nil, which lets everything go, if there are none.
func NewOrder(turns []string) *Order {
	if len(turns) == 0 {
		return nil
	}
	o := &Order{at: make(map[string]int, len(turns)), begun: make([]bool, len(turns))}
	for i, id := range turns {
		o.at[id] = i
	}
	return o
}

// Lets says whether the turn may begin. One that was not recorded may: whoever replays it says what is wrong.
func (o *Order) Lets(turn string) bool {
	if o == nil {
		return true
	}
	at, ok := o.at[turn]
	return !ok || at <= o.next
}

// Has says whether something was recorded.
func (o *Order) Has(place string) bool {
	if o == nil {
		return false
	}
	_, ok := o.at[place]
	return ok
}

// Through says whether there was a recording, and all of it has begun.
func (o *Order) Through() bool { return o != nil && o.next == len(o.begun) }

// Began notes that a turn has begun, with or without leave.
func (o *Order) Began(turn string) {
	if o == nil {
		return
	}
	at, ok := o.at[turn]
	if !ok {
		return
	}
	o.begun[at] = true
	o.next = max(o.next, at) // those before it that have not begun keep nobody waiting any more
	for o.next < len(o.begun) && o.begun[o.next] {
		o.next++
	}
}

// Before says whether one recorded turn began before another.
func (o *Order) Before(one, other string) bool { return o.at[one] < o.at[other] }
