package api

import (
	"net/http"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/feed"
	"swarm/internal/pipetest"
	"swarm/internal/plan"
	"swarm/internal/view"
)

// TestOneAgentIsSteeredFromAnotherServer: one server drives the run. Another one shares only the
// state folder: it follows the run's log, shows the state of each agent, and sends commands to
// single ones.
func TestOneAgentIsSteeredFromAnotherServer(t *testing.T) {
	h := open(t)
	h.project("tasks:\n  a: {prompt-string: x}\n  b: {prompt-string: y, depends_on: [a], retries: 1}\n", "echo > out; read line < go; echo word; read line < go\n")
	goOn := pipetest.Make(t, h.dir+"/go")
	out := pipetest.Make(t, h.dir+"/out")
	other := open(t, func(a *API) { a.Control.Home, a.Feed, a.Control.Dir = h.home, feed.New(h.home), h.dir })
	id := h.start()
	nodes := "/api/v1/runs/" + id + "/nodes/"
	l := other.listen("workflow_id="+id, "")
	l.until(string(swarm.TurnStarted))
	out.Line()
	if n := other.node(id, "a"); n.Connection != view.Connected || n.Stream != view.Reading || n.Turn != "a/1/1" || n.Status != swarm.Running {
		t.Errorf("it has its prompt: %+v", n)
	}
	goOn.Say("go")
	l.until(feed.Delta)
	if n := other.node(id, "a"); n.Connection != view.Connected || n.Stream != view.Writing || n.Status != swarm.Streaming {
		t.Errorf("it speaks: %+v", n)
	}

	// Paused: said twice it is the same. The run goes on until nothing but the paused one is left,
	// and says so.
	other.post(nodes+"b/pause", "", http.StatusAccepted)
	other.post(nodes+"b/pause", "{}", http.StatusAccepted)
	l.until(string(swarm.AgentPaused))
	goOn.Say("go")
	l.until(string(swarm.Notice))
	n := other.node(id, "b")
	if n.Status != swarm.Waiting || n.Connection != view.IdleAgent || len(n.Waits) != 1 || n.Waits[0].For != plan.ForPause || n.Waits[0].Agent != "b" {
		t.Errorf("it is paused: %+v", n)
	}
	if n := other.node(id, "a"); n.Status != swarm.Idle || n.Connection != view.IdleAgent || n.Turn != "" || n.Stream != "" {
		t.Errorf("it has done its work: %+v", n)
	}
	if r := get[view.Picture](other, "/api/v1/runs/"+id); r.Reason != "the run waits for @b, which is paused" {
		t.Errorf("the run says %q", r.Reason)
	}
	other.post(nodes+"b/start", "", http.StatusConflict)
	other.post(nodes+"b/resume", "", http.StatusAccepted)
	if text := other.post(nodes+"b/resume", "", http.StatusConflict); !strings.Contains(text, "@b is not paused") {
		t.Errorf("resumed twice: %s", text)
	}
	l.until(string(swarm.AgentResumed))
	l.until(string(swarm.TurnStarted))
	out.Line()

	// Reset: its turn is cut, and another attempt begins. Stopped: it has nothing left to do.
	other.post(nodes+"b/reset", "", http.StatusAccepted)
	l.until(string(swarm.TurnEnded))
	out.Line()
	if n := other.node(id, "b"); n.Turn != "b/1/2" {
		t.Errorf("after a reset it has the turn %s", n.Turn)
	}
	other.post(nodes+"b/stop", "", http.StatusAccepted)
	l.until(string(swarm.RunEnded))
	h.settle(id)
	for _, action := range []string{"start", "stop", "pause", "resume", "reset"} {
		other.post(nodes+"b/"+action, "", http.StatusConflict)
	}
	other.post(nodes+"nosuch/dance", "", http.StatusNotFound)
}
