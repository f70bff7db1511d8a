// Package action reads what a model in a swarm wants to do next. A model answers each iteration
// with one JSON object, its action. An answer that cannot be read is refused with words that the
// model can act on. It never counts as done.
package action

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/modeljson"
	"swarm/internal/strictjson"
)

// An Action is one action of an agent. Which fields are set depends on its kind.
type Action struct {
	Kind swarm.ActionKind `json:"action"`

	Tool   string          `json:"tool,omitempty"`        // of tool_call
	Params json.RawMessage `json:"tool_params,omitempty"` // of tool_call: one object

	Topic string          `json:"topic,omitempty"` // of publish_data
	Data  json.RawMessage `json:"data,omitempty"`  // of publish_data: any value

	To          string          `json:"to,omitempty"`           // of send_message
	MessageType string          `json:"message_type,omitempty"` // of send_message
	Payload     json.RawMessage `json:"payload,omitempty"`      // of send_message: one object

	Help   string   `json:"help_description,omitempty"` // of request_help
	Skills []string `json:"help_skills,omitempty"`      // of request_help

	Response string `json:"response,omitempty"` // of done
}

// String describes the action in a few words, as prompts list earlier ones.
func (a Action) String() string {
	if a.Kind == swarm.ActToolCall {
		return string(a.Kind) + ":" + a.Tool
	}
	return string(a.Kind)
}

// Words describe the action to people, in one line: what the agent does, and with what.
func (a Action) Words() string {
	switch a.Kind {
	case swarm.ActToolCall:
		return about("calls "+short(a.Tool), paramWords(a.Params))
	case swarm.ActPublishData:
		return about("publishes on "+short(a.Topic), swarm.TopicEntry{Data: a.Data}.Text())
	case swarm.ActSendMessage:
		text, ok := a.Message()
		if !ok {
			text = string(a.Payload)
		}
		return about("writes to @"+short(a.To), text)
	case swarm.ActRequestHelp:
		return about("asks for help", a.Help)
	case swarm.ActDone:
		return about("is done", a.Response)
	}
	return string(a.Kind)
}

const (
	maxWords = 160 // bytes of an action's text that its description has
	maxName  = 60  // bytes of a name in it
)

// short cuts a name, which a model may have made as long as it likes.
func short(name string) string { return excerpt.Head(excerpt.OneLine(name), maxName) }

func about(what, text string) string {
	text = excerpt.Head(excerpt.OneLine(text), maxWords)
	if text == "" {
		return what
	}
	return what + ": " + text
}

// firstParams say what a tool call is about. The others may be long.
var firstParams = []string{"path", "url", "query", "description"}

// paramWords lists the values of a tool call's parameters: first those that say what it is about, then
// the others in the order of their names. A single string is the string itself.
func paramWords(params json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(params, &all) != nil {
		return string(params)
	}
	var words []string
	names := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for _, name := range names {
		var text string
		if json.Unmarshal(all[name], &text) != nil {
			text = string(all[name])
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// Message returns the text of a message whose payload is that text alone.
func (a Action) Message() (text string, ok bool) {
	var p map[string]json.RawMessage
	if json.Unmarshal(a.Payload, &p) != nil || len(p) != 1 || json.Unmarshal(p["message"], &text) != nil {
		return "", false
	}
	return text, true
}

// Read reads the one action in a model's answer.
func Read(answer string) (Action, error) {
	o, err := modeljson.Find(answer, "action")
	var a Action
	if err == nil {
		a, err = decode(fields{o})
	}
	if err == nil && o.Closed && a.Kind == swarm.ActToolCall && !o.Has("tool_params") { // perhaps they were to follow
		err = modeljson.ErrCutOff
	}
	if err != nil {
		return Action{}, withHint(err)
	}
	return a, nil
}

// withHint tells a model what to answer with, if the error does not.
func withHint(err error) error {
	e, ok := errors.AsType[*swarm.Error](err)
	if !ok || e.Hint != "" {
		return err
	}
	hinted := *e
	hinted.Hint = wanted
	return &hinted
}

// wanted tells a model what to answer with.
const wanted = `return ONLY one JSON object, such as {"action": "done", "response": "…"}`

// decode makes an action of the fields of an object. Fields of other actions, and fields that we do not know,
// are ignored: models add their thoughts.
func decode(fields fields) (a Action, err error) {
	kind, err := fields.text("action", true)
	if err != nil {
		return a, err
	}
	a.Kind = swarm.ActionKind(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(kind)), "-", "_"))
	switch a.Kind {
	case swarm.ActToolCall:
		if a.Tool, err = fields.text("tool", true); err == nil {
			a.Params, err = fields.object("tool_params")
		}
	case swarm.ActPublishData:
		if a.Topic, err = fields.text("topic", true); err == nil {
			a.Data, err = fields.value("data")
		}
	case swarm.ActSendMessage:
		err = fields.message(&a)
	case swarm.ActRequestHelp:
		if a.Help, err = fields.text("help_description", true); err == nil {
			a.Skills, err = fields.texts("help_skills")
		}
	case swarm.ActDone:
		a.Response, err = fields.text("response", true)
	default:
		err = swarm.Errorf(swarm.Unexpected, "there is no action %s", swarm.Quote(kind)).
			WithHint("choose one of %s", strings.Join(names(), ", "))
	}
	return a, err
}

func names() (all []string) {
	for _, k := range swarm.ActionKinds {
		all = append(all, string(k))
	}
	return all
}

// fields are the fields of an action's object.
type fields struct{ modeljson.Object }

// text returns a string field.
func (f fields) text(name string, needed bool) (text string, err error) {
	if f.Has(name) && json.Unmarshal(f.Fields[name], &text) != nil {
		return "", wrong(name, "a string")
	}
	switch {
	case !needed || strings.TrimSpace(text) != "":
		return text, nil
	case f.Has(name):
		return "", swarm.Errorf(swarm.Unexpected, "the field %q is empty", name)
	}
	return "", swarm.Errorf(swarm.Unexpected, "the field %q is missing", name)
}

// texts returns a field that is a list of strings. One string counts as a list.
func (f fields) texts(name string) (texts []string, err error) {
	var one string
	switch {
	case !f.Has(name):
	case json.Unmarshal(f.Fields[name], &one) == nil:
		texts = []string{one}
	case json.Unmarshal(f.Fields[name], &texts) != nil:
		err = wrong(name, "a list of strings")
	}
	return texts, err
}

// value returns a field of any kind.
func (f fields) value(name string) (json.RawMessage, error) {
	if !f.Has(name) {
		return nil, swarm.Errorf(swarm.Unexpected, "the field %q is missing", name)
	}
	return f.Fields[name], nil
}

// object returns a field that is an object. A missing one is empty. Some models write an object as a
// string that holds its JSON.
func (f fields) object(name string) (json.RawMessage, error) {
	if !f.Has(name) {
		return json.RawMessage("{}"), nil
	}
	value := f.Fields[name]
	var text string
	if json.Unmarshal(value, &text) == nil {
		inner, err := strictjson.ReadValue([]byte(text))
		if err != nil {
			return nil, wrong(name, "an object")
		}
		value = inner
	}
	if value[0] != '{' {
		return nil, wrong(name, "an object")
	}
	return value, nil
}

// message reads the fields of send_message. A payload that is a string is the message itself.
func (f fields) message(a *Action) (err error) {
	if a.To, err = f.text("to", true); err != nil {
		return err
	}
	if a.MessageType, err = f.text("message_type", false); err != nil {
		return err
	}
	a.To = strings.TrimPrefix(strings.TrimSpace(a.To), "@")
	if a.MessageType = strings.ToLower(strings.TrimSpace(a.MessageType)); a.MessageType == "" {
		a.MessageType = swarm.MessageTypes[len(swarm.MessageTypes)-1]
	}
	if !slices.Contains(swarm.MessageTypes, a.MessageType) {
		return swarm.Errorf(swarm.Unexpected, "there is no message_type %s", swarm.Quote(a.MessageType)).
			WithHint("choose one of %s", strings.Join(swarm.MessageTypes, ", "))
	}
	var text string
	switch {
	case !f.Has("payload"):
		return swarm.Errorf(swarm.Unexpected, "the field %q is missing", "payload").
			WithHint(`write "payload": {"message": "…"}`)
	case json.Unmarshal(f.Fields["payload"], &text) == nil:
		a.Payload = swarm.Encode(map[string]string{"message": text})
	case f.Fields["payload"][0] != '{':
		return wrong("payload", "an object")
	default:
		a.Payload = f.Fields["payload"]
	}
	return nil
}

func wrong(name, want string) error {
	return swarm.Errorf(swarm.Unexpected, "the field %q must be %s", name, want)
}

// rank is where a parameter stands in the description of a call.
func rank(name string) int {
	if i := slices.Index(firstParams, name); i >= 0 {
		return i
	}
	return len(firstParams)
}
