package api

import (
	"net/http"
	"testing"
	"time"

	"swarm"
	"swarm/internal/pipetest"
	"swarm/internal/statedir"
)

// summary reads up to the summary of a run that fits.
func (l *listener) summary(id string, fits func(swarm.RunSummary) bool) swarm.RunSummary {
	l.t.Helper()
	for {
		got, ok := l.next()
		if !ok {
			l.t.Fatal("the stream has ended")
		}
		if got.event != "summary" {
			continue
		}
		if s := decode[swarm.RunSummary](l.t, got.data); string(s.ID) == id && fits(s) {
			return s
		}
	}
}

// A stream without a run has the summaries of the runs that are there, and each change: a run that
// begins, needs a person, has ended, and is deleted.
func TestSummariesAreStreamed(t *testing.T) {
	h := open(t)
	h.project("tasks: {a: {prompt-string: x}}\n", "echo ready > out; read line < go\n")
	goOn, out := pipetest.Make(t, h.dir+"/go"), pipetest.Make(t, h.dir+"/out")
	old, _ := h.bare() // nobody drives it
	l := h.listen("", "")
	l.summary(old, func(s swarm.RunSummary) bool { return s.Status == swarm.Interrupted })
	id := h.start()
	l.summary(id, func(s swarm.RunSummary) bool { return s.Status == swarm.Running && s.Tasks == 1 })
	out.Line()
	h.append(swarm.RunID(id), swarm.Event{Kind: swarm.ApprovalAsked, Key: swarm.AskedKey("a/1/1-x"), Agent: "a", Task: "a", Turn: "a/1/1", Data: []byte(`{"id":"a/1/1-x","what":"read","tool":"Read"}`)})
	s := l.summary(id, func(s swarm.RunSummary) bool { return len(s.Needs) > 0 })
	if n := s.Needs[0]; n.Kind != swarm.NeedsApproval || n.ID != "a/1/1-x" || n.Agent != "a" || n.Text == "" {
		t.Errorf("%+v", n)
	}
	late := h.listen("", "") // gets what is there now
	late.summary(id, func(s swarm.RunSummary) bool { return len(s.Needs) > 0 })
	goOn.Say("go")
	s = l.summary(id, func(s swarm.RunSummary) bool { return s.Status == swarm.Completed })
	if s.Done != 1 || len(s.Needs) > 0 {
		t.Errorf("%+v", s)
	}
	h.settle(id)
	if _, err := h.home.Prune(statedir.PruneOptions{Now: time.Now().Add(time.Hour), Dir: h.dir}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*listener{l, late} {
		for gone := ""; gone != `{"id":"`+id+`"}`; { // the other run is deleted, too
			all := l.until("removed")
			gone = all[len(all)-1].data
		}
	}
	if status, text := h.ask("GET", "/api/v1/stream/sse?after=1", ""); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, text)
	}
}

// Words are found in any case, and all of them must be there.
func TestRunsAreFoundByWords(t *testing.T) {
	h := open(t)
	h.project("tasks: {a: {prompt-string: x}}\n", "true\n")
	id := h.start()
	h.settle(id)
	for q, want := range map[string]int{"": 1, "UP": 1, "pipeline+" + id[:6]: 1, "pipeline+nosuch": 0} {
		if got := get[runList](h, "/api/v1/runs?q="+q).Runs; len(got) != want {
			t.Errorf("%q finds %v", q, got)
		}
	}
}
