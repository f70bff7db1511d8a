package desk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/strictjson"
)

// A State is where an agent is in its life.
type State string

// The states. The orchestrator sets pending, and the worker sets all others.
const (
	Pending   State = "pending"   // the desk is made, and no worker has started
	Running   State = "running"   // a worker is at it
	Completed State = "completed" // the worker has finished
	Failed    State = "failed"    // the worker cannot go on
)

// States lists the states.
var States = []State{Pending, Running, Completed, Failed}

// Final reports whether a state is the last one of an attempt.
func (s State) Final() bool { return s == Completed || s == Failed }

// A Status is status.json.
type Status struct {
	State     State
	Started   time.Time // zero = not said
	Completed time.Time
	Error     *Failure
	Progress  Progress
	Metrics   json.RawMessage
	// Fields has every field as the worker wrote it, also those that the protocol does not know.
	Fields map[string]json.RawMessage
}

// A Failure is the error of a status: why an attempt failed.
type Failure struct {
	Type        string `json:"type"`
	Message     string `json:"message"`
	Details     string `json:"details,omitempty"`
	Recoverable bool   `json:"recoverable"`
}

// AgentExited is the type of the failure of a program that ended without a final state.
const AgentExited = "AgentExited"

// TimedOut is the type of the failure of a worker that took too long.
const TimedOut = "TimedOut"

// Violated is the type of the failure of a worker that broke the protocol.
const Violated = "ContractViolation"

// String tells a failure to people: "ValidationError: Input file format invalid".
func (f Failure) String() string {
	text := f.Message
	switch {
	case f.Type != "" && text != "":
		text = f.Type + ": " + text
	case text == "":
		text = f.Type
	}
	if f.Details != "" {
		text += "\n" + f.Details
	}
	return text
}

// A Progress says how far a worker is.
type Progress struct {
	CurrentStep    string
	StepsCompleted int
	TotalSteps     int
}

// String tells the progress to people: "3/5 analyzing_data".
func (p Progress) String() string {
	if p.TotalSteps == 0 {
		return p.CurrentStep
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", p.StepsCompleted, p.TotalSteps, p.CurrentStep))
}

// statusFields are the fields of the protocol, in its order.
var statusFields = []string{"state", "started", "completed", "error", "progress", "metrics"}

// ReadStatus reads the text of a status.json. Only the state decides, so only it must be right: another
// field of a wrong type is ignored, and [Validate] reports it. Duplicate keys are refused, because
// two readers could take different ones.
func ReadStatus(text []byte) (Status, error) {
	fields, err := readFields("status.json", text)
	if err != nil {
		return Status{}, err
	}
	var state string
	if json.Unmarshal(fields["state"], &state) != nil || !slices.Contains(States, State(state)) {
		return Status{}, swarm.Errorf(swarm.Protocol, "the field \"state\" is %s",
			swarm.Quote(orMissing(fields["state"]))).WithHint("write pending, running, completed or failed")
	}
	s := Status{State: State(state), Fields: fields, Metrics: orNil(fields["metrics"])}
	s.Started, _ = readTime(fields["started"])
	s.Completed, _ = readTime(fields["completed"])
	s.Error, _ = readFailure(fields["error"])
	s.Progress, _ = readProgress(fields["progress"])
	return s, nil
}

// readFields reads one JSON object. A byte order mark, as some editors write it, is ignored.
func readFields(name string, text []byte) (map[string]json.RawMessage, error) {
	if len(text) > MaxState {
		return nil, swarm.Errorf(swarm.Protocol, "%s has %d bytes; %d are allowed", name, len(text), MaxState)
	}
	one, err := strictjson.ReadValue(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if one[0] != '{' || json.Unmarshal(one, &fields) != nil {
		return nil, swarm.Errorf(swarm.Protocol, "%s is not a JSON object", name).WithHint(`write {"state": "running", …}`)
	}
	return fields, nil
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func orNil(value json.RawMessage) json.RawMessage {
	if isNull(value) {
		return nil
	}
	return value
}

func orMissing(value json.RawMessage) string {
	if value == nil {
		return "missing"
	}
	return string(value)
}

// readTime reads a time. Programs often leave out the zone; then it is UTC.
func readTime(value json.RawMessage) (time.Time, bool) {
	var text string
	if isNull(value) {
		return time.Time{}, true
	}
	if json.Unmarshal(value, &text) != nil {
		return time.Time{}, false
	}
	for _, form := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00"} {
		if t, err := time.Parse(form, text); err == nil && t.Year() >= 0 && t.Year() <= 9999 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// readFailure reads an error. A worker may also write a text.
func readFailure(value json.RawMessage) (*Failure, bool) {
	if isNull(value) {
		return nil, true
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return &Failure{Message: text}, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return &Failure{Message: string(value)}, false
	}
	f, good := &Failure{}, true
	for name, into := range map[string]*string{"type": &f.Type, "message": &f.Message, "details": &f.Details} {
		if !isNull(fields[name]) && json.Unmarshal(fields[name], into) != nil {
			*into, good = string(fields[name]), name == "details" && good // details may have any form
		}
	}
	if !isNull(fields["recoverable"]) && json.Unmarshal(fields["recoverable"], &f.Recoverable) != nil {
		good = false
	}
	return f, good
}

func readProgress(value json.RawMessage) (p Progress, ok bool) {
	if isNull(value) {
		return p, true
	}
	var raw struct {
		Current   *string  `json:"current_step"`
		Completed *float64 `json:"steps_completed"`
		Total     *float64 `json:"total_steps"`
	}
	if json.Unmarshal(value, &raw) != nil {
		return p, false
	}
	if raw.Current != nil {
		p.CurrentStep = excerpt.OneLine(*raw.Current)
	}
	p.StepsCompleted, p.TotalSteps = steps(raw.Completed), steps(raw.Total)
	return p, true
}

// steps makes a count of a number that may be anything.
func steps(n *float64) int {
	if n == nil || *n < 0 || *n > 1e9 {
		return 0
	}
	return int(*n)
}

// MarshalJSON writes the fields of the protocol in their order, and then all others by name.
func (s Status) MarshalJSON() ([]byte, error) {
	fields := s.Fields
	if fields == nil {
		fields = map[string]json.RawMessage{
			"state": swarm.Encode(s.State), "started": encodeTime(s.Started), "completed": encodeTime(s.Completed),
			"error": swarm.Encode(s.Error), "progress": encodeProgress(s.Progress), "metrics": s.Metrics,
		}
		if s.Metrics == nil {
			fields["metrics"] = json.RawMessage("{}")
		}
	}
	var b bytes.Buffer
	add := func(name string) {
		if value, ok := fields[name]; ok {
			if b.Len() > 0 {
				b.WriteByte(',')
			}
			b.Write(swarm.Encode(name))
			b.WriteByte(':')
			b.Write(value)
		}
	}
	for _, name := range statusFields {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(statusFields, name) {
			add(name)
		}
	}
	return slices.Concat([]byte("{"), b.Bytes(), []byte("}")), nil
}

func encodeTime(t time.Time) json.RawMessage {
	if t.IsZero() {
		return json.RawMessage("null")
	}
	return swarm.Encode(t.UTC().Format(time.RFC3339))
}

func encodeProgress(p Progress) json.RawMessage {
	step := json.RawMessage("null")
	if p.CurrentStep != "" {
		step = swarm.Encode(p.CurrentStep)
	}
	return fmt.Appendf(nil, `{"current_step":%s,"steps_completed":%d,"total_steps":%d}`, step, p.StepsCompleted, p.TotalSteps)
}

// render is the text of status.json, as the protocol shows it.
func (s Status) render() []byte { return renderJSON(s) }

func renderJSON(v any) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, swarm.Encode(v), "", "  "); err != nil {
		panic(err) // Encode writes JSON
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// checkMove returns what is wrong with a change of the state, or nil. The worker may have been running
// for too short a time to be seen, so pending may be followed by any state.
func checkMove(from, to State) error {
	switch {
	case from == "" || from == to || from == Pending, from == Running && to.Final():
		return nil
	case to == Pending:
		return swarm.Errorf(swarm.Protocol, "the worker set the state from %s to pending, which only the orchestrator does", from).
			WithHint("the worker sets running, and then completed or failed")
	}
	return swarm.Errorf(swarm.Protocol, "the worker set the state from %s to %s, but %s is final", from, to, from).
		WithHint("the worker sets running, and then completed or failed, once")
}
