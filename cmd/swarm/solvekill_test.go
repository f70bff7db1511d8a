//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/sqlite"
	"swarm/internal/station"
)

// killVariable has the program kill itself at an append: "before 3" or "after 3".
const killVariable = "SWARM_TEST_KILL"

func init() {
	k := &killer{}
	if n, err := fmt.Sscanf(os.Getenv(killVariable), "%s %d", &k.moment, &k.at); n == 2 && err == nil {
		localStore = func(dir string) swarm.Store { return mortalStore{sqlite.NewStore(dir), k} }
	}
}

// A killer kills the program at an append.
type killer struct {
	moment string
	at     int64
	n      atomic.Int64
}

func (k *killer) check(moment string, n int64) {
	if moment == k.moment && n == k.at {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // no caller learns of the append
	}
}

// A mortalStore is a store whose logs have a killer.
type mortalStore struct {
	swarm.Store
	killer *killer
}

func (s mortalStore) Create(ctx context.Context, run swarm.RunID) (swarm.RunLog, error) {
	l, err := s.Store.Create(ctx, run)
	return mortalLog{l, s.killer}, err
}

func (s mortalStore) Open(ctx context.Context, run swarm.RunID, access swarm.Access) (swarm.RunLog, error) {
	l, err := s.Store.Open(ctx, run, access)
	return mortalLog{l, s.killer}, err
}

type mortalLog struct {
	swarm.RunLog
	killer *killer
}

func (l mortalLog) Append(ctx context.Context, b swarm.Batch) ([]int64, error) {
	n := l.killer.n.Add(1)
	l.killer.check("before", n)
	seqs, err := l.RunLog.Append(ctx, b)
	l.killer.check("after", n)
	return seqs, err
}

// A marketModel is the model of a swarm that compares two markets. One agent publishes, writes to the
// other and writes a file. The answer has all results that its prompt has.
type marketModel struct{ asked atomic.Int64 }

var (
	aboutMe = regexp.MustCompile(`\(you\)\*\*: "([^"]*)"`)
	inJapan = regexp.MustCompile(`(?m)^- ([a-z0-9-]+): "Japan"`)
)

func (m *marketModel) answer(r modeltest.Request) modeltest.Answer {
	m.asked.Add(1)
	text := r.System + "\n" + r.Prompt
	say := func(s string) modeltest.Answer {
		return modeltest.Answer{Text: s, Usage: modeltest.Usage{Input: 1000, Output: 30}}
	}
	_, budget, works := strings.Cut(text, "## Budget: Iteration ")
	if !works {
		if strings.Contains(text, "Divide the query") {
			return say(`{"subtasks": [{"id": "us", "description": "The US"}, {"id": "jp", "description": "Japan"}]}`)
		}
		results := []string{"The markets compared."}
		for _, s := range []string{"The US leads.", "Japan has edge AI."} {
			if strings.Contains(text, s) {
				results = append(results, s)
			}
		}
		return say(strings.Join(results, " "))
	}
	var i int
	me := aboutMe.FindStringSubmatch(text)
	if _, err := fmt.Sscanf(budget, "%d of", &i); err != nil || me == nil {
		return modeltest.Answer{Status: 400, Message: fmt.Sprint("this is no iteration: ", err)}
	}
	says := map[string]string{
		"The US/1": `{"action": "publish_data", "topic": "findings", "data": "80 %"}`,
		"The US/3": `{"action": "tool_call", "tool": "file_write", "tool_params": {"path": "us.md", "content": "The US"}}`,
		"The US/4": `{"action": "done", "response": "The US leads."}`,
		"Japan/1":  `{"action": "tool_call", "tool": "file_list", "tool_params": {"path": "."}}`,
		"Japan/2":  `{"action": "done", "response": "Japan has edge AI."}`,
	}
	if other := inJapan.FindStringSubmatch(text); other != nil {
		says["The US/2"] = `{"action": "send_message", "to": "` + other[1] + `", "payload": {"message": "Look at edge AI"}}`
	}
	return say(says[fmt.Sprint(me[1], "/", i)])
}

// A market is a folder with a swarm that compares two markets, and its model.
type market struct {
	*place
	model *marketModel
}

func newMarket(t *testing.T, calls int) market {
	t.Helper()
	m := market{&place{T: t, dir: t.TempDir()}, &marketModel{}}
	m.home = filepath.Join(m.dir, "home")
	server := modeltest.Start()
	t.Cleanup(server.Close)
	server.Reply = m.model.answer
	m.env = []string{"ANTHROPIC_API_KEY=x"}
	m.check(os.Mkdir(filepath.Join(m.dir, "swarm"), 0o700))
	m.compose(fmt.Sprintf("provider: m\nproviders: {m: {kind: anthropic, base_url: %q, models: {medium: tiny, large: tiny}}}\n"+
		"agents: {any: {tools: [file_list, file_write]}}\nbudget: {calls: %d}\n", server.URL+"/v1", calls))
	return m
}

// drives runs the program, which is killed at a moment, "" = never. It returns false if it ended before.
func (m market) drives(moment string, args ...string) (killed bool) {
	m.Helper()
	p := *m.place
	p.env = append(slices.Clone(m.env), killVariable+"="+moment)
	_, stderr, code := p.try(args...)
	if code != -1 && code != 0 && code != 3 { // 3 = the budget is spent
		m.Fatalf("swarm %v, killed %s, exited with %d: %s", args, moment, code, tail(stderr))
	}
	return code == -1
}

// again returns the command that goes on with the run, or nil if it has ended. It begins anew if the
// program was killed before there was a run.
func (m market) again() []string {
	m.Helper()
	switch all := m.list(); {
	case len(all) > 1:
		m.Fatalf("there are %d runs", len(all))
	case len(all) == 0:
		return []string{"solve", marketQuery}
	case !all[0].Status.Ended():
		return []string{"resume", "@last"}
	}
	return nil
}

// turns names the turns that were committed, with numbers in place of the run's names for agents. It
// checks that each was committed once, that the log knows of every request, and that the budget was
// kept.
func (m market) turns(killed string, calls int) string {
	m.Helper()
	id := m.list()[0].ID
	log := m.log(id)
	t, starts := m.tally(log), 0
	for turn, n := range t.ends {
		if n != 1 {
			m.Errorf("killed %s: %s was committed %d times", killed, turn, n)
		}
	}
	for _, n := range t.starts {
		starts += n
	}
	asked := int(m.model.asked.Load())
	if asked > calls || asked > starts {
		m.Errorf("killed %s: the model was asked %d times, the budget has %d calls, and the log %d starts", killed, asked, calls, starts)
	}
	if used := m.used(log); used.Calls > int64(calls) {
		m.Errorf("killed %s: the run has used %+v, and its budget has %d calls", killed, used, calls)
	}
	numbered := map[string]bool{}
	for turn := range t.ends {
		name := string(turn)
		for i := range 2 {
			if rest, ok := strings.CutPrefix(name, station.Name(swarm.RunID(id), i)+"/"); ok {
				name = fmt.Sprint(i, "/", rest)
			}
		}
		numbered[name] = true
	}
	return names(numbered)
}

// used is what the end of the run says that it has used. A run has one end.
func (m market) used(log []swarm.Event) (used swarm.Usage) {
	m.Helper()
	ends := 0
	for _, e := range log {
		if e.Kind == swarm.RunEnded {
			used = body[swarm.RunEnd](m.place, e).Usage
			ends++
		}
	}
	if ends != 1 {
		m.Errorf("the run has %d ends:\n%s", ends, words(log))
	}
	return used
}

// answer is what `swarm out` prints. A run has none only if all its calls were cut.
func (m market) answer() string {
	m.Helper()
	out, stderr, code := m.try("out", "@last")
	if used := m.used(m.log(m.list()[0].ID)); code != 0 && used.Calls > used.CutCalls {
		m.Errorf("there is no answer after %d calls, %d of them cut: %s", used.Calls, used.CutCalls, stderr)
	}
	return out
}

const marketQuery = "Compare two markets"

// A swarm that is killed with SIGKILL before or after any append has the same answer when it is
// resumed. No turn is committed twice, and it stays within its budget.
func TestSwarmKilledAtEveryAppend(t *testing.T) {
	t.Parallel()
	step := times(30, 8, 1)
	for _, c := range []struct {
		calls int
		spent bool
	}{{20, false}, {5, true}} {
		calm := newMarket(t, c.calls)
		calm.drives("", "solve", marketQuery)
		turns, answer := calm.turns("never", c.calls), calm.answer()
		for _, moment := range []string{"before", "after"} {
			kills := 0
			for at := 1 + rand.IntN(step); ; at += step {
				m, when := newMarket(t, c.calls), fmt.Sprint(moment, " ", at)
				if !m.drives(when, "solve", marketQuery) {
					break
				}
				kills++
				if args := m.again(); args != nil {
					m.drives("", args...)
				}
				gotTurns, gotAnswer := m.turns(when, c.calls), m.answer()
				if !c.spent && (gotTurns != turns || gotAnswer != answer) { // otherwise it has less to answer from
					t.Errorf("killed %s: %q from %s, want %q from %s", when, gotAnswer, gotTurns, answer, turns)
				}
			}
			if kills == 0 {
				t.Error("nothing was killed ", moment, " an append")
			}
			t.Logf("%d kills %s an append of a swarm with %d calls: %q from %s", kills, moment, c.calls, answer, turns)
		}
	}
}

// A swarm whose every driver is killed after a few appends ends all the same, with the same answer.
func TestSwarmKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	const calls = 1000
	calm := newMarket(t, calls)
	calm.drives("", "solve", marketQuery)
	turns, answer := calm.turns("never", calls), calm.answer()
	all := 0
	for range times(1, 1, 30) {
		m, kills := newMarket(t, calls), 0
		for args := m.again(); args != nil && m.drives(fmt.Sprint("before ", 8+rand.IntN(16)), args...); args = m.again() {
			if kills++; kills == 200 {
				t.Fatal("it has not ended after 200 kills")
			}
		}
		all += kills
		if gotTurns, gotAnswer := m.turns("often", calls), m.answer(); gotTurns != turns || gotAnswer != answer {
			t.Errorf("killed %d times: %q from %s, want %q from %s", kills, gotAnswer, gotTurns, answer, turns)
		}
	}
	t.Logf("%d kills", all)
}
