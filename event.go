package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// An Event is a fact in a run's log.
type Event struct {
	Seq   int64           // in the run, from 1, without gaps
	Time  time.Time       // when it was written, to the microsecond, in UTC
	Kind  EventKind       //
	Agent string          // whom it is about
	Task  string          //
	Turn  TurnID          // a turn's id: task/iteration/attempt
	To    string          // who is to read it: a loop, an agent's inbox, whoever obeys control; "" = nobody in particular
	Key   string          // what makes it the same event when it is written again; unique in the run; "" = none
	Data  json.RawMessage // the kind's body
}

// NewEvent makes an event of a kind with a body. A nil body stands for none.
func NewEvent(kind EventKind, body any) Event {
	e := Event{Kind: kind}
	if body != nil {
		e.Data = Encode(body)
	}
	return e
}

// Encode writes a value as JSON in the one spelling that logs use: compact, with < and > unescaped, because models read them
// more easily than their numbers. It is for types that can always be encoded, so a failure is a bug and panics.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// UseBody decodes the body of an event, and gives it to use if it can be read.
func UseBody[T any](e *Event, use func(T)) error {
	body, err := Body[T](e)
	if err == nil {
		use(body)
	}
	return err
}

// Body decodes the body of an event. The error names the event and has the kind Storage, because a log never holds a body
// that its own program cannot read.
func Body[T any](e *Event) (T, error) {
	var body T
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return body, Errorf(Storage, "event %d (%s) cannot be read: %w", e.Seq, e.Kind, err)
	}
	return body, nil
}

// A PublicEvent is an event as everybody sees it, in JSON.
type PublicEvent struct {
	Seq   int64           `json:"seq"`
	Run   RunID           `json:"run"`
	Time  time.Time       `json:"time"`
	Kind  EventKind       `json:"kind"`
	Agent string          `json:"agent,omitempty"`
	Task  string          `json:"task,omitempty"`
	Turn  TurnID          `json:"turn,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// Public is the event as everybody sees it.
func (e Event) Public(run RunID) PublicEvent {
	return PublicEvent{e.Seq, run, e.Time, e.Kind, e.Agent, e.Task, e.Turn, e.Data}
}

// An EventKind names a kind of fact.
type EventKind string

// The kinds, with the type of their body. A kind without one has no body.
const (
	RunStarted     EventKind = "run_started"     // [RunStart]; always the first
	RunOwned       EventKind = "run_owned"       // [Ownership]: a process drives the run from here on
	RunPausing     EventKind = "run_pausing"     // running turns finish, none starts
	RunPaused      EventKind = "run_paused"      // none runs any more
	RunUnpaused    EventKind = "run_unpaused"    // turns start again
	RunInterrupted EventKind = "run_interrupted" // [Reason]: its process ends before the run does; it can be resumed
	RunEnded       EventKind = "run_ended"       // [RunEnd]

	PlanAdded        EventKind = "plan_added"        // [Plan]; more may follow in an open plan
	IterationStarted EventKind = "iteration_started" // [Iteration]; only from the second on
	TaskStarted      EventKind = "task_started"      // [Iteration]: its first turn in this iteration is about to start
	TaskRetrying     EventKind = "task_retrying"     // [Retry]: the turn failed, another attempt follows
	TaskBlocked      EventKind = "task_blocked"      // [Reason]: it failed and waits for a person
	TaskCompleted    EventKind = "task_completed"    // [TaskEnd]
	TaskFailed       EventKind = "task_failed"       // [TaskEnd]
	TaskSkipped      EventKind = "task_skipped"      // [TaskEnd]
	TaskCancelled    EventKind = "task_cancelled"    // [TaskEnd]
	BudgetSpent      EventKind = "budget_spent"      // [Reason]: no turn starts any more

	TurnStarted     EventKind = "turn_started"  // [TurnStart]
	TurnReserved    EventKind = "turn_reserved" // [Usage]: what a running turn has used and needs for its next question, of the budget
	TurnTool        EventKind = "turn_tool"     // [ToolUse]: the agent used a tool
	TurnFile        EventKind = "turn_file"     // [FileChange]: the agent changed a file
	TurnSession     EventKind = "turn_session"  // [TurnInSession]: the agent's program has said which session the turn is in
	TurnEnded       EventKind = "turn_ended"    // [CallEnd]
	TurnCarriedOver EventKind = "turn_kept"     // [CallEnd]: how the turn ended in the run that this one tries again
	CallEnded       EventKind = "call_ended"    // [CallEnd]: a loop's short call was answered
	LoopEnded       EventKind = "loop_ended"    // [CallEnd]: a loop that another one started is through
	Tick            EventKind = "tick"          // a loop had waited long enough

	Control EventKind = "control" // [ControlCommand]: somebody wants something of the run

	HandoffStored    EventKind = "handoff_stored"    // [StoredEnvelope], addressed to its receiver; Agent and Turn are the sender's
	HandoffConsumed  EventKind = "handoff_consumed"  // [Consumption]: the turn took these envelopes out of its agent's inbox
	HandoffInjected  EventKind = "handoff_injected"  // [Injection]: between two tools the turn was given these envelopes; it has consumed them when it commits
	HandoffReturned  EventKind = "handoff_returned"  // [Return]: nobody will ever read the envelope
	ReplyOverdue     EventKind = "reply_overdue"     // [Overdue]: a required reply has not come; the receiver was reminded, or nobody waits any more
	AgentEnded       EventKind = "agent_ended"       // [AgentEnd]: it has no turn any more, and gets no mail
	AgentStarted     EventKind = "agent_started"     // one that had ended has turns again, and gets mail
	AgentPaused      EventKind = "agent_paused"      // its turn finishes, and it has no other
	AgentResumed     EventKind = "agent_resumed"     // it has turns again
	WaitBegan        EventKind = "wait_began"        // [AgentWait]: in its turn, the agent waits for others
	WaitEnded        EventKind = "wait_ended"        // [AgentWait]
	ApprovalAsked    EventKind = "approval_asked"    // [Approval]: the turn waits for a person's answer; a growth request is addressed to the loop, and its turn goes on
	ApprovalAnswered EventKind = "approval_answered" // [ApprovalAnswer], addressed to control: the turn that asked goes on, or the loop acts on it; a unique key makes the first answer the only one
	ArtifactStored   EventKind = "artifact_stored"   // [Artifact]
	TopicPublished   EventKind = "topic_published"   // [TopicEntry], addressed to [ToTopics]

	TreeRecorded EventKind = "tree_recorded" // [Tree]: the git tree as it stood when the run began or ended
	Notice       EventKind = "notice"        // [Reason]: something a person should know
)

// EventKinds lists them all.
var EventKinds = []EventKind{
	RunStarted, RunOwned, RunPausing, RunPaused, RunUnpaused, RunInterrupted, RunEnded,
	PlanAdded, IterationStarted, TaskStarted, TaskRetrying, TaskBlocked, TaskCompleted, TaskFailed, TaskSkipped, TaskCancelled, BudgetSpent,
	TurnStarted, TurnReserved, TurnTool, TurnFile, TurnSession, TurnEnded, TurnCarriedOver, CallEnded, LoopEnded, Tick,
	Control,
	HandoffStored, HandoffConsumed, HandoffInjected, HandoffReturned, ReplyOverdue, AgentEnded, AgentStarted, AgentPaused, AgentResumed, WaitBegan, WaitEnded, ApprovalAsked, ApprovalAnswered, ArtifactStored, TopicPublished,
	TreeRecorded, Notice,
}

// Receivers that are not agents or loops.
const ToControl = "ctl" // whoever obeys control

// ToTopics is the receiver of what is published: every agent's next prompt tells the newest of it.
const ToTopics = "topics"

// ToAgents is the receiver of every agent's mail: whoever reads it is given all of them.
const ToAgents = "@"

// ToAgent is the receiver of an agent's mail.
func ToAgent(name string) string { return "@" + name }

// RootLoop is the loop of the run itself, which every other is called by.
const RootLoop = "root"

// ToLoop is the receiver of what is meant for a loop.
func ToLoop(id string) string { return "loop:" + id }

// EndKey is the key of a call's end.
func EndKey(call string) string { return "end:" + call }

// CarriedOverKey is the key of a turn's end in the run that this one tries again.
func CarriedOverKey(turn TurnID) string { return "kept:" + string(turn) }

// StartKey is the key of a turn's n-th start.
func StartKey(turn TurnID, n int) string { return "start:" + string(turn) + ":" + strconv.Itoa(n) }

// MailKey is the key of an envelope, by its [Envelope.Ref].
func MailKey(ref string) string { return "mail:" + ref }

// UsedKey is the key of what takes the envelopes after a number out of an agent's inbox: whoever writes it first has them.
func UsedKey(agent string, from int64) string {
	return "used:" + agent + ":" + strconv.FormatInt(from, 10)
}

// InjectedKey is the key of mail that a running turn is given. Another text has another one: what is told beside an answer that
// nobody took is told again, perhaps with more.
func InjectedKey(turn TurnID, in Injection) string {
	return fmt.Sprintf("injected:%s:%d:%d:%d:%s", turn, in.Start, in.From, in.Upto, in.Tool)
}

// ReturnedKey is the key of what says that nobody will ever read an envelope.
func ReturnedKey(ref string) string { return "returned:" + ref }

// AgentEndedKey is the key of what says that an agent has no turn any more: mail for it is refused by it. One that was started
// again can end again.
func AgentEndedKey(agent string, starts int) string {
	if starts == 0 {
		return "agent_ended:" + agent
	}
	return "agent_ended:" + agent + ":" + strconv.Itoa(starts)
}

// AskedKey and AnsweredKey are the keys of an approval and of its answer.
func AskedKey(id string) string    { return "asked:" + id }
func AnsweredKey(id string) string { return "answered:" + id }

// RetryQuestion is the id of the question whether a task whose turn failed is tried again.
func RetryQuestion(turn string) string { return turn + "/retry" }

// GrantedKey is the key of what the plan grows by when a growth request is granted.
func GrantedKey(id string) string { return "plan:" + id }

// RunStart is how a run began.
type RunStart struct {
	ID      RunID     `json:"id"`
	Kind    RunKind   `json:"kind"`
	Name    string    `json:"name,omitempty"` // the pipeline's, or what was asked
	Dir     string    `json:"dir"`            // where it was started: commands act on the runs of their folder
	File    string    `json:"file,omitempty"` // the compose file
	Args    []string  `json:"args,omitempty"` // the command line, without the program
	Version string    `json:"version"`        // of the program
	Loops   string    `json:"loops"`          // version of the loops; another one cannot resume the run
	Replay  bool      `json:"replay,omitempty"`
	From    RunID     `json:"from,omitempty"` // the run that this one tries again
	Origin  *Origin   `json:"asked,omitempty"`
	Time    time.Time `json:"time"`
}

// Origin is what a run of a team was begun by, when it was another program's message to one of its agents.
type Origin struct {
	Agent   string `json:"agent"`             // whom the message was for
	Context string `json:"context,omitempty"` // the conversation that it belongs to, as the other program calls it; "" = the run is the first
	Message string `json:"message,omitempty"` // the message's id: sent again, it is the same run
}

// Ownership says which process drives a run.
type Ownership struct {
	PID   int    `json:"pid"`
	Host  string `json:"host,omitempty"`
	Fence int64  `json:"fence"`
}

// RunEnd is how a run ended.
type RunEnd struct {
	Status Status   `json:"status"` // completed, failed or cancelled
	Exit   int      `json:"exit"`   // what `swarm up` exits with
	Reason string   `json:"reason,omitempty"`
	Why    *Message `json:"why,omitempty"`    // the reason, for those who decide by it; a loop leaves the sentence to others
	Report string   `json:"report,omitempty"` // of a team: what its lead has reported as done
	Usage  Usage    `json:"usage,omitzero"`
}

// Reason is a body that only says why. What a loop says has a code, by which others decide; the sentence is for people.
type Reason struct {
	Message
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
	Paused bool   `json:"paused,omitempty"` // of a notice: the run has paused by itself for it
	Ended  bool   `json:"ended,omitempty"`  // of a notice: the run ends for it, because nobody is there to decide
}

// Iteration says which one, of how many.
type Iteration struct {
	Iteration int `json:"iteration"`
	Of        int `json:"of"`
	Group     int `json:"group,omitempty"`
}

// Retry says why a task is tried again, and when.
type Retry struct {
	Iteration int           `json:"iteration"`
	Attempt   int           `json:"attempt"` // the one that failed
	Reason    string        `json:"reason"`
	After     time.Duration `json:"after,omitempty"`
}

// TaskEnd is how a task ended in an iteration.
type TaskEnd struct {
	Iteration int       `json:"iteration"`
	Kind      ErrorKind `json:"kind,omitempty"`
	Reason    string    `json:"reason,omitempty"` // why it failed, was skipped or was cancelled
}

// TurnStart is written, and on disk, before the provider is called.
type TurnStart struct {
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Start     int    `json:"start"` // from 1; more when an earlier start was cut by a crash: the turn is retried
	Owner     int64  `json:"owner"` // the fence of the run's owner, who asked for the turn
	By        string `json:"by"`    // a nonce: two workers of one owner never write the same start
	Provider  string `json:"provider"`
	Model     string `json:"model,omitempty"`
	Prompt    Hash   `json:"prompt"` // the full effective prompt
	Bytes     int    `json:"bytes"`  // its length
	Spans     []Span `json:"spans,omitempty"`
	Inputs    Inputs `json:"inputs,omitzero"`
	Topics    int64  `json:"topics,omitempty"`   // the newest topic entry that the prompt was made with
	Rules     int64  `json:"rules,omitempty"`    // the newest event by which it tells of the team, and of answers to mail
	Outputs   int64  `json:"outputs,omitempty"`  // the newest event up to which it has outputs, and what the session knows; 0 = it has none
	Answered  int    `json:"answered,omitempty"` // how many growth requests the loop had answered before: the team may have grown by them
	Session   string `json:"session,omitempty"`  // the provider's, when the turn continues one
	Sent      Hash   `json:"sent,omitempty"`     // what of the prompt is new to that session, and all that was sent
	// Reserves is what of the budget is kept for the turn. If the starts and reservations before this one, by number, leave no room
	// for it, the turn ends as over_budget and its provider is not called. Without a budget there is none.
	Reserves Usage `json:"reserves,omitzero"`
	// Trees are what the files were, so that the turn's changes can be told at its end, however often it is begun.
	Snapshots []FolderSnapshot `json:"trees,omitempty"`
}

// A FolderSnapshot is what the files of a folder were, in a store of objects of our own.
type FolderSnapshot struct {
	Dir  string `json:"dir"`
	Tree string `json:"tree"`
}

// A Span says where some bytes of a prompt came from.
type Span struct {
	From  string `json:"from"`            // "ids", "role", "text", "output", "stdin", "retry", …
	Name  string `json:"name,omitempty"`  // the file, or the task whose output it is
	Turn  TurnID `json:"turn,omitempty"`  // the turn whose output it is
	Known bool   `json:"known,omitempty"` // the session that goes on has it, so it was not sent again
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Inputs is which mail a turn consumes: what lies after From, up to and including Upto, in its agent's inbox.
type Inputs struct {
	From int64 `json:"from,omitempty"`
	Upto int64 `json:"upto,omitempty"`
}

// A Consumption is which mail was consumed, and by which turn: of two turns that take the same, one is refused.
type Consumption struct {
	Inputs
	Turn TurnID `json:"turn,omitempty"` // none = a person has read it
}

// An Injection is mail that a running turn was given beside the answer of a tool. It is written, and on disk, before the agent sees it.
type Injection struct {
	Inputs
	Start int    `json:"start"` // of the turn
	Tool  string `json:"tool"`  // beside whose answer it stood
	Text  Hash   `json:"text"`  // byte for byte what the agent was given
	Bytes int    `json:"bytes"`
}

// ToolUse is one call of a tool.
type ToolUse struct {
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input,omitempty"`  // its head
	Output string          `json:"output,omitempty"` // its head
	Failed bool            `json:"failed,omitempty"`
	Took   time.Duration   `json:"took,omitempty"` // 0 = nobody has seen it begin
}

// A FileChange is a file that an agent changed, as its program tells it.
type FileChange struct {
	Path string `json:"path"`
}

// TurnInSession says which of its program's sessions a turn is in.
type TurnInSession struct {
	Session string `json:"session"`
}

// An AgentEnd is why an agent has no turn any more.
type AgentEnd struct {
	Kind   ErrorKind `json:"kind,omitempty"` // of its last failure; [CutByCancel] = a person wanted it
	Reason string    `json:"reason"`
}

// An Approval is something that an agent may do only if a person says so.
type Approval struct {
	ID     string          `json:"id"`              // made from the turn, what is asked and the how manieth time, so that an answer outlives a crash
	What   string          `json:"what"`            // in a few words
	Tool   string          `json:"tool,omitempty"`  // when it is a tool
	Input  json.RawMessage `json:"input,omitempty"` // its head
	Paths  []string        `json:"paths,omitempty"` // files and folders that it is about, as far as they are told
	Growth *GrowthRequest  `json:"wish,omitempty"`  // when it is something of the run
	Retry  *RetryRequest   `json:"retry,omitempty"` // when a task has failed, and asks for another attempt
}

// A RetryRequest is what a failed task with `on_failure: escalate` asks for: another attempt. A person may change its inputs.
type RetryRequest struct {
	Failure string            `json:"failure,omitempty"` // why the task failed
	Inputs  map[string]string `json:"inputs,omitempty"`  // as [Task.Inputs]: the task whose output {{input:x}} stands for
	Note    string            `json:"note,omitempty"`    // what the person tells the next attempt
}

// A GrowthRequest is what an agent wants of its run: a new agent, or a new edge. One of them is there.
type GrowthRequest struct {
	Spawn *SpawnRequest `json:"spawn,omitempty"`
	Edge  *EdgeRequest  `json:"edge,omitempty"`
}

// A SpawnRequest is a new agent, in the words of the tool that asks for it.
type SpawnRequest struct {
	Name         string   `json:"name"`
	Role         string   `json:"role,omitempty"`     // as an agent of the run has it
	Provider     string   `json:"provider,omitempty"` // of the run's; "" = that of who asks
	Instructions string   `json:"instructions"`       // what it is given to do first
	Edges        []string `json:"edges,omitempty"`    // agents with whom it is joined, both ways, beside who asks
}

// An EdgeRequest is a new edge, in the words of the tool that asks for it.
type EdgeRequest struct {
	From          string `json:"from"`
	To            string `json:"to"`
	Bidirectional bool   `json:"bidirectional,omitempty"`
}

// An ApprovalAnswer is what came of it.
type ApprovalAnswer struct {
	ID     string         `json:"id"`
	OK     bool           `json:"ok"`
	Reason string         `json:"reason,omitempty"`
	By     string         `json:"by,omitempty"`   // who answered, and by what
	Growth *GrowthRequest `json:"wish,omitempty"` // what is allowed instead of what was asked; nil = that
	// Retry is what the next attempt of a task is given instead of what was asked; nil = that.
	Retry *RetryRequest `json:"retry,omitempty"`
	// Message is the id of another program's message that said so: sent again, it answers nothing else.
	Message string `json:"message,omitempty"`
}

// Overdue says of an envelope that the reply it requires has not come.
type Overdue struct {
	ID   string `json:"id"`
	Over bool   `json:"over,omitempty"` // it is not waited for any more
}

// An AgentWait is whom an agent waits for in its turn.
type AgentWait struct {
	For    []string `json:"for"`
	Reason string   `json:"reason,omitempty"` // how it ended, when not well
}

// A Return is why an envelope came back.
type Return struct {
	ID     string `json:"id"`
	Ref    string `json:"ref,omitempty"` // [Envelope.Ref]
	Reason string `json:"reason"`
}

// An Artifact is bytes that are passed on by reference.
type Artifact struct {
	Ref   string `json:"ref"`  // artifact://kind/id, or contextpack://pack/id
	Kind  string `json:"kind"` // diff, log, report, transcript, prompt, contextpack or file
	Name  string `json:"name"`
	Hash  Hash   `json:"hash"`
	Bytes int64  `json:"bytes"`

	Tokens  int64     `json:"tokens,omitempty"`  // of a context pack: how many it counts in a prompt
	LeftOut []LeftOut `json:"leftOut,omitempty"` // and what it had no room for
}

// A LeftOut is something that is not in a context pack as it was handed in.
type LeftOut struct {
	Part string `json:"part"`          // docRefs, relevantFiles, constraints, …
	Name string `json:"name"`          // the path, the id or the name
	How  string `json:"how"`           // shortened, reference (its text is not there), dropped or replaced
	Why  string `json:"why,omitempty"` // "" = for room, or since something later says otherwise
}

// A TopicEntry is what an agent has published for everybody.
type TopicEntry struct {
	Topic string          `json:"topic"`
	Data  json.RawMessage `json:"data"`
}

// Text is the entry for reading: of a text the text itself, of any other value its JSON.
func (t TopicEntry) Text() string {
	var text string
	if json.Unmarshal(t.Data, &text) != nil {
		return string(t.Data)
	}
	return text
}

// A CallEnd is the answer to a loop's call. A failure is an answer too: whether to try again is the loop's decision.
type CallEnd struct {
	ID          string    `json:"id"`
	Call        string    `json:"call"`   // the call's fingerprint: a replaying loop must ask the same
	Status      CallState `json:"status"` //
	Kind        ErrorKind `json:"kind,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Hint        string    `json:"hint,omitempty"`
	Output      Hash      `json:"output,omitempty"` // what is kept of it
	Bytes       int64     `json:"bytes,omitempty"`  // how long it was before it was cut to what is kept
	Exit        int       `json:"exit,omitempty"`   // of the agent's program
	Usage       Usage     `json:"usage,omitzero"`
	Unbegun     bool      `json:"unbegun,omitempty"`   // it ends without a call of the provider; a start that is there was cut by a crash
	Session     string    `json:"session,omitempty"`   // to continue it
	Forgotten   bool      `json:"forgotten,omitempty"` // the session cannot be continued: its id held a secret, and is not stored as it was
	Inputs      Inputs    `json:"inputs,omitzero"`     // the mail it consumed
	Verdicts    []Verdict `json:"verdicts,omitempty"`
	Findings    []Finding `json:"findings,omitempty"` // what about it is strange
	Outside     []string  `json:"outside,omitempty"`  // files that it changed against its phase
	Done        bool      `json:"done,omitempty"`     // the agent reports that its work is done
	Report      string    `json:"report,omitempty"`   // and what came of it
	Wrote       int64     `json:"wrote,omitempty"`    // the newest envelope by which the run itself gave somebody a turn in it
	CarriedOver bool      `json:"kept,omitempty"`     // it was not done now, but in the run that this one tries again
}

// A Finding is something strange about a turn, with the evidence.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	About    string      `json:"about"`           // the agent that was not written to; what tells one action from another; who else was there
	Times    int         `json:"times,omitempty"` // how often in a row, within the turn
	Evidence string      `json:"evidence"`        // what the agent said, or did; the files
}

// A FindingKind says what is strange.
type FindingKind string

// What can be strange about a turn.
const (
	Unsent     FindingKind = "unsent"      // it says that it has written to an agent, and no envelope went there
	SameAction FindingKind = "same_action" // it did the same with the same result, and nothing else; or so often in a row that it was told so
	Shared     FindingKind = "shared"      // while it worked somebody changed what the phase forbids, and it was not alone there: nobody can tell who
)

// A CallState is how a call was answered.
type CallState string

// How a call is answered.
const (
	CallOK     CallState = "ok"
	CallFailed CallState = "failed"
	CallCut    CallState = "cut" // by a person: it consumed nothing
)

// A Verdict is what came of one part of `expect`.
type Verdict struct {
	Part   string `json:"part"` // file, matches, schema or command
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// A ControlCommand is the body of a control record: a command and its target. Any process may write one.
type ControlCommand struct {
	Command Command `json:"word"`
	Target  string  `json:"target,omitempty"` // a task, an agent or a turn; "" = the whole run
}

// A Command is what a run, a task, an agent or a turn can be told to do.
type Command string

// The commands.
const (
	CommandCancel    Command = "cancel"    // end it for good
	CommandInterrupt Command = "interrupt" // cut the agent's turn, to say something
	CommandPause     Command = "pause"     // start no turn of it; what runs finishes
	CommandResume    Command = "resume"    // start turns of it again
	CommandStart     Command = "start"     // let an agent that has ended have turns again
	CommandReset     Command = "reset"     // forget the agent's session, cut its turn and begin it anew
	CommandRetry     Command = "retry"     // try a task again that failed and waits for a person
	CommandClose     Command = "close"     // nothing will be added any more
)

// A Snapshot is a state of the git tree, in a store of objects of our own.
type Snapshot struct {
	When   string `json:"when"` // "start" or "end"
	Hash   string `json:"hash"`
	Commit string `json:"commit,omitempty"` // what was checked out
}
