package tool

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/secret"
)

// Ready is the preflight check of a server. It finds a missing program or variable without starting
// or reaching the server.
func Ready(spec swarm.ToolServer, o ServerOptions) error {
	s := server{ToolServer: spec, o: o}
	if spec.URL != "" {
		_, err := s.header()
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		if variable, ok := secret.Reference(spec.Env[name]); ok {
			if _, set := process.Lookup(o.Environ, variable); !set {
				return s.unset(variable)
			}
		}
	}
	if _, err := s.program(); err != nil {
		return swarm.Errorf(swarm.NotFound, "the tool server %q cannot start: %w", s.Name, notRun(s.Command[0], err)).
			WithHint("install it, or correct its command under tools.mcp")
	}
	return nil
}

// program returns the path of the server's program. A relative path starts at the server's working
// folder.
func (s *server) program() (string, error) {
	name := s.Command[0]
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(s.o.Dir, name)
	}
	return exec.LookPath(name)
}

func (s *server) unset(variable string) error {
	return swarm.Errorf(swarm.NotSignedIn, "the tool server %q needs %s, which is not set", s.Name, variable).
		WithHint("export %s=…", variable)
}
