package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"swarm"
	"swarm/internal/httpd"
)

// letterAgents is how many agents write to each other, all the time.
const letterAgents = 10

// The agents of TestTeamKilledUnderLoad are this program under the name letterwriter. Each one
// reads its mail, writes to others with the tools of its run, and notes both in a ledger outside
// swarm's state:
//
//	got      TURN PROCESS LETTERS…   what its prompt held
//	read     TURN PROCESS LETTERS…   what read_inbox showed
//	intends  LETTER FROM TO          before it is sent; again when it is not known what became of it
//	acked    LETTER SEQ              swarm said that it is stored
//	refused  LETTER WHY              swarm said that it is not
//
// Each line is on disk before the agent continues.
const letterLedger = "ledger"

// lettersOver is the file that tells the agents to write no more.
const lettersOver = "over"

// letterPeers lists the agents that an agent may write to: its neighbours in a ring, and the one on
// the other side.
func letterPeers(i, agents int) (peers []int) {
	return []int{(i + 1) % agents, (i + agents - 1) % agents, (i + agents/2) % agents}
}

func letterName(i int) string { return "writer-" + strconv.Itoa(i) }

// newLetter makes a unique text.
func newLetter() string { return "letter-" + strings.ToLower(rand.Text()) }

// letterIn finds what stands under the head of each message in a prompt.
var letterIn = regexp.MustCompile(`(?m)^--- Message \d+ from \S+ \(.*\) ---\n(letter-\S+)$`)

// writeLetters is one turn.
func writeLetters() {
	if err := letterTurn(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func letterTurn() error {
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	turn, me := os.Getenv("SWARM_TURN_ID"), os.Getenv("SWARM_AGENT")
	process := strconv.Itoa(os.Getpid())
	got := []string{"got", turn, process}
	for _, m := range letterIn.FindAllStringSubmatch(string(prompt), -1) {
		got = append(got, m[1])
	}
	if err := noteLetter(got...); err != nil {
		return err
	}
	fmt.Println(turn, got[3:]) // who says the same again and again is taken for stuck
	open, err := openLetters(me)
	if err != nil {
		return err
	}
	if _, err := os.Stat(lettersOver); err == nil && len(open) == 0 {
		return nil
	}
	door := swarm.ToolEndpoint{URL: os.Getenv("SWARM_URL"), Token: os.Getenv("SWARM_AGENT_TOKEN")}
	tools, leave, err := httpd.Connect(context.Background(), door, "test")
	if err != nil {
		return err
	}
	defer func() { _ = leave() }()
	if _, err := os.Stat(lettersOver); err != nil {
		open = append(open, newLetters(me, strings.HasSuffix(turn, "/1/1"))...)
	}
	for _, l := range open {
		if err := l.send(tools); err != nil {
			return err
		}
	}
	if mathrand.IntN(3) > 0 {
		return nil
	}
	return readLetters(tools, turn, process)
}

// readLetters reads what has come since the turn began.
func readLetters(tools httpd.Agent, turn, process string) error {
	answer, err := tools.Call(context.Background(), "read_inbox", json.RawMessage(`{}`))
	if err != nil {
		return err
	}
	var shown struct{ Envelopes []swarm.Envelope }
	if err := json.Unmarshal(answer, &shown); err != nil || len(shown.Envelopes) == 0 {
		return err
	}
	line := []string{"read", turn, process}
	for _, e := range shown.Envelopes {
		line = append(line, e.Payload.Message)
	}
	return noteLetter(line...)
}

// A missive is one message, whose text is also its id: sent again, it is the same.
type missive struct{ text, from, to string }

// newLetters makes two messages to one peer, or in the first turn one message to each peer.
func newLetters(me string, first bool) (all []missive) {
	i, _ := strconv.Atoi(strings.TrimPrefix(me, "writer-"))
	peers := letterPeers(i, letterAgents)
	if !first {
		mathrand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
		peers = peers[:2]
	}
	for _, p := range peers {
		all = append(all, missive{newLetter(), me, letterName(p)})
	}
	return all
}

func (l missive) send(tools httpd.Agent) error {
	if err := noteLetter("intends", l.text, l.from, l.to); err != nil {
		return err
	}
	args, _ := json.Marshal(map[string]string{"to": l.to, "message": l.text, "id": l.text})
	answer, err := tools.Call(context.Background(), "send_handoff", args)
	if k := swarm.KindOf(err); k == swarm.BadInput || k == swarm.Denied {
		return errors.Join(noteLetter("refused", l.text, strings.ReplaceAll(err.Error(), "\n", " ")), err)
	}
	if err != nil {
		return err // whoever should have answered is dead
	}
	var sent struct{ Seq int64 }
	if err := json.Unmarshal(answer, &sent); err != nil {
		return err
	}
	return noteLetter("acked", l.text, strconv.FormatInt(sent.Seq, 10))
}

// noteLetter adds a line to the ledger, and returns when it is on disk.
func noteLetter(words ...string) error { return noteLetterIn(letterLedger, words...) }

func noteLetterIn(path string, words ...string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(words, " ") + "\n"); err != nil {
		return err
	}
	return f.Sync()
}

// ledgerLines reads the ledger. The last line may be incomplete, if its writer was killed.
func ledgerLines(path string) (lines [][]string, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, "\n") {
			lines = append(lines, strings.Fields(line))
		}
	}
	return lines, err
}

// openLetters lists the messages of an agent that were sent but not acknowledged.
func openLetters(me string) (open []missive, err error) {
	lines, err := ledgerLines(letterLedger)
	for _, l := range lines {
		switch {
		case l[0] == "intends" && l[2] == me && !slices.ContainsFunc(open, func(o missive) bool { return o.text == l[1] }):
			open = append(open, missive{l[1], l[2], l[3]})
		case l[0] == "acked":
			open = slices.DeleteFunc(open, func(o missive) bool { return o.text == l[1] })
		}
	}
	return open, err
}
