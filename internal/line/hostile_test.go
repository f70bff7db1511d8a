package line

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestHostile checks that malformed lines are refused with a reason, and a picture that fits on a
// screen.
func TestHostile(t *testing.T) {
	var eleven strings.Builder
	many := Team{Default: "a"}
	for i := range 11 {
		many.Agents = append(many.Agents, string(rune('a'+i)))
		fmt.Fprintf(&eleven, " $%c", 'a'+i)
	}
	thousand := "@a x" + strings.Repeat(" -> @b y", 999) // the fifty-first begins at 400
	for _, c := range []struct{ name, text, msg, picture string }{
		{"empty", "", "the line is empty", "\n^"},
		{"blank", " \n\t ", "the line is empty", " \n^"},
		{"1 MB", "@a " + strings.Repeat("x", 1<<20-3), "the line is too long: it has 1048576 bytes, and 65536 are allowed",
			"…" + strings.Repeat("x", 180) + "…\n" + strings.Repeat(" ", 61) + strings.Repeat("^", 60)},
		{"1,000 stages", thousand, "a line has at most 50 stages", "…" + thousand[340:462] + "…\n" + strings.Repeat(" ", 61) + "^^"},
		{"an eleventh reference", "@a x" + eleven.String(), "a task refers to at most 10 agents, and $k is one more", "@a x" + eleven.String() + "\n" + strings.Repeat(" ", 35) + "^^"},
		{"bytes that are no text", "@a x \xff\xfe", "the byte 0xFF is not UTF-8", "@a x \ufffd\ufffd\n     ^"},
		{"half a character", "@a é\xc3", "the byte 0xC3 is not UTF-8", "@a é\ufffd\n    ^"},
		{"an escape sequence", "@a \x1b[31mred", "the control character U+001B cannot stand in a line", "@a \ufffd[31mred\n   ^"},
		{"one that terminals know as a single character", "@a \u009b31mred", "the control character U+009B cannot stand in a line", "@a \ufffd31mred\n   ^"},
		{"NUL", "@a\x00 x", "the control character U+0000 cannot stand in a line", "@a\ufffd x\n  ^"},
		{"DEL", "@a x\x7f", "the control character U+007F cannot stand in a line", "@a x\ufffd\n    ^"},
		{"in the third of several lines", "@a one\r\ntwo\r$x\tthree $zz", "Unknown agent reference: $x. Valid agents: a, b, c, d, e, f, g, h, i, j, k", "$x three $zz\n^^"},
		{"a name as long as a line", "@" + strings.Repeat("n", 1000) + " x", "Unknown agent: '" + strings.Repeat("n", 63) + "…'. Valid agents: a, b, c, d, e, f, g, h, i, j, k",
			"@" + strings.Repeat("n", 119) + "…\n" + strings.Repeat("^", 60)},
		{"a comment of two lines", "# a\nb", "a comment is one line", "# a\n   ^"},
		{"a command of two lines", "/save a\nb", "a command is one line", "/save a\n       ^"},
	} {
		l, err := Parse(c.text, many)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v, %v", c.name, l, err)
			continue
		}
		if e.Msg != c.msg {
			t.Errorf("%s:\n got %s\nwant %s", c.name, e.Msg, c.msg)
		}
		if got := e.picture(c.text); got != c.picture {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, got, c.picture)
		}
		if strings.Contains(e.Hint, "%!") || e.Hint == "" && !strings.HasPrefix(e.Msg, "Unknown agent: ") {
			t.Errorf("%s: the hint is %q", c.name, e.Hint)
		}
	}
}

// TestMost checks that lines at the limits are accepted.
func TestMost(t *testing.T) {
	long := "@pm " + strings.Repeat("x", MaxLine-4)
	if l, err := Parse(long, team); err != nil || len(l.Stages[0].Parts[0].Text) != MaxLine-4 {
		t.Error("the longest line:", err)
	}
	if l, err := Parse("@pm x"+strings.Repeat(" -> @ba y", MaxStages-1), team); err != nil || len(l.Stages) != MaxStages {
		t.Error("the longest chain:", err)
	}
	many := Team{Agents: []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}}
	if l, err := Parse("@a $a $b $c $d $e $f $g $h $i $j $a $b -> @b $c", many); err != nil || len(l.Stages[0].Refs) != 12 {
		t.Error("ten agents, two of them twice:", err)
	}
}

// TestNobody checks a line without an agent in a team without agents.
func TestNobody(t *testing.T) {
	for _, c := range []struct {
		text string
		team Team
		want string
	}{
		{"  Make a plan", Team{Agents: []string{"pm", "ba"}}, `
  Make a plan
  ^^^^
the line names no agent, and there is no default agent
write @pm before it, or choose a default agent with /use @pm`},
		{"Make a plan", Team{}, `
Make a plan
^^^^
the line names no agent, and there is no default agent
write @agent before it, or choose a default agent with /use @agent`},
		{"@pm Make a plan", Team{}, `
@pm Make a plan
^^^
Unknown agent: 'pm'. Valid agents: none
to write it as text: \@pm`},
	} {
		if got := "\n" + refusal(t, c.text, c.team); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}
