// Package growth has the rules of how a team may grow: what an agent can ask for, who may ask, what a new agent is made of, and how many
// there may be. Nothing here stores anything, or asks anybody.
//
// What an agent asks for is read strictly ([ReadSpawn], [ReadEdge]), and so is what a person writes instead ([ReadEdit]). A [Team] knows
// who is there. It says whether an agent may ask for something ([Team.May]), and whether that can be had as things stand
// ([Team.Check]): that is asked twice, when the growth request is made and when it is granted, for there may be much time between the two.
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

// How much can be asked for.
const (
	maxEdges = 100 // of a new agent
	maxOpen  = 10  // growth requests of one agent that nobody has answered

	usualAgents = 10 // of a team that does not say how many it may have
)

// ReadSpawn reads the arguments of spawn_node.
func ReadSpawn(text []byte) (swarm.GrowthRequest, error) {
	return readSpawn(strictjson.ReadArgs(text, "name", "role", "provider", "instructions", "edges"))
}

func readSpawn(a *strictjson.Object) (swarm.GrowthRequest, error) {
	a.Need("name", "instructions")
	w := swarm.SpawnRequest{Name: a.Text("name"), Role: a.Text("role"), Provider: a.Text("provider"), Instructions: strings.TrimSpace(a.Text("instructions")),
		Edges: a.Texts("edges")}
	if err := a.Err(); err != nil {
		return swarm.GrowthRequest{}, err
	}
	switch n := len(w.Instructions); {
	case n == 0:
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "the instructions are empty").WithHint("say what the new agent is to do: it has seen nothing of what you have seen")
	case n > mail.MaxMessage:
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "the instructions have %d bytes; %d are allowed", n, mail.MaxMessage).
			WithHint("store the long part with put_artifact, and name its ref")
	case len(w.Edges) > maxEdges:
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "there are %d edges; %d are allowed", len(w.Edges), maxEdges).WithHint("ask for more with create_edge")
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

// ReadEdit reads what a person allows instead of what was asked: the whole growth request, in the words of the same tool.
func ReadEdit(asked swarm.GrowthRequest, text []byte) (swarm.GrowthRequest, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return swarm.GrowthRequest{}, swarm.Errorf(swarm.BadInput, "the wish is empty").WithHint("write it whole, as one JSON object; deny it if it is not to be")
	}
	kind := "spawn"
	if asked.Edge != nil {
		kind = "edge"
	}
	var shown map[string]json.RawMessage // as what is asked is printed: {"spawn": {…}}
	if json.Unmarshal(text, &shown) == nil && len(shown) == 1 && shown[kind] != nil {
		text = shown[kind]
	}
	if asked.Edge != nil {
		return ReadEdge(text)
	}
	return ReadSpawn(text)
}

// Text is a growth request as a person edits it: the arguments of its tool, all of them.
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
	_ = json.Indent(&b, swarm.Encode(v), "", "  ") // it was just written
	return append(b.Bytes(), '\n')
}

// Tool is the tool by which such a growth request is made.
func Tool(w swarm.GrowthRequest) string {
	if w.Edge != nil {
		return edgeTool
	}
	return "spawn_node"
}

const edgeTool = "create_edge"

// Clean is a growth request without secrets, and with its names as they are kept, however a model writes them. What it says the same is the same.
func Clean(w swarm.GrowthRequest, redact func([]byte) []byte) swarm.GrowthRequest {
	text := func(s string) string {
		if redact == nil {
			return s
		}
		return string(redact([]byte(s)))
	}
	name := func(s string) string { return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(text(s)), "@")) }
	if w.Edge != nil {
		return swarm.GrowthRequest{Edge: &swarm.EdgeRequest{From: name(w.Edge.From), To: name(w.Edge.To), Bidirectional: w.Edge.Bidirectional}}
	}
	s := *w.Spawn
	s.Name, s.Role, s.Provider, s.Instructions = name(s.Name), strings.TrimSpace(text(s.Role)), strings.TrimSpace(text(s.Provider)), text(s.Instructions)
	s.Edges = nil
	for _, e := range w.Spawn.Edges {
		if e = name(e); !slices.Contains(s.Edges, e) {
			s.Edges = append(s.Edges, e)
		}
	}
	return swarm.GrowthRequest{Spawn: &s}
}
