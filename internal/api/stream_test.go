package api

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarm"
	"swarm/internal/feed"
	"swarm/internal/pipetest"
)

func ids(all []told) string {
	var text []string
	for _, one := range all {
		text = append(text, one.id)
	}
	return strings.Join(text, " ")
}

func TestAStreamTellsWhatHasBeenAndThenWhatHappens(t *testing.T) {
	h := open(t)
	id, write := h.bare()
	write(note("three"))
	for _, x := range []struct{ query, last, want string }{
		{"", "", "1 2 3 4"},
		{"&after=1", "", "2 3 4"},
		{"&after=1", "2", "3 4"}, // the header is what the client really has
		{"&after=3", "", "4"},
		{"&type=notice", "", "3 4"},
		{"&type=run_started,notice", "1", "3 4"},
	} {
		l := h.listen("workflow_id="+id+x.query, x.last)
		var all []told
		for range strings.Fields(x.want)[1:] {
			got, _ := l.next()
			all = append(all, got)
		}
		write4(t, h, id, write)
		got, _ := l.next()
		if all = append(all, got); ids(all) != x.want {
			t.Errorf("%s, Last-Event-ID %q: %s, want %s", x.query, x.last, ids(all), x.want)
		}
		var e swarm.PublicEvent
		if err := json.Unmarshal([]byte(got.data), &e); err != nil || string(e.Run) != id || strconv.FormatInt(e.Seq, 10) != got.id || string(e.Kind) != got.event {
			t.Errorf("%+v is told as %+v (%v)", got, e, err)
		}
	}
}

// write4 writes the fourth event, once.
func write4(t *testing.T, h *house, id string, write func(...swarm.Event)) {
	t.Helper()
	if get[eventList](h, "/api/v1/runs/"+id+"/events").Events[2:][0].Seq == 3 {
		write(swarm.Event{Kind: swarm.Notice, Key: "four", Data: note("four").Data})
	}
}

func TestAStreamThatCannotBeIsRefusedAtOnce(t *testing.T) {
	h := open(t)
	id, _ := h.bare()
	for _, x := range []struct {
		query, last string
		want        int
		says        string
	}{
		{"workflow_id=nosuch", "", 404, "there is no run"},
		{"workflow_id=" + id[:len(id)-1], "", 404, "there is no run"},
		{"workflow_id=../../etc/passwd", "", 404, "there is no run"},
		{"workflow_id=a%0Aid:%201%0D%00", "", 404, `there is no run \"a\\nid: 1\\r\\x00\"`},
		{"after=1", "", 400, "no run is named"},
		{"workflow_id=" + id + "&after=-1", "", 400, "is no number that is possible here"},
		{"workflow_id=" + id + "&after=3", "", 400, "has no event 3 yet"},
		{"workflow_id=" + id, "x", 400, "is no event of a run"},
		{"workflow_id=" + id, "99", 400, "has no event 99 yet"},
		{"workflow_id=" + id + "&type=turn_endet", "", 400, `did you mean \"turn_ended\"?`},
		{"workflow_id=" + id + "&types=x", "", 400, `did you mean \"type\"?`},
		{"workflow_id=" + id + "&after=1&after=2", "", 400, "is given twice"},
	} {
		r := h.request("GET", "/api/v1/stream/sse?"+x.query, "")
		if x.last != "" {
			r.Header.Set("Last-Event-ID", x.last)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_ = answer.Write(&b)
		answer.Body.Close()
		if answer.StatusCode != x.want || !strings.Contains(b.String(), x.says) {
			t.Errorf("%s %s: %s, want %d %s", x.query, x.last, b.String(), x.want, x.says)
		}
	}
}

// TestARunThatIsDrivenIsTold streams a real run from its first event to its last, with the agent's
// deltas in between. Then the stream ends, and a client that connects again gets 204.
func TestARunThatIsDrivenIsTold(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  first: {prompt-string: x}\n", "echo hello; read line < go; echo 'bye\r'; echo oops >&2\n")
	goOn := pipetest.Make(t, h.dir+"/go")
	id := h.start()
	l := h.listen("workflow_id="+id, "")
	before := l.until("delta")
	late := h.listen("workflow_id="+id+"&type=delta", "") // who comes while it speaks is told what it has said
	if got := late.until("delta"); len(got) != 1 || !strings.Contains(got[0].data, `"text":"hello\n"`) || got[0].id != "" {
		t.Errorf("who comes late is told %v", got)
	}
	goOn.Say("go")
	all := append(before, l.until(string(swarm.RunEnded))...)
	rest, open := l.next()
	for ; open; rest, open = l.next() {
		all = append(all, rest)
	}
	seq, said := 0, map[string]string{}
	for _, one := range all {
		if one.event == feed.Delta {
			var d feed.TurnDelta
			if err := json.Unmarshal([]byte(one.data), &d); err != nil || string(d.Run) != id || d.Agent != "first" || d.Turn != "first/1/1" {
				t.Errorf("%+v: %+v, %v", one, d, err)
			}
			said[d.Kind] += d.Text
			continue
		}
		if seq++; one.id != strconv.Itoa(seq) {
			t.Fatalf("event %d has the id %s", seq, one.id)
		}
	}
	if said["text"] != "hello\nbye\r\n" || said["stderr"] != "oops\n" {
		t.Errorf("it said %q", said)
	}
	if events := get[eventList](h, "/api/v1/runs/"+id+"/events").Events; len(events) != seq {
		t.Errorf("%d of %d events were told", seq, len(events))
	}
	for query, want := range map[string]int{"": 200, "&after=" + strconv.Itoa(seq): 204, "&type=delta": 204, "&type=run_ended&after=1": 200} {
		if l := h.listen("workflow_id="+id+query, ""); l.status != want {
			t.Errorf("after its end, %s: %d, want %d", query, l.status, want)
		} else if want == 200 {
			for ok := true; ok; _, ok = l.next() {
			}
		}
	}
}

func TestARunThatCannotBeReadIsToldOf(t *testing.T) {
	h := open(t)
	id, _ := h.bare()
	h.post("/api/v1/runs/"+id+"/cancel", "", http.StatusAccepted)
	h.settle(id)
	path := filepath.Join(h.home.Dir(), "runs", id+".db")
	for _, side := range []string{"", "-wal", "-shm"} {
		if err := os.WriteFile(path+side, []byte("no log"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, text := h.ask("GET", "/api/v1/stream/sse?workflow_id="+id, ""); status != 400 && status != 500 || !strings.Contains(text, "error") {
		t.Errorf("%d %s", status, text)
	}
	if h.api.Feed.Listeners(swarm.RunID(id)) != 0 {
		t.Error("it is still followed")
	}
	if status, text := h.ask("GET", "/api/v1/approvals", ""); status != http.StatusOK { // the others go on
		t.Errorf("%d %s", status, text)
	}
}

func TestAHeadHasNoEnd(t *testing.T) {
	h := open(t)
	id, _ := h.bare()
	answer, err := http.DefaultClient.Do(h.request("HEAD", "/api/v1/stream/sse?workflow_id="+id, ""))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%s %s", answer.Status, answer.Header)
	}
}

func TestSilenceIsFilled(t *testing.T) {
	h := open(t, func(a *API) { a.heartbeat = time.Millisecond })
	id, _ := h.bare()
	l := h.listen("workflow_id="+id+"&type=delta", "")
	for range 3 {
		if got, ok := l.next(); !ok || got != (told{comment: "heartbeat"}) {
			t.Fatalf("%+v %v", got, ok)
		}
	}
}

// TestNothingForgesAnEvent: the content of an event cannot forge the id or name of an SSE event, or
// add another one.
func TestNothingForgesAnEvent(t *testing.T) {
	h := open(t)
	id, write := h.bare()
	evil := "x\n\nid: 666\nevent: run_ended\ndata: {}\n\n\r\rid: 667\r\x00\u2028\u0085"
	text, _ := json.Marshal(evil)
	events := []swarm.Event{
		note(evil),
		{Kind: swarm.Notice, Agent: evil, Task: evil, Turn: swarm.TurnID(evil), Data: json.RawMessage(`{"reason":"x"}`)},
		{Kind: swarm.EventKind("notice\nid: 668"), Data: text},
		{Kind: swarm.EventKind("\x00"), Data: json.RawMessage("{\n\"a\":\r\n1}")},
		{Kind: swarm.EventKind("odd"), Data: json.RawMessage("{\nid: 669\n\n")},
		{Kind: swarm.EventKind("bytes"), Data: json.RawMessage("\"\xff\xfe\"")},
	}
	write(events...)
	write(swarm.Event{Kind: swarm.Tick})
	l := h.listen("workflow_id="+id+"&after=2", "")
	all := l.until(string(swarm.Tick))
	if got := ids(all); got != "3 4 5 6 7 8 9" {
		t.Fatalf("the ids are %s", got)
	}
	for i, one := range all[:len(events)] {
		if name := one.event; name != "" && name != string(events[i].Kind) {
			t.Errorf("event %s is called %q", one.id, name)
		}
		if !json.Valid([]byte(one.data)) {
			t.Errorf("event %s is told as %q", one.id, one.data)
		}
	}
	var e swarm.PublicEvent
	if err := json.Unmarshal([]byte(all[1].data), &e); err != nil || e.Agent != evil {
		t.Errorf("%q became %q (%v)", evil, e.Agent, err)
	}
}

// TestWhoDoesNotReadIsLeft: a client that does not read is disconnected, and the others get all
// events meanwhile.
func TestWhoDoesNotReadIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	h := open(t, func(a *API) { a.patience, a.heartbeat = time.Second, time.Hour }) // a heartbeat is no event
	id, write := h.bare()
	slow := h.listen("workflow_id="+id, "")
	h.api.patience = time.Hour // with the one that reads, also on a busy machine
	quick := h.listen("workflow_id="+id, "")
	const events = 16
	large := strings.Repeat("x", 1<<20) // more than any buffer between us holds
	for seq := 0; seq < events+2 || h.api.Feed.Listeners(swarm.RunID(id)) == 2; seq++ {
		switch {
		case seq >= events+2:
			write(note("small"))
		case seq >= 2:
			write(note(large))
		}
		if got, ok := quick.next(); !ok || got.id != strconv.Itoa(seq+1) {
			t.Fatalf("the quick one got %s after %d", got.id, seq)
		}
	}
	n := 0
	for ok := true; ok; _, ok = slow.next() { // ends when its connection does
		n++
	}
	if n > events {
		t.Errorf("the slow one got all %d events", n)
	}
}

// TestALongHistoryIsToldWhole: events that are no longer in memory are read from the log, without a
// gap between the two.
func TestALongHistoryIsToldWhole(t *testing.T) {
	h := open(t)
	id, write := h.bare()
	var some []swarm.Event
	for i := range 3*feed.Kept/2 - 2 {
		some = append(some, note(strconv.Itoa(i)))
	}
	write(some...)
	l := h.listen("workflow_id="+id, "")
	for seq := 1; seq <= len(some)+2+10; seq++ {
		if seq == len(some) {
			for range 10 {
				write(note("new"))
			}
		}
		if got, ok := l.next(); !ok || got.id != strconv.Itoa(seq) {
			t.Fatalf("event %d is %+v", seq, got)
		}
	}
}

// TestManyListenToOneFollower: however many clients a run has, it is followed once.
func TestManyListenToOneFollower(t *testing.T) {
	h := open(t)
	id, write := h.bare()
	var all []*listener
	for range 20 {
		all = append(all, h.listen("workflow_id="+id, ""))
	}
	write(note("now"))
	for _, l := range all {
		l.until(string(swarm.Notice))
	}
	if n := h.api.Feed.Listeners(swarm.RunID(id)); n != 20 {
		t.Errorf("%d listeners", n)
	}
}
