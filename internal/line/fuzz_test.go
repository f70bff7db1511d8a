package line

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"swarm/internal/prompt"
)

// seeds are lines that cover every part of the language.
var seeds = []string{
	"", " ", "@", "@@", "@pm", "@pm,", "@pm,,ba x", "@pm, ba x", "@pm Plan", "Plan", "@pm,ba Plan -> @writer Write $pm and $ba &",
	"-> @pm x", "@pm x ->", "@pm x -> -> @ba y", "@pm x ->-> @ba y", "@pm a --> @ba b <-> @ba c", "@pm a->@ba b", "@pm->@ba b", "&", "& x", "a & b", "a &&", `a \&&`, `a \& b \&`, `R\& &`, "a&",
	"@pm --model x y", "@pm --model=x y", "@pm --model= y", "@pm --model", "@pm --model->@ba x", "@pm --model a --model b c", `@pm \--model x`, "@pm --model & x", `@pm --model \& x`, `@pm --model \-> @ba x`,
	"@pm $ba. $ba, $ba's $ba$pm $ba- $ba_ $ba-x", `@pm \$ba $$ba $BA $1 ${ba} \\$ba \$$ba $`, "@pm $nosuch", `@pm \->@ba \-> x \->`, `\-> x`, `\@pm x`, `\/x`, `\\@x`, `\@@x`,
	"@pm a\rb\r\nc\n", "\ufeff@pm\u00a0x", "@pm \x1b[31m", "@pm \xff", "@pm \u009b1m", "@pm $a $b $c $d $e $f $g $h $i $j $k", "@pm $a $a $b",
	"/status", "/cancel all", "/save a b", "/usr/bin x", "/", "/use @pm", "/model @pm x", "/status\n@pm x", "@notify --model x y", "@notify x -> @pm y", "@pm $builder-1 $builder-1- $builder",
	"#", `\#000000`, "\n#", "# a\nb", "@pm x -> @ba y & ", "@pm $pm->@ba $pm-->@ba x", "日本 $pm 語 -> @ba é",
}

var fuzzTeam = Team{Agents: []string{"pm", "ba", "builder-1", "writer", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}, Default: "pm"}

func fuzzLines(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, false, false)
		f.Add(s, true, true)
	}
}

// FuzzParse compares Parse with a slow and obvious implementation. Both must accept and refuse the
// same lines.
func FuzzParse(f *testing.F) {
	fuzzLines(f)
	f.Fuzz(func(t *testing.T, text string, noRefs, noDefault bool) {
		team := fuzzTeam
		if team.NoRefs = noRefs; noDefault {
			team.Default = ""
		}
		got, err := Parse(text, team)
		if again, err2 := Parse(text, team); !reflect.DeepEqual(got, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatal("the same line, read twice, is not the same")
		}
		if err != nil {
			checkError(t, text, err)
		}
		if len(text) > 4<<10 || strings.ContainsAny(text, arrowMark+andMark) || strings.HasPrefix(strings.TrimLeft(text, blanks), "/") {
			return
		}
		want, ok := slowly(text, team)
		if ok != (err == nil) {
			t.Fatalf("slowly %v, but %v\n%+v", ok, err, got)
		}
		if err == nil && !reflect.DeepEqual(plainly(got), want) {
			t.Fatalf("got  %+v\nwant %+v", plainly(got), want)
		}
	})
}

// checkError checks that an error has a position and a message, and that its picture holds no
// character that moves a cursor.
func checkError(t *testing.T, text string, err error) {
	var e *Error
	if !errors.As(err, &e) || e.Msg == "" || e.Start < 0 || e.Start > e.End || e.End > len(text) {
		t.Fatalf("%#v", err)
	}
	shown := e.picture(text) + e.Msg + e.Hint
	if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Fatalf("%q is not fit for a screen", shown)
	}
	if strings.Count(e.picture(text), "\n") != 1 || !strings.HasSuffix(e.picture(text), "^") {
		t.Fatalf("picture %q", e.picture(text))
	}
}

// FuzzScan checks that the tokens cover the line without gaps, and that only a missing name gives
// an empty token.
func FuzzScan(f *testing.F) {
	fuzzLines(f)
	f.Fuzz(func(t *testing.T, text string, noRefs, _ bool) {
		team := fuzzTeam
		team.NoRefs = noRefs
		at := 0
		for _, token := range Scan(text, team) {
			if token.Start != at || token.End < at || token.End == at && token.Kind != Agent {
				t.Fatalf("%+v at %d", token, at)
			}
			at = token.End
		}
		if at != len(text) {
			t.Fatalf("the tokens end at %d of %d", at, len(text))
		}
	})
}

// FuzzComplete checks that completions fit their place and change nothing else.
func FuzzComplete(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, len(s), false)
		f.Add(s, len(s)/2, false)
	}
	f.Add("@pm,b", 5, false)
	f.Add("@pm x $b", 8, true)
	f.Add("/st", 3, false)
	f.Fuzz(func(t *testing.T, text string, cursor int, noRefs bool) {
		team := fuzzTeam
		team.NoRefs = noRefs
		for _, c := range Complete(text, cursor, team, CommandNames()) {
			if c.Start < 0 || c.Start > cursor || c.End < min(cursor, len(text)) || c.End > len(text) {
				t.Fatalf("%+v", c)
			}
			tokens := Scan(text[:c.Start]+c.Text, team)
			if last := tokens[len(tokens)-1]; !last.Known || last.Start != c.Start {
				t.Fatalf("%+v is not known there: %+v", c, last)
			}
		}
	})
}

// A slowStage is a stage without positions.
type slowStage struct {
	Agents []string
	Model  string
	Parts  []prompt.Part
}

type slowLine struct {
	Stages     []slowStage
	Background bool
}

func plainly(l *Line) slowLine {
	out := slowLine{Background: l.Background}
	for _, s := range l.Stages {
		stage := slowStage{Model: s.Model, Parts: s.Parts}
		for _, a := range s.Agents {
			stage.Agents = append(stage.Agents, a.Name)
		}
		out.Stages = append(out.Stages, stage)
	}
	return out
}

const (
	blanks    = " \t\r\n\u00a0\ufeff"
	blank     = `[ \t\r\n\x{a0}\x{feff}]`
	notBlank  = `[^ \t\r\n\x{a0}\x{feff}]`
	arrowMark = "\ue000" // stands for \-> where that is an arrow without its meaning
	andMark   = "\ue001" // the same of \&
)

var (
	slowEnd     = regexp.MustCompile(`(?s)^(.*?)((?:\\&)?)(&*)$`)
	slowAnd     = regexp.MustCompile(`(?:^|` + blank + `)&(?:` + blank + `|$)`)
	slowTextAnd = regexp.MustCompile(`(^|` + blank + `)\\&(` + blank + `|$)`)
	slowAgents  = regexp.MustCompile(`^@(` + notBlank + `*)`)
	slowModel   = regexp.MustCompile(`^` + blank + `*--model(?:=|` + blank + `+)(` + notBlank + `+)`)
	slowFlag    = regexp.MustCompile(`^` + blank + `*--model(?:=|` + blank + `|$)`)
	slowNoFlag  = regexp.MustCompile(`^(` + blank + `*)\\(--model(?:=|` + blank + `|$))`)
	slowDollar  = regexp.MustCompile(`\\\$|\$\$+|\$([a-z](?:[a-z0-9-]*[a-z0-9])?)`)
)

// slowly parses a line by regular expressions, one rule after the other.
func slowly(text string, team Team) (line slowLine, ok bool) {
	bad := func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\r\n\t", r) }
	if body := strings.Trim(text, blanks); len(text) > MaxLine || !utf8.ValidString(text) || strings.ContainsFunc(text, bad) || body == "" {
		return line, false
	} else if body[0] == '#' { // a comment is one line, and does nothing
		return line, !strings.ContainsAny(body, "\r\n")
	} else if end := slowEnd.FindStringSubmatch(body); len(end[3]) > 1 {
		return line, false
	} else {
		line.Background = end[3] == "&"
		text = end[1]
		if end[2] != "" {
			text += andMark
		}
	}
	for changed := true; changed; { // neighbours share a blank
		before := text
		text = slowTextAnd.ReplaceAllString(text, "$1"+andMark+"$2")
		changed = text != before
	}
	if slowAnd.MatchString(text) {
		return line, false
	}
	stages, ok := slowArrows(text)
	if !ok || len(stages) > MaxStages {
		return line, false
	}
	for i, s := range stages {
		stage, ok := slowStageOf(strings.Trim(s, blanks), i == 0, team)
		if !ok {
			return line, false
		}
		line.Stages = append(line.Stages, stage)
	}
	return line, true
}

// slowArrows splits text at its arrows.
func slowArrows(text string) (stages []string, ok bool) {
	for i := 0; i < len(text); i++ {
		if !strings.HasPrefix(text[i:], "->") {
			continue
		}
		before, escaped := strings.CutSuffix(text[:i], `\`)
		behind := strings.TrimLeft(text[i+2:], blanks)
		first := strings.Trim(strings.Join(append(stages, before), ""), blanks) == "" && len(stages) == 0
		alone := first || behind == "" || strings.HasPrefix(behind, "->")
		switch long := strings.HasSuffix(before, "-") || strings.HasSuffix(before, "<"); {
		case long, !alone && !strings.HasPrefix(behind, "@"):
		case escaped:
			text = before + arrowMark + text[i+2:]
		case alone:
			return nil, false
		default:
			stages, text, i = append(stages, before), behind, -1
		}
	}
	return append(stages, text), true
}

func slowStageOf(text string, first bool, team Team) (s slowStage, ok bool) {
	if m := slowAgents.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		for _, name := range strings.Split(m[1], ",") {
			if name != "notify" && !slices.Contains(team.Agents, name) || slices.Contains(s.Agents, name) {
				return s, false
			}
			s.Agents = append(s.Agents, name)
		}
		if m := slowModel.FindStringSubmatch(text); m != nil {
			s.Model = strings.NewReplacer(arrowMark, `\->`, andMark, `\&`).Replace(m[1])
			text = text[len(m[0]):]
		}
		if slowFlag.MatchString(text) || s.Model != "" && slices.Equal(s.Agents, []string{"notify"}) {
			return s, false
		}
		text = slowNoFlag.ReplaceAllString(text, "$1$2")
	} else if s.Agents = []string{team.Default}; team.Default == "" {
		return s, false
	} else if first && (strings.HasPrefix(text, `\@`) || strings.HasPrefix(text, `\/`) || strings.HasPrefix(text, `\#`)) {
		text = text[1:]
	}
	s.Parts, ok = slowParts(strings.Trim(text, blanks), team)
	return s, ok && len(s.Parts) > 0
}

// slowParts splits a task at its references.
func slowParts(text string, team Team) (parts []prompt.Part, ok bool) {
	lit, names := "", map[string]bool{}
	put := func() {
		lit = strings.NewReplacer("\r\n", "\n", "\r", "\n", arrowMark, "->", andMark, "&").Replace(lit)
		if lit != "" {
			parts = append(parts, prompt.Part{Kind: prompt.KindText, Text: lit})
		}
		lit = ""
	}
	for {
		m := slowDollar.FindStringSubmatchIndex(text)
		if m == nil || team.NoRefs {
			lit += text
			put()
			return parts, len(names) <= MaxRefs
		}
		lit += text[:m[0]]
		switch found := text[m[0]:m[1]]; {
		case found == `\$`:
			lit += "$"
		case m[2] < 0:
			lit += found
		case !slices.Contains(team.Agents, text[m[2]:m[3]]):
			return nil, false
		default:
			put()
			names[text[m[2]:m[3]]] = true
			parts = append(parts, prompt.Part{Kind: prompt.KindAgent, Name: text[m[2]:m[3]]})
		}
		text = text[m[1]:]
	}
}
