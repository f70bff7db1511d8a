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
	open       bool // it goes on if more letters and digits follow
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
				if until, open := r.needles[i].end(s, start); until >= m.end {
					m.end, m.open = until, open
				}
				break
			}
		}
	}
	return m
}

// end returns where a needle that begins at start ends, and whether it would go on with more text.
func (n *needle) end(s string, start int) (end int, open bool) {
	end = start + len(n.text)
	most := end + n.more
	for end < len(s) && end < most && isTokenByte(s[end]) {
		end++
	}
	return end, end < most
}

// isTokenByte reports whether a byte may stand in a token, or in its base64 or hexadecimal.
func isTokenByte(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_'
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
