package desk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarm"
)

const seedStatus = `{
  "state": "running",
  "started": "2024-01-15T10:30:00Z",
  "completed": null,
  "error": {"type": "ValidationError", "message": "Input file format invalid", "details": "Expected CSV, got JSON", "recoverable": true},
  "progress": {"current_step": "analyzing_data", "steps_completed": 3, "total_steps": 5},
  "metrics": {"files_processed": 12, "outputs_generated": 4},
  "host": "alpha", "n": 1.50
}`

func TestStatusOfTheProtocol(t *testing.T) {
	s, err := ReadStatus([]byte(seedStatus))
	if err != nil {
		t.Fatal(err)
	}
	if s.State != Running || s.Started.Hour() != 10 || s.Error.Type != "ValidationError" || !s.Error.Recoverable ||
		s.Progress.String() != "3/5 analyzing_data" || string(s.Metrics) != `{"files_processed":12,"outputs_generated":4}` {
		t.Errorf("%+v", s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), `{"state":"running","started":"2024-01-15T10:30:00Z","completed":null,`)
	contains(t, string(text), `"host":"alpha","n":1.50}`) // unknown fields stay as they were written
}

func TestStatusIsReadTolerantlyAndNeverWrongly(t *testing.T) {
	for text, want := range map[string]State{
		`{"state":"pending"}`:                         Pending,
		"\ufeff{\"state\":\"running\"}\r\n":           Running,
		`{"state":"failed","error":"no data"}`:        Failed,
		`{"state":"completed","started":12}`:          Completed,
		`{"state":"running","progress":{"a":1}}`:      Running,
		`{"state":"running","progress":"half"}`:       Running,
		`{"state":"pending","metrics":[1,2]}`:         Pending,
		`{"state":"Completed"}`:                       "",
		`{"State":"completed"}`:                       "",
		`{"state":"pending","state":"completed"}`:     "",
		`{"state":"completed"} {"state":"failed"}`:    "",
		`{"state":"comple`:                            "",
		`{"state":null}`:                              "",
		`{"progress":{"state":"completed"}}`:          "",
		``:                                            "",
		`[]`:                                          "",
		`"completed"`:                                 "",
		`{"state":"completed"}` + string(rune(0)):     "",
		strings.Repeat(" ", MaxState) + `{"state":1}`: "",
	} {
		s, err := ReadStatus([]byte(text))
		if s.State != want || (err == nil) != (want != "") {
			t.Errorf("%.60q is %q, %v; want %q", text, s.State, err, want)
		}
	}
	for _, text := range []string{"2024-01-15T10:30:00Z", "2024-01-15T10:30:00", "2024-01-15T12:30:00.000001+02:00", "2024-01-15 10:30:00"} {
		got, ok := readTime(swarm.Encode(text))
		if !ok || got.Truncate(time.Second) != time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC) {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestWhoMayWriteWhichState(t *testing.T) {
	good := map[[2]State]bool{
		{Pending, Running}: true, {Pending, Completed}: true, {Pending, Failed}: true, // running was too short to be seen
		{Running, Completed}: true, {Running, Failed}: true,
	}
	for _, from := range States {
		for _, to := range States {
			d := newDesk(t)
			put(t, d, StatusFile, `{"state":"`+string(to)+`"}`)
			r := NewStatusReader(d, Status{State: from})
			r.Read(clock)
			got := r.Read(clock.Add(r.Confirm))
			if want := from == to || good[[2]State{from, to}]; (got.Violation == nil) != want {
				t.Errorf("%s → %s: %v", from, to, got.Violation)
			} else if !want && got.Status.State != from {
				t.Errorf("%s → %s: the state is %s although the change is refused", from, to, got.Status.State)
			}
		}
	}
}

// TestFinalStateIsReadTwice: while a file is rewritten in place, its bytes may be a good text by chance.
func TestFinalStateIsReadTwice(t *testing.T) {
	d := newDesk(t)
	r := NewStatusReader(d, Status{State: Running})
	put(t, d, StatusFile, `{"state":"failed"}`)
	if got := r.Read(clock); got.Status.State != Running || !got.Writing || r.Due() != clock.Add(r.Confirm) {
		t.Fatalf("once read it is %+v", got)
	}
	put(t, d, StatusFile, `{"state":"running"}`)
	if got := r.Read(clock.Add(r.Confirm)); got.Status.State != Running || got.Violation != nil || !r.Due().IsZero() {
		t.Fatalf("a state that is gone counts: %+v", got)
	}
	put(t, d, StatusFile, `{"state":"completed"}`)
	r.Read(clock.Add(time.Second))
	if got := r.Read(clock.Add(time.Second + r.Confirm)); got.Status.State != Completed {
		t.Errorf("twice read it is %+v", got)
	}
}

// TestStatusOfASlowWriter writes each status byte by byte, in the ways in which programs write files.
// The reader looks after each byte, 10 ms after the one before.
func TestStatusOfASlowWriter(t *testing.T) {
	texts := []string{
		`{"state": "pending", "progress": {"steps_completed": 0}}`,
		`{"state": "running", "progress": {"steps_completed": 1}}`,
		`{"state": "running", "progress": {"steps_completed": 2, "current_step": "the longest of all these steps"}}`,
		`{"state": "running", "note": "\"state\": \"failed\"}"}`,
		`{"state": "completed"}`,
	}
	for _, truncate := range []bool{true, false} {
		d := newDesk(t)
		r, now, reads := NewStatusReader(d, Status{State: Pending}), clock, 0
		before := Pending
		for _, text := range texts {
			next, _ := ReadStatus([]byte(text))
			f, err := os.OpenFile(filepath.Join(d.Path(), StatusFile), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if truncate {
				f.Truncate(0)
			}
			for i := range len(text) {
				if i == len(text)-1 {
					f.Truncate(int64(len(text))) // the rest of a longer text
				}
				if _, err := f.WriteAt([]byte{text[i]}, int64(i)); err != nil {
					t.Fatal(err)
				}
				now = now.Add(10 * time.Millisecond)
				reads++
				got := r.Read(now)
				if got.Violation != nil || got.Status.State != before && got.Status.State != next.State {
					t.Fatalf("truncate %v: at byte %d of %s: %+v", truncate, i, text, got)
				}
			}
			f.Close()
			r.Read(now.Add(r.Confirm))
			before = next.State
		}
		if got := r.Read(now.Add(time.Second)); got.Status.State != Completed {
			t.Errorf("in the end it is %+v", got)
		}
	}
}

// TestStatusOfARewriter reads while another goroutine rewrites the file in place as fast as it can.
func TestStatusOfARewriter(t *testing.T) {
	d := newDesk(t)
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		file := filepath.Join(d.Path(), StatusFile)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			text := `{"state": "running", "progress": {"steps_completed": ` + strings.Repeat("1", i%7+1) + `}}`
			os.WriteFile(file, []byte(text), 0o644)
		}
	})
	r := NewStatusReader(d, Status{State: Pending})
	running := 0
	for reads := times(500, 2000, 10_000); reads > 0 || running == 0; reads-- {
		got := r.Read(time.Now())
		if got.Violation != nil || got.Status.State != Pending && got.Status.State != Running {
			t.Fatalf("%+v", got)
		}
		if got.Status.State == Running {
			running++
			if steps := got.Status.Progress.StepsCompleted; strings.Trim(string(swarm.Encode(steps)), "1") != "" {
				t.Fatalf("%d steps were never written", steps)
			}
		}
	}
	close(stop)
	writer.Wait()
}

// TestStatusOfAKilledWriter: half a file is a violation only when it stays so, and a worker that is gone
// has failed.
func TestStatusOfAKilledWriter(t *testing.T) {
	d := newDesk(t)
	r := NewStatusReader(d, Status{State: Running})
	put(t, d, StatusFile, `{"state": "comp`)
	r.Read(clock)
	if got := r.Read(clock.Add(r.Patience - 1)); got.Violation != nil || !got.Writing || got.Status.State != Running {
		t.Fatalf("before its time it is %+v", got)
	}
	if r.Due() != clock.Add(r.Patience) {
		t.Errorf("due at %v", r.Due())
	}
	got := r.Read(clock.Add(r.Patience))
	if got.Violation == nil || got.Status.State != Running {
		t.Fatalf("after its time it is %+v", got)
	}
	contains(t, got.Violation.Error(), "not JSON")
	put(t, d, StatusFile, `{"state": "complete`) // it was not dead
	if got := r.Read(clock.Add(2 * r.Patience)); got.Violation != nil {
		t.Errorf("a file that changes is a violation: %v", got.Violation)
	}
	if end := r.Finish("exit code 137"); end.Status.State != Failed || end.Status.Error.Type != AgentExited {
		t.Errorf("%+v", end)
	}
	put(t, d, StatusFile, `{"state": "completed"}`)
	if end := NewStatusReader(d, Status{State: Running}).Finish("exit code 0"); end.Status.State != Completed {
		t.Errorf("%+v", end)
	}
}

// TestStatusThatIsNoFile: whatever stands in its place, a read neither blocks nor follows it.
func TestStatusThatIsNoFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "status.json")
	os.WriteFile(secret, []byte(`{"state":"completed"}`), 0o644)
	for what, make := range map[string]func(file string) error{
		"a folder": func(file string) error { return os.Mkdir(file, 0o755) },
		"a pipe":   func(file string) error { return syscall.Mkfifo(file, 0o644) },
		"a link":   func(file string) error { return os.Symlink(secret, file) },
		"a link ":  func(file string) error { return os.Symlink("workspace/status.json", file) },
		"missing":  func(string) error { return nil },
	} {
		d := newDesk(t)
		put(t, d, "workspace/status.json", `{"state":"completed"}`)
		file := filepath.Join(d.Path(), StatusFile)
		os.Remove(file)
		if err := make(file); err != nil {
			t.Fatal(err)
		}
		r := NewStatusReader(d, Status{State: Running})
		if got := r.Read(clock); !got.Writing || got.Status.State != Running {
			t.Errorf("%s: %+v", what, got)
		}
		got := r.Read(clock.Add(r.Patience))
		if got.Violation == nil || got.Status.State != Running {
			t.Fatalf("%s: %+v", what, got)
		}
		if what == "missing" {
			what = "not there"
		}
		contains(t, got.Violation.Error(), strings.TrimSpace(what))
	}
}

func FuzzReadStatus(f *testing.F) {
	f.Add([]byte(seedStatus))
	f.Add([]byte(`{"state":"failed","error":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadStatus(text)
		if err != nil {
			return
		}
		again, err := ReadStatus(s.render())
		if err != nil || again.State != s.State || len(again.Fields) != len(s.Fields) {
			t.Errorf("%q becomes %+v, %v", text, again, err)
		}
	})
}
