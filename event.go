package swarm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An Event is a fact in a run's log. Events are never changed or removed.
type Event struct {
	Seq   int64           // its number in the run, from 1, without gaps
	Time  time.Time       // when it was written, to the microsecond, in UTC
	Kind  EventKind       //
	Agent string          // the agent that it is about
	Task  string          //
	Turn  TurnID          // task/iteration/attempt
	To    string          // its receiver: a loop, an agent's inbox, control, topics; "" = none
	Key   string          // its idempotency key, unique in the run: writing it again changes nothing; "" = none
	Data  json.RawMessage // the body, whose type the kind determines
}

// NewEvent makes an event of a kind with a body. A nil body means none.
func NewEvent(kind EventKind, body any) Event {
	e := Event{Kind: kind}
	if body != nil {
		e.Data = Encode(body)
	}
	return e
}

// Encode returns a value as JSON in the one spelling that logs use. The JSON is compact and leaves
// < and > unescaped, because models read them more easily than \u003c. Encode is for types that can
// always be encoded, so a failure is a bug and panics.
func Encode(v any) json.RawMessage {
	e := encoders.Get().(*encoder)
	if err := e.json.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	text := bytes.Clone(bytes.TrimSuffix(e.text.Bytes(), []byte("\n")))
	if e.text.Reset(); e.text.Cap() <= keptEncoder {
		encoders.Put(e)
	}
	return text
}

// An encoder is used again, so that a body costs one allocation of its own size.
type encoder struct {
	text bytes.Buffer
	json *json.Encoder
}

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.text)
	e.json.SetEscapeHTML(false)
	return e
}}

const keptEncoder = 64 << 10 // a larger buffer is not kept

// UseCurrentNames gives an event that an older version of the program wrote the names of this one.
// Stores and recordings call it for each event that they read, so no other code knows old names. The
// key changes with the kind, because a resumed loop recognizes its facts by their keys.
func (e *Event) UseCurrentNames() {
	const old = "agent_started"
	if e.Kind == old {
		e.Kind = AgentRestarted
		if agent, ok := strings.CutPrefix(e.Key, old+":"); ok {
			e.Key = RestartedKey(agent)
		}
	}
}

// UseBody decodes the body of an event and passes it to use, unless the body cannot be read.
func UseBody[T any](e *Event, use func(T)) error {
	body, err := Body[T](e)
	if err == nil {
		use(body)
	}
	return err
}

// Body decodes the body of an event. The error names the event and has the kind Storage: a log
// never holds a body that its own program cannot read, so the log is damaged.
func Body[T any](e *Event) (T, error) {
	var body T
	if err := json.Unmarshal(e.Data, &body); err != nil {
		return body, Errorf(Storage, "event %d (%s) cannot be read: %w", e.Seq, e.Kind, err)
	}
	return body, nil
}

// A PublicEvent is the JSON form of an event for people and programs outside. It leaves out
// receiver and key, which are the runtime's own.
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

// Public returns the public form of the event.
func (e Event) Public(run RunID) PublicEvent {
	return PublicEvent{e.Seq, run, e.Time, e.Kind, e.Agent, e.Task, e.Turn, e.Data}
}

// An EventKind names a kind of fact.
type EventKind string

// The kinds of events, with the type of their body in brackets. A kind without one has no body.
const (
	RunStarted     EventKind = "run_started"     // [RunStart]; always the first
	RunOwned       EventKind = "run_owned"       // [Ownership]: a process drives the run from here on
	RunPausing     EventKind = "run_pausing"     // running turns finish, no turn starts
	RunPaused      EventKind = "run_paused"      // no turn runs any more
	RunUnpaused    EventKind = "run_unpaused"    // turns start again
	RunInterrupted EventKind = "run_interrupted" // [Reason]: the process ended before the run did; the run can be resumed
	RunEnded       EventKind = "run_ended"       // [RunEnd]

	PlanAdded        EventKind = "plan_added"        // [Plan]; more may follow in an open plan
	IterationStarted EventKind = "iteration_started" // [Iteration]; written from the second iteration on
	TaskStarted      EventKind = "task_started"      // [Iteration]: the task's first turn in this iteration is about to start
	TaskRetrying     EventKind = "task_retrying"     // [Retry]: the turn failed, another attempt follows
	// [Limit]: a provider's limit is reached, and the turn is no failed attempt. It waits, as all
	// turns of the provider do, or another provider does it.
	LimitReached  EventKind = "limit_reached"
	LimitEnded    EventKind = "limit_ended"    // [Limit]: turns of the provider start again
	TaskBlocked   EventKind = "task_blocked"   // [Reason]: the task failed and waits for a person
	TaskCompleted EventKind = "task_completed" // [TaskEnd]
	TaskFailed    EventKind = "task_failed"    // [TaskEnd]
	TaskSkipped   EventKind = "task_skipped"   // [TaskEnd]
	TaskCancelled EventKind = "task_cancelled" // [TaskEnd]
	BudgetSpent   EventKind = "budget_spent"   // [Reason]: no turn starts any more

	TurnStarted EventKind = "turn_started" // [TurnStart]
	// [Usage]: how much of the budget a running turn has used and needs for its next request
	TurnReserved    EventKind = "turn_reserved"
	TurnTool        EventKind = "turn_tool"    // [ToolUse]: the agent used a tool
	TurnFile        EventKind = "turn_file"    // [FileChange]: the agent changed a file
	TurnSession     EventKind = "turn_session" // [TurnInSession]: the agent's program has named the turn's session
	TurnEnded       EventKind = "turn_ended"   // [CallEnd]
	TurnCarriedOver EventKind = "turn_kept"    // [CallEnd]: the turn's end in the run that this one retries
	// [ActionStart]: the action of a swarm's iteration is about to reach out of the log
	ActionStarted EventKind = "action_started"
	ActionEnded   EventKind = "action_ended"  // [CallEnd]: the action of a swarm's iteration was taken
	CheckStarted  EventKind = "check_started" // [GoalCheck]: the run is about to check whether a team's goal is reached
	CheckEnded    EventKind = "check_ended"   // [CallEnd]: the goal is reached, or why it is not
	CallEnded     EventKind = "call_ended"    // [CallEnd]: a loop's short call was answered
	LoopEnded     EventKind = "loop_ended"    // [CallEnd]: a loop that another loop started has ended
	Tick          EventKind = "tick"          // a loop's timer fired

	Control EventKind = "control" // [ControlCommand]: a request to the run, such as pause or cancel

	// [StoredEnvelope], addressed to its receiver; Agent and Turn are the sender's
	HandoffStored   EventKind = "handoff_stored"
	HandoffConsumed EventKind = "handoff_consumed" // [Consumption]: the turn took these envelopes out of its agent's inbox
	// [Injection]: a running turn was given these envelopes between two tool calls. The turn
	// consumes them when it commits.
	HandoffInjected EventKind = "handoff_injected"
	HandoffReturned EventKind = "handoff_returned" // [Return]: the envelope is undeliverable
	// [Overdue]: a required reply is late. The receiver was reminded, or the wait is over.
	ReplyOverdue   EventKind = "reply_overdue"
	AgentEnded     EventKind = "agent_ended"     // [AgentEnd]: the agent gets no more turns and no mail
	AgentRestarted EventKind = "agent_restarted" // an agent that had ended gets turns and mail again
	AgentPaused    EventKind = "agent_paused"    // the agent's turn finishes, and it gets no other
	AgentResumed   EventKind = "agent_resumed"   // the agent gets turns again
	WaitBegan      EventKind = "wait_began"      // [AgentWait]: within its turn, the agent waits for others
	WaitEnded      EventKind = "wait_ended"      // [AgentWait]
	// [Approval]: the turn waits for a person's answer. A growth request is addressed to the loop
	// instead, and its turn goes on.
	ApprovalAsked EventKind = "approval_asked"
	// [ApprovalAnswer], addressed to control: the turn that asked goes on, or the loop acts on it.
	// The unique key makes the first answer the only one.
	ApprovalAnswered EventKind = "approval_answered"
	ArtifactStored   EventKind = "artifact_stored" // [Artifact]
	TopicPublished   EventKind = "topic_published" // [TopicEntry], addressed to [ToTopics]

	DeskOpened    EventKind = "desk_opened"    // [DeskOpening]: the turn goes through this desk
	DeskChanged   EventKind = "desk_changed"   // [DeskStatus]: the worker has written another status
	DeskCollected EventKind = "desk_collected" // [DeskCollection]: the outbox was read

	TreeRecorded EventKind = "tree_recorded" // [Snapshot]: the git tree when the run began or ended
	Notice       EventKind = "notice"        // [Reason]: something a person should know
)

// EventKinds lists all kinds, so that streams of events can be filtered by them.
var EventKinds = []EventKind{
	RunStarted, RunOwned, RunPausing, RunPaused, RunUnpaused, RunInterrupted, RunEnded,
	PlanAdded, IterationStarted, TaskStarted, TaskRetrying, LimitReached, LimitEnded, TaskBlocked, TaskCompleted, TaskFailed, TaskSkipped,
	TaskCancelled, BudgetSpent,
	TurnStarted, TurnReserved, TurnTool, TurnFile, TurnSession, TurnEnded, TurnCarriedOver, ActionStarted, ActionEnded, CheckStarted, CheckEnded, CallEnded, LoopEnded, Tick,
	Control,
	HandoffStored, HandoffConsumed, HandoffInjected, HandoffReturned, ReplyOverdue,
	AgentEnded, AgentRestarted, AgentPaused, AgentResumed, WaitBegan, WaitEnded,
	ApprovalAsked, ApprovalAnswered, ArtifactStored, TopicPublished,
	DeskOpened, DeskChanged, DeskCollected,
	TreeRecorded, Notice,
}

// ToControl is the receiver of control records. Turn runners and loops subscribe to it.
const ToControl = "ctl"

// ToTopics is the receiver of published topic entries. Every agent's next prompt shows the newest
// of them.
const ToTopics = "topics"

// ToAgents matches the mail of all agents when it is given to [Log.Read] or [Log.Watch].
const ToAgents = "@"

// ToAgent is the receiver of an agent's mail.
func ToAgent(name string) string { return "@" + name }

// RootLoop is the id of the run's own loop. It calls every other loop.
const RootLoop = "root"

// ToLoop is the receiver of records for a loop.
func ToLoop(id string) string { return "loop:" + id }

// EndKey is the key of a call's end.
func EndKey(call string) string { return "end:" + call }

// ActionID is the id of the call that takes the action of a swarm's turn, for the n-th time.
func ActionID(turn TurnID, n int) string {
	id := "action/" + string(turn)
	if n > 1 {
		id += "/" + strconv.Itoa(n)
	}
	return id
}

// CancelReplayKey is the key of the command that cancels a replay. Recorded commands have no key, so
// a copy of one is no command for the replay itself.
const CancelReplayKey = "cancel_replay"

// CarriedOverKey is the key of a turn's end that was carried over from the run that this one
// retries.
func CarriedOverKey(turn TurnID) string { return "kept:" + string(turn) }

// StartKey is the key of a turn's n-th start.
func StartKey(turn TurnID, n int) string { return StartKeys(string(turn)+":") + strconv.Itoa(n) }

// StartKeys is the beginning of the keys of starts, for turns whose ids begin so.
func StartKeys(turns string) string { return "start:" + turns }

// MailKey is the key of an envelope, by its [Envelope.Ref].
func MailKey(ref string) string { return "mail:" + ref }

// UsedKey is the key of the event that consumes the envelopes after a number in an agent's inbox.
// Of two turns that take the same mail, only the first can write it.
func UsedKey(agent string, from int64) string {
	return "used:" + agent + ":" + strconv.FormatInt(from, 10)
}

// InjectedKey is the key of mail that a running turn is given. The range is part of the key: mail
// beside an answer that did not arrive is injected again, perhaps with more.
func InjectedKey(turn TurnID, in Injection) string {
	return fmt.Sprintf("injected:%s:%d:%d:%d:%s", turn, in.Start, in.From, in.Upto, in.Tool)
}

// ReturnedKey is the key of the event that declares an envelope undeliverable.
func ReturnedKey(ref string) string { return "returned:" + ref }

// AgentEndedKey is the key of an agent's end. Senders list it in [Batch.Absent], so an append of
// mail to an agent that has ended is refused. An agent that was started again can end again, so its
// starts are part of the key.
func AgentEndedKey(agent string, starts int) string {
	if starts == 0 {
		return "agent_ended:" + agent
	}
	return "agent_ended:" + agent + ":" + strconv.Itoa(starts)
}

// RestartedKey is the key of the event that an agent gets turns again. The restart is the agent's
// name and the number of the start: coder:1.
func RestartedKey(restart string) string { return string(AgentRestarted) + ":" + restart }

// AskedKey and AnsweredKey are the keys of an approval and its answer.
func AskedKey(id string) string    { return "asked:" + id }
func AnsweredKey(id string) string { return "answered:" + id }

// RetryQuestion is the id of the approval that asks whether a failed task gets another attempt.
func RetryQuestion(turn string) string { return turn + "/retry" }

// PlanQuestion is the id of the approval that asks whether the agents of a swarm work on its
// subtasks.
const PlanQuestion = Supervisor + "/plan"

// PlanQuestionID is the id of the n-th question about a plan. A plan that adds agents later is asked
// about again.
func PlanQuestionID(n int) string {
	if n <= 1 {
		return PlanQuestion
	}
	return PlanQuestion + "/" + strconv.Itoa(n)
}

// PlanEditKey is the key of the plan that a person's change to the plan of a question adds.
func PlanEditKey(question string) string { return "plan:edit:" + question }

// DivisionKey is the key of the plan that adds the agents which a turn of the supervisor names.
func DivisionKey(turn string) string { return "plan:division:" + turn }

// AsksAboutPlan says whether an approval with this id is about a plan.
func AsksAboutPlan(id string) bool {
	return id == PlanQuestion || strings.HasPrefix(id, PlanQuestion+"/")
}

// GrantedKey is the key of the plan that a granted growth request adds.
func GrantedKey(id string) string { return "plan:" + id }

// A RunStart says how a run began.
type RunStart struct {
	ID      RunID     `json:"id"`
	Kind    RunKind   `json:"kind"`
	Name    string    `json:"name,omitempty"`    // the pipeline's name, or the request
	Dir     string    `json:"dir"`               // the folder where it was started: commands act on the runs of their folder
	File    string    `json:"file,omitempty"`    // the compose file
	NoFile  bool      `json:"no_file,omitempty"` // there was none: File is where it would be, and agents must not write it
	Sources []string  `json:"sources,omitempty"` // the other files that the plan was made from: prompts, scripts, schemas
	Args    []string  `json:"args,omitempty"`    // the command line, without the program
	Version string    `json:"version"`           // of the program
	Loops   string    `json:"loops"`             // version of the loops; only the same version can resume the run
	Engine  string    `json:"engine,omitempty"`  // EngineTemporal = a worker drives it; "" = the process that began it does
	Replay  bool      `json:"replay,omitempty"`
	From    RunID     `json:"from,omitempty"`   // the run that this one retries
	Parent  *TurnRef  `json:"parent,omitempty"` // the turn in which an agent began it; nil = a person began it
	Origin  *Origin   `json:"asked,omitempty"`
	Key     string    `json:"key,omitempty"` // the key of the MCP client that began it
	Time    time.Time `json:"time"`
	// Workspace is the folder of a swarm's agents that name no root; "" = they have none.
	Workspace string `json:"workspace,omitempty"`
	// AnswerTo is the file that gets a swarm's answer, from whichever process ends the run; "" = none.
	AnswerTo string `json:"answer_to,omitempty"`
	// Set and Provider are what the command line changed in the compose file: --set and --provider.
	Set      []string `json:"set,omitempty"`
	Provider string   `json:"provider,omitempty"`
}

// EngineTemporal is the engine of runs that workers drive, as workflows of Temporal.
const EngineTemporal = "temporal"

// A TurnRef names a turn of a run.
type TurnRef struct {
	Run  RunID  `json:"run"`
	Turn TurnID `json:"turn,omitempty"` // "" = not known, because the agent hides it
}

// An Origin is the message of another program that began a team's run.
type Origin struct {
	Agent string `json:"agent"` // the agent that the message was for
	// Context is the conversation of the message, in the other program's words. "" means that the
	// run is the first of its conversation.
	Context string `json:"context,omitempty"`
	Message string `json:"message,omitempty"` // the message's id: sent again, it names the same run
}

// An Ownership says which process drives a run.
type Ownership struct {
	PID   int    `json:"pid"`
	Host  string `json:"host,omitempty"` // the machine, in a store that several machines share
	Fence int64  `json:"fence"`
	// Lived is when the owner before it is last known to have lived, by the clock of the log. Timers
	// stand still from then on. It is zero if there was no owner before, or in an older log.
	Lived time.Time `json:"lived,omitzero"`
}

// A RunEnd says how a run ended.
type RunEnd struct {
	Status Status   `json:"status"` // completed, failed or cancelled
	Exit   int      `json:"exit"`   // the exit code of `swarm up`
	Reason string   `json:"reason,omitempty"`
	Why    *Message `json:"why,omitempty"`    // the reason as a code, for decisions
	Report string   `json:"report,omitempty"` // of a team: its lead's report
	Answer TurnID   `json:"answer,omitempty"` // of a swarm: the turn that holds the answer
	Usage  Usage    `json:"usage,omitzero"`
}

// A Reason is a body that only says why. Code decides by the message's code. The sentence is for
// people.
type Reason struct {
	Message
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
	Paused bool   `json:"paused,omitempty"` // of a notice: the run paused itself because of it
	Ended  bool   `json:"ended,omitempty"`  // of a notice: the run ends because of it, as no person is there to decide
	// Converged says of a notice that its agent, a worker of a swarm, ends because of it.
	Converged bool `json:"converged,omitempty"`
}

// An Iteration says which pass of a pipeline it is, and of how many.
type Iteration struct {
	Iteration int `json:"iteration"`
	Of        int `json:"of"`
	Group     int `json:"group,omitempty"`
}

// A Retry says why a task gets another attempt, and when.
type Retry struct {
	Iteration int           `json:"iteration"`
	Attempt   int           `json:"attempt"` // the attempt that failed
	Reason    string        `json:"reason"`
	After     time.Duration `json:"after,omitempty"`
	Room      bool          `json:"room,omitempty"` // the attempt never began: it waits until another turn leaves room in the budget
}

// A TaskEnd says how a task ended in an iteration.
type TaskEnd struct {
	Iteration int       `json:"iteration"`
	Kind      ErrorKind `json:"kind,omitempty"`
	Reason    string    `json:"reason,omitempty"` // why it failed, was skipped or was cancelled
}

// A TurnStart is on disk before the provider is called. After a crash it tells the next owner that
// the provider may have been called with this prompt.
type TurnStart struct {
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Start     int    `json:"start"` // from 1; a crash cut the earlier starts, and the turn is retried
	Owner     int64  `json:"owner"` // the fence of the owner that requested the turn
	By        string `json:"by"`    // a nonce: two workers of one owner never write the same start
	Provider  string `json:"provider"`
	Model     string `json:"model,omitempty"`
	Prompt    Hash   `json:"prompt"` // the full effective prompt
	Bytes     int    `json:"bytes"`  // its length
	Spans     []Span `json:"spans,omitempty"`
	Inputs    Inputs `json:"inputs,omitzero"`
	Topics    int64  `json:"topics,omitempty"` // the newest topic entry in the prompt
	// Rules is the event up to which the log was read for the team and the answers to mail.
	Rules int64 `json:"rules,omitempty"`
	// Outputs is the event up to which the log was read for outputs, and for what the session knows.
	// 0 means that the prompt has no outputs.
	Outputs int64 `json:"outputs,omitempty"`
	// Answered is how many growth requests the loop had answered before: the team may have grown by
	// them.
	Answered int    `json:"answered,omitempty"`
	Session  string `json:"session,omitempty"` // the provider's session that the turn continues
	// Sent is what was sent if it is not the prompt as it is: the part that is new to the session, or
	// the prompt with its stable sections first.
	Sent Hash `json:"sent,omitempty"`
	// History is the part of the session that was sent before it, if the log keeps the session.
	History *History `json:"history,omitempty"`
	// Reserves is the part of the budget that is reserved for the turn. If the earlier starts and
	// reservations leave no room for it, the turn ends as over_budget and its provider is not
	// called. It is zero without a budget.
	Reserves Usage `json:"reserves,omitzero"`
	// Want is what a turn of a swarm is for: subtasks, action or answer.
	Want string `json:"want,omitempty"`
	// Judged are, of a review, the agents whose answers have the letters A, B and so on in the
	// prompt, which does not name them.
	Judged []string `json:"judged,omitempty"`
	// Snapshots are the folders before the turn, so that its changes are known at its end, however
	// often a crash makes it start again.
	Snapshots []FolderSnapshot `json:"trees,omitempty"`
}

// An ActionStart is on disk before a tool is called for an action. Actions whose effect is in the log
// have none: their keys make them happen once.
type ActionStart struct {
	Start int `json:"start"` // from 1; a crash cut the earlier starts, so the tool may have been called before
}

// A GoalCheck says which check of a team's goal it is, and how often the check may fail.
type GoalCheck struct {
	Check int `json:"check"` // from 1
	Of    int `json:"of"`
}

// CheckID is the id of the call that checks a team's goal, for the n-th time. No agent's name has an
// underscore, so it is no turn's id.
func CheckID(n int) string { return "goal_check/" + strconv.Itoa(n) }

// CheckStartedKey is the key of the event that the n-th check begins.
func CheckStartedKey(n int) string { return string(CheckStarted) + ":" + strconv.Itoa(n) }

// A FolderSnapshot is the state of a folder's files, in a git object store of our own.
type FolderSnapshot struct {
	Dir  string `json:"dir"`
	Tree string `json:"tree"`
}

// A Span says where a range of a prompt's bytes came from.
type Span struct {
	From  string `json:"from"`            // "ids", "role", "text", "output", "stdin", "retry", …
	Name  string `json:"name,omitempty"`  // the file, or the task whose output it is
	Turn  TurnID `json:"turn,omitempty"`  // the turn whose output it is
	Known bool   `json:"known,omitempty"` // the continued session has it already, so it was not sent again
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Inputs are the range of mail that a turn consumes in its agent's inbox: after From, up to and
// including Upto.
type Inputs struct {
	From int64 `json:"from,omitempty"`
	Upto int64 `json:"upto,omitempty"`
}

// A Consumption says which mail a turn consumed. Of two turns that take the same mail, the second
// is refused (see [UsedKey]).
type Consumption struct {
	Inputs
	Turn TurnID `json:"turn,omitempty"` // "" = a person has read it
}

// An Injection is mail that a running turn was given beside the answer of a tool. It is on disk
// before the agent sees it.
type Injection struct {
	Inputs
	Start int    `json:"start"` // the start of the turn, as [TurnStart.Start]
	Tool  string `json:"tool"`  // the tool call whose answer carried it
	Text  Hash   `json:"text"`  // byte for byte what the agent got
	Bytes int    `json:"bytes"`
}

// ToolUse is one call of a tool.
type ToolUse struct {
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input,omitempty"`  // the first bytes of it
	Output string          `json:"output,omitempty"` // the first bytes of it
	Failed bool            `json:"failed,omitempty"`
	Took   time.Duration   `json:"took,omitempty"` // 0 = its start was not observed
}

// A FileChange is a file that an agent changed, as its program reports it.
type FileChange struct {
	Path string `json:"path"`
}

// A TurnInSession names the program's session that a turn is in.
type TurnInSession struct {
	Session string `json:"session"`
}

// An AgentEnd says why an agent gets no more turns.
type AgentEnd struct {
	Kind    ErrorKind `json:"kind,omitempty"`    // of its last failure; [CutByCancel] = a person cancelled it
	Outcome Outcome   `json:"outcome,omitempty"` // of an agent of a swarm
	Reason  string    `json:"reason"`
}

// An Outcome is how an agent of a swarm ended. Its findings count in each case.
type Outcome string

// The outcomes.
const (
	OutcomeDone      Outcome = "done"      // it said so
	OutcomeConverged Outcome = "converged" // it did nothing but talk
	OutcomeForced    Outcome = "forced"    // its iterations are used up
	OutcomeAborted   Outcome = "aborted"   // it failed again and again
	OutcomeTimedOut  Outcome = "timed_out" // its time is over
	OutcomeSpent     Outcome = "spent"     // the run's budget is
)

// Good says whether an agent with this outcome has a result.
func (o Outcome) Good() bool {
	return o == OutcomeDone || o == OutcomeConverged || o == OutcomeForced || o == OutcomeSpent
}

// An Approval is a question that only a person may answer: may the agent do this?
type Approval struct {
	// ID is derived from the turn, the request and how often it was made before. A turn that starts
	// again after a crash makes the same id and finds the answer.
	ID     string          `json:"id"`
	What   string          `json:"what"`             // in a few words
	Tool   string          `json:"tool,omitempty"`   // if it is about a tool
	Input  json.RawMessage `json:"input,omitempty"`  // the first bytes of the tool's input
	Paths  []string        `json:"paths,omitempty"`  // files and folders that it is about, as far as they are known
	Growth *GrowthRequest  `json:"wish,omitempty"`   // if the agent asks for a new agent or edge
	Auto   bool            `json:"auto,omitempty"`   // no person is asked: the answer follows at once
	Retry  *RetryRequest   `json:"retry,omitempty"`  // if a failed task asks for another attempt
	Agents int             `json:"agents,omitempty"` // if it is about a plan: how many agents the swarm has with it
}

// A RetryRequest asks for another attempt of a failed task with `on_failure: escalate`. A person
// may change its inputs.
type RetryRequest struct {
	Failure string            `json:"failure,omitempty"` // why the task failed
	Inputs  map[string]string `json:"inputs,omitempty"`  // as [Task.Inputs]: the task whose output {{input:x}} stands for
	Note    string            `json:"note,omitempty"`    // the person's note to the next attempt
}

// A GrowthRequest is an agent's request for a new agent or a new edge. Exactly one of the two is
// set.
type GrowthRequest struct {
	Spawn *SpawnRequest `json:"spawn,omitempty"`
	Edge  *EdgeRequest  `json:"edge,omitempty"`
}

// A SpawnRequest asks for a new agent. Its fields are the arguments of the tool.
type SpawnRequest struct {
	Name         string   `json:"name"`
	Role         string   `json:"role,omitempty"`     // the role of an agent of the run
	Provider     string   `json:"provider,omitempty"` // a provider of the run; "" = the requesting agent's
	Instructions string   `json:"instructions"`       // its first task
	Edges        []string `json:"edges,omitempty"`    // agents that it is connected with, both ways, beside the requesting one
}

// An EdgeRequest asks for a new edge. Its fields are the arguments of the tool.
type EdgeRequest struct {
	From          string `json:"from"`
	To            string `json:"to"`
	Bidirectional bool   `json:"bidirectional,omitempty"`
}

// An ApprovalAnswer is the answer to an approval.
type ApprovalAnswer struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Actor
	Growth *GrowthRequest `json:"wish,omitempty"` // what is granted instead of the request; nil = the request itself
	// Retry is what the next attempt of a task is given instead of what was asked; nil = that.
	Retry *RetryRequest `json:"retry,omitempty"`
	// Agents and Dropped are of a plan that a person has changed: how many agents the swarm has with it,
	// and those that do not work, because their subtasks were taken out.
	Agents  int      `json:"agents,omitempty"`
	Dropped []string `json:"dropped,omitempty"`
	// Message is the id of another program's message that said so: sent again, it answers nothing
	// else.
	Message string `json:"message,omitempty"`
}

// An Overdue says that the required reply to an envelope is late.
type Overdue struct {
	ID   string `json:"id"`
	Over bool   `json:"over,omitempty"` // the wait for it is over
}

// An AgentWait names the agents that an agent waits for within its turn.
type AgentWait struct {
	For    []string `json:"for"`
	Reason string   `json:"reason,omitempty"` // why the wait ended, unless it succeeded
}

// A Return says why an envelope is undeliverable.
type Return struct {
	ID     string `json:"id"`
	Ref    string `json:"ref,omitempty"` // [Envelope.Ref]
	Reason string `json:"reason"`
}

// An Artifact is stored bytes with a reference.
type Artifact struct {
	Ref   string `json:"ref"`  // artifact://kind/id, or contextpack://pack/id
	Kind  string `json:"kind"` // diff, log, report, transcript, prompt, contextpack or file
	Name  string `json:"name"`
	Hash  Hash   `json:"hash"`
	Bytes int64  `json:"bytes"`

	Tokens  int64     `json:"tokens,omitempty"`  // of a context pack: its size in a prompt
	LeftOut []LeftOut `json:"leftOut,omitempty"` // of a context pack: the parts that had no room
}

// A LeftOut is a part of a context pack that was not stored as it was submitted.
type LeftOut struct {
	Part string `json:"part"`          // docRefs, relevantFiles, constraints, …
	Name string `json:"name"`          // the path, the id or the name
	How  string `json:"how"`           // shortened, reference (without its text), dropped or replaced
	Why  string `json:"why,omitempty"` // "" = for room, or because a later part overrides it
}

// A TopicEntry is a finding that an agent published to a topic for the whole team.
type TopicEntry struct {
	Topic string          `json:"topic"`
	Data  json.RawMessage `json:"data"`
}

// Text returns the entry for reading: a string as it is, any other value as JSON.
func (t TopicEntry) Text() string {
	var text string
	if json.Unmarshal(t.Data, &text) != nil {
		return string(t.Data)
	}
	return text
}

// A CallEnd is the answer to a loop's call. A failure is an answer too: the loop decides whether to
// retry.
type CallEnd struct {
	ID     string    `json:"id"`
	Call   string    `json:"call"`   // the call's fingerprint: a resumed loop must make the same call
	Status CallState `json:"status"` //
	Kind   ErrorKind `json:"kind,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Hint   string    `json:"hint,omitempty"`
	Output Hash      `json:"output,omitempty"` // the stored part of the output
	Bytes  int64     `json:"bytes,omitempty"`  // its length before it was cut to that part
	Exit   int       `json:"exit,omitempty"`   // exit code of the agent's program
	Usage  Usage     `json:"usage,omitzero"`
	Limit  *Limit    `json:"limit,omitempty"` // of a failure: the limit that the provider names as its reason
	// Requests are those of a turn to a model over HTTP, in their order. A retry is a request of its
	// own. Nothing decides by them.
	Requests []ModelRequest `json:"requests,omitempty"`
	// Unbegun says that the turn ended without a call of the provider. A crash cut any start that
	// the log has.
	Unbegun bool `json:"unbegun,omitempty"`
	// Cut is what earlier starts of the turn had reserved that were cut with their process. What they
	// used is not known. Views count it when another process owns the run.
	Cut Usage `json:"cut,omitzero"`
	// Crowded says that the reservations of other turns left no room in the budget for this turn.
	// Turns usually use less than they reserve, so there may be room when another turn ends.
	Crowded bool `json:"crowded,omitempty"`
	// Waited is how long the turn waited, before it began, for room in the budget of the run whose task
	// its swarm does. That is none of the agent's time.
	Waited  time.Duration `json:"waited,omitempty"`
	Session string        `json:"session,omitempty"` // the session, for later turns to continue
	// SessionTotal is what the session has cost in all, from a program that reports nothing else. The
	// next turn's usage is the difference to it, whichever process does that turn.
	SessionTotal *Usage `json:"session_total,omitempty"`
	// Provider is the provider that did the turn in the place of its agent's, whose limit was reached;
	// "" = none did. It has sessions of its own.
	Provider string `json:"provider,omitempty"`
	// Forgotten says that the session cannot be continued: its id held a secret, which is not
	// stored.
	Forgotten bool `json:"forgotten,omitempty"`
	// Exchange is what the turn has added to that session, if the log keeps it.
	Exchange *Exchange `json:"exchange,omitempty"`
	Inputs   Inputs    `json:"inputs,omitzero"` // the mail it consumed
	Verdicts []Verdict `json:"verdicts,omitempty"`
	Findings []Finding `json:"findings,omitempty"` // suspicious behaviour in the turn
	Outside  []string  `json:"outside,omitempty"`  // files that it changed although its phase forbids it
	Action   *Action   `json:"action,omitempty"`   // of an iteration of a swarm: what the agent does
	Done     bool      `json:"done,omitempty"`     // the agent reports that its work is done
	Report   string    `json:"report,omitempty"`   // the agent's report with it
	// File is the file of a swarm's workspace that has the whole result of an action, or the report
	// of an agent that is done. FileText is that report, if the agent has written it. Of an iteration
	// before, it is the report that was written there and then: a file of that name may be another's.
	File     string `json:"file,omitempty"`
	FileText Hash   `json:"file_text,omitempty"`
	// Wrote is the newest envelope by which the runtime itself gave an agent a turn during this
	// one.
	Wrote       int64 `json:"wrote,omitempty"`
	CarriedOver bool  `json:"kept,omitempty"` // the turn was not done in this run, but in the run that this one retries
	// Want is, of a turn of a swarm that is carried over, what it was for: as [TurnStart.Want].
	Want string `json:"want,omitempty"`
	// Shown is, of a turn that is carried over, the last event whose mail its prompt had. 0 = it is not known.
	Shown int64 `json:"shown,omitempty"`
}

// A Limit is a limit of a provider that is reached, such as a number of tokens in five hours.
type Limit struct {
	Provider string    `json:"provider"`         // its name in the plan
	Until    time.Time `json:"until"`            // when the provider says that it resets
	Reason   string    `json:"reason,omitempty"` // the provider's words
	Use      string    `json:"use,omitempty"`    // the provider that does the turn instead
	Early    bool      `json:"early,omitempty"`  // a person has ended the wait before Until
}

// A ModelRequest is one request to a model over HTTP.
type ModelRequest struct {
	After    time.Duration `json:"after"`              // since the turn's provider was called
	Took     time.Duration `json:"took"`               //
	Model    string        `json:"model"`              // that was asked for
	Answered string        `json:"answered,omitempty"` // the model that the server says has answered
	Finish   string        `json:"finish,omitempty"`   // why the answer ended: stop, tool_calls, length, content_filter
	Kind     ErrorKind     `json:"kind,omitempty"`     // of a request that failed
	Usage    Usage         `json:"usage,omitzero"`
}

// MaxRequests is how many requests of a turn its end holds. The others are in its usage only.
const MaxRequests = 128

// An Action is what an agent of a swarm does in an iteration, as far as the loop must know it. The
// turn's output has the rest.
type Action struct {
	Kind ActionKind `json:"kind"`
	Tool string     `json:"tool,omitempty"` // of tool_call
	// Taken says that the agent has done it in its turn, with tools of its own. Otherwise the loop
	// has it done.
	Taken bool `json:"taken,omitempty"`
	// Words describe it to people in one line. Nothing decides by them.
	Words string `json:"words,omitempty"`
	// Ours says that the tool is one of ours, by which agents only talk. It counts as no work.
	Ours bool `json:"ours,omitempty"`
	// Weighed are, of a replan, the agents whose end the supervisor knew of.
	Weighed []string `json:"weighed,omitempty"`
	// Judged are, of a review, the agents whose answers had the letters A, B and so on in the
	// prompt. Ranking are the same agents, the best answer first.
	Judged  []string `json:"judged,omitempty"`
	Ranking []string `json:"ranking,omitempty"`
}

// An ActionKind is one of the things that an agent of a swarm can do in an iteration.
type ActionKind string

// The kinds of actions.
const (
	ActToolCall    ActionKind = "tool_call"
	ActPublishData ActionKind = "publish_data"
	ActSendMessage ActionKind = "send_message"
	ActRequestHelp ActionKind = "request_help"
	ActDone        ActionKind = "done"
	ActReplan      ActionKind = "replan" // of the supervisor: it has planned anew
	ActReview      ActionKind = "review" // of a member of a council: it has judged the answers of the others
)

// ActionKinds lists the kinds of a worker's actions, in the order in which prompts describe them.
var ActionKinds = []ActionKind{ActToolCall, ActPublishData, ActSendMessage, ActRequestHelp, ActDone}

// MessageTypes are the types of messages between agents of a swarm. The last one is the default.
var MessageTypes = []string{"request", "offer", "accept", "delegation", "info"}

// A Finding is suspicious behaviour in a turn, with the evidence. The turn runner reports findings;
// the team loop decides what to do about them.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// About depends on the kind: the agent that got no mail, the fingerprint of the action, or the
	// other agents that worked in the folder.
	About    string `json:"about"`
	Times    int    `json:"times,omitempty"` // how often in a row within the turn
	Evidence string `json:"evidence"`        // the agent's words or action, or the files
}

// A FindingKind names a kind of suspicious behaviour.
type FindingKind string

// The kinds of findings.
const (
	Unsent FindingKind = "unsent" // the agent claims to have written to another, and no envelope went there
	// The agent did nothing but the same action with the same result, or repeated it in a row until
	// it was told so.
	SameAction FindingKind = "same_action"
	// Files that the phase protects changed while several agents worked in the folder, so the
	// author is unknown.
	Shared FindingKind = "shared"
)

// A CallState is the outcome of a call.
type CallState string

// The outcomes of a call.
const (
	CallOK     CallState = "ok"
	CallFailed CallState = "failed"
	CallCut    CallState = "cut" // a person stopped it: it consumed no mail
)

// A Verdict is the result of checking one part of `expect`.
type Verdict struct {
	Part   string `json:"part"` // file, matches, schema or command
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// A ControlCommand is the body of a control record: a command and its target. Any process may write
// one. If no process owns the run, the command takes effect when the run is resumed.
type ControlCommand struct {
	Command Command `json:"word"`
	Target  string  `json:"target,omitempty"` // a task, an agent or a turn; "" = the whole run
	Actor
}

// A Command is a request to a run, a task, an agent or a turn.
type Command string

// The commands.
const (
	CommandCancel    Command = "cancel"    // end the target for good
	CommandInterrupt Command = "interrupt" // stop the agent's turn to say something
	CommandPause     Command = "pause"     // start no turn of the target; running turns finish
	CommandResume    Command = "resume"    // start turns of the target again
	CommandStart     Command = "start"     // give turns to an agent that has ended
	CommandReset     Command = "reset"     // drop the agent's session, stop its turn and start it anew
	CommandRetry     Command = "retry"     // retry a task that failed and waits for a person, or that a limit holds back
	CommandClose     Command = "close"     // the plan is complete: nothing is added any more
)

// A Snapshot is a state of the git tree, in a git object store of our own.
type Snapshot struct {
	When   string `json:"when"` // "start" or "end"
	Hash   string `json:"hash"`
	Commit string `json:"commit,omitempty"` // the commit that was checked out
}
