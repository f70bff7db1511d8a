package desk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/prompt"
	"swarm/internal/provider"
	deskwork "swarm/internal/provider/desk"
)

// A worker is a provider that works at the desk in which it is started.
type worker func(dir string)

func (worker) Check(context.Context) provider.Health { return provider.Health{Found: true} }

func (w worker) Turn(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	w(r.Dir)
	return provider.Reply{}, nil
}

// A reader is a provider that remembers which files of other folders it may read.
type reader struct {
	worker
	may *[]string
}

func (w reader) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	*w.may = r.Workspace(r.Dir).Read
	return w.worker.Turn(ctx, r, live)
}

// deliver is a worker that completes.
func deliver(dir string) {
	write(dir, "outbox/t", "t")
	write(dir, "outbox/summary.md", "done")
	write(dir, "status.json", `{"state": "completed"}`)
}

func write(dir, name, text string) {
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		panic(err)
	}
}

// A bench has one desk, and remembers what turns there told.
type bench struct {
	t       *testing.T
	desks   string
	watcher *desk.Watcher
	opened  []deskwork.Opening
	notices []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, desks: t.TempDir(), watcher: desk.NewWatcher(desk.WatchOptions{Patience: 50 * time.Millisecond})}
	t.Cleanup(b.watcher.Close)
	return b
}

func (b *bench) dir() string { return filepath.Join(b.desks, "work") }

// turn is a first attempt. w is nil for an external worker.
func (b *bench) turn(w worker) *deskwork.Turn {
	t := &deskwork.Turn{Watcher: b.watcher, Dir: b.dir(), Title: "work", Archive: "work.1",
		Open:   func(o deskwork.Opening) error { b.opened = append(b.opened, o); return nil },
		Notice: func(reason, _ string) { b.notices = append(b.notices, reason) },
		Tell:   func(desk.Status) {}}
	if w != nil {
		t.Worker = w
	}
	return t
}

// after is the attempt after the last one that was opened.
func (b *bench) after(w worker) *deskwork.Turn {
	t := b.turn(w)
	t.Before, t.Failures = &b.opened[len(b.opened)-1].Manifest, []prompt.Failure{{Attempt: 1, Reason: "why"}}
	return t
}

// again is another start of the last attempt that was opened.
func (b *bench) again(w worker) *deskwork.Turn {
	t := b.turn(w)
	t.Opened = &b.opened[len(b.opened)-1].Manifest
	return t
}

func (b *bench) do(t *deskwork.Turn) error {
	ctx, stop := context.WithTimeoutCause(context.Background(), 30*time.Second, swarm.Errorf(swarm.TimedOut, "timed out"))
	defer stop()
	_, err := t.Turn(ctx, provider.Request{Run: "r", Task: "work", Agent: "work"}, nil)
	return err
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) text(name string) string {
	text, _ := os.ReadFile(filepath.Join(b.dir(), name))
	return string(text)
}

func (b *bench) archived() (names []string) {
	all, _ := os.ReadDir(filepath.Join(b.desks, "_archive"))
	for _, one := range all {
		names = append(names, one.Name())
	}
	return names
}

var errFull = errors.New("the disk is full")

// A crash comes at each step of the making of a desk. The next start goes on with what the log has.
func TestACrashWhileADeskIsMade(t *testing.T) {
	for name, c := range map[string]struct {
		logged bool // the crash came after the log had the desk
		move   bool // and after it had its name
	}{"before the log": {}, "before its name": {logged: true}, "before the worker": {logged: true, move: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			first := b.turn(deliver)
			open := first.Open
			first.Open = func(o deskwork.Opening) error {
				if c.logged {
					b.must(open(o))
				}
				return errFull
			}
			if err := b.do(first); !errors.Is(err, errFull) {
				t.Fatal(err)
			}
			if c.move {
				b.must(os.Rename(filepath.Join(b.desks, ".work.new"), b.dir()))
			}
			next := b.turn(deliver)
			if c.logged {
				next = b.again(deliver)
			}
			b.must(b.do(next))
			if len(b.notices) > 0 || len(b.archived()) > 0 || next.Collected.Summary != "done" {
				t.Errorf("%q, %q", b.notices, b.archived())
			}
		})
	}
}

// A worker completes, and a crash comes before its work is collected. It is collected, and not done twice.
func TestACrashAfterTheWork(t *testing.T) {
	b := newBench(t)
	first := b.turn(deliver)
	first.Take = func(desk.File, []byte) error { return errFull }
	if err := b.do(first); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	next := b.again(func(string) { t.Error("the worker was started again") })
	b.must(b.do(next))
	if next.Collected.Summary != "done" || b.text("outbox/t") != "t" {
		t.Errorf("%+v", next.Collected)
	}
}

// A crash comes between the archiving of the desk of an earlier iteration and the log of the new one.
func TestACrashAfterTheArchiving(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	cut := b.turn(deliver)
	cut.Open = func(deskwork.Opening) error { return errFull }
	if err := b.do(cut); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	b.must(b.do(b.turn(deliver)))
	if got, want := b.opened[len(b.opened)-1].Archived, filepath.Join(b.desks, "_archive", "work.1"); got != want || len(b.archived()) != 1 {
		t.Errorf("the log has %q, archived is %q", got, b.archived())
	}
}

// A desk that was deleted is recreated for the same attempt. A crash in the middle of that leaves a folder
// that the log does not have. It is not taken for the desk of the log.
func TestACrashWhileADeskIsMadeAnew(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	b.must(os.RemoveAll(b.dir()))
	cut := b.again(deliver)
	cut.Files = []string{filepath.Join(t.TempDir(), "new")}
	b.must(os.WriteFile(cut.Files[0], []byte("x"), 0o644))
	cut.Failures = []prompt.Failure{{Attempt: 1, Reason: "the instructions are others"}}
	cut.Open = func(deskwork.Opening) error { return errFull }
	if err := b.do(cut); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	b.must(b.do(b.again(deliver)))
	if b.text("inbox/new") != "" || strings.Contains(b.text("inbox/instructions.md"), "others") {
		t.Error("the folder that the log does not have was taken")
	}
}

// A crash comes when the instructions tell of the failure, and before the log has the attempt. The desk is
// not taken for one whose inputs were changed.
func TestACrashBetweenResetAndTheLog(t *testing.T) {
	b := newBench(t)
	if err := b.do(b.turn(func(dir string) { write(dir, "outbox/half", "h") })); swarm.KindOf(err) != swarm.NoResult {
		t.Fatal(err)
	}
	cut := b.after(deliver)
	cut.Open = func(deskwork.Opening) error { return errFull }
	if err := b.do(cut); !errors.Is(err, errFull) {
		t.Fatal(err)
	}
	b.must(b.do(b.after(deliver)))
	if len(b.notices) > 0 || b.text("outbox/partial/half") != "h" || strings.Count(b.text("inbox/instructions.md"), "Why Attempt 1 Failed") != 1 {
		t.Errorf("%q: %s", b.notices, b.text("inbox/instructions.md"))
	}
}

// A desk is recreated for another attempt, and a crash comes before the log has it, or before it has its name.
// What the first attempt left is kept.
func TestACrashWhileADeskIsMadeAnewForAnotherAttempt(t *testing.T) {
	for _, logged := range []bool{false, true} {
		b := newBench(t)
		if err := b.do(b.turn(func(dir string) {
			write(dir, "outbox/half", "h")
			b.must(os.RemoveAll(filepath.Join(dir, "inbox")))
		})); err == nil {
			t.Fatal("the worker has deleted its inputs")
		}
		next := b.after(deliver)
		cut := b.after(deliver)
		open := cut.Open
		cut.Open = func(o deskwork.Opening) error {
			if logged {
				b.must(open(o))
			}
			return errFull
		}
		if err := b.do(cut); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if logged {
			next.Opened = &b.opened[len(b.opened)-1].Manifest
		}
		b.must(b.do(next))
		kept, _ := filepath.Glob(filepath.Join(b.desks, "_archive/*/outbox/half"))
		if len(kept) == 0 && b.text("outbox/partial/half") == "" {
			t.Errorf("logged: %v, what the first attempt left is gone", logged)
		}
	}
}

// The inputs that a worker has changed come back. A person who asks for the attempt may change them.
func TestChangedInputs(t *testing.T) {
	for _, asked := range []bool{false, true} {
		b := newBench(t)
		if err := b.do(b.turn(func(dir string) {
			b.must(os.Remove(filepath.Join(dir, "inbox/instructions.md")))
			write(dir, "inbox/instructions.md", "# Task: mine\n")
			deliver(dir)
		})); swarm.KindOf(err) != swarm.Unexpected {
			t.Fatal(err)
		}
		next := b.after(deliver)
		next.Asked = asked
		b.must(b.do(next))
		if mine := strings.Contains(b.text("inbox/instructions.md"), "# Task: mine"); mine != asked || (len(b.notices) == 0) != asked {
			t.Errorf("asked by a person: %v, theirs: %v, %q", asked, mine, b.notices)
		}
		if b.text("outbox/partial/t") != "t" {
			t.Error("what the first attempt left is gone")
		}
	}
}

// Whatever has the place of a desk is archived under a free name.
func TestWhateverHasThePlaceIsArchived(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	for _, put := range []func(){
		func() { b.must(os.WriteFile(b.dir(), []byte("a file"), 0o644)) },
		func() { b.must(os.Symlink(outside, b.dir())) },
		func() { b.must(os.Mkdir(b.dir(), 0o755)) },
		func() {},
	} {
		put()
		b.must(b.do(b.turn(deliver)))
		b.must(os.Rename(b.dir(), filepath.Join(t.TempDir(), "done")))
	}
	if names := strings.Join(b.archived(), " "); names != "work.1 work.1.2 work.1.3" {
		t.Errorf("archived: %s", names)
	}
	if all, _ := os.ReadDir(outside); len(all) > 0 {
		t.Errorf("%s was written outside", all[0])
	}
}

// A worker has put a file or a link into the place of its desk. The next attempt gets a new desk.
func TestADeskThatIsNoFolder(t *testing.T) {
	outside := t.TempDir()
	for name, put := range map[string]func(dir string) error{
		"file": func(dir string) error { return os.WriteFile(dir, []byte("mine"), 0o644) },
		"link": func(dir string) error { return os.Symlink(outside, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.must(b.do(b.turn(deliver)))
			b.must(os.RemoveAll(b.dir()))
			b.must(put(b.dir()))
			b.must(os.MkdirAll(filepath.Join(outside, "outbox"), 0o755))
			b.must(b.do(b.after(deliver)))
			if names := strings.Join(b.archived(), " "); names != "work.1" || b.text("outbox/t") != "t" {
				t.Errorf("archived: %s", names)
			}
			if _, err := os.Stat(filepath.Join(outside, "outbox")); err != nil {
				t.Errorf("what the link names was moved: %v", err)
			}
		})
	}
}

// A worker has moved its desk, and left a link to it. Nothing is written through the link, by another
// attempt or by a start after a crash.
func TestALinkToTheDesk(t *testing.T) {
	for name, next := range map[string]func(*bench, worker) *deskwork.Turn{"attempt": (*bench).after, "start": (*bench).again} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			moved := filepath.Join(t.TempDir(), "moved")
			_ = b.do(b.turn(func(dir string) {
				b.must(os.Rename(dir, moved))
				b.must(os.Symlink(moved, dir))
			}))
			before, err := os.ReadFile(filepath.Join(moved, "inbox/instructions.md"))
			b.must(err)
			b.must(b.do(next(b, deliver)))
			if info, err := os.Lstat(b.dir()); err != nil || !info.IsDir() || b.text("outbox/t") != "t" {
				t.Errorf("the desk is %v, %v", info, err)
			}
			if _, err := os.Stat(filepath.Join(moved, "outbox/t")); err == nil {
				t.Error("the work is outside")
			}
			if after, err := os.ReadFile(filepath.Join(moved, "inbox/instructions.md")); err != nil || string(after) != string(before) {
				t.Errorf("the instructions outside were changed: %v", err)
			}
		})
	}
}

// Two processes do not drive one desk. The second changes nothing.
func TestTwoDrivers(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	d, err := desk.Open(b.dir())
	b.must(err)
	defer d.Close()
	unlock, err := d.Lock()
	b.must(err)
	before := b.text("inbox/instructions.md") + b.text("status.json")
	for _, second := range []*deskwork.Turn{b.turn(deliver), b.after(deliver), b.again(deliver)} {
		if err := b.do(second); err == nil || !strings.Contains(err.Error(), "another process drives the desk") {
			t.Errorf("a second driver: %v", err)
		}
	}
	if now := b.text("inbox/instructions.md") + b.text("status.json"); now != before || len(b.archived()) > 0 || len(b.opened) != 1 {
		t.Errorf("it has changed the desk: %s, %q", now, b.archived())
	}
	unlock()
	b.must(b.do(b.again(deliver)))
}

// An external worker has broken the desk in this very attempt: nothing is recreated over the work.
func TestABrokenDeskOfSomebodyOutside(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	b.must(os.RemoveAll(filepath.Join(b.dir(), "inbox")))
	if err := b.do(b.again(nil)); err == nil || b.text("outbox/t") != "t" || len(b.archived()) > 0 {
		t.Errorf("%v, %q", err, b.archived())
	}
	b.must(b.do(b.after(deliver)))
	if b.text("outbox/partial/t") != "t" {
		t.Error("the work is gone")
	}
}

// The time is over before the work that is there was seen.
func TestWorkThatWasInTime(t *testing.T) {
	b := newBench(t)
	b.watcher.Close() // it tells of nothing
	b.watcher = desk.NewWatcher(desk.WatchOptions{NoNotify: true, Confirm: time.Hour})
	t.Cleanup(b.watcher.Close)
	first := b.turn(nil)
	open := first.Open
	ctx, stop := context.WithCancelCause(context.Background())
	first.Open = func(o deskwork.Opening) error {
		deliver(filepath.Join(b.desks, ".work.new"))
		stop(swarm.Errorf(swarm.TimedOut, "timed out"))
		return open(o)
	}
	if _, err := first.Turn(ctx, provider.Request{Run: "r", Task: "work", Agent: "work"}, nil); err != nil || first.Collected.Summary != "done" {
		t.Errorf("%v, %+v", err, first.Collected)
	}
}

// A worker in a sandbox may read the inputs that are too large to copy, where they are.
func TestLargeInputsInASandbox(t *testing.T) {
	b, may := newBench(t), []string{}
	first := b.turn(nil)
	first.Worker = reader{deliver, &may}
	first.Files = []string{filepath.Join(t.TempDir(), "large")}
	write(filepath.Dir(first.Files[0]), "large", "")
	b.must(os.Truncate(first.Files[0], desk.MaxFile+1))
	b.must(b.do(first))
	if !slices.Equal(may, first.Files) {
		t.Errorf("it may read %q", may)
	}
}

// Work that was finished too late is taken with files of any size, and without what tells of the failure.
func TestLateWork(t *testing.T) {
	old, b := newBench(t), newBench(t)
	b.must(old.do(old.turn(deliver)))
	d, err := desk.Open(old.dir())
	b.must(err)
	b.must(d.ExplainFailure(1, desk.Failure{Message: "why"}))
	b.must(d.Close())
	b.must(os.Truncate(filepath.Join(old.dir(), "outbox/t"), desk.MaxFile+1))
	write(old.dir(), "outbox/error_report.md", "timed out")
	late := b.turn(nil)
	late.Late = old.dir()
	b.must(b.do(late))
	info, err := os.Stat(filepath.Join(b.dir(), "outbox/t"))
	if err != nil || info.Size() != desk.MaxFile+1 || b.text("outbox/error_report.md") != "" || late.Collected.Summary != "done" {
		t.Errorf("%v, %v, %+v", info, err, late.Collected)
	}
	if len(old.opened) != 1 || old.text("outbox/summary.md") != "done" {
		t.Error("the old desk was changed")
	}
}

// An external worker has completed, and the work is not what the task expects. The next attempt tells them
// why, and does not take the same work again. Work that came after a timeout is taken.
func TestWorkThatWasJudged(t *testing.T) {
	for _, judged := range []bool{false, true} {
		b := newBench(t)
		b.must(b.do(b.turn(deliver)))
		next := b.after(nil)
		next.Judged = judged
		open := next.Open
		next.Open = func(o deskwork.Opening) error {
			if judged != strings.Contains(b.text("status.json"), `"pending"`) || judged != strings.Contains(b.text("inbox/instructions.md"), "Why Attempt 1 Failed") {
				t.Errorf("judged: %v, %s %s", judged, b.text("status.json"), b.text("inbox/instructions.md"))
			}
			deliver(b.dir())
			return open(o)
		}
		b.must(b.do(next))
		if left := b.text("outbox/partial/t") == "t"; left != judged || (len(b.notices) == 0) != judged {
			t.Errorf("judged: %v, what was left: %v, %q", judged, left, b.notices)
		}
	}
}

// An external worker is at work when its time is over, and another attempt follows at once. If that
// worker goes on, all its work counts. If another one begins, the half work stays in outbox/partial.
func TestAWorkerThatGoesOn(t *testing.T) {
	const started = `"started": "2024-01-15T10:30:00Z"`
	for name, c := range map[string]struct {
		before, running, end string // what the worker writes about itself
		late                 bool   // a further attempt ends before the worker says anything
		between              bool   // and the worker completes before the next one begins
		goesOn               bool
	}{
		"it completes":              {before: `{"state": "running"}`, end: `{"state": "completed"}`, goesOn: true},
		"it completes much later":   {before: `{"state": "running"}`, end: `{"state": "completed"}`, late: true, goesOn: true},
		"it completes between":      {before: `{"state": "running"}`, end: `{"state": "completed"}`, late: true, between: true, goesOn: true},
		"it tells of progress":      {before: `{"state": "running", ` + started + `}`, running: `{"state": "running", ` + started + `, "metrics": {}}`, end: `{"state": "completed"}`, goesOn: true},
		"another one begins":        {before: `{"state": "running"}`, running: `{"state": "running", "metrics": {}}`, end: `{"state": "completed"}`},
		"another one begins, timed": {before: `{"state": "running", ` + started + `}`, end: `{"state": "completed", "started": "2024-01-15T11:30:00Z"}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			cut := func(a *deskwork.Turn, work func(dir string)) {
				ctx, stop := context.WithCancelCause(context.Background())
				open := a.Open
				a.Open = func(o deskwork.Opening) error {
					if work == nil {
						stop(swarm.Errorf(swarm.TimedOut, "timed out"))
					}
					return open(o)
				}
				a.Tell = func(s desk.Status) {
					switch {
					case s.State == desk.Pending && work != nil:
						work(b.dir())
					case s.State != desk.Pending:
						stop(swarm.Errorf(swarm.TimedOut, "timed out"))
					}
				}
				if _, err := a.Turn(ctx, provider.Request{Run: "r", Task: "work", Agent: "work"}, nil); swarm.KindOf(err) != swarm.TimedOut {
					t.Fatal(err)
				}
			}
			cut(b.turn(nil), func(dir string) {
				write(dir, "outbox/first", "1")
				write(dir, "outbox/t", "draft")
				write(dir, "status.json", c.before)
			})
			if c.late {
				cut(b.after(nil), nil)
			}
			next := b.after(nil)
			if c.between {
				deliver(b.dir())
			}
			next.Tell = func(s desk.Status) {
				if s.State == desk.Pending && c.running != "" {
					write(b.dir(), "status.json", c.running)
				} else if !s.State.Final() {
					deliver(b.dir())
					write(b.dir(), "status.json", c.end)
				}
			}
			b.must(b.do(next))
			var files []string
			for _, f := range next.Collected.Files {
				files = append(files, f.Path)
			}
			want, notices := "outbox/summary.md outbox/t", 0
			if c.goesOn {
				want, notices = "outbox/first "+want, 1
			}
			if got := strings.Join(files, " "); got != want || len(b.notices) != notices || b.text("outbox/t") != "t" {
				t.Errorf("collected: %s, %q", got, b.notices)
			}
			if kept := b.text("outbox/partial/first") + b.text("outbox/first"); kept != "1" && !c.late {
				t.Error("the half work is lost")
			}
		})
	}
}

// A person edits the inbox while an external worker finishes late, and asks for another attempt. The work
// counts, and the edits break no rule.
func TestEditedInputsOfLateWork(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	b.must(os.Remove(filepath.Join(b.dir(), "inbox/instructions.md")))
	write(b.dir(), "inbox/instructions.md", "# Task: mine\n")
	write(b.dir(), "outbox/error_report.md", "timed out")
	next := b.after(nil)
	next.Asked = true
	b.must(b.do(next))
	if len(b.archived()) > 0 || next.Collected.Summary != "done" || len(next.Collected.Files) != 2 {
		t.Errorf("%q, %+v", b.archived(), next.Collected)
	}
}

// A retry takes the inbox that a person has corrected, or late work, from the desk whose place it has. A crash
// comes after that desk was archived.
func TestACrashAfterTheArchivingOfAnOldDesk(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBench(t)
		b.must(b.do(b.turn(deliver)))
		if !late {
			write(b.dir(), "inbox/mine", "m")
		}
		retry := func(w worker) *deskwork.Turn {
			next := b.turn(w)
			if late {
				next.Late = b.dir()
			} else {
				next.Corrected = b.dir()
			}
			return next
		}
		cut := retry(nil)
		cut.Open = func(deskwork.Opening) error { return errFull }
		if err := b.do(cut); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if late {
			b.must(b.do(retry(nil)))
		} else {
			b.must(b.do(retry(deliver)))
		}
		if !late && b.text("inbox/mine") != "m" || b.text("outbox/t") != "t" || len(b.archived()) != 1 {
			t.Errorf("late: %v, %q, archived is %q", late, b.notices, b.archived())
		}
		for _, notice := range b.notices {
			if want := "work uses the work that was finished too late at " + filepath.Join(b.desks, "_archive/work.1"); notice != want {
				t.Errorf("%q", notice)
			}
		}
	}
}

// A worker changes inputs that a retry took from the desk whose place it has. The next attempt takes them from
// that desk again, and not from the one that the worker has changed.
func TestChangedInputsOfARetry(t *testing.T) {
	b := newBench(t)
	b.must(b.do(b.turn(deliver)))
	write(b.dir(), "inbox/mine", "m")
	first := b.turn(func(dir string) {
		b.must(os.Remove(filepath.Join(dir, "inbox/mine")))
		write(dir, "inbox/mine", "changed")
		deliver(dir)
	})
	first.Corrected = b.dir()
	if err := b.do(first); swarm.KindOf(err) != swarm.Unexpected {
		t.Fatal(err)
	}
	next := b.after(deliver)
	next.Corrected, next.Replaced = b.dir(), b.opened[len(b.opened)-1].Archived
	b.must(b.do(next))
	if b.text("inbox/mine") != "m" || b.text("outbox/partial/t") != "t" {
		t.Errorf("the input is %q, %q", b.text("inbox/mine"), b.notices)
	}
}
