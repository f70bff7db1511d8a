package line

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/prompt"
)

var team = Team{Agents: []string{"pm", "ba", "builder-1", "builder-2", "reviewer", "writer"}, Default: "pm"}

// written formats a parsed line: `@pm [model] text‹$ba›text` for each stage, then `&`.
func written(l *Line) string {
	if c := l.Command; c != nil {
		return strings.TrimSpace(fmt.Sprintf("/%s %q %s", c.Name, c.Args, c.Agent))
	}
	if l.Comment {
		return "# a comment"
	}
	var b strings.Builder
	for i, s := range l.Stages {
		if i > 0 {
			b.WriteString(" => ")
		}
		for _, a := range s.Agents {
			b.WriteString("@" + a.Name + " ")
		}
		if s.Model != "" {
			b.WriteString("[" + s.Model + "] ")
		}
		for _, p := range s.Parts {
			if p.Kind == prompt.KindAgent {
				b.WriteString("‹$" + p.Name + "›")
			} else {
				b.WriteString(p.Text)
			}
		}
	}
	if l.Background {
		b.WriteString(" &")
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Agents.
		{"@pm Create a plan", "@pm Create a plan"},
		{"  @pm   Create a plan \n", "@pm Create a plan"},
		{"@pm,ba Create a plan", "@pm @ba Create a plan"},
		{"@notify It is done", "@notify It is done"},
		{"Create a plan", "@pm Create a plan"},
		{"\ufeff@ba\u00a0Create a plan\u00a0", "@ba Create a plan"},
		{`\@home is where I am`, "@pm @home is where I am"},
		{`\@@pm is not spoken to`, "@pm @@pm is not spoken to"},
		{`\/usr/bin is broken`, "@pm /usr/bin is broken"},
		{`\# Title`, "@pm # Title"},
		{"@pm Fix #12 # and the rest", "@pm Fix #12 # and the rest"},
		{"# Ask for a plan -> @ba &", "# a comment"},
		{"  #\n", "# a comment"},
		{"@pm mail me@here, @ba too", "@pm mail me@here, @ba too"},

		// Models.
		{"@pm --model large Create a plan", "@pm [large] Create a plan"},
		{"@pm,ba --model=large  Create a plan", "@pm @ba [large] Create a plan"},
		{"@pm --models are what?", "@pm --models are what?"},
		{`@pm \--model is what?`, "@pm --model is what?"},
		{"@pm explain --model x", "@pm explain --model x"},
		{"--model x is what?", "@pm --model x is what?"},
		{"@pm --model $ba Plan", "@pm [$ba] Plan"},

		// Chains.
		{"@pm Plan -> @builder-1 Build", "@pm Plan => @builder-1 Build"},
		{"@pm Plan->@builder-1 Build->@reviewer Review", "@pm Plan => @builder-1 Build => @reviewer Review"},
		{"@pm Plan ->\n\t@builder-1,builder-2 --model m Build", "@pm Plan => @builder-1 @builder-2 [m] Build"},
		{"Plan -> @builder-1 Build", "@pm Plan => @builder-1 Build"},
		{"@pm a -> b, p->q and x --> @ba, x <-> @ba", "@pm a -> b, p->q and x --> @ba, x <-> @ba"},
		{`@pm what is \-> @ba?`, "@pm what is -> @ba?"},
		{`@pm what is \->`, "@pm what is ->"},
		{`\-> is what?`, "@pm -> is what?"},
		{`@pm \-> is no arrow`, `@pm \-> is no arrow`},

		// Background lines.
		{"@pm Plan &", "@pm Plan &"},
		{"@pm Plan&", "@pm Plan &"},
		{"@pm Plan -> @ba Write & \n", "@pm Plan => @ba Write &"},
		{"@pm R&D, make && make test, &x", "@pm R&D, make && make test, &x"},
		{`@pm salt \& pepper \&`, "@pm salt & pepper &"},
		{`@pm R\& &`, `@pm R\& &`},
		{`@pm \&&`, `@pm & &`},
		{`@pm sed 's/x/\&/'`, `@pm sed 's/x/\&/'`},

		// References.
		{"@builder-1 Implement $pm", "@builder-1 Implement ‹$pm›"},
		{"@builder-1 $pm", "@builder-1 ‹$pm›"},
		{"@ba $pm. $pm, $pm's $pm- $pm_x $pmX $pm$ba!", "@ba ‹$pm›. ‹$pm›, ‹$pm›'s ‹$pm›- ‹$pm›_x ‹$pm›X ‹$pm›‹$ba›!"},
		{"@ba $builder-1 $builder-1-- x$pm", "@ba ‹$builder-1› ‹$builder-1›-- x‹$pm›"},
		{"@ba $$pm $$$pm $PM $1pm ${pm} $ $- $é", "@ba $$pm $$$pm $PM $1pm ${pm} $ $- $é"},
		{"@ba $pm$$ba", "@ba ‹$pm›$$ba"},
		{`@ba \$pm \$PATH \$ \\$pm \$$pm`, `@ba $pm $PATH $ \$pm $‹$pm›`},
		{"@pm Improve $pm -> @ba Use $pm and $pm", "@pm Improve ‹$pm› => @ba Use ‹$pm› and ‹$pm›"},
		{"Improve $pm", "@pm Improve ‹$pm›"},

		// Text stays as it was typed.
		{`@pm "an open quote, it's {{output:x}} \n [Output from @ba]: x`, `@pm "an open quote, it's {{output:x}} \n [Output from @ba]: x`},
		{"@pm one\rtwo\r\nthree\n\n\tfour\r", "@pm one\ntwo\nthree\n\n\tfour"},
	} {
		l, err := Parse(c.text, team)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if got := written(l); got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestReferencesOff checks that with NoRefs a dollar sign, and a backslash before it, are ordinary
// text.
func TestReferencesOff(t *testing.T) {
	off := team
	off.NoRefs = true
	l, err := Parse(`@ba Use $pm, \$pm and $nobody`, off)
	if err != nil || written(l) != `@ba Use $pm, \$pm and $nobody` {
		t.Fatal(l, err)
	}
}

// TestRefused shows each error as users see it: the line, carets under the position, the message
// and the hint.
func TestRefused(t *testing.T) {
	const valid = "Valid agents: pm, ba, builder-1, builder-2, reviewer, writer"
	for _, want := range []string{`
@pm Plan $nosuch
         ^^^^^^^
Unknown agent reference: $nosuch. ` + valid + `
to write it as text: \$nosuch`, `
@builder-1 Implement based on $nonexistent
                              ^^^^^^^^^^^^
Unknown agent reference: $nonexistent. ` + valid + `
to write it as text: \$nonexistent`, `
@pm Use $writr's text
        ^^^^^^
Unknown agent reference: $writr. ` + valid + `
did you mean $writer?
to write it as text: \$writr`, `
@ba Tell $notify
         ^^^^^^^
Unknown agent reference: $notify. ` + valid + `
to write it as text: \$notify`, `
@nosuch Plan
^^^^^^^
Unknown agent: 'nosuch'. ` + valid + `
to write it as text: \@nosuch`, `
@PM Plan
^^^
Unknown agent: 'PM'. ` + valid + `
did you mean @pm?`, `
@pm Plan -> @revewer Review
            ^^^^^^^^
Unknown agent: 'revewer'. ` + valid + `
did you mean @reviewer?`, `
@pm Mail it -> @home and away
               ^^^^^
Unknown agent: 'home'. ` + valid + `
to write it as text: \-> @home`, `
@pm,bo Plan
    ^^
Unknown agent: 'bo'. ` + valid + `
did you mean ba?`, `
@pm,@ba Plan
    ^^^
Unknown agent: '@ba'. ` + valid + `
one @ is enough for all: @pm,ba`, `
@pm, ba Plan
   ^
no agent is named behind the comma
write the names without blanks between them: @pm,NAME`, `
@pm,,ba Plan
    ^
no agent is named between the commas
write the names with one comma between them`, `
@,pm Plan
^
no agent is named behind @
write @pm, or \@ for the character itself`, `
@pm,ba,pm Plan
       ^^
@pm is named twice
name each agent once`, `
@
^
no agent is named behind @
write @pm, or \@ for the character itself`, `
@@
^^
Unknown agent: '@'. ` + valid + `
to write it as text: \@@`, `
@pm
^^^
@pm has no task
write what is to be done behind it`, `
@pm,ba &
^^^^^^
@pm,ba has no task
write what is to be done behind it`, `
@pm --model large
^^^
@pm has no task
write what is to be done behind it`, `
@pm -> @ba Write
^^^
@pm has no task
write what is to be done behind it`, `
@pm->@ba Write
^^^
@pm has no task
write what is to be done behind it`, `
@pm Plan -> @ba
            ^^^
@ba has no task
write what is to be done behind it`, `
@pm --model
    ^^^^^^^
--model names no model
write --model NAME, or \--model for the text itself`, `
@pm --model= large Plan
    ^^^^^^^^
--model names no model
write --model NAME, or \--model for the text itself`, `
@pm --model a --model b Plan
              ^^^^^^^
--model is given twice
write it once, or \--model for the text itself`, `
@notify --model a Done
        ^^^^^^^^^
@notify has no model
leave --model out`, `
-> @pm Plan
^^
nothing stands before ->
write a task before it, or \-> for the text itself`, `
@pm Plan ->
         ^^
nothing stands behind ->
write @agent and what it is to do, or \-> for the text itself`, `
@pm Plan -> &
         ^^
nothing stands behind ->
write @agent and what it is to do, or \-> for the text itself`, `
@pm Plan -> -> @ba Write
         ^^^^^
there is no stage between -> and ->
write one ->, or \-> for the text itself`, `
&
^
there is nothing to run in the background
write the task before the &, or \& for the character itself`, `
& @pm Plan
^
& stands at the beginning
write it at the end of the line, or \& for the character itself`, `
@pm Plan & -> @ba Write
         ^
& stands in the middle of the line
write it at the end of the line, or \& for the character itself`, `
@pm Plan &&
         ^^
one & is enough
write one & at the end of the line, or \& for the character itself`, `
/stats
^^^^^^
Unknown command: /stats
did you mean /status?
to write it as text: \/stats`, `
/usr/bin is broken
^^^^^^^^
Unknown command: /usr/bin
to write it as text: \/usr/bin`, `
/
^
no command is named behind /
choose one of /help, /status, /tasks, /task, /cancel, /history, /use, /model, /reset, /why, /out, /approve, /deny, /retry, /open, /save, /quit`, `
/use @nosuch
     ^^^^^^^
Unknown agent: 'nosuch'. ` + valid, `
/why revewer
     ^^^^^^^
Unknown agent: 'revewer'. ` + valid + `
did you mean @reviewer?`, `
/task
^^^^^
/task needs an argument
write /task ID`, `
/task pm_1 ba_1
           ^^^^
/task takes one argument
write /task ID`, `
/status now please
        ^^^^^^^^^^
/status takes no argument
write /status`, `
/cancel pm
        ^^
pm is an agent, not a task
write a task such as pm_1; /tasks lists them`, `
/retry @pm
       ^^^
/retry does not take an agent here
write /retry ID`, `
/model large small
       ^^^^^
/model takes the agent first
write /model [@AGENT] [MODEL]`, `
@pm 日本の $nosuch
           ^^^^^^^
Unknown agent reference: $nosuch. ` + valid + `
to write it as text: \$nosuch`,
	} {
		want = want[1:]
		text, _, _ := strings.Cut(want, "\n")
		if got := refusal(t, text, team); got != want {
			t.Errorf("got\n%s\n\nwant\n%s\n", got, want)
		}
	}
}

// refusal returns an error as users see it.
func refusal(t *testing.T, text string, team Team) string {
	t.Helper()
	l, err := Parse(text, team)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%q is not refused: %v, %v", text, l, err)
	}
	if swarm.ExitCode(err) != swarm.ExitBadInput {
		t.Errorf("%q exits with %d", text, swarm.ExitCode(err))
	}
	return strings.TrimSuffix(e.picture(text)+"\n"+e.Msg+"\n"+e.Hint, "\n")
}
