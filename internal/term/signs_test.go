package term

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// The legend in the documentation is this table, and a sign takes one column.
func TestSignsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/runs.md")
	if err != nil {
		t.Fatal(err)
	}
	legend := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "`"); len(cells) >= 5 && strings.HasPrefix(line, "| `") {
			legend[cells[1]] = cells[3]
		}
	}
	for status := range statusLooks {
		sign := Sign(status)
		if ansi.StringWidth(sign) != 1 {
			t.Errorf("%s takes %d columns", sign, ansi.StringWidth(sign))
		}
		if !strings.Contains(" "+legend[sign]+" ", " "+string(status)+" ") {
			t.Errorf("docs/runs.md says that %s is %q, and it is %s", sign, legend[sign], status)
		}
	}
}
