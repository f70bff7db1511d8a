package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/providerkind"
	"swarm/internal/registry"
)

// The provider kinds of this file are invented: a row and a constructor each, known nowhere else.
// testdata/script/kind.txtar uses them as a user would; they exist where it sets SWARM_TEST_KINDS.
func init() {
	if os.Getenv("SWARM_TEST_KINDS") == "" {
		return
	}
	registry.Register(providerkind.Kind{
		Name: "parrot", Keys: []string{"base_url", "models"}, Needs: providerkind.Need{Key: "base_url", Example: "http://parrot.example"},
		Tools: providerkind.InProcess, ToolNames: providerkind.OurNames, Sessions: providerkind.ProgramSessions, Files: providerkind.ByTools,
		Model: providerkind.NeedModel,
	}, openBird)
	registry.Register(providerkind.Kind{
		Name: "magpie", Instead: map[string]string{"env": "leave it out: a magpie brings what it needs"},
		Tools: providerkind.ByDoor, ToolNames: providerkind.ProgramNames, ToolSample: "peck", Files: providerkind.ByAgent,
		Confined: providerkind.Confined{Always: "is held by its cage"},
		Model:    providerkind.OwnModel, Models: map[string]string{"small": "chick"},
	}, openBird)
	registry.Register(providerkind.Kind{Name: "stone"}, openBird)
}

// A bird writes a file, says what it was given, and sends mail if it is offered the tool.
type bird struct{ spec swarm.ProviderSpec }

func openBird(spec swarm.ProviderSpec, _ provider.Options) (provider.Provider, error) {
	return &bird{spec}, nil
}

// Check is what `swarm doctor` and the preflight check of a run ask.
func (b *bird) Check(context.Context) provider.Health {
	return provider.Health{Found: true, Version: "7"}
}

func (b *bird) Turn(ctx context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
	if err := os.WriteFile(filepath.Join(r.Dir, r.Agent+".txt"), []byte(r.Turn), 0o600); err != nil {
		return provider.Reply{}, err
	}
	said := fmt.Sprintf("%s with model %q, session %q, door %v", b.spec.Kind, r.Model, r.Session, r.Door.URL != "")
	var tools []string
	for _, tool := range r.ToolSpecs {
		tools = append(tools, tool.Name)
	}
	if slices.Contains(tools, "send_handoff") {
		answer, err := r.Call(ctx, "send_handoff", json.RawMessage(`{"to":"rock","message":"from `+string(r.Turn)+`"}`))
		if err != nil {
			return provider.Reply{}, err
		}
		said += ", sent " + answer
	}
	said += ", tools [" + strings.Join(tools, " ") + "]"
	if strings.Contains(r.Prompt, "from ") {
		said += ", with mail"
	}
	return provider.Reply{Output: []byte(said), Bytes: int64(len(said)), Session: "s-" + string(r.Turn), Free: true}, nil
}
