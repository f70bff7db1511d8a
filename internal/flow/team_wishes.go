package flow

import "swarm"

// Wishes are what agents ask of the run: another agent, another edge. Who has one goes on without it. The run stays open until somebody
// has answered; then the answer is done, once, and its agent is told of it by mail.
type wishes struct {
	open     map[string]bool // asked, and not answered
	answered []Signal        // and not dealt with: in a replay each has its place among the turns
	dealt    int             // how many were dealt with
}

// wished notes that an agent has a wish.
func (t *team) wished(id string) {
	if t.wishes.open == nil {
		t.wishes.open = map[string]bool{}
	}
	t.wishes.open[id] = true
}

// answered notes that a person has answered a wish. Other answers are for turns that wait for them.
func (t *team) answered(s Signal) error {
	if !t.wishes.open[s.ID] {
		return nil
	}
	delete(t.wishes.open, s.ID)
	t.wishes.answered = append(t.wishes.answered, s)
	return t.grant(false)
}

// grant deals with the answers that are there and may be dealt with now; when nothing else can happen any more, with the first of them
// anyway. The mail that tells of it is on its way then, and the run does not end before it was heard.
func (t *team) grant(anyway bool) error {
	for i := 0; i < len(t.wishes.answered); {
		s := t.wishes.answered[i]
		if place := swarm.AnswerPlace(s.ID); t.order.Lets(place) || anyway {
			t.order.Began(place)
		} else {
			i++
			continue
		}
		t.wishes.answered = append(t.wishes.answered[:i:i], t.wishes.answered[i+1:]...)
		t.wishes.dealt++
		if _, err := t.write(Call{ID: "grant/" + s.ID, Kind: KindGrant, Agent: s.Agent, Ref: s.ID}); err != nil {
			return err
		}
		if i, ok := t.at[s.Agent]; ok && t.members[i].ended { // it reads nothing any more
			r, err := t.write(Call{ID: "return/" + s.ID, Kind: KindReturn, Agent: s.Agent, Ref: "it has ended"})
			if err != nil {
				return err
			}
			t.members[i].gone = max(t.members[i].gone, r.Seq) // nor when it is started again
		}
		anyway, i = false, 0 // it may be what another one has waited for
	}
	return nil
}

// wishing says whether a wish is still to be dealt with.
func (t *team) wishing() bool { return len(t.wishes.open)+len(t.wishes.answered) > 0 }

// awaited says whether, in a replay, an answer is still to come that was recorded: whoever began after it has to wait for it.
func (t *team) awaited() bool {
	for id := range t.wishes.open {
		if t.order.Has(swarm.AnswerPlace(id)) {
			return true
		}
	}
	return false
}
