package secret

// The search is the algorithm of Wu and Manber. A window as long as the shortest needle moves over
// the text. The last two bytes in the window tell how far it may move.

func pair(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }

func (r *Redactor) index() {
	r.chains = map[uint16][]int32{}
	for i := range r.skip {
		r.skip[i] = minLength - 1
	}
	for i, n := range r.needles {
		r.longest = max(r.longest, len(n.text))
		for end := 1; end < minLength; end++ {
			p := pair(n.text[end-1], n.text[end])
			r.skip[p] = min(r.skip[p], uint8(minLength-1-end))
			if end == minLength-1 {
				r.chains[p] = append(r.chains[p], int32(i))
			}
		}
		r.starts[n.text[0]] = append(r.starts[n.text[0]], int32(i))
	}
}

// A match is a stretch of a text that secrets cover. No match has the mark "".
type match struct {
	start, end int
	mark       string
}

// longestMatch bounds a match, so that a text in which secrets overlap without end can still be
// streamed.
const longestMatch = 1 << 16

// find returns the first match at or after a place: the longest needle there, and all needles that
// overlap it.
func (r *Redactor) find(s string, at int) (m match) {
	for end := at + minLength - 1; end < len(s); end++ {
		p := pair(s[end-1], s[end])
		if n := r.skip[p]; n > 0 {
			end += int(n) - 1
			continue
		}
		start := end - (minLength - 1)
		if m.mark != "" && (start >= m.end || m.end-m.start > longestMatch) {
			break
		}
		for _, i := range r.chains[p] {
			n := r.needles[i].text
			if len(n) <= len(s)-start && s[start:start+len(n)] == n {
				if m.mark == "" {
					m.start, m.mark = start, r.needles[i].mark
				}
				m.end = max(m.end, start+len(n))
				break
			}
		}
	}
	return m
}

// undecided returns the place from which the rest of s may be the beginning of a needle.
func (r *Redactor) undecided(s string) int {
	for at := max(0, len(s)-r.longest+1); at < len(s); at++ {
		for _, i := range r.starts[s[at]] {
			n := r.needles[i].text
			if len(s)-at < len(n) && n[:len(s)-at] == s[at:] {
				return at
			}
		}
	}
	return len(s)
}
