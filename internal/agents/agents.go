// Package agents is the one table from a provider's kind to what reaches its agents.
package agents

import (
	"slices"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/provider/a2a"
	"swarm/internal/provider/acp"
	"swarm/internal/provider/coding"
	"swarm/internal/provider/model"
)

// Open makes the provider that spec describes. It starts nothing and reaches nobody.
func Open(spec swarm.ProviderSpec, opt provider.Options) (provider.Provider, error) {
	switch {
	case slices.Contains(model.Kinds, spec.Kind):
		return model.Open(spec, opt)
	case slices.Contains(coding.Kinds, spec.Kind):
		return coding.Open(spec, opt)
	case slices.Contains(acp.Kinds, spec.Kind):
		return acp.Open(spec, opt)
	case slices.Contains(a2a.Kinds, spec.Kind):
		return a2a.Open(spec, opt)
	}
	return provider.Open(spec, opt)
}
