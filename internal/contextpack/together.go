package contextpack

import "swarm"

// A Given is a pack that came with an agent's mail.
type Given struct {
	Ref  string
	Pack Pack
	Lost bool   // it cannot be read, and is only referred to
	Seen string // the turn in which the agent's session was given it; "" = it is new
}

// A Part is what stands in a prompt of some packs.
type Part struct {
	Refs []string
	Seen string // of packs that the agent's session has: the turn in which it was given the last of them
	Text string
}

// Together is what a turn is told that was given some packs, in the order of its mail: those that are new, merged, and before them
// those that its session has, for a session that has to begin anew. The new ones have room first. However many there are, all are
// together no larger than one pack.
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
		room -= frame / 4 // they are referred to at least
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

// join merges packs, as many of them as have room, without what is told elsewhere. The others are referred to.
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
