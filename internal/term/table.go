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
	cut   int // the column that may be cut, or -1
	rows  [][]string
}

// NewTable makes a table with these columns.
func NewTable(head ...string) *Table { return &Table{head: head, right: map[int]bool{}, cut: -1} }

// Right aligns columns, counted from 0, to the right: numbers.
func (t *Table) Right(columns ...int) *Table {
	for _, c := range columns {
		t.right[c] = true
	}
	return t
}

// Cut lets a column be cut where a line is too wide, if it is the last one. Text that people copy
// must not be cut.
func (t *Table) Cut(column int) *Table {
	t.cut = column
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

// minCell is the least width of a column that is cut. With less room, wrapping by the terminal is
// better.
const minCell = 16

// Print writes the table for a screen of this width; 0 means no limit.
func (t *Table) Print(w io.Writer, width int, color bool) error {
	_, err := io.WriteString(w, t.Format(width, color))
	return err
}

// Format makes the text of the table.
func (t *Table) Format(width int, color bool) string {
	wide := make([]int, len(t.head))
	for _, row := range t.rows {
		for c, cell := range row {
			wide[c] = max(wide[c], ansi.StringWidth(cell))
		}
	}
	last := 0
	for c := range wide {
		if wide[c] > 0 {
			wide[c] = max(wide[c], len(t.head[c]))
			last = c
		}
	}
	p := Paint(color)
	var all, b strings.Builder
	line := func(row []string, style func(c int, text string) string) {
		at := 0
		b.Reset()
		for c, cell := range row {
			if wide[c] == 0 {
				continue
			}
			if at > 0 {
				b.WriteString("  ")
				at += 2
			}
			if c == last && c == t.cut && width-at >= minCell {
				cell = ansi.Truncate(cell, width-at, "…")
			}
			space := blanks(cell, wide[c])
			switch {
			case t.right[c]:
				b.WriteString(space + style(c, cell))
			case c == last:
				b.WriteString(style(c, cell))
			default:
				b.WriteString(style(c, cell) + space)
			}
			at += wide[c]
		}
		all.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	line(t.head, func(_ int, text string) string { return p.With(Dim, text) })
	for _, row := range t.rows {
		line(row, func(c int, text string) string {
			if t.head[c] == "STATUS" {
				return p.Status(swarm.Status(text), text)
			}
			return text
		})
	}
	return all.String()
}

// TaskTable makes the table at the end of a run: how each task ended, and where its output is. file
// returns that place.
func TaskTable(p view.Picture, file func(view.Task) string) *Table {
	t := NewTable(
		"TASK", "STATUS", "ITERATION", "ATTEMPTS", "TIME", "TOKENS", "CACHED", "COST", "OUTPUT", "REASON").Right(2, 3, 4, 5, 6, 7).
		Cut(9)
	for _, task := range p.Tasks {
		row := []string{task.Name, string(task.Status), iteration(task), "", "", Tokens(task.Usage), Cached(task.Usage), Dollars(task.Usage), "", reason(&task)}
		if task.Attempt > 1 {
			row[3] = strconv.Itoa(task.Attempt)
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
