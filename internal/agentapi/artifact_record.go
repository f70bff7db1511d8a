package agentapi

import (
	"swarm"
)

// ArtifactEvent makes the event that stores an artifact. The caller appends it in one batch with
// the bytes. [PackStored] makes the event for a context pack.
func ArtifactEvent(by swarm.Event, kind, name string, content []byte) (swarm.Event, swarm.Artifact) {
	hash := swarm.HashOf(content)
	it := swarm.Artifact{Ref: "artifact://" + kind + "/" + string(hash[:16]), Kind: kind, Name: name, Hash: hash, Bytes: int64(len(content))}
	by.Kind, by.Key, by.Data = swarm.ArtifactStored, ArtifactKey(it.Ref), swarm.Encode(it)
	return by, it
}
