package repl

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"swarm"
	"swarm/internal/term"
	"swarm/internal/termtest"
	"swarm/internal/view"
)

// A desk is a screen whose program does not run: a test presses its keys and looks at it.
type desk struct {
	*fakeSession
	t      *testing.T
	screen *Screen
	m      *model
	quit   bool
	past   []string
}

func newDesk(t *testing.T, width, height int, o Options) *desk {
	d := &desk{fakeSession: newFake(t), t: t}
	o.In, o.Out, o.Now = strings.NewReader(""), &bytes.Buffer{}, d.Now
	o.Remember = func(text string) { d.past = append(d.past, text) }
	d.screen = NewScreen(d.fakeSession, view.New(termtest.RunID), o)
	d.m = d.screen.model
	d.do(tea.WindowSizeMsg{Width: width, Height: height})
	d.begin(d.screen)
	return d
}

// do gives a message to the model, and runs its command.
func (d *desk) do(msg tea.Msg) {
	_, cmd := d.screen.window.Update(msg)
	d.follow(cmd)
}

func (d *desk) follow(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			d.follow(c)
		}
	case tea.QuitMsg:
		d.quit = true
	default:
		d.do(msg)
	}
}

var keys = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "esc": {Code: tea.KeyEscape}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete},
	"alt+b": {Code: 'b', Mod: tea.ModAlt}, "alt+f": {Code: 'f', Mod: tea.ModAlt}, "alt+d": {Code: 'd', Mod: tea.ModAlt},
}

// press presses keys: names of keys, or texts that are typed.
func (d *desk) press(all ...string) {
	for _, key := range all {
		if k, ok := keys[key]; ok {
			d.do(tea.KeyPressMsg(k))
		} else if c, ok := strings.CutPrefix(key, "ctrl+"); ok {
			d.do(tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl})
		} else {
			for _, r := range key {
				d.do(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
	}
}

// frame returns what is shown, after pending changes.
func (d *desk) frame() string {
	d.t.Helper()
	d.do(term.Changed{})
	now := d.Now()
	d.screen.mu.Lock()
	drawn := d.m.frame(now).draw()
	d.screen.mu.Unlock()
	fits(d.t, drawn, d.m.width, d.m.height)
	termtest.Safe(d.t, drawn.text)
	return drawn.text
}

func (d *desk) sees(parts ...string) {
	d.t.Helper()
	f := d.frame()
	for _, p := range parts {
		if !strings.Contains(f, p) {
			d.t.Errorf("%q is not on the screen:\n%s", p, f)
		}
	}
}

func (d *desk) misses(part string) {
	d.t.Helper()
	if f := d.frame(); strings.Contains(f, part) {
		d.t.Errorf("%q is on the screen:\n%s", part, f)
	}
}

// AT-002 on the screen: a line waits for the agents to which it refers, says so, and starts when it
// can.
func TestWaitingIsSeen(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("@pm Create a detailed project plan &", "enter")
	d.StartTask("pm_1")
	d.press("@builder-1 Implement $pm", "enter")
	d.sees("@pm: executing", "@builder-1: waiting for @pm", "@reviewer: idle")
	d.screen.Delta("pm_1", termtest.Text("The plan is"))
	d.sees("pm        │ The plan is\n")
	d.screen.Delta("pm_1", termtest.Text(" good\nand \x1b[2J short"))
	d.sees("│ The plan is good\n", `│ and \x1b[2J short`)
	d.complete("pm_1")
	d.StartTask("builder-1_1")
	d.sees("@pm: idle", "pm_1 completed", "1.2k", "✓ pm_1 completed (1.2k tokens)", "@builder-1: executing")
	d.press("@ba,writer both of you use $builder-1 and $pm &", "enter")
	d.sees("next: @ba,writer")
	d.FailTask("builder-1_1", "exit status 2: \x1b[31mno\nidea")
	d.sees(`✗ builder-1_1 failed: exit status 2: \x1b[31mno idea`, "@builder-1: idle", "builder-1_1 failed")
	d.misses("next: ")
	d.press("@reviewer look at $writer &", "enter", "@reviewer and at $builder-2 &", "enter", "@reviewer once more &", "enter")
	d.sees("@reviewer: waiting for @writer", "+2 queued")
	d.press("@builder-1 use $builder-2, which has said nothing, and $ba &", "enter")
	d.sees("@builder-1: waiting for @ba, @builder-2 (no output yet)")
}

// Lines typed while a line is in the foreground are entered when that one has ended, in order.
func TestTypingAhead(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("one", "enter", "two", "enter", "three", "enter", "/status", "enter")
	if got := d.lines(); !reflect.DeepEqual(got, []string{"one", "/status"}) {
		t.Fatalf("%q was entered", got)
	}
	d.sees("next: two", "next: three", "pm_1  completed", "Ctrl-C cancels the line")
	d.press("up")
	if d.m.input.text != "three" || len(d.m.queue) != 1 {
		t.Fatalf("Up took %q back and left %q", d.m.input.text, d.m.queue)
	}
	d.press("!", "enter")
	d.StartTask("pm_1")
	d.complete("pm_1")
	d.frame()
	d.StartTask("pm_2")
	d.complete("pm_2")
	d.frame()
	if got := d.lines(); !reflect.DeepEqual(got, []string{"one", "/status", "two", "three!"}) {
		t.Fatalf("%q was entered", got)
	}
	if !reflect.DeepEqual(d.past, []string{"one", "two", "three", "/status", "three!"}) {
		t.Errorf("%q is remembered", d.past)
	}
}

// An unknown command is refused while a line is in the foreground: it might have been meant to stop
// it.
func TestWrongCommandsNeedNotWait(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("@pm in front", "enter", "/nosuch", "enter")
	d.sees("> /nosuch\n  ^^^^^^^\n✗ There is no command /nosuch")
}

func TestRefused(t *testing.T) {
	d := newDesk(t, 120, 24, Options{})
	d.press("@builder-1 Implement based on $nonexistent")
	d.sees("Unknown agent reference: $nonexistent. Valid agents: pm, ba, builder-1, builder-2, reviewer, writer")
	d.press("enter")
	d.sees("> @builder-1 Implement based on $nonexistent\n" +
		"                                ^^^^^^^^^^^^\n" +
		"✗ Unknown agent reference: $nonexistent. Valid agents: pm, ba, builder-1, builder-2, reviewer, writer\n" +
		`  write \$nonexistent for the text itself`)
	if d.m.foreground.busy() || d.m.input.text != "" {
		t.Error("a refused line is in the way")
	}
	d.press("up")
	if d.m.input.text != "@builder-1 Implement based on $nonexistent" {
		t.Errorf("Up brings %q back", d.m.input.text)
	}
	d.press("ctrl+u", strings.Repeat("long ", 30)+"$nosuch "+strings.Repeat("tail ", 30), "enter")
	d.sees("…", "\n  "+strings.Repeat(" ", 60)+"^^^^^^^\n✗ Unknown")
	d.press("/broken", "enter")
	d.sees("✗ the disk is full", "  make room")
}

// Ctrl-C ends what it should and nothing else.
func TestInterrupts(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("@ba in the back &", "enter")
	d.StartTask("ba_1")
	d.press("half a line", "ctrl+c")
	if d.m.input.text != "" || len(d.stops) > 0 || d.quit {
		t.Fatal("Ctrl-C in a line is to throw the line away")
	}
	d.press("@pm in front", "enter", "typed ahead", "ctrl+c", "ctrl+c")
	if first, second := <-d.stops, <-d.stops; first != 1 || second != 2 {
		t.Errorf("the line in front was interrupted with %d and %d", first, second)
	}
	if d.m.input.text != "typed ahead" {
		t.Errorf("what is typed became %q", d.m.input.text)
	}
	d.CancelTask("pm_1")
	d.sees("⊘ pm_1 cancelled: Ctrl-C", "@pm: idle", "@ba: executing")
	d.press("ctrl+c", "ctrl+c")
	d.sees("Ctrl-C again leaves: 1 task has not ended")
	d.press("x", "backspace", "ctrl+c")
	if d.quit {
		t.Error("a key between two Ctrl-C does not take the first one back")
	}
	d.press("ctrl+d")
	d.sees("Ctrl-D again leaves")
	if d.press("ctrl+c", "ctrl+c"); !d.quit || d.m.left != ByInterrupt {
		t.Errorf("Ctrl-C twice leaves by %q", d.m.left)
	}
}

func TestInterruptBeforeTheSessionHasTheLine(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("@pm in front")
	enter := d.m.Update(tea.KeyPressMsg(keys["enter"]))
	d.press("ctrl+c")
	if len(d.stops) > 0 {
		t.Fatal("the session was told to cancel what it does not have")
	}
	d.follow(enter)
	if n := <-d.stops; n != 1 {
		t.Errorf("interrupted %d times", n)
	}
	d.CancelTask("pm_1")
	d.frame()
	d.press("@pm again", "enter")
	if len(d.stops) > 0 {
		t.Error("an interrupt hit the next line too")
	}
}

func TestEndOfInput(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	if d.press("abc", "left", "ctrl+d", "ctrl+d"); d.m.input.text != "ab" || d.quit {
		t.Errorf("Ctrl-D in a line made it %q", d.m.input.text)
	}
	if d.press("ctrl+u", "ctrl+d"); !d.quit || d.m.left != ByEnd {
		t.Error("Ctrl-D does not leave where nothing is typed and nothing runs")
	}
	d = newDesk(t, 100, 24, Options{})
	if d.press("/quit", "enter"); !d.quit || d.m.left != ByCommand {
		t.Error("/quit does not leave")
	}
	d = newDesk(t, 100, 24, Options{})
	if d.do(term.InputEnded{}); !d.quit || d.m.left != ByEnd {
		t.Error("a terminal that is gone does not leave")
	}
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"@p", "tab"}, "@pm "},
		{[]string{"@bu", "tab"}, "@builder-"},
		{[]string{"@bu", "tab", "tab"}, "@builder-1 "},
		{[]string{"@bu", "tab", "tab", "tab"}, "@builder-2 "},
		{[]string{"@bu", "tab", "tab", "tab", "tab"}, "@builder-1 "},
		{[]string{"@bu", "tab", "shift+tab"}, "@builder-2 "},
		{[]string{"@bu", "tab", "tab", "do it with $r", "tab"}, "@builder-1 do it with $reviewer "},
		{[]string{"x @w y", "left", "left", "tab"}, "x @writer  y"},
		{[]string{"/q", "tab"}, "/quit "},
		{[]string{"@x", "tab"}, "@x"},
		{[]string{"", "tab"}, ""},
	} {
		d := newDesk(t, 100, 24, Options{})
		d.press(c.keys...)
		if d.m.input.text != c.want {
			t.Errorf("%q makes %q, want %q", c.keys, d.m.input.text, c.want)
		}
		d.frame()
	}
	d := newDesk(t, 100, 24, Options{})
	d.press("@b", "tab")
	d.sees("  @ba  @builder-1  @builder-2")
	d.press("esc")
	d.misses("@ba  @builder-1")
}

func TestHistory(t *testing.T) {
	d := newDesk(t, 100, 24, Options{History: []string{"old", "two\nlines"}})
	d.press("draft", "up")
	if d.m.input.text != "two\nlines" {
		t.Fatalf("Up shows %q", d.m.input.text)
	}
	d.press("up", "up", "up", "up")
	if d.m.input.text != "old" {
		t.Fatalf("Up at the end shows %q", d.m.input.text)
	}
	d.press("down", "down", "down")
	if d.m.input.text != "draft" {
		t.Fatalf("Down comes back to %q", d.m.input.text)
	}
	d.press("enter", "draft", "enter")
	if len(d.past) != 1 {
		t.Errorf("what is entered twice is remembered as %q", d.past)
	}
}

func TestSeveralLinesAreOneEntry(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.press("@pm one", "alt+enter", "two", "ctrl+j")
	d.do(tea.PasteMsg{Content: "three\r\nfour\rfive\tx"})
	d.sees("> @pm one\n  two\n  three\n  four\n  five    x")
	d.press("enter")
	if got := d.lines(); !reflect.DeepEqual(got, []string{"@pm one\ntwo\nthree\nfour\nfive\tx"}) {
		t.Errorf("%q was entered", got)
	}
	d.sees("> @pm one\n  two\n")
	d.do(tea.PasteMsg{Content: strings.Repeat("x", maxEntry+1)})
	if d.m.input.text != "" {
		t.Error("a text that is too long was put in")
	}
	d.sees("a line can have 1048576 bytes")
}

// Nothing moves while a line is typed: the plan, the problem and the candidates have their own row.
func TestNothingJumps(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	above := func() string {
		lines := strings.Split(d.frame(), "\n")
		return strings.Join(lines[:len(lines)-2], "\n")
	}
	before := above()
	for _, r := range "@pm use $builder-1 and $nosuch -> @b" {
		d.press(string(r))
		if got := above(); got != before {
			t.Fatalf("typing changed the screen above the line:\n%s", got)
		}
	}
	d.press("tab", "tab", "tab")
	if above() != before {
		t.Error("completing changed the screen above the line")
	}
}

func TestScrolling(t *testing.T) {
	d := newDesk(t, 80, 24, Options{})
	d.press("@pm talk", "enter")
	d.StartTask("pm_1")
	for i := range 100 {
		d.screen.Delta("pm_1", termtest.Text(fmt.Sprintf("line %d\n", i)))
	}
	d.sees("line 99")
	d.press("pgup")
	d.misses("line 99")
	d.sees("lines below · PgDn")
	first := strings.Split(d.frame(), "\n")[1]
	d.screen.Delta("pm_1", termtest.Text("more\nand more\n"))
	if got := strings.Split(d.frame(), "\n")[1]; got != first {
		t.Errorf("what is looked at moved from %q to %q", first, got)
	}
	for range 50 {
		d.press("pgup")
	}
	d.sees("> @pm talk", "line 0")
	for range 50 {
		d.press("pgdown")
	}
	d.sees("and more")
	d.misses("lines below")
	d.press("pgup", "esc")
	d.sees("and more")
}

func TestDefaultAgentIsMarked(t *testing.T) {
	d := newDesk(t, 100, 24, Options{})
	d.sees("▸ · @pm: idle", "  · @ba: idle", "text goes to @pm")
	d.press("/use @ba", "enter")
	d.sees("  · @pm: idle", "▸ · @ba: idle", "text goes to @ba")
}

func TestReferencesWhileTyping(t *testing.T) {
	d := newDesk(t, 100, 24, Options{Terminal: term.Terminal{Color: true}})
	d.press("@pm $ba $nosuch")
	d.sees("\x1b[36m@pm\x1b[m", "\x1b[4;36m$ba\x1b[m", "\x1b[1;31m$nosuch\x1b[m")
	d = newDesk(t, 100, 24, Options{})
	d.press("@pm $ba $nosuch")
	d.sees("> @pm \x1b[4m$ba\x1b[m \x1b[7m$nosuch\x1b[m") // without colours the difference is seen too
}

func TestToolsAndErrorsAreTold(t *testing.T) {
	d := newDesk(t, 100, 24, Options{Greeting: "Good \x1b morning"})
	d.sees(`  Good \x1b morning`)
	d.press("@pm notice this", "enter")
	d.StartTask("pm_1")
	d.screen.Delta("pm_1", swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{Name: "read", Input: []byte(`{"file":"a"}`)}})
	d.screen.Delta("pm_1", swarm.Delta{Kind: swarm.DeltaStderr, Text: "a warning\n"})
	d.screen.Delta("pm_1", swarm.Delta{Kind: swarm.DeltaThinking, Text: "hm"})
	d.screen.Delta("pm_1", swarm.Delta{Kind: swarm.DeltaUsage, Usage: swarm.Usage{OutputTokens: 950, Estimated: true}})
	d.Pass(75 * time.Second)
	d.sees(`› read file=a`, "┊ a warning", "! the last good output of @pm is used", "~950", "1m15s")
	d.misses("hm")
	d.screen.Notice("the log\x07 is nearly full")
	d.sees(`! the log\x07 is nearly full`)
	d.Tell(swarm.TaskRetrying, "pm_1", "", swarm.Retry{Iteration: 1, Attempt: 1, Reason: "come back later", After: 4 * time.Second})
	d.sees("! pm_1 attempt 1 failed: come back later; again in 4s", "@pm: waiting for its next attempt")
	d.Tell(swarm.TaskBlocked, "pm_1", "", swarm.Reason{Reason: "no idea"})
	d.sees("@pm: blocked: no idea")
	d.Tell(swarm.TurnStarted, "pm_1", "pm_1/1/2", swarm.TurnStart{Iteration: 1, Attempt: 2, Start: 1})
	d.Tell(swarm.ApprovalAsked, "pm_1", "pm_1/1/2", swarm.Approval{ID: "pm_1/1/2/ab", What: "use Bash", Input: []byte(`{"command":"rm -r x"}`)})
	d.sees("! may pm_1 use Bash rm -r x? /approve @pm, or /deny @pm", "@pm: blocked: /approve @pm lets it use Bash rm -r x")
	d.Tell(swarm.ApprovalAsked, "pm_1", "pm_1/1/2", swarm.Approval{ID: "pm_1/1/2/cd", What: "use Bash", Input: []byte(`{"command":"ls"}`)})
	d.sees("! may pm_1 use Bash ls? /approve pm_1/1/2/cd, or /deny pm_1/1/2/cd")
	d.Tell(swarm.ApprovalAnswered, "pm_1", "pm_1/1/2", swarm.ApprovalAnswer{ID: "pm_1/1/2/ab", OK: true, Actor: swarm.Actor{By: "ana"}})
	d.sees("! pm_1: approved by ana")
	d.screen.Event(&swarm.Event{Seq: 99, Kind: swarm.Tick})
	d.sees("✗ event 99 comes after event")
}
