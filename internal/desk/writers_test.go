package desk

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// writerVariable names the way in which a process of [TestMain] writes a status.json again and again.
const writerVariable = "DESK_TEST_WRITER"

func TestMain(m *testing.M) {
	if way := os.Getenv(writerVariable); way != "" {
		writeForever(way, os.Args[1])
	}
	os.Exit(m.Run())
}

// writerTexts are the statuses that a writer process writes in turn. None is final.
var writerTexts = []string{
	`{"state": "running", "progress": {"steps_completed": 1}}`,
	`{"state": "running", "progress": {"steps_completed": 22, "current_step": "the longest of all these steps"}}`,
	`{"state": "running", "note": "\"state\": \"failed\"}", "error": null}`,
	`{"state": "running"}`,
}

// writeForever is the process of a worker. It never ends by itself.
func writeForever(way, file string) {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("began\n")
	pace := time.NewTicker(map[string]time.Duration{"slow": 10 * time.Millisecond, "rewriter": time.Millisecond, "killed": time.Microsecond}[way])
	for i := 0; ; i++ {
		text := writerTexts[i%len(writerTexts)]
		if i%2 == 0 {
			f.Truncate(0) // as a shell does; otherwise the rest of a longer text stays for a moment
		}
		if way == "rewriter" {
			f.WriteAt([]byte(text), 0)
			f.Truncate(int64(len(text)))
			<-pace.C
			continue
		}
		for at := range len(text) {
			f.WriteAt([]byte{text[at]}, int64(at))
			<-pace.C
		}
		f.Truncate(int64(len(text)))
	}
}

// startWriter starts a writer process at a desk, and returns when it has begun.
func startWriter(t *testing.T, d *Desk, way string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], filepath.Join(d.Path(), StatusFile))
	cmd.Env = append(os.Environ(), writerVariable+"="+way)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "began\n" {
		kill()
		t.Fatalf("the writer did not begin: %q, %v", line, err)
	}
	return kill
}

// TestReadsAgainstWriters reads the status of a healthy worker, which another process writes in the worst
// ways. No reading may have a state that was never written, and none may say that the worker has failed.
func TestReadsAgainstWriters(t *testing.T) {
	for _, way := range []string{"slow", "rewriter"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			defer startWriter(t, d, way)()
			r, running := NewStatusReader(d, Status{State: Pending}), 0
			pace := time.NewTicker(time.Millisecond) // so that the reads meet many of the writer's bytes
			for reads := times(200, 500, 10_000); reads > 0 || running == 0; reads-- {
				<-pace.C
				got := r.Read(time.Now())
				if got.Violation != nil || got.Status.State != Pending && got.Status.State != Running || got.Status.Error != nil {
					t.Fatalf("%+v", got)
				}
				if got.Status.State == Running {
					running++
				}
			}
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		const each = 50
		halves := 0
		for range times(3, 10, 10_000/each) {
			d := newDesk(t)
			kill := startWriter(t, d, "killed")
			r := NewStatusReader(d, Status{State: Pending})
			for range each {
				if got := r.Read(time.Now()); got.Violation != nil || got.Status.State != Pending && got.Status.State != Running {
					t.Fatalf("before it is killed: %+v", got)
				}
			}
			kill()
			now := time.Now()
			r.Read(now)
			got := r.Read(now.Add(r.Patience))
			if got.Status.State != Pending && got.Status.State != Running {
				t.Fatalf("when it is killed: %+v", got)
			}
			text := get(t, d, StatusFile)
			if _, err := ReadStatus([]byte(text)); (err == nil) != (got.Violation == nil) {
				t.Errorf("%q is %v", text, got.Violation)
			}
			if got.Violation != nil {
				halves++
			}
			end := r.Finish("killed")
			if end.Violation != nil || end.Status.State != Failed || end.Status.Error.Type != AgentExited {
				t.Errorf("a worker that is gone: %+v", end)
			}
		}
		t.Logf("%d of the files were half written", halves)
	})
}
