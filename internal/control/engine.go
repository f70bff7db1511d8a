package control

import (
	"os"

	"swarm"
	"swarm/internal/compose"
)

// EngineVariable names the engine of runs. It goes before a compose file's engine.
const EngineVariable = "SWARM_ENGINE"

// engineOf returns the engine of a run that is about to begin; "" = the process that begins it drives
// it. It refuses a run that workers cannot drive.
func (c *Control) engineOf(b *compose.Bundle) (string, error) {
	engine, key := os.Getenv(EngineVariable), EngineVariable+"="
	if engine == "" {
		engine, key = b.Settings.Engine, "engine: "
	}
	switch engine {
	case "", "local":
		return "", nil
	case swarm.EngineTemporal:
		return engine, c.checkWorkers(b, key+engine)
	}
	return "", swarm.Errorf(swarm.BadInput, "%s is neither local nor %s", EngineVariable, swarm.EngineTemporal).WithHint("unset it, or write %s%s", key, swarm.EngineTemporal)
}

// checkWorkers refuses a run that workers on several machines cannot drive. They share the store and
// the folder of the run, and nothing else.
func (c *Control) checkWorkers(b *compose.Bundle, key string) error {
	here := "for this run: " + EngineVariable + "=local"
	p := &b.Plan
	if _, shared := c.Home.Store.(swarm.SharedStore); !shared {
		return swarm.Errorf(swarm.BadInput, "%s needs a store that the workers share", key).
			WithHint("name it by store: postgres://user@host/database, or by %s; %s", StoreVariable, here)
	}
	for _, a := range p.AllAgents() {
		if a.Desk != "" {
			return swarm.Errorf(swarm.BadInput, "%s: @%s works at a desk, which is on one machine", key, a.Name).WithHint("%s", here)
		}
	}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.Desk != "" && t.Desk != swarm.NoWorker {
			return swarm.Errorf(swarm.BadInput, "%s: the task %s works at a desk, which is on one machine", key, t.Name).WithHint("%s", here)
		}
	}
	switch s := p.Swarm; {
	case s != nil && s.IsCouncil():
		return swarm.Errorf(swarm.BadInput, "%s: the members of a council have folders of their own, which are on one machine", key).WithHint("%s", here)
	case s != nil && s.Workspace == "":
		return swarm.Errorf(swarm.BadInput, "%s: the files of this swarm would be on one machine", key).
			WithHint("name a folder that all machines have: swarm: {workspace: FOLDER}; %s", here)
	}
	return nil
}
