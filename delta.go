package swarm

// A Delta is one piece of what a running turn says or does. Providers stream deltas and screens
// show them. Deltas are not events: the log keeps the facts, a stream file keeps the deltas.
type Delta struct {
	Kind    DeltaKind
	Text    string   // of text, thinking and stderr: a fragment, not a line
	Tool    *ToolUse // of a tool call or result
	File    string   // of a file change
	Session string   // the provider's session, once it is known
	Usage   Usage    // the turn's total so far
}

// A DeltaKind says what happened.
type DeltaKind string

// The kinds of deltas. Providers send DeltaToolDone for every tool that ends. The stream file
// stores the end of a failed tool as DeltaToolFailed.
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
