package httpd

import (
	"context"

	"swarm"
)

// Connect goes through a door as the agent whose token it has, until leave is called.
func Connect(ctx context.Context, door swarm.ToolEndpoint, version string) (agent Agent, leave func() error, err error) {
	far, err := connect(ctx, door, version)
	if err != nil {
		return nil, nil, err
	}
	far.quiet = true
	return far, far.session.Close, nil
}
