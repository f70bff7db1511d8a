package compose

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// TestTheSizeOfARegexpIsThatOfItsProgram: no expression within the limit becomes a large program.
func TestTheSizeOfARegexpIsThatOfItsProgram(t *testing.T) {
	for _, expr := range []string{
		"PASS", `^(ok|fail)\s+\d{1,3}$`, `.{1000}`, `[a-z]{1000}`, `(?i)(straße|maße){50}`, `((a{10}){10}){10}`, `\pL{8}`,
		`(x+x*x?){300}`, strings.Repeat("(a|b)", 1000), `\pL{1000}`, `\pL{0,1000}`, `\pL{900,}`, `(\pL\pN){30}`, `[[:^alpha:]\pL]{900}`,
	} {
		tree, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(tree.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		parts := 0
		for _, in := range prog.Inst {
			parts += 1 + len(in.Rune)/2
		}
		if size := regexpSize(tree); size <= maxRegexp && parts > 4*maxRegexp {
			t.Errorf("%.30s counts as %d, and has %d parts", expr, size, parts)
		}
	}
}
