package secret

import (
	"strings"
)

// Ellipsis is what stands in a text where something of it was cut away.
const Ellipsis = "…"

// minRest is the length of the shortest piece of a value that is taken away at a cut. A shorter one tells nothing, and stands in
// ordinary text.
const minRest = 4

// Cut is s without secrets, when s was cut before somebody who knows them could look: what a cut has left of one is taken away
// too. Cuts are where an [Ellipsis] stands.
func (r *Redactor) Cut(s string) string {
	if r.Empty() || !strings.Contains(s, Ellipsis) {
		return r.String(s)
	}
	pieces := strings.Split(s, Ellipsis)
	for i, piece := range pieces {
		from, to := 0, len(piece)
		if i > 0 {
			from = r.remains(piece)
		}
		if at := r.undecided(piece); i < len(pieces)-1 && len(piece)-at >= minRest {
			to = at
		}
		// What is whole and reaches over an edge must not be halved now.
		for m := r.find(piece, 0); m.mark != ""; m = r.find(piece, m.end) {
			if m.start < from {
				from = max(from, m.end)
			}
			if m.end > to {
				to = min(to, m.start)
			}
		}
		pieces[i] = piece[from:max(from, to)]
	}
	return r.String(strings.Join(pieces, Ellipsis))
}

// remains is how much of the beginning of s is the end of a needle.
func (r *Redactor) remains(s string) (most int) {
	for _, n := range r.needles {
		for length := min(len(n.text)-1, len(s)); length >= max(minRest, most+1); length-- {
			if strings.HasPrefix(s, n.text[len(n.text)-length:]) {
				most = length
			}
		}
	}
	return most
}
