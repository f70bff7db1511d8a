package swarm

// A RunID names a run in its store. [NewRunID] makes one, and [IsRunID] says whether a text can be
// one.
type RunID string

// A TurnID names a turn in its run: task/iteration/attempt. [NewTurnID] makes one. The call by
// which a loop requests a turn has the same id. Other calls have ids of other forms, so
// [CallEnd.ID] is no TurnID.
type TurnID string
