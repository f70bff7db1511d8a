package a2a

import (
	"bytes"
	"net/http"
	"time"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
)

// The input and output modes of all agents: text, and JSON. Other files are refused, because an
// agent could not use most of them.
var (
	taken = []string{"text/plain", "text/markdown", "application/json"}
	given = []string{"text/plain", "application/octet-stream"}
)

const bearer = wire.SecuritySchemeName("bearer")

// A card is an agent's card as the protocol's proto defines it. The library writes the scopes of a
// requirement as a list, where the proto has a message (a2aproject/a2a-go#430), and clients that are
// generated from the proto refuse that.
type card struct {
	*wire.AgentCard
	SecurityRequirements []requirement `json:"securityRequirements"`
}

type requirement struct {
	Schemes map[wire.SecuritySchemeName]scopes `json:"schemes"`
}

type scopes struct {
	List []string `json:"list"`
}

// A cardVersion is a card that a client has read: its ETag, and since when it is so.
type cardVersion struct {
	etag  string
	since time.Time
}

// cardAge says how long clients may use a card without asking again. It is not for shared caches,
// because reading it takes the token.
const cardAge = "private, max-age=60"

// card answers with the card of an agent, or that the client's copy is still good.
func (s *Server) card(w http.ResponseWriter, r *http.Request) {
	agent, err := s.find(r.PathValue("agent"))
	if err != nil {
		refuse(w, r, err)
		return
	}
	body := append(swarm.Encode(s.cardOf(agent, serverOf(r)+root+"/"+agent.Name)), '\n')
	v := s.version(agent.Name, `"`+string(swarm.HashOf(body))+`"`)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", cardAge)
	w.Header().Set("ETag", v.etag)
	http.ServeContent(w, r, "", v.since, bytes.NewReader(body))
}

// version notes which card an agent has, and returns since when.
func (s *Server) version(agent, etag string) cardVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cards[agent].etag != etag {
		s.cards[agent] = cardVersion{etag, time.Now()}
	}
	return s.cards[agent]
}

func (s *Server) cardOf(a Agent, url string) card {
	return card{
		AgentCard: &wire.AgentCard{
			Name:        a.Name,
			Description: a.Description,
			Version:     s.Version,
			SupportedInterfaces: []*wire.AgentInterface{
				wire.NewAgentInterface(url, wire.TransportProtocolJSONRPC),
				wire.NewAgentInterface(url+"/v1", wire.TransportProtocolHTTPJSON),
			},
			Capabilities:       wire.AgentCapabilities{Streaming: true},
			DefaultInputModes:  taken,
			DefaultOutputModes: given,
			Skills:             []wire.AgentSkill{{ID: a.Name, Name: a.Name, Description: a.Description, Tags: []string{"swarm", "team"}}},
			SecuritySchemes:    wire.NamedSecuritySchemes{bearer: wire.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "the token of `swarm serve`"}},
		},
		SecurityRequirements: []requirement{{map[wire.SecuritySchemeName]scopes{bearer: {[]string{}}}}},
	}
}
