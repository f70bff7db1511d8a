package acp

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/process"
)

// A setting is what a session has one of, of those that the agent offers.
type setting struct {
	category string // of the option that it is
	current  *string
	offered  []string
	method   string // of agents without such an option
	param    string // of that method
	instead  string // what to do where the agent does not let it be chosen
}

// configureSession chooses model and mode of the session. The mode comes last, because an agent may
// change it with the model.
func (p *agentProgram) configureSession(ctx context.Context, model string) error {
	s := &p.session
	if p.host.preset.args == nil { // else the model is in its arguments
		chosen := setting{
			category: "model", current: &s.Models.Current, method: "session/set_model", param: "modelId",
			instead: "choose it by the program's own arguments or settings, and take `model` away",
		}
		for _, one := range s.Models.All {
			chosen.offered = append(chosen.offered, one.ID)
		}
		if err := p.choose(ctx, chosen, model); err != nil {
			return err
		}
	}
	chosen := setting{
		category: "mode", current: &s.Modes.Current, method: "session/set_mode", param: "modeId",
		instead: "take `mode` away from the provider",
	}
	for _, one := range s.Modes.All {
		chosen.offered = append(chosen.offered, one.ID)
	}
	return p.choose(ctx, chosen, cmp.Or(p.host.mode, p.defaultMode(chosen)))
}

// choose sets a setting to a value: by the option that the agent has for it, or by its own method.
func (p *agentProgram) choose(ctx context.Context, s setting, value string) error {
	if value == "" {
		return nil
	}
	offered, options := s.offered, p.session.Options
	for i, o := range options {
		if o.Category != s.category && o.ID != s.category {
			continue
		}
		if o.Current == value {
			return nil
		}
		if offered = o.values(); slices.Contains(offered, value) {
			options[i].Current = value
			return p.conn.call(ctx, "session/set_config_option",
				object{"sessionId": p.session.ID, "configId": o.ID, "value": value}, &sessionInfo{})
		}
	}
	switch {
	case *s.current == value:
		return nil
	case slices.Contains(s.offered, value):
		*s.current = value
		return p.conn.call(ctx, s.method, object{"sessionId": p.session.ID, s.param: value}, &struct{}{})
	case len(offered) == 0:
		return swarm.Errorf(swarm.BadInput, "the agent of the provider %q does not let its %s be chosen", p.host.name, s.category).
			WithHint("%s", s.instead)
	}
	return swarm.Errorf(swarm.BadInput, "the agent of the provider %q has no %s %s", p.host.name, s.category, swarm.Quote(value)).
		WithHint("%s", swarm.DidYouMean(value, offered))
}

// Modes of codex-acp with the same sandbox. They differ in who is asked before something leaves it.
const (
	codexReviews = "agent"           // another model, at each call of a tool of ours too
	codexAsks    = "workspace-write" // we
)

// isCodex says whether the agent is Codex, by codex-acp.
func (p *agentProgram) isCodex() bool { return strings.Contains(p.hello.Info.Name, "codex-acp") }

// defaultMode returns the mode of a session whose provider names none, or "" to leave it as it is.
// It replaces codex-acp's own default, in which a second model reviews our tools. A mode that the
// user has chosen by the program's own means stays.
func (p *agentProgram) defaultMode(s setting) string {
	_, chosen := process.Lookup(p.env, "INITIAL_AGENT_MODE")
	if !p.isCodex() || chosen || *s.current != codexReviews ||
		!slices.Contains(s.offered, codexAsks) {
		return ""
	}
	return codexAsks
}
