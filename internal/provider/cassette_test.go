package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"swarm"
)

var recorded = []RecordedTurn{
	{Turn: "plan/1/1", Agent: "planner", Prompt: "Plan it.\n", Output: "1. <do> & \"done\"\n", Session: "s-1", Usage: swarm.Usage{Calls: 1, InputTokens: 3, OutputTokens: 5},
		Tools: []swarm.ToolUse{{ID: "t1", Name: "file_read", Input: json.RawMessage(`{"path":"a"}`), Output: "text", Failed: true}}},
	{Turn: "test/1/1", Agent: "tester", Prompt: "Test \xff it.", Output: "half a rune: \xe2\x82", Bytes: 1 << 30, Exit: 3, Kind: swarm.Exited, Reason: "exit status 3: no", Hint: "look"},
	{Turn: "test/1/2", Agent: "tester", Prompt: "Again.", Output: "FAIL", Kind: swarm.Unexpected, Reason: "no match", Verdicts: []swarm.Verdict{{Part: "matches", Reason: "no match"}}},
	{Turn: "mute/1/1", Prompt: "Say nothing."},
}

func record(t testing.TB, turns ...RecordedTurn) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.cassette")
	r, err := Record(path, CassetteHeader{Run: "01J", Name: "main", Program: "v0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		if err := r.Write(turn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the cassette is there before it is whole")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func openCassette(t testing.TB, path string) (*Cassette, error) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return OpenCassette(f)
}

func TestReplayIsWhatWasRecorded(t *testing.T) {
	c, err := openCassette(t, record(t, recorded...))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Header, CassetteHeader{Version: 1, Run: "01J", Name: "main", Program: "v0"}) || len(c.Turns()) != len(recorded) {
		t.Errorf("header %+v, turns %v", c.Header, c.Turns())
	}
	p := c.Provider()
	for _, want := range recorded {
		var rec recorder
		got, err := p.Turn(t.Context(), Request{Turn: want.Turn, Prompt: string(want.Prompt)}, rec.live)
		if want.Kind == "" || want.Kind == swarm.Unexpected {
			if err != nil {
				t.Errorf("%s: %v", want.Turn, err)
			}
		} else if e := wantKind(t, err, want.Kind); e.Error() != want.Reason || e.Hint != want.Hint {
			t.Errorf("%s failed with %v (%s)", want.Turn, e, e.Hint)
		}
		if string(got.Output) != string(want.Output) || rec.said(swarm.DeltaText) != string(want.Output) {
			t.Errorf("%s: output %q, streamed %q, want %q", want.Turn, got.Output, rec.said(swarm.DeltaText), want.Output)
		}
		if got.Bytes != max(want.Bytes, int64(len(want.Output))) || got.Exit != want.Exit || got.Session != want.Session || got.Usage != want.Usage || !reflect.DeepEqual(got.Verdicts, want.Verdicts) {
			t.Errorf("%s: reply %+v", want.Turn, got)
		}
		var tools []swarm.ToolUse
		for _, d := range rec.deltas {
			if d.Kind == swarm.DeltaToolDone {
				tools = append(tools, *d.Tool)
			}
		}
		if !reflect.DeepEqual(tools, want.Tools) {
			t.Errorf("%s: tools %+v, want %+v", want.Turn, tools, want.Tools)
		}
	}
}

func TestReplayOfSomethingElse(t *testing.T) {
	c, err := openCassette(t, record(t, RecordedTurn{Turn: "plan/1/1", Prompt: "You plan.\nBe short.\nGo.\n", Output: "x"}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Provider().Turn(t.Context(), Request{Turn: "plan/1/1", Prompt: "You plan.\nBe long.\nGo.\n"}, nil)
	e := wantKind(t, err, swarm.Mismatch)
	if want := " You plan.\n-Be short.\n+Be long.\n Go."; !strings.Contains(e.Msg, want) || !strings.Contains(e.Msg, "plan/1/1") || e.Hint == "" {
		t.Errorf("the error is\n%s\nwant in it\n%s", e.Msg, want)
	}
	_, err = c.Provider().Turn(t.Context(), Request{Turn: "plan/2/1", Prompt: "x"}, nil)
	if e := wantKind(t, err, swarm.Mismatch); !strings.Contains(e.Error(), "plan/2/1 is not in the cassette") {
		t.Errorf("the error is %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Provider().Turn(ctx, Request{Turn: "plan/1/1"}, nil)
	wantKind(t, err, swarm.CutByCancel)
}

func TestRecordingThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Record(path, CassetteHeader{})
	if err != nil {
		t.Fatal(err)
	}
	bad := RecordedTurn{Turn: "a/1/1", Tools: []swarm.ToolUse{{Input: json.RawMessage("{")}}}
	if err := r.Write(bad); err == nil {
		t.Error("what is not JSON was written")
	}
	wantKind(t, r.Close(), swarm.Storage)
	if old, _ := os.ReadFile(path); string(old) != "old" {
		t.Errorf("the file is now %q", old)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
	_, err = Record(filepath.Join(dir, "none", "c"), CassetteHeader{})
	wantKind(t, err, swarm.Storage)
}

// What could not be read again is not written, and says so.
func TestTooMuchForACassette(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it writes 70 MB of JSON")
	}
	path := filepath.Join(t.TempDir(), "c")
	r, err := Record(path, CassetteHeader{})
	if err != nil {
		t.Fatal(err)
	}
	large := RecordedTurn{Turn: "a/1/1"}
	text, err := json.Marshal(strings.Repeat("x", 4<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 17 {
		large.Acts = append(large.Acts, Act{Tool: "put_artifact", Args: text})
	}
	wantKind(t, r.Write(large), swarm.BadInput)
	wantKind(t, r.Close(), swarm.BadInput)
	if _, err := os.Stat(path); err == nil {
		t.Error("a cassette is there that nobody can read")
	}
}

func TestCassetteThatIsWrong(t *testing.T) {
	good, err := os.ReadFile(record(t, recorded...))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(good), "\n")
	for _, c := range []struct{ name, src, want string }{
		{"empty", "", ":1: the cassette is empty"},
		{"no header", lines[1], ":1: this is not a cassette"},
		{"not JSON", "hello\n", ":1: this is not a cassette"},
		{"newer", `{"swarm_cassette":2,"more":1}` + "\n", ":1: the cassette has version 2"},
		{"unknown key in the header", `{"swarm_cassette":1,"more":1}` + "\n", ":1: the cassette's header"},
		{"cut off", string(good[:len(good)-5]), ":5: the cassette is cut off in this line"},
		{"cut off in the header", lines[0][:10], ":1: the cassette is cut off in this line"},
		{"unknown key", lines[0] + `{"turn":"a","x":1}` + "\n", ":2: this is not a recorded turn"},
		{"two values in a line", lines[0] + strings.TrimSpace(lines[1]) + " {}\n", ":2: this is not a recorded turn: there is more behind it"},
		{"empty line", lines[0] + "\n" + lines[1], ":2: this is not a recorded turn"},
		{"no id", lines[0] + "{}\n", ":2: the recorded turn has no id"},
		{"twice", lines[0] + lines[1] + lines[1], ":3: the turn plan/1/1 is recorded twice"},
		{"changed prompt", strings.Replace(string(good), "Plan it", "Plan that", 1), ":2: the prompt of the turn plan/1/1 was changed"},
		{"a kind that no turn has", strings.Replace(string(good), `"kind":"exited"`, `"kind":"storage"`, 1), `:3: the turn test/1/1 has the kind "storage"`},
		{"impossible length", strings.Replace(string(good), `"bytes":1073741824`, `"bytes":1`, 1), ":3: the output of the turn test/1/1 is longer"},
	} {
		_, err := OpenCassette(named{strings.NewReader(c.src)})
		if err == nil || !strings.HasPrefix(err.Error(), "f"+c.want) {
			t.Errorf("%s: %v, want f%s", c.name, err, c.want)
			continue
		}
		wantKind(t, err, swarm.BadInput)
	}
	if _, err := OpenCassette(bytes.NewReader(bytes.TrimSuffix(good, []byte("\n")))); err != nil {
		t.Errorf("without the last newline it is still whole, but: %v", err)
	}
}

type named struct{ *strings.Reader }

func (named) Name() string { return "f" }

func FuzzOpenCassette(f *testing.F) {
	good, err := os.ReadFile(record(f, recorded...))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"swarm_cassette":1}` + "\n" + `{"turn":"a","prompt":{"base64":"/w=="}}` + "\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := OpenCassette(bytes.NewReader(src))
		if err != nil {
			var e *swarm.Error
			if !errors.As(err, &e) || e.Line == 0 {
				t.Fatalf("not an error for people: %v", err)
			}
			return
		}
		// What can be read can be written, and is then the same.
		var turns []RecordedTurn
		for _, id := range c.Turns() {
			turn, _ := c.Turn(id)
			turns = append(turns, turn)
		}
		again, err := openCassette(t, record(t, turns...))
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range turns {
			if got, _ := again.Turn(turn.Turn); got.Output != turn.Output || got.Prompt != turn.Prompt {
				t.Fatalf("%+v became %+v", turn, got)
			}
		}
	})
}
