package term

import (
	"io"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"swarm"
	"swarm/internal/view"
)

// A Table prints rows in columns that are as wide as their cells on a screen. Cells are made safe
// to print. A column without any text is left out, and the words of the column STATUS are coloured.
type Table struct {
	head  []string
	right map[int]bool
	cut   map[int]bool // the columns that may be cut
	rows  [][]string
}

// NewTable makes a table with these columns.
func NewTable(head ...string) *Table {
	return &Table{head: head, right: map[int]bool{}, cut: map[int]bool{}}
}

// Right aligns columns, counted from 0, to the right: numbers.
func (t *Table) Right(columns ...int) *Table {
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// Cut lets columns be cut where a line is too wide. Text that people copy must not be cut.
func (t *Table) Cut(columns ...int) *Table {
	for _, c := range columns {
		t.cut[c] = true
	}
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.head))
	for i, c := range cells[:min(len(cells), len(row))] {
		row[i] = OneLine(c)
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// A column that is cut keeps at least this width. The last column has sentences, the others have
// names. With less room, columns go to further lines.
const (
	minName     = 8
	minSentence = 16
)

// Print writes the table for a screen of this width; 0 means no limit.
func (t *Table) Print(w io.Writer, width int, color bool) error {
	_, err := io.WriteString(w, t.Format(width, color))
	return err
}

// Format makes the text of the table. Where a row is too wide, columns are cut; if that is not enough,
// the columns that have no room go to further lines of the row, which are indented.
func (t *Table) Format(width int, color bool) string {
	wide := t.widths()
	lines := t.layout(wide, width)
	p := Paint(color)
	var all strings.Builder
	t.write(&all, t.head, wide, lines, func(_ int, text string) string { return p.With(Dim, text) })
	for _, row := range t.rows {
		t.write(&all, row, wide, lines, func(c int, text string) string {
			if t.head[c] == "STATUS" {
				return p.Status(swarm.Status(text), text)
			}
			return text
		})
	}
	return all.String()
}

// widths returns the widths of the columns. A column without any text has none.
func (t *Table) widths() []int {
	wide := make([]int, len(t.head))
	for _, row := range t.rows {
		for c, cell := range row {
			wide[c] = max(wide[c], ansi.StringWidth(cell))
		}
	}
	for c := range wide {
		if wide[c] > 0 {
			wide[c] = max(wide[c], ansi.StringWidth(t.head[c]))
		}
	}
	return wide
}

// columnGap is the space between columns, and before the further lines of a row.
const columnGap = 2

// layout distributes the columns over the lines of a row, and makes those narrower that may be cut.
func (t *Table) layout(wide []int, width int) (lines [][]int) {
	var columns []int
	over := -columnGap - width
	for c := range wide {
		if wide[c] > 0 {
			columns = append(columns, c)
			over += columnGap + wide[c]
		}
	}
	if width <= 0 || over <= 0 || t.narrow(wide, columns, over) {
		return [][]int{columns}
	}
	var line []int
	at := 0 // how much of the screen's width the line takes
	for i, c := range columns {
		if len(line) > 0 && at+columnGap+t.least(wide, columns, i) > width {
			lines, line, at = append(lines, line), nil, 0
		}
		if len(line) > 0 || len(lines) > 0 {
			at += columnGap
		}
		if t.cut[c] {
			wide[c] = min(wide[c], max(minName, width-at))
		}
		at += wide[c]
		line = append(line, c)
	}
	return append(lines, line)
}

// least returns the least width of a column: of columns[i].
func (t *Table) least(wide, columns []int, i int) int {
	switch c := columns[i]; {
	case !t.cut[c]:
		return wide[c]
	case i == len(columns)-1:
		return min(wide[c], minSentence)
	default:
		return min(wide[c], minName)
	}
}

// narrow takes so much from the columns that may be cut, the widest first. It reports whether they had
// enough, and else leaves them.
func (t *Table) narrow(wide, columns []int, over int) bool {
	least := make([]int, len(columns))
	room := 0
	for i, c := range columns {
		least[i] = t.least(wide, columns, i)
		room += wide[c] - least[i]
	}
	if room < over {
		return false
	}
	for ; over > 0; over-- {
		widest := -1
		for i, c := range columns {
			if wide[c] > least[i] && (widest < 0 || wide[c] > wide[widest]) {
				widest = c
			}
		}
		wide[widest]--
	}
	return true
}

// write writes a row. Lines without any text are left out, but for the first.
func (t *Table) write(w *strings.Builder, row []string, wide []int, lines [][]int, style func(c int, text string) string) {
	for i, line := range lines {
		var b strings.Builder
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		empty := true
		for n, c := range line {
			cell := row[c]
			if t.cut[c] {
				cell = ansi.Truncate(cell, wide[c], "…")
			}
			empty = empty && cell == ""
			if n > 0 {
				b.WriteString(strings.Repeat(" ", columnGap))
			}
			space := blanks(cell, wide[c])
			switch {
			case t.right[c]:
				b.WriteString(space + style(c, cell))
			case n == len(line)-1:
				b.WriteString(style(c, cell))
			default:
				b.WriteString(style(c, cell) + space)
			}
		}
		if i == 0 || !empty {
			w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
		}
	}
}

// Hang makes a text safe to print and breaks it into lines for a screen of this width; 0 means no
// limit. Its first line begins so many columns from the left, and so do the others.
func Hang(text string, width, indent int) string {
	text = Escape(text)
	if width > indent+minSentence {
		var lines []string
		for line := range strings.SplitSeq(text, "\n") {
			lines = append(lines, wrapWords(line, width-indent)...)
		}
		text = strings.Join(lines, "\n"+strings.Repeat(" ", indent))
	}
	return text
}

// TaskTable makes the table at the end of a run: how each task ended, and where its output is. file
// returns that place.
func TaskTable(p view.Picture, file func(view.Task) string) *Table {
	t := NewTable(
		"TASK", "STATUS", "ITERATION", "ATTEMPTS", "TIME", "TOKENS", "CACHED", "COST", "OUTPUT", "REASON").Right(2, 3, 4, 5, 6, 7).
		Cut(9)
	for _, task := range p.Tasks {
		row := []string{task.Name, string(task.Status), iteration(task), "", "", Tokens(task.Usage), Cached(task.Usage), Dollars(task.Usage), "", reason(&task)}
		if n := task.Tries(); n > 1 {
			row[3] = strconv.Itoa(n)
		}
		if task.Busy > 0 {
			row[4] = Duration(task.Busy)
		}
		if task.Output.Hash != "" && file != nil && (task.Output.Bytes > 0 || task.Status == swarm.Completed) {
			row[8] = file(task)
		}
		if len(task.Waits) > 0 {
			row[9] = "waits for " + view.Waiting(task.Waits)
		}
		t.Row(row...)
	}
	return t
}

// AgentTable makes the table of what agents have used that did more than one task. The others stand in
// the table of tasks.
func AgentTable(p view.Picture) *Table {
	tasks := map[string]int{}
	for _, task := range p.Tasks {
		tasks[task.Agent]++
	}
	t := NewTable("AGENT", "TASKS", "TURNS", "TOKENS", "CACHED", "COST").Right(1, 2, 3, 4, 5)
	for _, a := range p.Agents {
		if u := a.Usage; tasks[a.Name] > 1 && u.Calls > 0 {
			t.Row(a.Name, strconv.Itoa(tasks[a.Name]), strconv.FormatInt(u.Calls, 10), Tokens(u), Cached(u), Dollars(u))
		}
	}
	return t
}

// iteration formats which iteration of how many it is, "" if there is only one.
func iteration(t view.Task) string {
	if t.Iterations <= 1 {
		return ""
	}
	return strconv.Itoa(t.Iteration) + "/" + strconv.Itoa(t.Iterations)
}
