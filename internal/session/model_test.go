package session

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"swarm"
)

// A model is the simplest description of what must happen in a session. It knows the lines, and
// checks the outcome in the log. A line is planned at some moment between two known ones. A task
// that ended in between may count as open or as ended.
type model struct {
	lines   []*entry
	refused []*entry
	tasks   []*made // in the order in which they were entered
	grown   int     // lines whose place in the log is known
}

// An entry is a line that was entered.
type entry struct {
	text       string
	background bool
	stages     []stage
	from, to   int64 // how far the log was before the line was planned, and when it was taken or refused
	refusal    string
}

type stage struct {
	agents []string
	text   string
	refs   []string
	tasks  []*made
}

// A made is a task that a line made.
type made struct {
	name, agent string
	line        *entry
	stage       int
	asked       int64 // how far the log was when it was cancelled; 0 = it was not

	starts, ends         int
	started, said, ended int64 // places in the log: the turn's start and end, the task's end
	status               swarm.Status
	reason               string
}

// take adds a line that was accepted, and checks the names of its tasks: they count the tasks of
// an agent in the session.
func (m *model) take(t *testing.T, l *entry, names []string) {
	t.Helper()
	var want []string
	for i := range l.stages {
		st := &l.stages[i]
		for _, a := range st.agents {
			n := 1
			for _, other := range m.tasks {
				if other.agent == a {
					n++
				}
			}
			one := &made{name: fmt.Sprintf("%s_%d", a, n), agent: a, line: l, stage: i}
			st.tasks, m.tasks, want = append(st.tasks, one), append(m.tasks, one), append(want, one.name)
		}
	}
	if !slices.Equal(names, want) {
		t.Fatalf("%s made %v, want %v", l.text, names, want)
	}
	m.lines = append(m.lines, l)
}

func (m *model) text() string {
	var b strings.Builder
	for _, l := range m.lines {
		fmt.Fprintf(&b, "%d-%d %s\n", l.from, l.to, l.text)
		for _, st := range l.stages {
			for _, t := range st.tasks {
				fmt.Fprintf(&b, "    %s %s: started %d, said %d, ended %d, asked to end %d %s\n", t.name, t.status, t.started, t.said, t.ended, t.asked, t.reason)
			}
		}
	}
	return b.String()
}

// happened adds the next event of the log.
func (m *model) happened(e *swarm.Event) {
	if e.Kind == swarm.PlanAdded && e.To != "" {
		m.lines[m.grown].to = e.Seq
		m.grown++
	}
	i := slices.IndexFunc(m.tasks, func(t *made) bool { return t.name == e.Task })
	if i < 0 {
		return
	}
	t := m.tasks[i]
	switch e.Kind {
	case swarm.TurnStarted:
		t.starts, t.started = t.starts+1, e.Seq
	case swarm.TurnEnded:
		t.said = e.Seq
	case swarm.TaskCompleted, swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		var end swarm.TaskEnd
		_ = json.Unmarshal(e.Data, &end) // a reason that cannot be read is none, and misses below
		t.ends, t.ended, t.reason = t.ends+1, e.Seq, end.Reason
		t.status = map[swarm.EventKind]swarm.Status{swarm.TaskCompleted: swarm.Completed, swarm.TaskFailed: swarm.Failed, swarm.TaskSkipped: swarm.Skipped,
			swarm.TaskCancelled: swarm.Cancelled}[e.Kind]
	}
}

// check checks the session, and counts the outputs that were injected into prompts.
func (m *model) check(t *testing.T, prompts map[string][]string) (injected int) {
	t.Helper()
	if m.grown != len(m.lines) {
		t.Errorf("%d lines were taken, the log has %d", len(m.lines), m.grown)
		return 0
	}
	for _, l := range m.refused {
		m.checkRefused(t, l)
	}
	for _, l := range m.lines {
		m.checkTaken(t, l)
	}
	for _, one := range m.tasks {
		switch {
		case one.ends != 1:
			t.Errorf("%s ended %d times", one.name, one.ends)
		case one.starts > 1, len(prompts[one.name]) != one.starts && one.status != swarm.Cancelled:
			t.Errorf("%s began %d times, and its agent was asked %d times", one.name, one.starts, len(prompts[one.name]))
		default:
			m.checkEnd(t, one)
		}
		if one.starts == 1 && len(prompts[one.name]) == 1 {
			injected += m.checkPrompt(t, one, prompts[one.name][0])
		}
	}
	return injected
}

// earlier reports whether a line was entered before another one, which may have been refused.
func earlier(a, b *entry) bool { return a != b && a.to <= b.to }

// before returns an agent's tasks of the lines before one, oldest first.
func (m *model) before(l *entry, agent string) (tasks []*made) {
	for _, t := range m.tasks {
		if earlier(t.line, l) && t.agent == agent {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// needs returns what a task depends on: tasks that must succeed, tasks that must have ended, and
// tasks that ended so close to the line that they may count as either.
func (m *model) needs(l *entry, at int) (needed, after, perhaps []*made) {
	if at > 0 {
		needed = append(needed, l.stages[at-1].tasks...)
	}
	for _, x := range l.stages[at].refs {
		var here []*made
		for _, st := range l.stages[:at] {
			for _, t := range st.tasks {
				if t.agent == x {
					here = append(here, t)
				}
			}
		}
		newest, unsure := true, false // no newer one was open; or perhaps one was
		for _, t := range slices.Backward(append(m.before(l, x), here...)) {
			switch {
			case t.line != l && t.ended <= l.from:
			case t.line != l && t.ended <= l.to:
				perhaps, unsure = append(perhaps, t), true
			case newest && unsure:
				perhaps, after, newest = append(perhaps, t), append(after, t), false
			case newest:
				needed, newest = append(needed, t), false
			default:
				after = append(after, t)
			}
		}
	}
	return needed, after, perhaps
}

// good returns an agent's newest good output at a place in the log.
func (m *model) good(agent string, at int64) (newest *made) {
	for _, t := range m.tasks {
		if t.agent == agent && t.status == swarm.Completed && t.said <= at && (newest == nil || t.said > newest.said) {
			newest = t
		}
	}
	return newest
}

// silent reports whether an agent had no output and no task when the line was planned: surely, or
// perhaps.
func (m *model) silent(l *entry, at int, x string) (surely, perhaps bool) {
	for _, st := range l.stages[:at] {
		if slices.Contains(st.agents, x) {
			return false, false
		}
	}
	surely, perhaps = true, true
	for _, t := range m.before(l, x) {
		switch {
		case t.ended > l.to: // it is open, and stays so
			return false, false
		case t.ended > l.from: // it may be open
			surely = false
			perhaps = perhaps && t.status != swarm.Completed
		case t.status == swarm.Completed:
			return false, false
		}
	}
	return surely, perhaps
}

// checkEnd checks how a task ended.
func (m *model) checkEnd(t *testing.T, one *made) {
	t.Helper()
	needed, after, perhaps := m.needs(one.line, one.stage)
	ended := func(of []*made) *made { // one that did not go well
		if i := slices.IndexFunc(of, func(d *made) bool { return d.status != swarm.Completed }); i >= 0 {
			return of[i]
		}
		return nil
	}
	awaits := false
	for _, x := range one.line.stages[one.stage].refs {
		_, unheard := m.silent(one.line, one.stage, x)
		awaits = awaits || unheard
	}
	switch bad := ended(needed); {
	case one.status == swarm.Cancelled:
		if one.asked == 0 {
			t.Errorf("%s was cancelled, and nobody asked for it", one.name)
		}
	case one.asked > 0 && one.started > one.asked && one.status == swarm.Completed:
		t.Errorf("%s was cancelled before it began, and yet it completed", one.name)
	case bad != nil && (one.status != swarm.Failed || one.starts > 0 || !strings.HasPrefix(one.reason, "Referenced agent @") && !awaits):
		t.Errorf("%s needed %s, which is %s, and yet is %s after %d turns: %s", one.name, bad.name, bad.status, one.status, one.starts, one.reason)
	case bad != nil:
	case strings.HasPrefix(one.reason, "Referenced agent @"):
		if ended(perhaps) == nil {
			t.Errorf("%s failed although all that it needed went well: %s", one.name, one.reason)
		}
	case strings.Contains(one.reason, "has no output to reference"):
		if !awaits || !one.line.background {
			t.Errorf("%s did not have to wait: %s", one.name, one.reason)
		}
	case one.starts == 0:
		t.Errorf("%s is %s and never began: %s", one.name, one.status, one.reason)
	case strings.HasSuffix(one.line.stages[one.stage].text, failing) != (one.status == swarm.Failed):
		t.Errorf("%s is %s: %s", one.name, one.status, one.reason)
	}
	for _, d := range slices.Concat(needed, after) {
		if one.starts > 0 && d.ended > one.started {
			t.Errorf("%s began before %s had ended", one.name, d.name)
		}
	}
}

var injection = regexp.MustCompile(`\[Output from @([a-z0-9-]+)\]: «([a-z0-9-]+_\d+)»`)

// checkPrompt checks a task's prompt: each output is whole, in its place, and of the right turn.
func (m *model) checkPrompt(t *testing.T, one *made, prompt string) (injected int) {
	t.Helper()
	_, text, _ := strings.Cut(prompt, "\n\n")
	found := injection.FindAllStringSubmatch(text, -1)
	next := func(agent string) *made {
		if injected < len(found) && found[injected][1] == agent {
			injected++
			for _, other := range m.tasks {
				if other.name == found[injected-1][2] {
					return other
				}
			}
		}
		return &made{name: "nothing"}
	}
	st := one.line.stages[one.stage]
	var want strings.Builder
	if one.stage > 0 {
		for _, d := range one.line.stages[one.stage-1].tasks {
			if !slices.Contains(st.refs, d.agent) {
				fmt.Fprintf(&want, "[Output from @%s]: %s\n\n", d.agent, outputOf(d.name))
				if got := next(d.agent); got != d {
					t.Errorf("%s got the output of %s from the stage before, and not that of %s", one.name, got.name, d.name)
				}
			}
		}
	}
	want.WriteString(st.text)
	for _, x := range st.refs {
		got := next(x)
		m.checkCurrent(t, one, x, got)
		fmt.Fprintf(&want, " then [Output from @%s]: %s", x, outputOf(got.name))
	}
	if got := strings.TrimSuffix(text, "\n"); got != want.String() {
		t.Errorf("%s was asked\n%s\nand not\n%s", one.name, got, want.String())
	}
	return injected
}

// checkCurrent checks that an injected output was the newest good one at some moment between the
// end of the task's dependencies and its start.
func (m *model) checkCurrent(t *testing.T, one *made, agent string, got *made) {
	t.Helper()
	ready := one.line.to
	needed, after, _ := m.needs(one.line, one.stage)
	for _, d := range slices.Concat(needed, after) {
		ready = max(ready, d.said)
	}
	for _, other := range m.tasks { // what its agent did before
		if other.agent == one.agent && other.started < one.started {
			ready = max(ready, other.said)
		}
	}
	least := m.good(agent, ready)
	switch {
	case got.agent != agent || got.status != swarm.Completed || got.said > one.started:
		t.Errorf("%s got the output of %s for $%s", one.name, got.name, agent)
	case least != nil && got.said < least.said:
		t.Errorf("%s got the output of %s for $%s, which %s had replaced", one.name, got.name, agent, least.name)
	}
}

// checkRefused checks that a refused line had to be refused.
func (m *model) checkRefused(t *testing.T, l *entry) {
	t.Helper()
	switch {
	case strings.HasPrefix(l.refusal, "Circular dependency detected: @"):
		if m.everywhere(l, false) {
			t.Errorf("%s is not circular: %s", l.text, l.refusal)
		}
	case strings.HasPrefix(l.refusal, "Agent @") && strings.Contains(l.refusal, " has no output to reference. Run a task for @"):
		if !m.mute(l, false) {
			t.Errorf("%s refers to nobody who has said nothing: %s", l.text, l.refusal)
		}
	default:
		t.Errorf("%s was refused: %s", l.text, l.refusal)
	}
}

// checkTaken checks that an accepted line could be accepted.
func (m *model) checkTaken(t *testing.T, l *entry) {
	t.Helper()
	if m.mute(l, true) {
		t.Errorf("%s refers to somebody who has said nothing", l.text)
	}
	if m.everywhere(l, true) {
		t.Errorf("%s is circular", l.text)
	}
}

// everywhere reports whether a line was circular, or was not, at every place of the log at which
// the session may have planned it. A task may count as ended from the end of its turn on, before
// its loop says so. An open task may wait for an output that is still to come if it refers to an agent
// whose last task failed just when that line was planned: either all such tasks wait or none does. What
// is so in both cases is so if only some of them wait, since a wait never lets another task end.
func (m *model) everywhere(l *entry, circular bool) bool {
	for at := l.from; at <= l.to; at++ {
		for _, byTurns := range []bool{false, true} {
			for _, waits := range []bool{false, true} {
				if is, known := m.circular(l, at, byTurns, waits); is != circular || !known {
					return false
				}
			}
		}
	}
	return true
}

// mute reports whether a line in the foreground refers to an agent without output.
func (m *model) mute(l *entry, surely bool) bool {
	for i, st := range l.stages {
		for _, x := range st.refs {
			if sure, perhaps := m.silent(l, i, x); !l.background && (sure || perhaps && !surely) {
				return true
			}
		}
	}
	return false
}

// circular reports whether a task of a line could never end if the line were entered at a place of
// the log. waits says whether tasks wait that may. Failures can make accepted tasks wait for each
// other; then the model does not know.
func (m *model) circular(l *entry, at int64, byTurns, waits bool) (is, known bool) {
	var open []*made
	for _, t := range m.tasks {
		if earlier(t.line, l) && t.ended > at && !(byTurns && t.said > 0 && t.said <= at) {
			open = append(open, t)
		}
	}
	known = len(m.stuck(open, at, waits)) == 0
	for i, st := range l.stages {
		for _, a := range st.agents {
			open = append(open, &made{agent: a, line: l, stage: i})
		}
	}
	return slices.ContainsFunc(m.stuck(open, at, waits), func(t *made) bool { return t.line == l }), known
}

// stuck returns the open tasks that cannot end.
func (m *model) stuck(open []*made, at int64, waits bool) []*made {
	ends := map[*made]bool{}
	for changed := true; changed; {
		changed = false
		for _, t := range open {
			if !ends[t] && m.canEnd(t, open, ends, at, waits) {
				ends[t], changed = true, true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(open), func(t *made) bool { return ends[t] })
}

// canEnd reports whether a task depends on no task that cannot end.
func (m *model) canEnd(t *made, open []*made, ends map[*made]bool, at int64, waits bool) bool {
	stuck := func(agent string, stage int) bool {
		return slices.ContainsFunc(open, func(o *made) bool {
			return o != t && o.agent == agent && !ends[o] && (earlier(o.line, t.line) || o.line == t.line && o.stage < stage)
		})
	}
	if t.stage > 0 {
		for _, a := range t.line.stages[t.stage-1].agents {
			if slices.ContainsFunc(open, func(o *made) bool { return o.line == t.line && o.stage == t.stage-1 && o.agent == a && !ends[o] }) {
				return false
			}
		}
	}
	for _, x := range t.line.stages[t.stage].refs {
		if stuck(x, t.stage) {
			return false
		}
		surely, perhaps := m.silent(t.line, t.stage, x)
		if (surely || perhaps && waits) && m.good(x, at) == nil && m.hopeless(t, x, open, ends) {
			return false
		}
	}
	return true
}

// hopeless reports whether an agent has tasks and none of them can end. A later line may give tasks
// to an agent without any.
func (m *model) hopeless(t *made, x string, open []*made, ends map[*made]bool) bool {
	found := false
	for _, o := range open {
		if o != t && o.agent == x {
			if ends[o] {
				return false
			}
			found = true
		}
	}
	return found
}
