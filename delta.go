package swarm

// A Delta is something that happened while a turn ran: a provider streams them, screens show them.
type Delta struct {
	Kind    DeltaKind
	Text    string   // of text, thinking and stderr: a piece, not a line
	Tool    *ToolUse // of a tool call or result
	File    string   // of a file change
	Session string
	Usage   Usage // so far
}

// A DeltaKind says what happened.
type DeltaKind string

// The kinds of deltas. A stream keeps the end of a tool that failed as DeltaToolFailed; providers send DeltaToolDone for both.
const (
	DeltaText       DeltaKind = "text"     // output
	DeltaThinking   DeltaKind = "thinking" // not output
	DeltaStderr     DeltaKind = "stderr"   // not output
	DeltaTool       DeltaKind = "tool"     // a tool was called
	DeltaToolDone   DeltaKind = "tool_done"
	DeltaToolFailed DeltaKind = "tool_failed"
	DeltaFile       DeltaKind = "file" // a file was changed
	DeltaSession    DeltaKind = "session"
	DeltaUsage      DeltaKind = "usage"
)
