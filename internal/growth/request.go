// Package growth has the rules for growing a team at run time: which agents and edges an agent may
// request, who may request them, what a new agent inherits, and how many agents there may be. It
// stores nothing and asks no one.
//
// [ReadSpawn] and [ReadEdge] read an agent's request strictly. [ReadEdit] reads the version that a
// person allows instead. A [Team] knows the agents of a run. [Team.May] checks the permission to
// ask, and [Team.Check] whether the request is possible now. Check runs twice, at the request and
// at its approval, because much may change in between.
package growth

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// Limits of growth requests.
const (
	maxEdges = 100 // of a new agent
	maxOpen  = 10  // unanswered requests of one agent

	defaultAgents = 10 // limit of a team that sets none
)

// ReadSpawn reads the arguments of spawn_node.
func ReadSpawn(text []byte) (swarm.GrowthRequest, error) {
	return readSpawn(strictjson.ReadArgs(text, "name", "role", "provider", "instructions", "edges"))
}

func readSpawn(a *strictjson.Object) (swarm.GrowthRequest, error) {
	a.Need("name", "instructions")
	w := swarm.SpawnRequest{
		Name: a.Text("name"), Role: a.Text("role"), Provider: a.Text("provider"),
		Instructions: strings.TrimSpace(a.Text("instructions")), Edges: a.Texts("edges"),
	}
	if err := a.Err(); err != nil {
		return swarm.GrowthRequest{}, err
	}
	switch n := len(w.Instructions); {
	case n == 0:
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "the instructions are empty").
			WithHint("say what the new agent is to do: it has seen nothing of what you have seen")
	case n > mail.MaxMessage:
		const msg = "the instructions have %d bytes; %d are allowed"
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, msg, n, mail.MaxMessage).
			WithHint("store the long part with put_artifact, and name its ref")
	case len(w.Edges) > maxEdges:
		const msg = "there are %d edges; %d are allowed"
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, msg, len(w.Edges), maxEdges).
			WithHint("ask for more with create_edge")
	}
	return swarm.GrowthRequest{Spawn: &w}, nil
}

// ReadEdge reads the arguments of create_edge.
func ReadEdge(text []byte) (swarm.GrowthRequest, error) {
	return readEdge(strictjson.ReadArgs(text, "from", "to", "bidirectional"))
}

func readEdge(a *strictjson.Object) (swarm.GrowthRequest, error) {
	a.Need("from", "to")
	w := swarm.EdgeRequest{From: a.Text("from"), To: a.Text("to"), Bidirectional: a.Bool("bidirectional")}
	if err := a.Err(); err != nil {
		return swarm.GrowthRequest{}, err
	}
	return swarm.GrowthRequest{Edge: &w}, nil
}

// ReadEdit reads a person's version of a request: the whole request, as arguments of the same tool.
func ReadEdit(asked swarm.GrowthRequest, text []byte) (swarm.GrowthRequest, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "the request is empty").
			WithHint("write it whole, as one JSON object; deny it if it is not to be")
	}
	kind := "spawn"
	if asked.Edge != nil {
		kind = "edge"
	}
	var shown map[string]json.RawMessage // the form in which requests are printed: {"spawn": {…}}
	if json.Unmarshal(text, &shown) == nil && len(shown) == 1 && shown[kind] != nil {
		text = shown[kind]
	}
	if asked.Edge != nil {
		return ReadEdge(text)
	}
	return ReadSpawn(text)
}

// Text returns a request for editing: all arguments of its tool, as indented JSON.
func Text(w swarm.GrowthRequest) []byte {
	if e := w.Edge; e != nil {
		return indented(struct {
			From          string `json:"from"`
			To            string `json:"to"`
			Bidirectional bool   `json:"bidirectional"`
		}{e.From, e.To, e.Bidirectional})
	}
	s := w.Spawn
	return indented(struct {
		Name         string   `json:"name"`
		Role         string   `json:"role"`
		Provider     string   `json:"provider"`
		Instructions string   `json:"instructions"`
		Edges        []string `json:"edges"`
	}{s.Name, s.Role, s.Provider, s.Instructions, append([]string{}, s.Edges...)})
}

func indented(v any) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, swarm.Encode(v), "", "  ") // Encode writes valid JSON
	return append(b.Bytes(), '\n')
}

// Tool returns the tool that makes such a request.
func Tool(w swarm.GrowthRequest) string {
	if w.Edge != nil {
		return edgeTool
	}
	return "spawn_node"
}

const edgeTool = "create_edge"

// Clean returns a request without secrets and with normalized names, however a model writes them.
// So equal requests compare equal.
func Clean(w swarm.GrowthRequest, redact func([]byte) []byte) swarm.GrowthRequest {
	text := func(s string) string {
		if redact == nil {
			return s
		}
		return string(redact([]byte(s)))
	}
	name := func(s string) string {
		return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(text(s)), "@"))
	}
	if e := w.Edge; e != nil {
		edge := swarm.EdgeRequest{From: name(e.From), To: name(e.To), Bidirectional: e.Bidirectional}
		return swarm.GrowthRequest{Edge: &edge}
	}
	s := *w.Spawn
	s.Name, s.Role = name(s.Name), strings.TrimSpace(text(s.Role))
	s.Provider, s.Instructions = strings.TrimSpace(text(s.Provider)), text(s.Instructions)
	s.Edges = nil
	for _, e := range w.Spawn.Edges {
		if e = name(e); !slices.Contains(s.Edges, e) {
			s.Edges = append(s.Edges, e)
		}
	}
	return swarm.GrowthRequest{Spawn: &s}
}
