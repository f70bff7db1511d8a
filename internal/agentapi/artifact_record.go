package agentapi

import (
	"swarm"
)

// ArtifactEvent is the record of an artifact, for a batch that has its bytes too: what a turn changed is stored with the turn's end. A context pack
// has another one.
func ArtifactEvent(by swarm.Event, kind, name string, content []byte) (swarm.Event, swarm.Artifact) {
	hash := swarm.HashOf(content)
	it := swarm.Artifact{Ref: "artifact://" + kind + "/" + string(hash[:16]), Kind: kind, Name: name, Hash: hash, Bytes: int64(len(content))}
	by.Kind, by.Key, by.Data = swarm.ArtifactStored, artifactKey(it.Ref), swarm.Encode(it)
	return by, it
}
