package compose

import "regexp/syntax"

// maxRegexp limits a compiled regular expression: about 1 MB. RE2 itself takes up to 128 MB for one,
// so a small file could take gigabytes.
const maxRegexp = 10_000

// regexpSize estimates how many instructions and ranges of characters an expression is compiled to.
// Repetitions are written out by the compiler, so they multiply. A sum over maxRegexp is large
// enough, and is not counted to the end.
func regexpSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		if size += regexpSize(sub); size > maxRegexp {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return size
}
