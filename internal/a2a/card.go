package a2a

import (
	"net/http"

	wire "github.com/a2aproject/a2a-go/v2/a2a"
)

// The input and output modes of all agents: text, and JSON. Other files are refused, because an
// agent could not use most of them.
var (
	taken = []string{"text/plain", "text/markdown", "application/json"}
	given = []string{"text/plain", "application/octet-stream"}
)

const bearer = wire.SecuritySchemeName("bearer")

// card answers with the card of an agent.
func (s *Server) card(w http.ResponseWriter, r *http.Request) {
	agent, err := s.find(r.PathValue("agent"))
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, s.cardOf(agent, addressOf(r, agent.Name)))
}

func (s *Server) cardOf(a Agent, url string) *wire.AgentCard {
	return &wire.AgentCard{
		Name:        a.Name,
		Description: a.Description,
		Version:     s.Version,
		SupportedInterfaces: []*wire.AgentInterface{
			wire.NewAgentInterface(url, wire.TransportProtocolJSONRPC),
			wire.NewAgentInterface(url+"/v1", wire.TransportProtocolHTTPJSON),
		},
		Capabilities:         wire.AgentCapabilities{Streaming: true},
		DefaultInputModes:    taken,
		DefaultOutputModes:   given,
		Skills:               []wire.AgentSkill{{ID: a.Name, Name: a.Name, Description: a.Description, Tags: []string{"swarm", "team"}}},
		SecuritySchemes:      wire.NamedSecuritySchemes{bearer: wire.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "the token of `swarm serve`"}},
		SecurityRequirements: wire.SecurityRequirementsOptions{{bearer: wire.SecuritySchemeScopes{}}},
	}
}
