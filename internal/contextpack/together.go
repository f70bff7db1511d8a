package contextpack

import "swarm"

// A Given is a pack that came with an agent's mail.
type Given struct {
	Ref  string
	Pack Pack
	Lost bool         // it cannot be read; a prompt only refers to it
	Seen swarm.TurnID // the turn in which the agent's session got it; "" = new
}

// A Part is a part of a prompt with some packs.
type Part struct {
	Refs []string
	Seen swarm.TurnID // if the session has these packs: the turn in which it got the last of them
	Text string
}

// Together formats the packs of a turn, given in the order of its mail. New packs are merged into
// the last part. Packs that the session has already form a part before it, for a session that has
// to start anew. The new packs get room first. All parts together are no larger than one pack.
func Together(all []Given) (parts []Part) {
	var before, now []Given
	for _, g := range all {
		if g.Seen != "" {
			before = append(before, g)
		} else {
			now = append(now, g)
		}
	}
	room, told := int64(MaxTokens), Pack{}
	if len(before) > 0 {
		room -= frame / 4 // room for at least their refs
	}
	if len(now) > 0 {
		var part Part
		part, told = join(now, room, Pack{})
		room -= swarm.EstimateTokens(int64(len(part.Text)))
		parts = append(parts, part)
	}
	if len(before) > 0 {
		part, _ := join(before, room+frame/4, told)
		parts = append([]Part{part}, parts...)
	}
	return parts
}

// join merges as many packs as have room, without the content of elsewhere. It refers to the
// others.
func join(all []Given, tokens int64, elsewhere Pack) (Part, Pack) {
	var part Part
	var readable []Given
	var rest []string
	for _, g := range all {
		part.Refs = append(part.Refs, g.Ref)
		if g.Seen != "" {
			part.Seen = g.Seen
		}
		if g.Lost || len(readable) == maxExtends {
			rest = append(rest, g.Ref)
		} else {
			readable = append(readable, g)
		}
	}
	for n := len(readable); n > 0; n-- {
		packs := make([]Pack, n)
		for i, g := range readable[:n] {
			packs[i] = g.Pack
		}
		merged, left := Merge(packs...)
		fitted, more, err := Fit(merged.Without(elsewhere), tokens)
		if err == nil {
			part.Text = Write(part.Refs, fitted, append(left, more...), rest)
			return part, fitted
		}
		rest = append([]string{readable[n-1].Ref}, rest...)
	}
	part.Text = Write(part.Refs, Pack{}, nil, rest)
	return part, Pack{}
}
