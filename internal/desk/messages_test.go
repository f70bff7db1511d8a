package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
)

func openMessages(t testing.TB, dir string) *Messages {
	t.Helper()
	m, err := OpenMessages(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

const seedMessage = `{
  "from": "agent-a",
  "to": "agent-b",
  "timestamp": "2024-01-15T10:30:00Z",
  "type": "data_ready",
  "content": {"path": "outbox/data.json", "n": 1.50}
}
`

func TestMessagesAreEnvelopes(t *testing.T) {
	m, err := ReadMessage([]byte(seedMessage))
	if err != nil {
		t.Fatal(err)
	}
	name := MessageName{"agent-a", "agent-b", 7}
	e := m.Envelope(name)
	want := swarm.Envelope{Kind: swarm.Handoff, ID: "agent-a_to_agent-b_007", FromNodeID: "agent-a", ToNodeID: "agent-b",
		CreatedAt: time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC),
		Payload:   swarm.Payload{Message: "data_ready", Structured: json.RawMessage(`{"path":"outbox/data.json","n":1.50}`)},
		Meta:      json.RawMessage(`{"file":"agent-a_to_agent-b_007.json","seq":7,"type":"data_ready"}`)}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got  %+v\nwant %+v", e, want)
	}
	if got := MessageOf(e); !reflect.DeepEqual(got, m) {
		t.Errorf("got  %+v\nwant %+v", got, m)
	}
	// An envelope with everything in it comes back whole, but for its number and file.
	full := swarm.Envelope{Kind: swarm.Signal, ID: "m-1", FromNodeID: "a", ToNodeID: "user", CreatedAt: clock, ContextRef: "contextpack://pack/1",
		Meta: json.RawMessage(`{"priority":"high"}`),
		Payload: swarm.Payload{Message: "words", Structured: json.RawMessage(`[1]`), Artifacts: []swarm.ArtifactRef{{Type: "log", Ref: "artifact://log/1"}},
			Status: &swarm.PayloadStatus{OK: true}, Response: &swarm.Response{Expectation: "required", ReplyTo: "b"}}}
	read, err := ReadMessage(MessageOf(full).render())
	if err != nil {
		t.Fatal(err)
	}
	back := read.Envelope(MessageName{"a", "user", 1})
	if string(back.Meta) != `{"file":"a_to_user_001.json","priority":"high","seq":1}` {
		t.Errorf("its meta is %s", back.Meta)
	}
	if back.Meta = full.Meta; !reflect.DeepEqual(back, full) {
		t.Errorf("got  %+v\nwant %+v", back, full)
	}
}

func TestMessagesThatBreakTheRulesAreRefused(t *testing.T) {
	dir := t.TempDir()
	m := openMessages(t, dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	good := []byte(seedMessage)
	os.WriteFile(in("agent-a_to_agent-b_001.json"), good, 0o644)
	os.WriteFile(in("agent-a_to_agent-b_002.json"), good[:40], 0o644) // half written
	os.WriteFile(in("agent-b_to_agent-a_003.json"), good, 0o644)      // another sender than it says
	os.WriteFile(in("hello.json"), good, 0o644)
	os.WriteFile(in("notes.txt"), good, 0o644)
	os.Symlink("/etc/passwd", in("agent-a_to_agent-b_004.json"))
	syscall.Mkfifo(in("agent-a_to_agent-b_005.json"), 0o644)
	os.Mkdir(in("agent-a_to_agent-b_006.json"), 0o755)
	os.WriteFile(in("agent-a_to_agent-b_0007.json"), good, 0o644)
	os.WriteFile(in(strings.Repeat("x", 250)+".json"), good, 0o644)

	got, refused, err := m.Receive(clock, nil)
	if err != nil || len(got) != 1 || len(refused) > 0 {
		t.Fatalf("%v, %v, %v", got, refused, err)
	}
	os.WriteFile(in("agent-a_to_agent-b_002.json"), good, 0o644) // the writer goes on
	got, refused, err = m.Receive(clock.Add(m.Patience), nil)
	if err != nil || len(got) != 2 || len(refused) != 7 {
		t.Fatalf("%v, %v, %v", got, refused, err)
	}
	for _, r := range refused {
		r.File = r.File[:min(len(r.File), maxRefusedName)]
		reason, err := os.ReadFile(in("refused/" + r.File + ".error"))
		if err != nil || len(reason) < 10 {
			t.Errorf("%s: %s, %v", r.File, reason, err)
		}
		if _, err := os.Lstat(in("refused/" + r.File)); err != nil {
			t.Error(err)
		}
	}
	if err := m.Take(got[0].Name); err != nil {
		t.Fatal(err)
	}
	if err := m.Take(got[0].Name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("consumed twice: %v", err)
	}
	if err := m.Refuse(got[1].Name, errors.New("there is no edge")); err != nil {
		t.Fatal(err)
	}
	// A name that was consumed is no other message's.
	os.WriteFile(in("agent-a_to_agent-b_001.json"), good, 0o644)
	m.Receive(clock, nil)
	if got, refused, _ := m.Receive(clock.Add(m.Patience), nil); len(got) != 0 || len(refused) != 1 {
		t.Errorf("%v, %v", got, refused)
	}
	if name, err := m.Send(got[0].Message); err != nil || name.Number != 7 && name.Number != 8 {
		t.Errorf("the next number is %v, %v", name, err)
	}
}

// TestMessagesAreNeitherLostNorHalfRead: many processes send while one lists and consumes. Half of them
// are not ours: they write a file and rename it, as a shell script does.
func TestMessagesAreNeitherLostNorHalfRead(t *testing.T) {
	dir := t.TempDir()
	const senders = 4
	each := times(20, 100, 2500)
	sent := make(chan struct{})
	var all sync.WaitGroup
	for s := range senders {
		m := openMessages(t, dir) // as another process has it
		all.Go(func() {
			for i := range each {
				msg := Message{From: "a", To: "b", Timestamp: clock, Type: "update", Content: swarm.Encode(fmt.Sprint(s, "-", i))}
				if s%2 == 0 {
					if _, err := m.Send(msg); err != nil {
						t.Error(err)
					}
					continue
				}
				msg.From = fmt.Sprint("shell-", s)
				file := filepath.Join(dir, MessageName{msg.From, msg.To, i + 1}.String())
				if err := os.WriteFile(file+".part", msg.render(), 0o644); err != nil {
					t.Error(err)
				}
				if err := os.Rename(file+".part", file); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { all.Wait(); close(sent) }()
	got := map[string]int{}
	m := openMessages(t, dir)
	for last := false; !last; {
		select {
		case <-sent:
			last = true
		default:
		}
		messages, refused, err := m.Receive(clock, nil)
		if err != nil || len(refused) > 0 {
			t.Fatalf("%v, %v", refused, err)
		}
		for _, one := range messages {
			if err := m.Take(one.Name); err == nil {
				got[string(one.Content)]++
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	if len(m.unread) > 0 {
		t.Errorf("half read: %v", m.unread)
	}
	if len(got) != senders*each {
		t.Errorf("%d of %d messages arrived", len(got), senders*each)
	}
	for content, n := range got {
		if n != 1 {
			t.Errorf("%s arrived %d times", content, n)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte(seedMessage))
	f.Add([]byte(`{"from":"a","to":"b","timestamp":"2024-01-15T10:30:00Z","type":"x","content":"t","meta":{"file":"a_to_b_001.json"},"other":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ReadMessage(text)
		if err != nil {
			return
		}
		name := MessageName{m.From, m.To, 1}
		e := m.Envelope(name)
		again, err := ReadMessage(MessageOf(e).render())
		if err != nil {
			t.Fatalf("%q becomes unreadable: %v", text, err)
		}
		if back := again.Envelope(name); !reflect.DeepEqual(back, e) {
			t.Errorf("%q\nwas %+v\nis  %+v", text, e, back)
		}
	})
}

func FuzzReadMessageName(f *testing.F) {
	f.Add("agent-a_to_agent-b_001.json")
	f.Fuzz(func(t *testing.T, file string) {
		if name, ok := ReadMessageName(file); ok && name.String() != file {
			t.Errorf("%q is read as %q", file, name)
		}
	})
}

// TestMessagesFolderIsMended: what a worker does to the folder does not keep others from their mail, and a
// link in its place leads nowhere.
func TestMessagesFolderIsMended(t *testing.T) {
	msg := Message{From: "a", To: "b", Timestamp: clock, Type: "update"}
	outside := t.TempDir()
	for name, damage := range map[string]func(dir string) error{
		"deleted":   os.RemoveAll,
		"a file":    func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) },
		"a link":    func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink(outside, dir)) },
		"no taken":  func(dir string) error { return os.RemoveAll(filepath.Join(dir, takenFolder)) },
		"a refused": func(dir string) error { return replaceByLink(filepath.Join(dir, RefusedFolder), outside) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), MessagesFolder)
			m := openMessages(t, dir)
			if m.Broken() {
				t.Fatal("a new folder is broken")
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if !m.Broken() {
				t.Fatal("it is not broken")
			}
			m = openMessages(t, dir)
			if _, err := m.Send(msg); err != nil || m.Broken() {
				t.Error(err)
			}
		})
	}
	if there, err := os.ReadDir(outside); err != nil || len(there) > 0 {
		t.Errorf("%v was written outside, %v", there, err)
	}
}

func replaceByLink(folder, target string) error {
	return errors.Join(os.RemoveAll(folder), os.Symlink(target, folder))
}

// TestHighestNumber: a worker that takes the highest number leaves the others free.
func TestHighestNumber(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a_to_b_999999999.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	name, err := openMessages(t, dir).Send(Message{From: "b", To: "a", Timestamp: clock, Type: "update"})
	if _, good := ReadMessageName(name.String()); err != nil || !good {
		t.Errorf("%s cannot be read: %v", name, err)
	}
}
