package secret

import (
	"strings"
)

// Ellipsis marks the places in a text where a part of it was cut away.
const Ellipsis = "…"

// minRest is the length of the shortest piece of a value that is removed at a cut. A shorter piece
// reveals nothing, and occurs in ordinary text.
const minRest = 4

// Cut removes secrets from a text that was shortened before it was redacted. At each [Ellipsis] it
// also removes the part of a secret that the cut has left.
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
		// A whole secret that overlaps the edge must be removed whole.
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

// minTail is the length of the shortest end of a secret with a known [Beginning] that is removed at
// a cut. Of a shorter end too much is missing to guess.
const minTail = 24

// remains returns how many bytes at the beginning of s are the end of a needle.
func (r *Redactor) remains(s string) (most int) {
	for _, n := range r.needles {
		if n.more > 0 && most == 0 { // any letters and digits may be its end
			tail := 0
			for tail < min(len(s), n.more) && isTokenByte(s[tail]) {
				tail++
			}
			if tail >= minTail {
				most = tail
			}
		}
		for length := min(len(n.text)-1, len(s)); length >= max(minRest, most+1); length-- {
			if strings.HasPrefix(s, n.text[len(n.text)-length:]) {
				most = length
			}
		}
	}
	return most
}
