package httpd

import (
	"context"

	"swarm"
)

// Connect connects to a server as the agent whose token the endpoint has, until leave is called.
func Connect(ctx context.Context, e swarm.ToolEndpoint, version string) (a Agent, leave func() error, err error) {
	remote, err := connect(ctx, e, version)
	if err != nil {
		return nil, nil, err
	}
	remote.quiet = true
	return remote, remote.session.Close, nil
}
