package desk

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// replaceStatus writes a status as a careful worker does.
func replaceStatus(t testing.TB, d *Desk, text string) {
	t.Helper()
	put(t, d, "workspace/status", text)
	if err := os.Rename(filepath.Join(d.Path(), "workspace/status"), filepath.Join(d.Path(), StatusFile)); err != nil {
		t.Fatal(err)
	}
}

// await takes changes until each desk has reached a state.
func await(t *testing.T, state State, desks ...<-chan Reading) {
	t.Helper()
	for _, changes := range desks {
		for r := range changes {
			if r.Violation != nil {
				t.Fatal(r.Violation)
			}
			if r.Status.State == state {
				break
			}
		}
	}
}

func TestWatcherTellsOfEachChange(t *testing.T) {
	for name, o := range map[string]WatchOptions{
		"notified": {Poll: time.Hour},
		"polled":   {NoNotify: true, PollOnly: time.Millisecond, Poll: time.Hour},
		"backstop": {NoNotify: true, Poll: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWatcher(o)
			defer w.Close()
			var desks []*Desk
			var changes []<-chan Reading
			for range times(3, 10, 100) {
				d := newDesk(t)
				desks = append(desks, d)
				changes = append(changes, w.Add(d, Status{}))
			}
			if got := w.Notified(); (got == len(desks)) != (name == "notified") {
				t.Errorf("%d are notified", got)
			}
			await(t, Pending, changes...)
			for _, d := range desks {
				replaceStatus(t, d, `{"state":"running","progress":{"current_step":"one"}}`)
			}
			await(t, Running, changes...)
			for _, d := range desks {
				put(t, d, StatusFile, `{"state":"completed"}`) // in place
			}
			await(t, Completed, changes...)
			w.Remove(desks[0])
			if _, open := <-changes[0]; open {
				t.Error("a desk that is not followed has changes")
			}
		})
	}
}

// TestWatcherTellsTheNewestProgress: changes within the pause are not lost, and a new state does not
// wait for it.
func TestWatcherTellsTheNewestProgress(t *testing.T) {
	w := NewWatcher(WatchOptions{Poll: time.Hour, Pause: 50 * time.Millisecond})
	defer w.Close()
	d := newDesk(t)
	changes := w.Add(d, Status{})
	await(t, Pending, changes)
	for _, step := range []string{"one", "two", "three"} {
		replaceStatus(t, d, `{"state":"running","progress":{"current_step":"`+step+`"}}`)
	}
	for r := range changes {
		if r.Status.Progress.CurrentStep == "three" {
			break
		}
	}
	slow := NewWatcher(WatchOptions{Poll: time.Hour, Pause: time.Hour})
	defer slow.Close()
	changes = slow.Add(d, Status{})
	await(t, Running, changes)
	replaceStatus(t, d, `{"state":"completed"}`)
	await(t, Completed, changes)
}

// TestWatcherTellsOfViolations, and that a broken file that is mended is none.
func TestWatcherTellsOfViolations(t *testing.T) {
	w := NewWatcher(WatchOptions{Patience: time.Millisecond})
	defer w.Close()
	d := newDesk(t)
	changes := w.Add(d, Status{})
	await(t, Pending, changes)
	put(t, d, StatusFile, `{"state":`)
	if e := <-changes; e.Violation == nil || e.Status.State != Pending {
		t.Fatalf("%+v", e)
	}
	replaceStatus(t, d, `{"state":"running"}`)
	await(t, Running, changes)
	replaceStatus(t, d, `{"state":"pending"}`)
	if e := <-changes; e.Violation == nil || e.Status.State != Running {
		t.Fatalf("%+v", e)
	}
}

func TestFollow(t *testing.T) {
	w := NewWatcher(WatchOptions{})
	defer w.Close()
	for _, c := range []struct {
		name, write string
		gone        bool
		want        State
	}{
		{"external", `{"state":"completed"}`, false, Completed},
		{"a program", `{"state":"completed"}`, true, Completed},
		{"a program that says nothing", `{"state":"running"}`, true, Failed},
		{"a program that is cut", `{"state":"comple`, true, Failed},
	} {
		d := newDesk(t)
		var gone chan string
		if c.gone {
			gone = make(chan string, 1)
		}
		put(t, d, StatusFile, c.write)
		if c.gone {
			gone <- "exit code 0"
		}
		end, err := w.Follow(t.Context(), d, Status{State: Pending}, gone, nil)
		if err != nil || end.Status.State != c.want {
			t.Errorf("%s: %+v, %v", c.name, end, err)
		}
	}
}
