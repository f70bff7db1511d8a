package swarm

// A RunID names a run in its store. [NewRunID] makes one, and [IsRunID] says whether a text can be one.
type RunID string
