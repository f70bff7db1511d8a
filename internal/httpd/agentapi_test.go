package httpd

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/sqlite"
)

// A desk is an agent of a real agentapi.Service, from which a run serves its tools.
type desk struct {
	service *agentapi.Service
	agent   string
}

func (d desk) Tools() []swarm.ToolSpec { return d.service.Tools(d.agent) }

func (d desk) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	s := d.service.Turn(d.agent)
	if s == nil {
		return nil, swarm.Errorf(swarm.Denied, "it is not your turn").WithHint("an agent acts while it has a turn")
	}
	return s.Call(ctx, tool, args)
}

// TestAgentsWriteToEachOther sends mail between an agent over HTTP and one over pipes, into a real
// log.
func TestAgentsWriteToEachOther(t *testing.T) {
	log, err := sqlite.Create(filepath.Join(t.TempDir(), "run.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	plan := swarm.Plan{Kind: swarm.TeamRun, Agents: []swarm.Agent{{Name: "planner"}, {Name: "coder"}}, Edges: []swarm.Edge{{From: "planner", To: "coder"}}}
	if _, err := log.Append(t.Context(), swarm.Batch{Events: []swarm.Event{{Kind: swarm.RunStarted}, {Kind: swarm.PlanAdded, Key: "plan:1", Data: swarm.Encode(plan)}}}); err != nil {
		t.Fatal(err)
	}
	o := &agentapi.Service{Run: "run-1", Log: log}
	h := openFor(t, defaultTimeouts, func(agent string) Agent { return desk{o, agent} })
	planner := h.client(t, "planner")
	r, err := call(t, planner, "send_handoff", `{"to":"coder","message":"too early"}`)
	if err != nil || !r.IsError || !strings.Contains(said(t, r), "it is not your turn") {
		t.Fatalf("before the turn: %+v %v", r, err)
	}
	o.BeginTurn("planner", "plan", "plan/1/1", 1, swarm.Inputs{})
	seat := o.BeginTurn("coder", "code", "code/1/1", 1, swarm.Inputs{})
	if r, err = call(t, planner, "send_handoff", `{"to":"nosuch","message":"x"}`); err != nil || !r.IsError || !strings.Contains(said(t, r), "Unknown agent: 'nosuch'. Valid agents: coder") {
		t.Errorf("to nobody: %+v %v", r, err)
	}
	if r, err = call(t, planner, "send_handoff", `{"to":"coder","message":"build it","structured":{"n":12345678901234567890}}`); err != nil || r.IsError {
		t.Fatalf("%+v %v", r, err)
	}
	in, out, ended := h.pipes(t, h.tokens.For("coder"))
	coder, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(out), Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = call(t, coder, "read_inbox", `{}`); err != nil || r.IsError || !strings.Contains(said(t, r), "build it") || !strings.Contains(said(t, r), "12345678901234567890") {
		t.Errorf("the inbox of coder: %+v %v", r, err)
	}
	seat.End()
	if r, err = call(t, coder, "read_inbox", `{}`); err != nil || !r.IsError {
		t.Errorf("after the turn: %+v %v", r, err)
	}
	in.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
