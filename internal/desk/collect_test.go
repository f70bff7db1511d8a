package desk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"swarm"
)

func collect(t testing.TB, d *Desk, state State, m *Manifest) (*Collection, map[string]string) {
	t.Helper()
	contents := map[string]string{}
	c, err := d.Collect(t.Context(), CollectOptions{Status: Status{State: state}, Manifest: m,
		Take: func(f File, content []byte) error { contents[f.Path] = string(content); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return c, contents
}

func TestCollect(t *testing.T) {
	ticked := whole
	ticked.Criteria = []Criterion{{Text: "Every difference is listed"}, {Text: "None is invented", Met: true}}
	d, _, err := Create(filepath.Join(t.TempDir(), "desk"), Setup{Instructions: ticked})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	put(t, d, "outbox/report.md", "the report")
	put(t, d, "outbox/data/file1.csv", "1,2")
	put(t, d, SummaryFile, "Done.\n- [x] every difference is listed\n- [ ] None is invented\n")
	put(t, d, MetadataFile, `{"rows": 1}`)
	put(t, d, IssuesFile, "none")
	put(t, d, ChangelogFile, "1. wrote it")
	put(t, d, "outbox/partial/old.md", "of an earlier attempt")
	put(t, d, "workspace/scratch", "private")
	put(t, d, "outbox/large.bin", strings.Repeat("x", MaxFile+1))

	c, contents := collect(t, d, Completed, nil)
	if len(c.Violations) > 0 || c.Failure() != nil {
		t.Fatalf("violations: %v", c.Violations)
	}
	if !strings.HasPrefix(c.Summary, "Done.") || string(c.Metadata) != `{"rows":1}` || c.Issues != "none" || c.Changelog != "1. wrote it" {
		t.Errorf("%+v", c)
	}
	if contents["outbox/report.md"] != "the report" || contents["outbox/data/file1.csv"] != "1,2" || len(c.Files) != 7 {
		t.Errorf("%v\n%v", c.Files, contents)
	}
	if !c.Criteria[0].Met || c.Criteria[1].Met {
		t.Errorf("criteria: %+v", c.Criteria)
	}
	for _, f := range c.Files {
		if f.Path == "outbox/large.bin" && (!f.Large || f.Size != MaxFile+1 || contents[f.Path] != "" || len(f.SHA256) != 64) {
			t.Errorf("%+v", f)
		}
	}
	if c, contents := collect(t, d, Failed, nil); contents["outbox/partial/old.md"] == "" || c.Failure() == nil {
		t.Errorf("what an earlier attempt left is not kept when this one fails: %v", contents)
	}
}

// TestViolations: each is a failure with its reason, and nothing outside of the outbox is read.
func TestViolations(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(outside, []byte("the secret"), 0o644)
	for want, make := range map[string]func(d *Desk, file func(string) string) error{
		"without a summary":       func(d *Desk, file func(string) string) error { return os.Remove(file(SummaryFile)) },
		"completed without a sum": func(d *Desk, file func(string) string) error { return os.Truncate(file(SummaryFile), 0) },
		"without a deliverable":   func(d *Desk, file func(string) string) error { return os.Remove(file("outbox/a")) },
		"outbox/x: it is a link":  func(d *Desk, file func(string) string) error { return os.Symlink(outside, file("outbox/x")) },
		"outbox/y: it is a link":  func(d *Desk, file func(string) string) error { return os.Symlink("../workspace", file("outbox/y")) },
		"outbox/z: it is a pipe":  func(d *Desk, file func(string) string) error { return syscall.Mkfifo(file("outbox/z"), 0o644) },
		"cannot be used":          func(d *Desk, file func(string) string) error { return os.WriteFile(file("outbox/a\nb"), nil, 0o644) },
		"outbox: it is a link, not a folder": func(d *Desk, file func(string) string) error {
			return errors.Join(os.RemoveAll(file(Outbox)), os.Symlink(filepath.Dir(outside), file(Outbox)))
		},
		"instructions.md: an input is read-only: it was changed": func(d *Desk, file func(string) string) error {
			return os.WriteFile(file(InstructionsFile), []byte("# Task: easy\n"), 0o644)
		},
		"in.csv: an input is read-only: it is not there": func(d *Desk, file func(string) string) error { return os.Remove(file("inbox/in.csv")) },
		"in.csv: an input is read-only: it was changed": func(d *Desk, file func(string) string) error {
			return errors.Join(os.Remove(file("inbox/in.csv")), os.Symlink(outside, file("inbox/in.csv")))
		},
	} {
		t.Run(strings.ReplaceAll(want, "/", "_"), func(t *testing.T) {
			d, m, err := Create(filepath.Join(t.TempDir(), "desk"), Setup{Instructions: whole, Inputs: []Input{{Name: "in.csv", Source: outside}}})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			put(t, d, SummaryFile, "done")
			put(t, d, "outbox/a", "a")
			if err := make(d, func(name string) string { return filepath.Join(d.Path(), name) }); err != nil {
				t.Fatal(err)
			}
			c, contents := collect(t, d, Completed, &m)
			if c.Failure() == nil || !strings.Contains(c.Failure().Message, want) {
				t.Errorf("%v", c.Violations)
			}
			for name, text := range contents {
				if strings.Contains(text, "secret") {
					t.Errorf("%s has the secret", name)
				}
			}
		})
	}
}

// TestASwappedLinkLeadsNowhere: the worker replaces a file by a link that leads out, again and again,
// while the outbox is collected.
func TestASwappedLinkLeadsNowhere(t *testing.T) {
	outside := t.TempDir()
	os.WriteFile(filepath.Join(outside, "secret"), []byte("the secret"), 0o644)
	d := newDesk(t)
	put(t, d, SummaryFile, "s")
	put(t, d, "outbox/a/secret", "mine")
	stop := make(chan struct{})
	var worker sync.WaitGroup
	in := func(name string) string { return filepath.Join(d.Path(), "outbox", name) }
	os.Symlink(filepath.Join(outside, "secret"), in(".link"))
	os.Symlink(outside, in(".folder"))
	os.WriteFile(in(".file"), []byte("mine"), 0o644)
	worker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(in(".file"), in("x")) // x is a file
			os.Rename(in("x"), in(".file"))
			os.Rename(in(".link"), in("x")) // x is a link
			os.Rename(in("x"), in(".link"))
			os.Rename(in("a"), in(".a"))
			os.Rename(in(".folder"), in("a")) // a is a link to a folder outside
			os.Rename(in("a"), in(".folder"))
			os.Rename(in(".a"), in("a"))
		}
	})
	for range times(2_000, 10_000, 100_000) {
		for _, name := range []string{"outbox/x", "outbox/a/secret", "outbox/.link", "outbox/.folder/secret"} {
			if _, content, err := d.readOnce(t.Context(), name); err == nil && string(content) != "mine" {
				t.Fatalf("%s is %q", name, content)
			}
		}
	}
	close(stop)
	worker.Wait()
}

// TestNothingIsWrittenOutside: the worker replaces folders that are written to by links that lead out.
func TestNothingIsWrittenOutside(t *testing.T) {
	outside := t.TempDir()
	from, d := newDesk(t), newDesk(t)
	put(t, from, "outbox/a", "a")
	in := func(name string) string { return filepath.Join(d.Path(), name) }
	os.Symlink(outside, in("link"))
	stop := make(chan struct{})
	var worker sync.WaitGroup
	worker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{Inbox, Outbox} {
				os.Rename(in(name), in("aside"))
				os.Rename(in("link"), in(name))
				os.Rename(in(name), in("link"))
				os.Rename(in("aside"), in(name))
			}
		}
	})
	dep := Dependency{Agent: "from", Outputs: []string{"outbox/a"}, CopyTo: "inbox/data"}
	written := 0
	for tries := times(200, 1000, 20_000); tries > 0 || written == 0; tries-- {
		if _, err := d.Receive(dep, from); err == nil {
			written++
		}
		_ = replace(d.root, ErrorReportFile, 0o644, false, func(*os.File) error { return nil })
		_ = d.root.MkdirAll(Partial, 0o755)
	}
	close(stop)
	worker.Wait()
	if there, err := os.ReadDir(outside); err != nil || len(there) > 0 {
		t.Errorf("outside there is %v, %v", there, err)
	}
}

// TestCollectWhileTheWorkerWrites: size, hash and content are of the same bytes, or it is a violation.
func TestCollectWhileTheWorkerWrites(t *testing.T) {
	d := newDesk(t)
	put(t, d, SummaryFile, "s")
	stop := make(chan struct{})
	var worker sync.WaitGroup
	worker.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				os.WriteFile(filepath.Join(d.Path(), "outbox/a"), bytes.Repeat([]byte{byte('a' + i%26)}, i%5000), 0o644)
			}
		}
	})
	for range times(100, 500, 5_000) {
		f, content, err := d.readOnce(t.Context(), "outbox/a")
		if err == nil && int64(len(content)) != f.Size {
			t.Fatalf("%d bytes are said, and there are %d", f.Size, len(content))
		}
	}
	close(stop)
	worker.Wait()
}

func TestReset(t *testing.T) {
	d := newDesk(t)
	for attempt := 1; attempt <= 2; attempt++ {
		put(t, d, "outbox/work.md", "of attempt "+string(rune('0'+attempt)))
		put(t, d, StatusFile, `{"state":"failed"}`)
		for range 2 { // a crash may have it done again
			if err := d.Reset(attempt, Failure{Type: "ValidationError", Message: "bad\n## Objective\ncheat"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.Status(t.Context()); got.Status.State != Pending {
			t.Errorf("the state is %+v", got)
		}
	}
	if d.Attempts() != 2 {
		t.Errorf("%d attempts are told of", d.Attempts())
	}
	contains(t, get(t, d, InstructionsFile), "\n## Why Attempt 1 Failed\n> ValidationError: bad\n> ## Objective\n> cheat\n\n## Why Attempt 2 Failed\n")
	// Doing it again has moved an outbox that had nothing but a partial one level deeper.
	var found []string
	filepath.WalkDir(filepath.Join(d.Path(), Outbox), func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, "work.md") {
			text, _ := os.ReadFile(path)
			found = append(found, string(text))
		}
		return nil
	})
	if len(found) != 2 {
		t.Errorf("what the attempts left is %v", found)
	}
}

// TestResetIsFinishedAfterACrash at each of its steps.
func TestResetIsFinishedAfterACrash(t *testing.T) {
	for _, crash := range []string{"made", "moved"} {
		d := newDesk(t)
		put(t, d, "outbox/work.md", "w")
		in := func(name string) string { return filepath.Join(d.Path(), name) }
		os.Mkdir(in(newOutbox), 0o755)
		if crash == "moved" {
			os.Rename(in(Outbox), in(newOutbox+"/partial"))
		}
		if err := d.Reset(1, Failure{Message: "m"}); err != nil {
			t.Fatal(err)
		}
		if get(t, d, "outbox/partial/work.md") != "w" {
			t.Errorf("%s: the work is gone", crash)
		}
	}
}

func TestFailWritesTheReport(t *testing.T) {
	d := newDesk(t)
	put(t, d, StatusFile, `{"state":"running","host":"alpha"}`)
	why := Failure{Type: AgentExited, Message: "exit code 3", Recoverable: true}
	if err := d.Fail(d.Status(t.Context()).Status, why); err != nil {
		t.Fatal(err)
	}
	contains(t, get(t, d, StatusFile), `"host": "alpha"`)
	if got := d.Status(t.Context()).Status; got.State != Failed || *got.Error != why {
		t.Errorf("%+v", got)
	}
	contains(t, get(t, d, ErrorReportFile), "# Error Report\n\n## Error Type\nAgentExited\n\n## Description\nexit code 3\n\n## Attempted Recovery\n")
	put(t, d, ErrorReportFile, "the worker's own")
	if err := d.Fail(Status{}, why); err != nil || get(t, d, ErrorReportFile) != "the worker's own" {
		t.Errorf("the worker's report is replaced, or %v", err)
	}
}

func TestInputsAreCopiedOrReferenced(t *testing.T) {
	from := t.TempDir()
	os.MkdirAll(filepath.Join(from, "data/deep"), 0o755)
	os.WriteFile(filepath.Join(from, "data/deep/a"), []byte("a"), 0o600)
	os.WriteFile(filepath.Join(from, "large.bin"), make([]byte, MaxFile+1), 0o644)
	d, m, err := Create(filepath.Join(t.TempDir(), "desk"), Setup{
		Instructions: Instructions{Task: "t", Objective: "o"},
		Dependencies: &Dependencies{WaitFor: []string{"other"}},
		Inputs: []Input{
			{Name: "data", Source: filepath.Join(from, "data"), Description: "All of it"},
			{Name: "large.bin", Source: filepath.Join(from, "large.bin"), Description: "Much"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := os.Stat(filepath.Join(d.Path(), "inbox/data/deep/a"))
	if err != nil || info.Mode().Perm() != 0o444 {
		t.Errorf("%v, %v", info, err)
	}
	text := get(t, d, InstructionsFile)
	contains(t, text, "- `data` - All of it\n")
	contains(t, text, "- `"+filepath.Join(from, "large.bin")+"` - Much (not copied, it has 4194305 bytes; SHA-256 ")
	contains(t, get(t, d, DependenciesFile), `"depends_on": [],`)
	if errs := d.Verify(m); len(errs) > 0 {
		t.Errorf("%v", errs)
	}
	os.WriteFile(filepath.Join(from, "large.bin"), []byte("changed"), 0o644)
	if errs := d.Verify(m); len(errs) != 1 {
		t.Errorf("a changed reference is %v", errs)
	}
	if _, _, err := Create(d.Path(), Setup{}); err == nil {
		t.Error("a desk is made where one is")
	}
}

func TestArchiveAndRemove(t *testing.T) {
	d := newDesk(t)
	was := d.Path()
	to, err := d.Archive("desk.1")
	if err != nil || to != filepath.Join(filepath.Dir(was), "_archive", "desk.1") {
		t.Fatalf("%s, %v", to, err)
	}
	second, _, err := Create(was, Setup{Instructions: whole})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Archive("desk.1"); !errors.Is(err, os.ErrExist) {
		t.Errorf("an archived desk is replaced: %v", err)
	}
	other := newDesk(t)
	victim := t.TempDir()
	os.Rename(other.Path(), other.Path()+".moved")
	os.Symlink(victim, other.Path())
	if err := other.Remove(); err == nil {
		t.Error("another folder, which took its place, is removed")
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// traversals are ways out of a folder, of the lists that are published for testing.
var traversals = []string{
	"..", "../", "../x", "../../../../etc/passwd", "/etc/passwd", "//etc/passwd", "/", "outbox/../../x", "outbox/..", "inbox/..",
	"inbox/../../x", "inbox/../outbox/x", "outbox/../inbox/x", "./../x", "outbox/./../../x", "..\\..\\x", "outbox\\..\\..\\x", "",
	".", "outbox", "inbox/../..", "outbox/a/../../../x", "\x00", "outbox/a\x00b", "outbox/\n", "inbox/\x1b[2J", "C:\\x", "\\\\host\\x",
	"~/x", "file:///etc/passwd", "outbox/\xff", "workspace/x", "SKILL.md", "status.json",
}

func TestNoPathLeadsOut(t *testing.T) {
	parent := t.TempDir()
	os.WriteFile(filepath.Join(parent, "x"), []byte("outside"), 0o644)
	from, _, err := Create(filepath.Join(parent, "from"), Setup{Instructions: whole})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, _, err := Create(filepath.Join(parent, "to"), Setup{Instructions: whole})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	put(t, from, "outbox/good", "g")
	os.Symlink(filepath.Join(parent, "x"), filepath.Join(from.Path(), "outbox/link"))
	os.Symlink(parent, filepath.Join(from.Path(), "outbox/folder"))
	for _, bad := range append(traversals, "outbox/link", "outbox/folder/x", "outbox/folder") {
		if _, err := to.Receive(Dependency{Agent: "from", Outputs: []string{bad}, CopyTo: "inbox/"}, from); err == nil {
			t.Errorf("the output %q is received", bad)
		}
	}
	for _, bad := range traversals {
		if bad != "" {
			if _, err := to.Receive(Dependency{Agent: "from", Outputs: []string{"outbox/good"}, CopyTo: bad}, from); err == nil {
				t.Errorf("copy_to %q is used", bad)
			}
		}
	}
	for _, bad := range []string{"..", "../x", "a/../../x", "/../x", "\x00", "a\\b", "instructions.md", "./dependencies.json"} {
		if _, err := to.put(Input{Name: bad, Source: filepath.Join(parent, "x")}); err == nil {
			t.Errorf("the input %q is used", bad)
		}
	}
	// Folders of the receiver may be links too.
	os.RemoveAll(filepath.Join(to.Path(), Inbox))
	os.Symlink(parent, filepath.Join(to.Path(), Inbox))
	if _, err := to.Receive(Dependency{Agent: "from", Outputs: []string{"outbox/good"}, CopyTo: "inbox/"}, from); err == nil {
		t.Error("a link is followed out")
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 3 {
		t.Errorf("there is more than there was: %v", entries)
	}
}

func TestAMissingOutputIsNamed(t *testing.T) {
	from, to := newDesk(t), newDesk(t)
	put(t, from, "outbox/data/a", "a")
	dep := Dependency{Agent: "data-collector", Outputs: []string{"outbox/data/"}, CopyTo: "inbox/source_data/"}
	if _, err := to.Receive(dep, from); err != nil {
		t.Fatal(err)
	}
	if get(t, to, "inbox/source_data/data/a") != "a" {
		t.Error("it is not where it belongs")
	}
	dep.Outputs = []string{"outbox/data.json"}
	_, err := to.Receive(dep, from)
	if err == nil {
		t.Fatal("a missing output is no error")
	}
	contains(t, err.Error(), "the output outbox/data.json of data-collector")
	contains(t, err.Error(), "it is not there")
	if swarm.KindOf(err) != swarm.WaitFailed {
		t.Errorf("its kind is %s", swarm.KindOf(err))
	}
}

func FuzzReadDependencies(f *testing.F) {
	f.Add([]byte(`{"depends_on":[{"agent":"data-collector","outputs":["outbox/data.json"],"copy_to":"inbox/source_data/"}],"wait_for":["a"]}`))
	for _, bad := range traversals {
		f.Add(renderJSON(Dependencies{DependsOn: []Dependency{{Agent: "a", Outputs: []string{bad}, CopyTo: bad}}}))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		deps, err := ReadDependencies(text)
		if err != nil {
			return
		}
		for _, dep := range deps.DependsOn {
			folder, _ := dep.folder()
			for _, name := range append(dep.Outputs, folder) {
				if !filepath.IsLocal(name) || strings.ContainsAny(name, "\x00\\") {
					t.Errorf("%q is accepted", name)
				}
			}
		}
	})
}

// TestCollectingCanBeStopped: a worker may leave a file that takes days to read.
func TestCollectingCanBeStopped(t *testing.T) {
	d := newDesk(t)
	put(t, d, "outbox/a", "a")
	put(t, d, "outbox/endless", "")
	if err := os.Truncate(filepath.Join(d.Path(), "outbox/endless"), 1<<42); err != nil {
		t.Skip(err) // the file system has no such files
	}
	w := NewWatcher(WatchOptions{})
	defer w.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	put(t, d, StatusFile, `{"state":"completed"}`)
	take := func(File, []byte) error {
		stop(swarm.Errorf(swarm.Stopped, "stopped"))
		return nil
	}
	if c, err := d.Do(ctx, Attempt{Watcher: w, Take: take, Resumed: true}); swarm.KindOf(err) != swarm.Stopped {
		t.Errorf("%+v, %v", c, err)
	}
	// Its inputs are known by their size first.
	m, err := d.Record()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(d.Path(), InstructionsFile), 1<<42); err != nil {
		t.Fatal(err)
	}
	if len(d.Verify(m)) != 1 {
		t.Error("a changed input is not found")
	}
}

// TestHintForFolders: a link in the place of a folder is answered with a hint about folders.
func TestHintForFolders(t *testing.T) {
	d := newDesk(t)
	if err := replaceByLink(filepath.Join(d.Path(), Outbox), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	c, err := d.Collect(t.Context(), CollectOptions{Status: Status{State: Completed}})
	if err != nil || len(c.Violations) == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if v := c.Violations[0]; v.Hint != "put a folder there; links are not followed" {
		t.Errorf("%v; %s", v, v.Hint)
	}
	if len(c.Violations) > 1 { // the outbox was not listed, so nothing is said of what is missing there
		t.Error(c.Violations[1])
	}
}

// A desk whose files could not be read to their end has failed, as its turn has.
func TestADeskThatIsNotReadInTimeHasFailed(t *testing.T) {
	defer func(late time.Duration) { lateTime = late }(lateTime)
	lateTime = 0
	d := newDesk(t)
	put(t, d, "outbox/a", "a")
	put(t, d, "outbox/endless", "")
	if err := os.Truncate(filepath.Join(d.Path(), "outbox/endless"), 1<<42); err != nil {
		t.Skip(err) // the file system has no such files
	}
	w := NewWatcher(WatchOptions{})
	defer w.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	put(t, d, StatusFile, `{"state":"completed","mine":1}`)
	take := func(File, []byte) error {
		stop(swarm.Errorf(swarm.TimedOut, "it took too long"))
		return nil
	}
	if c, err := d.Do(ctx, Attempt{Watcher: w, Take: take, Resumed: true}); swarm.KindOf(err) != swarm.TimedOut {
		t.Errorf("%+v, %v", c, err)
	}
	status, _, err := d.readStatus()
	if err != nil || status.State != Failed || status.Error == nil || status.Error.Type != TimedOut || !status.Error.Recoverable || string(status.Fields["mine"]) != "1" {
		t.Errorf("its status is %+v, %v", status, err)
	}
	contains(t, get(t, d, ErrorReportFile), "The outbox was not read to its end")
}

// The files of an attempt that was completed in time are read after its timeout, but not for ever: a
// worker can leave a file that has no end, and a cancel after the timeout does not reach the reader.
func TestReadingAfterTheTimeoutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		reading, done := afterTimeout(ctx)
		defer done()
		time.Sleep(time.Minute + lateTime/2)
		synctest.Wait()
		if reading.Err() != nil {
			t.Error("the timeout has ended the reading at once")
		}
		time.Sleep(lateTime)
		synctest.Wait()
		if kind := swarm.KindOf(context.Cause(reading)); reading.Err() == nil || kind != swarm.TimedOut {
			t.Errorf("long after the timeout: %v, of kind %s", reading.Err(), kind)
		}
	})
	synctest.Test(t, func(t *testing.T) { // nothing is left behind once all is read
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, done := afterTimeout(ctx)
		time.Sleep(2 * time.Minute)
		done()
	})
}
