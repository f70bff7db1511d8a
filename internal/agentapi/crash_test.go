package agentapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/sqlite"
	"swarm/internal/storetest"
)

// A turn is cut at each of its appends, before and after the append is on disk, and runs again an
// hour later. The log then has the same events as without the crash, once.
func TestCrashAtEveryAppend(t *testing.T) {
	const appends = 5
	turn := func(log swarm.Log, at time.Time) (err error) {
		s := &Service{Log: log, Now: func() time.Time { return at }}
		h := s.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
		defer h.End()
		for _, c := range [appends][2]string{
			{"put_artifact", `{"kind":"diff","name":"d","content":"+1"}`},
			{"send_handoff", `{"to":"coder","message":"one"}`},
			{"publish_data", `{"topic":"facts","data":1}`},
			{"send_handoff", `{"to":"coder","message":"two","id":"mine"}`},
			{"send_handoff", `{"to":"coder","message":"three"}`},
		} {
			if _, err := h.Call(context.Background(), c[0], json.RawMessage(c[1])); err != nil {
				return err
			}
		}
		return nil
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for k := 1; k <= appends; k++ {
		for _, after := range []bool{false, true} {
			log, again := opened(t)
			if err := turn(storetest.Crash(log.(*sqlite.Log), k, after), at); !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("at append %d: %v", k, err)
			}
			if err := turn(again(), at.Add(time.Hour)); err != nil {
				t.Fatalf("again, after append %d: %v", k, err)
			}
			var facts []string
			for _, e := range all(t, again())[2:] {
				fact := string(e.Kind)
				if e.Kind == swarm.HandoffStored {
					var env swarm.Envelope
					if err := json.Unmarshal(e.Data, &env); err != nil {
						t.Fatal(err)
					}
					fact = env.Payload.Message
				}
				facts = append(facts, fact)
			}
			if got := strings.Join(facts, " "); got != "artifact_stored one topic_published two three" {
				t.Errorf("after a crash at append %d (%v): %s", k, after, got)
			}
		}
	}
}

func TestMain(m *testing.M) {
	path := os.Getenv("SWARM_TEST_LOG")
	if path == "" {
		os.Exit(m.Run())
	}
	if err := childSends(path, os.Getenv("SWARM_TEST_AGENT")); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

const childMessages = 60

// childSends is another process in which an agent has a turn. It prints each answer.
func childSends(path, agent string) error {
	log, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	h := (&Service{Log: log}).BeginTurn(agent, "t", swarm.TurnID(agent+"/1/1"), 1, swarm.Inputs{})
	for i := range childMessages {
		answer, err := h.Call(context.Background(), "send_handoff", swarm.Encode(map[string]string{"to": "tester", "message": fmt.Sprint(agent, "-", i)}))
		if err != nil {
			return err
		}
		fmt.Println(string(answer))
	}
	return nil
}

// Two processes send while a third reads; one is killed and starts again. Every acknowledged
// message is stored once, in the order of its sender.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.db")
	log, err := sqlite.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	plan := swarm.Plan{Kind: swarm.SwarmRun, Agents: []swarm.Agent{{Name: "a"}, {Name: "b"}, {Name: "tester"}}}
	add(t, log, swarm.Event{Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(plan)})
	answers := map[string]bool{}
	start := func(agent string) (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "SWARM_TEST_LOG="+path, "SWARM_TEST_AGENT="+agent)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewScanner(out)
	}
	read := func(from *bufio.Scanner, most int) {
		for n := 0; n < most && from.Scan(); n++ {
			answers[from.Text()] = true
		}
	}
	a, fromA := start("a")
	b, fromB := start("b")
	read(fromB, 20)
	if err := b.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	read(fromB, childMessages)
	_ = b.Wait() // the error says that it was killed
	b, fromB = start("b")
	read(fromB, childMessages)
	read(fromA, childMessages)
	if err := errors.Join(a.Wait(), b.Wait()); err != nil {
		t.Fatal(err)
	}
	s, after := &Service{Log: log}, int64(0)
	next := map[string]int{}
	for {
		items, err := s.Unread("tester", after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		for _, item := range items {
			after = item.Seq
			if want := fmt.Sprint(item.FromNodeID, "-", next[item.FromNodeID]); item.Payload.Message != want {
				t.Fatalf("got %s, want %s", item.Payload.Message, want)
			}
			next[item.FromNodeID]++
			delete(answers, string(swarm.Encode(SendResult{item.ID, item.Seq})))
		}
	}
	if next["a"] != childMessages || next["b"] != childMessages {
		t.Errorf("%v messages came", next)
	}
	if len(answers) > 0 {
		t.Errorf("acknowledged, but not there: %v", answers)
	}
}
