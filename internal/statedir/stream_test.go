package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"swarm"
)

// said returns all records of a reader as one text; gaps are <N>.
func said(t testing.TB, r *StreamReader) string {
	t.Helper()
	var b strings.Builder
	_, err := r.Read(func(rec Record) error {
		if rec.Kind == Gap {
			fmt.Fprintf(&b, "<%d>", rec.Gap)
		}
		b.WriteString(rec.Text)
		return nil
	})
	must(t, err)
	return b.String()
}

// readAll reads a stream from its beginning.
func readAll(h *Home, turn swarm.TurnID, start int, fn func(Record) error) error {
	_, err := h.ReadStreams("r").Turn(turn, start).Read(fn)
	return err
}

func files(t testing.TB, h *Home, run swarm.RunID) []string {
	t.Helper()
	names, err := namesIn(h.streamDir(run))
	must(t, err)
	return names
}

func TestStream(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("code.2/1/3", 1)
	if w.Write("text", ""); len(files(t, h, "r")) != 0 {
		t.Error("a turn that says nothing has a file")
	}
	texts := []string{"hello\n", "ümläut \x1b[31m \"quoted\" \\ \t\r\x00\x7f  \U0001F41D", "half a rune: \xc3", strings.Repeat("x", pieceSize+5)}
	for _, text := range texts {
		w.Write("text", text)
	}
	w.Write("tool", `{"name":"read_file"}`)
	must(t, w.Close())
	w.Write("text", "after the end")
	must(t, w.Close())

	var got []Record
	must(t, readAll(h, "code.2/1/3", 1, func(r Record) error { got = append(got, r); return nil }))
	want := []string{texts[0], texts[1], "half a rune: \uFFFD", texts[3][:pieceSize], "xxxxx", `{"name":"read_file"}`}
	if len(got) != len(want) {
		t.Fatalf("%d records: %v", len(got), got)
	}
	for i, r := range got {
		if r.Text != want[i] || r.Kind != map[bool]string{false: "text", true: "tool"}[i == 5] || time.Since(r.Time).Abs() > time.Hour {
			t.Errorf("record %d is %+v", i, r)
		}
	}
	for _, other := range []struct {
		turn  swarm.TurnID
		start int
	}{{"code.2/1/3", 2}, {"code/2/1", 3}, {"nosuch/1/1", 1}} {
		must(t, readAll(h, other.turn, other.start, func(r Record) error { return errors.New("it said " + r.Text) }))
	}
	stop := errors.New("enough")
	if err := readAll(h, "code.2/1/3", 1, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the reader's own error is %v", err)
	}
}

// A gigabyte would only take longer.
func TestALongStreamKeepsItsHeadAndTail(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	var all strings.Builder
	for i := range 300_000 {
		text := fmt.Sprintf("line %d of what a talkative agent says\n", i)
		all.WriteString(text)
		w.Write("text", text)
	}
	must(t, w.Close())

	got := said(t, h.ReadStreams("r").Turn("a/1/1", 1))
	head, rest, ok := strings.Cut(got, "<")
	missing, tail, _ := strings.Cut(rest, ">")
	if !ok || strings.Contains(tail, "<") {
		t.Fatalf("there is not one gap in %d bytes", len(got))
	}
	if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) {
		t.Error("head and tail are not what was said")
	}
	if want := fmt.Sprint(all.Len() - len(head) - len(tail)); missing != want {
		t.Errorf("%s bytes are said to be missing, and %s are", missing, want)
	}
	if len(head) < partSize/3 || len(tail) < partSize/3 { // the rest of a part is the records' times
		t.Errorf("kept are %d and %d bytes", len(head), len(tail))
	}
	var disk int64
	for _, name := range files(t, h, "r") {
		info, err := os.Stat(filepath.Join(h.streamDir("r"), name))
		must(t, err)
		disk += info.Size()
	}
	if disk > 4*partSize {
		t.Errorf("%d bytes are on disk", disk)
	}
}

// TestNewest reads the end of a stream, and not what was said before.
func TestNewest(t *testing.T) {
	for _, size := range []int{0, 1, 10_000, partSize + 10_000, 3*partSize + 10_000} {
		h := newHome(t)
		streams := h.WriteStreams("r")
		w := streams.Turn("a/1/1", 1)
		for n := 0; n < size; n += 1000 {
			w.Write("text", fmt.Sprintf("%06d", n)+strings.Repeat("x", 994))
		}
		w.Write("tool", "last")
		must(t, w.Close())
		must(t, streams.Turn("b/1/1", 1).Close())
		var texts []string
		must(t, h.ReadStreams("r").Turn("a/1/1", 1).Newest(func(said Record) error {
			texts = append(texts, said.Text)
			return nil
		}))
		if len(texts) == 0 || texts[len(texts)-1] != "last" {
			t.Errorf("the stream of %d bytes ends with %d records", size, len(texts))
		}
		if size > partSize && len(texts) > 5*pieceSize/1000 {
			t.Errorf("of the stream of %d bytes %d records are read", size, len(texts))
		}
	}
	if err := newHome(t).ReadStreams("r").Turn("a/1/1", 1).Newest(func(Record) error { return errors.New("a record") }); err != nil {
		t.Errorf("a turn that said nothing has %v", err)
	}
}

func TestOnePieceLargerThanEverythingKept(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	big := strings.Repeat("é", 10*partSize/2) + "the end"
	w.Write("text", big)
	w.Write("text", big)
	must(t, w.Close())
	got := said(t, h.ReadStreams("r").Turn("a/1/1", 1))
	if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || !strings.HasSuffix(got, "éthe end") || !strings.HasPrefix(got, "éé") {
		t.Errorf("%d bytes from %q to %q", len(got), got[:10], got[len(got)-10:])
	}
}

// A reader in another process sees all records in order while they are written, or a gap.
func TestFollow(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	r := h.ReadStreams("r").Turn("a/1/1", 1)
	if said(t, r) != "" {
		t.Error("nothing was said yet")
	}
	w.Write("text", "one ")
	must(t, w.all.Flush())
	if got := said(t, r); got != "one " {
		t.Errorf("first: %q", got)
	}
	w.Write("text", "two ")
	w.Write("text", "three")

	var all strings.Builder
	all.WriteString("one two three")
	var heard strings.Builder
	heard.WriteString("one ")
	for i := range 60_000 { // slow enough for this reader, and three times as much as a part holds
		text := fmt.Sprintf("and %d, and so on, and so on, and so on\n", i)
		all.WriteString(text)
		w.Write("text", text)
		if i%5_000 == 0 {
			w.mu.Lock()
			w.flush()
			w.mu.Unlock()
			must(t, w.all.Flush())
			heard.WriteString(said(t, r))
		}
	}
	must(t, w.Close())
	heard.WriteString(said(t, r))
	if heard.String() != all.String() {
		t.Errorf("%d bytes were heard of %d", heard.Len(), all.Len())
	}
}

func TestWhatWaitsIsWrittenByItself(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	r := h.ReadStreams("r").Turn("a/1/1", 1)
	for _, words := range []string{"a word", strings.Repeat("x", partSize) + "after the head"} {
		w.Write("text", words)
		for heard := ""; !strings.HasSuffix(heard, words[len(words)-6:]); heard += said(t, r) {
			select {
			case <-time.After(moment / 4): // as one who follows does
			case <-t.Context().Done():
				t.Fatal("it never came")
			}
		}
	}
	must(t, w.Close())
}

// The heads of many turns are in two files, and each can be read alone.
func TestManyTurnsShareAFile(t *testing.T) {
	h := newHome(t)
	all := h.WriteStreams("r")
	turns := map[swarm.TurnID]*StreamWriter{}
	for i := range 100 {
		turn := fmt.Sprintf("t%d/1/1", i)
		turns[swarm.TurnID(turn)] = all.Turn(turn, 1)
	}
	readers := h.ReadStreams("r")
	early := readers.Turn("t7/1/1", 1)
	for round := range 3 {
		for turn, w := range turns {
			w.Write("text", fmt.Sprintf("%s says %d ", turn, round))
		}
		must(t, all.Flush())
		if got, want := said(t, early), fmt.Sprintf("t7/1/1 says %d ", round); got != want {
			t.Errorf("round %d: %q", round, got)
		}
	}
	must(t, all.Close())
	for turn := range turns {
		want := fmt.Sprintf("%[1]s says 0 %[1]s says 1 %[1]s says 2 ", turn)
		if got := said(t, readers.Turn(turn, 1)); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if names := files(t, h, "r"); len(names) != 2 {
		t.Errorf("files: %v", names)
	}
}

// After a crash of the machine, the next driver appends to what is left of the files. Readers skip
// index entries without text.
func TestStreamsAfterACrash(t *testing.T) {
	h := newHome(t)
	first := h.WriteStreams("r")
	first.Turn("a/1/1", 1).Write("text", "before")
	must(t, first.Close())
	dir := h.streamDir("r")
	add := func(name string, b []byte) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = f.Write(b)
		must(t, err)
		must(t, f.Close())
	}
	lost := streamName("lost/1/1", 1)
	add(indexName, appendEntry(nil, entry{hashOf(lost), 1 << 30, 100}))
	add(indexName, appendEntry(nil, entry{hashOf(lost), 0, 10}))
	add(indexName, appendEntry(nil, entry{hashOf(lost), -1, -1}))
	add(indexName, []byte("half an"))
	add(saidName, []byte(`{"turn":"half a`))
	if got := said(t, h.ReadStreams("r").Turn("lost/1/1", 1)); got != "" {
		t.Errorf("%q", got)
	}
	second := h.WriteStreams("r")
	second.Turn("a/1/1", 2).Write("text", "after")
	must(t, second.Close())
	for start, want := range []string{1: "before", 2: "after"} {
		if got := said(t, h.ReadStreams("r").Turn("a/1/1", start)); got != want {
			t.Errorf("start %d: %q", start, got)
		}
	}
}

// Two processes may write, if one was stopped and does not know yet that the other has taken over
// the run.
func TestTwoWriteTheSameStreams(t *testing.T) {
	h := newHome(t)
	one, other := h.WriteStreams("r"), h.WriteStreams("r")
	a, b := one.Turn("a/1/1", 1), other.Turn("a/1/1", 2)
	for range 10 {
		a.Write("text", "one ")
		b.Write("text", "other ")
		must(t, one.Flush())
		must(t, other.Flush())
	}
	must(t, one.Close())
	must(t, other.Close())
	for start, word := range []string{1: "one ", 2: "other "} {
		if got := said(t, h.ReadStreams("r").Turn("a/1/1", start)); start > 0 && got != strings.Repeat(word, 10) {
			t.Errorf("start %d: %q", start, got)
		}
	}
}

// Heads with their own files are from an earlier version. The tail always has its own files.
func TestHalfALineIsLeftForLater(t *testing.T) {
	h := newHome(t)
	must(t, os.MkdirAll(h.streamDir("r"), 0o700))
	path := filepath.Join(h.streamDir("r"), partName(streamName("a/1/1", 1), 0))
	add := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		must(t, err)
		_, err = f.WriteString(text)
		must(t, err)
		must(t, f.Close())
	}
	add(`{"t":1,"k":"text","s":"whole"}` + "\n" + `{"t":1,"k":"text","s":"ha`)
	r := h.ReadStreams("r").Turn("a/1/1", 1)
	if got := said(t, r); got != "whole" {
		t.Errorf("%q", got)
	}
	add("lf\"}\n\x00\x00garbage\n[1]\n{\"t\":1,\"k\":\"text\",\"s\":\" and on\"}\n")
	if got := said(t, r); got != "half<10><4> and on" { // What cannot be read is a gap.
		t.Errorf("%q", got)
	}
}

func TestAStreamThatCannotBeWritten(t *testing.T) {
	h := newHome(t)
	must(t, os.WriteFile(filepath.Join(h.Dir(), "streams"), nil, 0o600))
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	w.Write("text", "x")
	w.Write("text", "y")
	if err := w.Close(); err == nil {
		t.Error("nobody says so")
	}
}

func TestManyWriteAtOnce(t *testing.T) {
	h := newHome(t)
	w := h.WriteStreams("r").Turn("a/1/1", 1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20_000 {
				w.Write("stderr", "a line of eighty bytes, more or less, of which there will be a good many\n")
			}
		})
	}
	all.Wait()
	must(t, w.Close())
	must(t, readAll(h, "a/1/1", 1, func(r Record) error {
		if r.Kind != Gap && !strings.HasSuffix(r.Text, "many\n") {
			return fmt.Errorf("a torn record: %q", r.Text)
		}
		return nil
	}))
}

func FuzzRecord(f *testing.F) {
	f.Add("text", "hello\n\"\\\x00\x1f\x7f\xff<>& ")
	f.Fuzz(func(t *testing.T, kind, text string) {
		if !utf8.ValidString(kind) {
			return // kinds are ours
		}
		at := time.UnixMicro(1763217125123456)
		b := appendRecord(nil, at, kind, text)
		if !json.Valid(b) || strings.Count(string(b), "\n") != 1 {
			t.Fatalf("not one line of JSON: %q", b)
		}
		l, _ := parseLine(b)
		if l.Kind != kind || l.Text != strings.ToValidUTF8(text, "\uFFFD") || l.Time != at.UnixMicro() {
			t.Fatalf("%q became %+v", b, l)
		}
	})
}

// A bit that the disk has changed is never a change of what somebody said.
func TestADamagedLineIsNoRecord(t *testing.T) {
	good := appendRecord(nil, time.UnixMicro(1763217125123456), "text", "pay 100 to alice\n")
	good = good[:len(good)-1]
	for i := range 8 * len(good) {
		bad := slices.Clone(good)
		bad[i/8] ^= 1 << (i % 8)
		if l, ok := parseLine(bad); ok && (l.Kind != "text" || l.Text != "pay 100 to alice\n" || l.Time != 1763217125123456) {
			t.Errorf("%q is read as %+v", bad, l)
		}
	}
	if _, ok := parseLine([]byte(`{"t":1,"k":"text","s":"of an older build"}`)); !ok {
		t.Error("a line without a checksum is refused")
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"t":1,"k":"text","s":"x"}`))
	f.Add([]byte(`{"at":5}`))
	f.Add([]byte(`{"at":`))
	f.Fuzz(func(_ *testing.T, b []byte) { parseLine(b) })
}

// The lower bound is a copy of the same bytes.
func BenchmarkStreamOverTheCap(b *testing.B) {
	text := strings.Repeat("What an agent says that cannot stop, 32 KB at a time.\n", 600)
	b.Run("floor=copy", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		into := make([]byte, len(text))
		for b.Loop() {
			copy(into, text)
		}
	})
	b.Run("stream", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		w := newHome(b).WriteStreams("r").Turn("a/1/1", 1)
		for b.Loop() {
			w.Write("text", text)
		}
		must(b, w.Close())
	})
}

// A named pipe in the place of a stream is an error, and nobody waits for its writer.
func TestAStreamThatIsANamedPipe(t *testing.T) {
	for _, name := range []string{indexName, saidName} {
		h := newHome(t)
		w := h.WriteStreams("r")
		w.Turn("a/1/1", 1).Write("text", "x")
		must(t, w.Close())
		path := filepath.Join(h.streamDir("r"), name)
		must(t, os.Remove(path))
		must(t, syscall.Mkfifo(path, 0o600))
		if err := readAll(h, "a/1/1", 1, func(Record) error { return nil }); err == nil || !strings.Contains(err.Error(), "it is no file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
