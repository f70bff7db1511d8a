package repl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"swarm/internal/term"
	"swarm/internal/termtest"
)

func rowsOf(text string, columns int, words bool) (rows []string) {
	begins := append(wrap(text, nil, columns, words), len(text))
	for i := range len(begins) - 1 {
		rows = append(rows, text[begins[i]:begins[i+1]])
	}
	return rows
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		words   bool
		want    []string
	}{
		{"", 10, true, []string{""}},
		{"one two three", 7, true, []string{"one two ", "three"}},
		{"one two three", 8, true, []string{"one two ", "three"}},
		{"one two three", 7, false, []string{"one two", " three"}},
		{"onetwothree", 4, true, []string{"onet", "woth", "ree"}},
		{"        deep", 6, true, []string{"       ", " deep"}},
		{"日本語日本", 4, true, []string{"日本", "語日", "本"}},
		{"日本語", 1, true, []string{"日", "本", "語"}},
		{"a\tb", 5, true, []string{"a\t", "b"}},
		{"👩‍👩‍👧 x", 3, true, []string{"👩‍👩‍👧 ", "x"}},
	} {
		if got := rowsOf(c.text, c.columns, c.words); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns is %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

// A line that grows piece by piece is wrapped as if it had been there from the beginning, loses
// nothing and fits.
func FuzzWrap(f *testing.F) {
	f.Add("one two three four", 7, uint64(1), true)
	f.Add("日本語 and\ttabs \x1b[2J 👩‍👩‍👧", 5, uint64(2), true)
	f.Fuzz(func(t *testing.T, line string, columns int, seed uint64, words bool) {
		if columns < 10 || columns > 200 || len(line) > 4000 || strings.Contains(line, "\n") || !utf8.ValidString(line) {
			return
		}
		line = safeText(line)
		rows := rowsOf(line, columns, words)
		if strings.Join(rows, "") != line {
			t.Fatalf("%q became %q", line, rows)
		}
		for _, r := range rows {
			if w := width(strings.TrimRight(r, " ")); w > columns {
				t.Errorf("%q is %d wide, want %d", r, w, columns)
			}
		}
		var grown []int
		text := ""
		random := rand.New(rand.NewPCG(seed, 1))
		for text != line {
			n := len(text) + 1 + random.IntN(8)
			for n < len(line) && !utf8.RuneStart(line[n]) {
				n++
			}
			text = line[:min(n, len(line))]
			grown = wrap(text, grown, columns, words)
		}
		if whole := wrap(line, nil, columns, words); len(line) > 0 && !slices.Equal(grown, whole) && plainText(line) {
			t.Errorf("%q grew to %v, want %v", line, grown, whole)
		}
	})
}

// plainText says whether no character of a text can change by what follows it.
func plainText(text string) bool {
	for _, r := range text {
		if r > 0x7e {
			return false
		}
	}
	return true
}

func TestTranscriptIsBounded(t *testing.T) {
	var tr transcript
	first := tr.add(said, "pm", "first")
	for i := range 3 * maxLines {
		tr.add(said, "pm", fmt.Sprint(i))
	}
	if len(tr.lines) != maxLines || tr.end() != 3*maxLines+1 {
		t.Errorf("%d lines are kept, up to number %d", len(tr.lines), tr.end())
	}
	if tr.grow(first, "!") {
		t.Error("a line that was dropped has grown")
	}
	if tr.grow(tr.end(), "!") {
		t.Error("a line that is not there has grown")
	}
	for range 10 {
		tr.add(said, "pm", strings.Repeat("x", maxBytes/4))
	}
	if tr.bytes > maxBytes || len(tr.lines) == 0 {
		t.Errorf("%d lines with %d bytes are kept", len(tr.lines), tr.bytes)
	}
}

// An agent that never ends a line cannot fill the memory with it, and nothing that it says is lost.
func TestLineWithoutEnd(t *testing.T) {
	d := newDesk(t, 80, 24, Options{})
	d.press("@pm talk", "enter")
	d.StartTask("pm_1")
	for i := range 3 * maxLine / 10 {
		d.screen.Delta("pm_1", termtest.Text(fmt.Sprintf("word%06d", i)))
	}
	var all strings.Builder
	for _, l := range d.screen.transcript.lines {
		if l.kind == said {
			all.WriteString(l.text)
			if len(l.text) > 2*maxLine {
				t.Errorf("a line has %d bytes", len(l.text))
			}
		}
	}
	if got := all.Len(); got != 3*maxLine/10*10 {
		t.Errorf("of %d bytes %d are there", 3*maxLine/10*10, got)
	}
	d.sees(fmt.Sprintf("%06d", 3*maxLine/10-1))
}

// From every place, going up and down by the same number of rows comes back to it, and pages are
// full.
func TestPages(t *testing.T) {
	var tr transcript
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		tr.add(said, "pm", strings.Repeat(fmt.Sprintf("w%d ", i), random.IntN(40)))
	}
	p := page{columns: 40, rows: 10, names: 4, color: term.Palette{}.Of}
	all := page{columns: 40, rows: 10_000, names: 4, color: term.Palette{}.Of}
	rows := tr.draw(all)
	shown := func() []string { return tr.draw(p) }
	for up := 1; up < 12; up++ {
		p.bottom = nil
		for step := 1; ; step++ {
			from := max(len(rows)-p.rows-up*step, 0)
			p.bottom = tr.up(p, p.bottom, up)
			if got := shown(); len(got) != p.rows || !slices.Equal(got[1:], rows[from:][1:p.rows]) {
				t.Fatalf("%d times %d rows up shows\n%s\nwant\n%s", step, up, strings.Join(got, "\n"), strings.Join(rows[from:][:p.rows], "\n"))
			}
			if from == 0 {
				break
			}
		}
		for range len(rows) {
			p.bottom = tr.down(p, p.bottom, up)
		}
		if p.bottom != nil {
			t.Fatalf("going down by %d ends at %v", up, *p.bottom)
		}
	}
}
