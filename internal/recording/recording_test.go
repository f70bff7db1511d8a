package recording_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/recording"
	"swarm/internal/sqlite"
)

var texts = [][]byte{[]byte("do <it> & \"more\"\u2028\n"), []byte("half a rune: \xe2\x82")}

// recorded returns the log of a run with an event of each sort.
func recorded(t testing.TB) swarm.RunLog {
	t.Helper()
	log, err := sqlite.NewStore(t.TempDir()).Create(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	started := swarm.NewEvent(swarm.RunStarted, swarm.RunStart{ID: "run", Kind: swarm.PipelineRun, Dir: "/home/me", File: "/home/me/swarm.yaml", Args: []string{"up", "/home/me"}})
	started.Key = "run_started"
	begun := swarm.NewEvent(swarm.TurnStarted, swarm.TurnStart{Prompt: swarm.HashOf(texts[0]), Snapshots: []swarm.FolderSnapshot{{Dir: "/home/me", Tree: "abc"}}})
	begun.Turn, begun.Task, begun.Agent, begun.Key = "a/1/1", "a", "a", "start:a/1/1:1"
	ended := swarm.NewEvent(swarm.TurnEnded, swarm.CallEnd{ID: "a/1/1", Output: swarm.HashOf(texts[1]), Reason: strings.Repeat("0", 64)})
	ended.To, ended.Turn = "loop:root", "a/1/1"
	added := swarm.NewEvent(swarm.PlanAdded, swarm.Plan{Kind: swarm.PipelineRun, Tasks: []swarm.Task{{Name: "a", Agent: "a", Workdir: "/home/me"}},
		Agents: []swarm.Agent{{Name: "a", Root: "/home/me/in"}}})
	added.Key = "plan:1"
	_, err = log.Append(t.Context(), swarm.Batch{Bodies: texts, Events: []swarm.Event{started, added, swarm.NewEvent(swarm.RunOwned, swarm.Ownership{PID: 4711, Host: "here"}),
		swarm.NewEvent(swarm.TreeRecorded, swarm.Snapshot{Hash: "abc"}), begun, ended, swarm.NewEvent(swarm.RunEnded, swarm.RunEnd{Status: swarm.Completed})}})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func written(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := recording.Write(&b, recording.Header{Run: "run", Name: "main", Program: "v0"}, recorded(t)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Read returns what Create wrote, in order, without folders, processes and other facts of the
// machine.
func TestWhatIsWrittenIsRead(t *testing.T) {
	log := recorded(t)
	path := filepath.Join(t.TempDir(), "run.cassette")
	if err := recording.Create(path, recording.Header{Run: "run", Name: "main", Program: "v0"}, log); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"/home/me", "4711", "here", "abc"} {
		if bytes.Contains(b, []byte(private)) {
			t.Errorf("it has %s in\n%s", private, b)
		}
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := (recording.Header{Version: 2, Run: "run", Name: "main", Program: "v0"}); rec.Header != want {
		t.Errorf("the header is %+v", rec.Header)
	}
	events, err := log.Read(0, 100)
	if err != nil {
		t.Fatal(err)
	}
	events = append(events[:3], events[4:]...)
	if len(rec.Events) != len(events) {
		t.Fatalf("%d events of %d", len(rec.Events), len(events))
	}
	for i, e := range events {
		got := rec.Events[i]
		if i < 3 || e.Kind == swarm.TurnStarted {
			got.Data, e.Data = nil, nil
		}
		if got.Time.Equal(e.Time) {
			got.Time, e.Time = time.Time{}, time.Time{}
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%+v became %+v", e, got)
		}
	}
	for i, at := range []int{3, 4} {
		if got := rec.Texts(&rec.Events[at]); len(got) != 1 || !bytes.Equal(got[0], texts[i]) {
			t.Errorf("the text of %s is %q", rec.Events[at].Kind, got)
		}
	}
	if text, ok := rec.Text(swarm.NoText); !ok || len(text) > 0 {
		t.Error("there is no empty text")
	}
	if !recording.Is(path) || recording.Is(filepath.Dir(path)) {
		t.Error("a recording is none, or a folder is one")
	}
}

// TestARecordingWithOldNames: the recording of an older version is read with the current names.
func TestARecordingWithOldNames(t *testing.T) {
	log := recorded(t)
	_, err := log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.AgentRestarted, Key: swarm.RestartedKey("a:1"), Agent: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := recording.Write(&b, recording.Header{Run: "run"}, log); err != nil {
		t.Fatal(err)
	}
	old := bytes.ReplaceAll(b.Bytes(), []byte("agent_restarted"), []byte("agent_started"))
	lines := bytes.SplitAfter(old, []byte("\n"))
	last := len(lines) - 2 // nothing is behind the last newline
	sum := sha256.Sum256(bytes.Join(lines[:last], nil))
	lines[last] = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAll(lines[last], []byte(hex.EncodeToString(sum[:])))
	rec, err := recording.Read(bytes.NewReader(bytes.Join(lines, nil)), "old")
	if err != nil {
		t.Fatal(err)
	}
	if e := rec.Events[len(rec.Events)-1]; e.Kind != swarm.AgentRestarted || e.Key != swarm.RestartedKey("a:1") {
		t.Errorf("it is read as %+v", e)
	}
}

// A changed byte anywhere is an error, and so is a truncated file.
func TestDamage(t *testing.T) {
	whole := written(t)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		if _, err := recording.Read(bytes.NewReader(damaged), "f"); swarm.KindOf(err) != swarm.BadInput || !strings.HasPrefix(err.Error(), "f:") {
			t.Fatalf("with byte %d (%q) changed: %v", i, whole[i], err)
		}
		if _, err := recording.Read(bytes.NewReader(whole[:i]), "f"); swarm.KindOf(err) != swarm.BadInput || !strings.HasPrefix(err.Error(), "f:") {
			t.Fatalf("cut off after %d bytes: %v", i, err)
		}
	}
}

// An error says where the file is wrong, why, and what to type.
func TestWhatIsNoRecording(t *testing.T) {
	whole := string(written(t))
	lines := strings.SplitAfter(whole, "\n")
	for name, c := range map[string]struct{ text, want, hint string }{
		"empty":             {"", "f:1: the recording is empty", "swarm up --record FILE"},
		"something else":    {"tasks:\n", "f:1: this is no recording", "--record FILE"},
		"the first version": {`{"swarm_cassette":1,"run":"x"}` + "\n" + `{"turn":"a/1/1"}` + "\n", "f:1: the recording has version 1, and this program reads version 2", "record the run again: swarm up --record FILE"},
		"a newer one":       {`{"swarm_cassette":3,"more":true}`, "f:1: the recording has version 3", "record the run again"},
		"a line less":       {strings.Join(append(lines[:2:2], lines[3:]...), ""), "f:9: the recording has 5 events here, and had 6 when it was made", ""},
		"two lines swapped": {lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""), "f:2: the first event of a recording is run_started", ""},
		"a line twice":      {lines[0] + lines[1] + strings.Join(lines[1:], ""), "f:3: the event 1 comes after the event 1", ""},
		"an unknown kind":   {lines[0] + `{"seq":1,"kind":"other"}` + "\n", `f:2: there is no kind of events "other"`, ""},
		"an unknown field":  {lines[0] + `{"seq":1,"kind":"run_started","more":1}` + "\n", "f:2: this is no line of a recording", ""},
		"more behind it":    {whole + "\n", "f:11: the recording goes on after its end", ""},
		"no end":            {strings.Join(lines[:len(lines)-2], ""), "f:10: the recording is cut off here", "copy it again"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := recording.Read(strings.NewReader(c.text), "f")
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(swarm.HintOf(err), c.hint) {
				t.Errorf("%v (%s), want %s (%s)", err, swarm.HintOf(err), c.want, c.hint)
			}
		})
	}
}

// A recording that cannot be written leaves the old file as it was.
func TestARecordingThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := recorded(t)
	log.Close()
	if err := recording.Create(path, recording.Header{}, log); err == nil {
		t.Fatal("a log that is closed was recorded")
	}
	if b, err := os.ReadFile(path); string(b) != "old" {
		t.Errorf("%q, %v", b, err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Any file is read, or refused as bad input.
func FuzzRead(f *testing.F) {
	whole := written(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(`{"swarm_cassette":2}` + "\n" + `{"hash":"x","base64":"AA=="}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := recording.Read(bytes.NewReader(b), "f")
		if (err == nil) == (rec == nil) {
			t.Errorf("%v, %v", rec, err)
		}
		if err != nil && swarm.KindOf(err) != swarm.BadInput {
			t.Errorf("refused with %v", err)
		}
	})
}
