//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarm"
)

// TestTeamKilledUnderLoad kills the driver of a team of ten agents at random moments. Each agent
// always has mail to read and messages to write. The run is resumed at once. In the end the agents'
// ledger must agree with the log: each acknowledged message is stored once, and one committed turn
// has read it, in order.
func TestTeamKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	t.Parallel()
	kills, each := times(3, 20, 1000), times(3, 20, 100)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	all := &correspondence{random: rand.New(rand.NewPCG(seed, 0))}
	began := time.Now()
	for all.kills < kills && !t.Failed() {
		all.place = newLetterPlace(t)
		all.until(min(kills, all.kills+each))
		all.closes()
		all.audit()
	}
	t.Logf("%d kills in %s: %d letters, %d of them acknowledged, %d sent once more because nobody had answered, %d by a person; %d turns committed, %d of them started again; %d letters shown by read_inbox",
		all.kills, time.Since(began).Round(time.Second), all.intended, all.acked, all.repeated, all.persons, all.turns, all.again, all.read)
}

// A correspondence is a team that is killed, run after run.
type correspondence struct {
	*place
	random *rand.Rand
	id     string
	old    int64 // the last event that a driver told of

	kills, intended, acked, repeated, turns, again, read, persons int // over all runs
}

// newLetterPlace is a folder with a team of writers.
func newLetterPlace(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, dir: t.TempDir()}
	p.home = filepath.Join(p.dir, "home")
	p.check(os.Mkdir(filepath.Join(p.dir, "swarm"), 0o700))
	var agents, edges []string
	for i := range letterAgents {
		agents = append(agents, letterName(i)+": {}")
		for _, peer := range letterPeers(i, letterAgents) {
			edges = append(edges, fmt.Sprintf("%q", letterName(i)+" -> "+letterName(peer)))
		}
	}
	p.compose("provider: letters\nproviders:\n  letters: {kind: command, command: [letterwriter]}\nagents: {" + strings.Join(agents, ", ") + "}\nedges: [" + strings.Join(edges, ", ") + "]\n")
	return p
}

// until drives the team, and kills the driver again and again, until so many kills are done.
func (c *correspondence) until(kills int) {
	c.Helper()
	c.old = 0
	first := newLetter()
	c.check(c.notes("intends", first, swarm.User, letterName(0)))
	args := []string{"team", first}
	for c.kills < kills && !c.Failed() {
		d := c.drives(args...)
		killed := c.killsSometime(d)
		if args[0] == "team" && len(c.list()) == 0 {
			continue // it died before there was a run
		}
		args = []string{"resume", "@last"}
		if !killed {
			c.Fatalf("swarm %v ended by itself with %d: %s", args, d.cmd.ProcessState.ExitCode(), tail(d.stderr.String()))
		}
	}
}

// killsSometime kills a driver after a random time, or just after an event. Sometimes a person
// writes to an agent just before.
func (c *correspondence) killsSometime(d *driving) bool {
	c.Helper()
	instant := time.Duration(c.random.IntN(100_000)) * time.Microsecond // it may not even have begun
	kinds := []swarm.EventKind{"", swarm.HandoffStored, swarm.HandoffConsumed, swarm.TurnStarted, swarm.TurnEnded, swarm.RunOwned}
	kind, wait := kinds[c.random.IntN(len(kinds))], c.random.IntN(15)
	switch kind {
	case "":
	case swarm.RunOwned:
		wait, instant = 0, time.Second
	default:
		instant = time.Second
	}
	if c.random.IntN(10) == 0 {
		c.personWrites()
	}
	alarm := time.After(instant)
	for {
		select {
		case e, ok := <-d.lines:
			d.said = append(d.said, e)
			if ok && (e.Kind != kind || e.Seq <= c.old || wait > 0) {
				if e.Kind == kind && e.Seq > c.old {
					wait--
				}
				continue
			}
			if ok {
				<-time.After(time.Duration(c.random.IntN(2000)) * time.Microsecond)
			}
		case <-alarm:
		}
		if !d.kill() {
			return false
		}
		if n := len(d.said); n > 0 {
			c.old = d.said[n-1].Seq
		}
		c.kills++
		return true
	}
}

// personWrites sends a person's message to an agent, and notes it in the ledger.
func (c *correspondence) personWrites() {
	c.Helper()
	text, to := newLetter(), letterName(c.random.IntN(letterAgents))
	if len(c.list()) == 0 {
		return
	}
	c.check(c.notes("intends", text, swarm.User, to))
	out, _, code := c.try("send", "@"+to, text, "--id", text, "--json")
	if code != 0 {
		return
	}
	_, number, _ := strings.Cut(out, `"seq":`)
	number, _, _ = strings.Cut(strings.TrimSpace(number), "}")
	c.check(c.notes("acked", text, strings.TrimSpace(number)))
	c.persons++
}

func (c *correspondence) notes(words ...string) error {
	return noteLetterIn(filepath.Join(c.dir, letterLedger), words...)
}

// closes makes the agents stop writing, and read the rest of their mail.
func (c *correspondence) closes() {
	c.Helper()
	if c.Failed() {
		return
	}
	c.check(os.WriteFile(filepath.Join(c.dir, lettersOver), nil, 0o600))
	c.runs(0, "resume", "@last", "--json")
	c.id = c.list()[0].ID
	if found := left(c.id); found != nil {
		c.Errorf("processes are left: %q", found)
	}
}

// A storedLetter is one in the log.
type storedLetter struct {
	seq      int64
	from, to string
}

// A committed is a turn that the log says has committed.
type committed struct {
	starts  int
	letters []string // that it consumed, in the order of the inbox
}

// audit compares the ledger with the log.
func (c *correspondence) audit() {
	c.Helper()
	if c.Failed() {
		return
	}
	log := c.log(c.id)
	stored := c.stored(log)
	turns := c.consumed(log, stored)
	lines, err := ledgerLines(filepath.Join(c.dir, letterLedger))
	c.check(err)
	c.auditSent(lines, stored)
	c.auditRead(lines, turns)
}

// stored are the letters in the log.
func (c *correspondence) stored(log []swarm.Event) map[string]storedLetter {
	c.Helper()
	all := map[string]storedLetter{}
	for _, e := range log {
		if e.Kind != swarm.HandoffStored {
			continue
		}
		env := body[swarm.Envelope](c.place, e)
		text := env.Payload.Message
		if _, twice := all[text]; twice {
			c.Errorf("%s is stored twice", text)
		}
		if e.To != swarm.ToAgent(env.ToNodeID) || e.Agent != env.FromNodeID {
			c.Errorf("%s is from %s to %s, and its event from %s to %s", text, env.FromNodeID, env.ToNodeID, e.Agent, e.To)
		}
		all[text] = storedLetter{e.Seq, env.FromNodeID, env.ToNodeID}
	}
	return all
}

// consumed lists the committed turns with the mail that each consumed. It checks that the turns of
// an inbox consume it without a gap.
func (c *correspondence) consumed(log []swarm.Event, stored map[string]storedLetter) map[swarm.TurnID]*committed {
	c.Helper()
	turns, cursors, inboxes := map[swarm.TurnID]*committed{}, map[string]int64{}, map[string][]string{}
	for text, s := range stored {
		inboxes[s.to] = append(inboxes[s.to], text)
	}
	for _, inbox := range inboxes {
		slices.SortFunc(inbox, func(a, b string) int { return int(stored[a].seq - stored[b].seq) })
	}
	starts, ends := map[swarm.TurnID]int{}, map[swarm.TurnID]swarm.CallState{}
	for _, e := range log {
		switch e.Kind {
		case swarm.TurnStarted:
			starts[e.Turn]++
		case swarm.TurnEnded:
			ends[e.Turn] = body[swarm.CallEnd](c.place, e).Status
		}
	}
	for _, e := range log {
		if e.Kind != swarm.HandoffConsumed {
			continue
		}
		in := body[swarm.Consumption](c.place, e)
		if turns[in.Turn] != nil || ends[in.Turn] != swarm.CallOK {
			c.Errorf("%s consumes mail, and has done so before, or has not ended well: %s", in.Turn, ends[in.Turn])
		}
		if in.From != cursors[e.Agent] {
			c.Errorf("%s consumes what comes after %d, and its agent had read up to %d", in.Turn, in.From, cursors[e.Agent])
		}
		cursors[e.Agent] = in.Upto
		t := &committed{starts: starts[in.Turn]}
		for inbox := inboxes[e.Agent]; len(inbox) > 0 && stored[inbox[0]].seq <= in.Upto; inbox = inboxes[e.Agent] {
			t.letters, inboxes[e.Agent] = append(t.letters, inbox[0]), inbox[1:]
		}
		turns[in.Turn] = t
	}
	for agent, inbox := range inboxes {
		if len(inbox) > 0 {
			c.Errorf("nobody has consumed %d letters to %s, %s the first", len(inbox), agent, inbox[0])
		}
	}
	return turns
}

// auditSent checks the agents' notes of sent messages. An acknowledged message is stored under its
// number. An unacknowledged one is stored once or not at all. A message that was sent after another
// was acknowledged comes after it in the log.
func (c *correspondence) auditSent(lines [][]string, stored map[string]storedLetter) {
	c.Helper()
	intended, after, acked := map[string][]string{}, map[string]int64{}, map[string]bool{}
	var newest int64
	for _, l := range lines {
		switch l[0] {
		case "intends":
			if intended[l[1]] != nil {
				c.repeated++
				continue
			}
			intended[l[1]], after[l[1]] = l, newest
		case "acked":
			seq, err := strconv.ParseInt(l[2], 10, 64)
			c.check(err)
			newest, acked[l[1]] = max(newest, seq), true
			if s, ok := stored[l[1]]; !ok || s.seq != seq {
				c.Errorf("%s was acknowledged as %d, and the log has it as %d (0 = lost)", l[1], seq, s.seq)
			}
		case "refused":
			c.Errorf("a letter was refused: %q", l)
		}
	}
	for text, s := range stored {
		by := intended[text]
		switch {
		case by == nil:
			c.Errorf("the log has %s from %s to %s, and nobody wrote it", text, s.from, s.to)
		case by[2] != s.from || by[3] != s.to:
			c.Errorf("the log has %s from %s to %s, and it was %q", text, s.from, s.to, by)
		case s.seq <= after[text]:
			c.Errorf("%s is number %d, and was written after %d was acknowledged", text, s.seq, after[text])
		}
	}
	c.intended += len(intended)
	c.acked += len(acked)
}

// auditRead checks that each committed turn saw the messages that it consumed according to the log,
// and that no two turns saw the same message.
func (c *correspondence) auditRead(lines [][]string, turns map[swarm.TurnID]*committed) {
	c.Helper()
	seen, process := map[swarm.TurnID][]string{}, map[swarm.TurnID]string{}
	for _, l := range lines {
		if l[0] != "got" && l[0] != "read" {
			continue
		}
		turn, letters := swarm.TurnID(l[1]), l[3:]
		if l[0] == "got" { // a later start: the one before it has consumed nothing
			seen[turn], process[turn] = nil, l[2]
		} else {
			c.read += len(letters)
		}
		if process[turn] == l[2] {
			seen[turn] = append(seen[turn], letters...)
		}
	}
	by := map[string]swarm.TurnID{}
	for turn, t := range turns {
		c.turns++
		if t.starts > 1 {
			c.again++
		}
		if !slices.Equal(seen[turn], t.letters) {
			c.Errorf("%s was given %q, and the log says that it consumed %q", turn, seen[turn], t.letters)
		}
		for _, text := range seen[turn] {
			if by[text] != "" {
				c.Errorf("%s was given to %s and to %s, and both have committed", text, by[text], turn)
			}
			by[text] = turn
		}
	}
}
