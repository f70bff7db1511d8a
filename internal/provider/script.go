package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/yamlfile"
)

// A Script is a provider whose agents say what a file tells them to: for demonstrations and tests.
//
//   - {task: plan, say: "1. write it\n2. test it"}
//   - {task: test, iteration: 1, say: "FAIL", exit: 1}
//   - {task: test, say: "PASS", sleep: 500ms}
//   - {agent: coder, say: "Done: {prompt}", call: [{tool: publish_data, args: {topic: code, data: "…"}}]}
//
// The entry of a turn depends on the turn alone and not on earlier turns, so a resumed run goes on
// as it would have: see [Script.Turn].
type Script struct {
	file    string
	entries []entry
}

// An entry is what an agent does in one turn, or in several.
type entry struct {
	line      int
	task      string // one of task and agent is set
	agent     string
	iteration int // 0 = any
	say       string
	calls     []scriptCall
	sleep     time.Duration
	exit      int
}

// A scriptCall is a tool call of the agent.
type scriptCall struct {
	tool string
	args json.RawMessage
}

var (
	entryKeys = []string{"task", "agent", "iteration", "say", "call", "sleep", "exit"}
	callKeys  = []string{"tool", "args"}
)

// ParseScript reads a script. name is its file, for errors.
func ParseScript(name string, src []byte) (*Script, error) {
	const hint = "write `- {task: NAME, say: TEXT}`, a line for each"
	p := scriptParser{file: name}
	root, bad := yamlfile.Parse(name, src, hint)
	if bad != nil {
		return nil, bad
	}
	if root.Kind != yaml.SequenceNode || len(root.Content) == 0 {
		return nil, p.fail(root, "a script is a list of what is said").WithHint(hint)
	}
	s := &Script{file: name}
	for _, item := range root.Content {
		e, err := p.entry(item)
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, e)
	}
	return s, nil
}

// A scriptParser reads the nodes of one file. It stops at the first error.
type scriptParser struct{ file string }

func (p scriptParser) fail(n *yaml.Node, format string, args ...any) *swarm.Error {
	return &swarm.Error{
		Kind:   swarm.BadInput,
		File:   p.file,
		Line:   n.Line,
		Column: n.Column,
		Msg:    fmt.Sprintf(format, args...),
	}
}

// fields returns a mapping's values by their keys, which must be among those given.
func (p scriptParser) fields(n *yaml.Node, what string, keys []string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "%s is a mapping", what).WithHint("write it with the keys %s", strings.Join(keys, ", "))
	}
	got := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(keys, key.Value):
			return nil, p.fail(key, "%s has no key %s", what, swarm.Quote(key.Value)).
				WithHint("%s", swarm.DidYouMean(key.Value, keys))
		case got[key.Value] != nil:
			return nil, p.fail(key, "the key %s is there twice", key.Value).
				WithHint("the first is in line %d; remove one", got[key.Value].Line)
		}
		got[key.Value] = value
	}
	return got, nil
}

// entry reads one entry.
func (p scriptParser) entry(n *yaml.Node) (entry, error) {
	e := entry{line: n.Line}
	got, err := p.fields(n, "an entry", entryKeys)
	if err != nil {
		return e, err
	}
	switch {
	case got["task"] == nil && got["agent"] == nil:
		return e, p.fail(n, "the entry does not say whose turn it is").WithHint("add `task: NAME` or `agent: NAME`")
	case got["task"] != nil && got["agent"] != nil:
		return e, p.fail(got["agent"], "the entry names a task and an agent").
			WithHint("name one of them; a task has one agent")
	}
	for _, key := range entryKeys { // in a fixed order, so that the same script gives the same error
		value := got[key]
		if value == nil {
			continue
		}
		switch key {
		case "task":
			e.task, err = p.name(value, "a task", swarm.CheckTaskName)
		case "agent":
			e.agent, err = p.name(value, "an agent", checkScriptAgent)
		case "iteration":
			e.iteration, err = p.number(value, key, 1, math.MaxInt32)
		case "say":
			e.say, err = p.text(value, key)
		case "call":
			e.calls, err = p.calls(value)
		case "sleep":
			e.sleep, err = p.duration(value)
		case "exit":
			e.exit, err = p.number(value, key, 0, 255)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// name reads the name of a task or an agent. The name of a copy is allowed too.
func (p scriptParser) name(n *yaml.Node, what string, check func(string) error) (string, error) {
	text, err := p.text(n, what)
	if err != nil {
		return "", err
	}
	var bad *swarm.Error
	if errors.As(check(original(text)), &bad) {
		return "", p.fail(n, "%s", bad.Msg).WithHint("%s", bad.Hint)
	}
	return text, nil
}

// text reads a scalar as it is written.
func (p scriptParser) text(n *yaml.Node, what string) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode:
		return "", p.alias(n)
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return "", p.fail(n, "%s is a text", what).WithHint("write it behind the colon, in quotes or below `|`")
	}
	return n.Value, nil
}

// alias refuses an alias: a text that begins with * is more likely meant.
func (p scriptParser) alias(n *yaml.Node) error {
	return p.fail(n, "the alias %s stands for something else in the script", swarm.Quote(n.Value)).
		WithHint("write it out; text that begins with * must stand in quotes")
}

func (p scriptParser) number(n *yaml.Node, key string, from, to int) (int, error) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || v < from || v > to {
		hint := fmt.Sprintf("write a number from %d to %d", from, to)
		if to == math.MaxInt32 {
			hint = fmt.Sprintf("write a whole number from %d on", from)
		}
		return 0, p.fail(n, "%s cannot be %s", key, swarm.Quote(n.Value)).WithHint("%s", hint)
	}
	return v, nil
}

func (p scriptParser) duration(n *yaml.Node) (time.Duration, error) {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 {
		return 0, p.fail(n, "sleep cannot be %s", swarm.Quote(n.Value)).
			WithHint("write a duration such as 500ms, 2s or 1m")
	}
	return d, nil
}

func (p scriptParser) calls(n *yaml.Node) ([]scriptCall, error) {
	if n.Kind != yaml.SequenceNode {
		return nil, p.fail(n, "call is a list").WithHint("write `call: [{tool: NAME, args: {…}}]`")
	}
	var calls []scriptCall
	for _, item := range n.Content {
		got, err := p.fields(item, "a call", callKeys)
		if err != nil {
			return nil, err
		}
		if got["tool"] == nil {
			return nil, p.fail(item, "the call does not say which tool").WithHint("add `tool: NAME`")
		}
		c := scriptCall{args: json.RawMessage("{}")}
		if c.tool, err = p.text(got["tool"], "a tool"); err != nil {
			return nil, err
		}
		if args := got["args"]; args != nil {
			if args.Kind != yaml.MappingNode {
				return nil, p.fail(args, "args is a mapping").WithHint("write `args: {name: value}`")
			}
			var b bytes.Buffer
			if err := p.json(&b, args); err != nil {
				return nil, err
			}
			c.args = b.Bytes()
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// json encodes a node as JSON, mappings in the order of the file.
func (p scriptParser) json(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]bool{}
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || seen[key.Value] {
				return p.fail(key, "a key of args must be a text, and be there once")
			}
			seen[key.Value] = true
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(swarm.Encode(key.Value))
			b.WriteByte(':')
			if err := p.json(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := p.json(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		return p.scalar(b, n)
	default:
		return p.alias(n)
	}
	return nil
}

// scalar encodes a scalar. Numbers that JSON writes in the same way are copied, so that no digit is
// lost.
func (p scriptParser) scalar(b *bytes.Buffer, n *yaml.Node) error {
	if n.Style == 0 && isNumber(n.Value) {
		b.WriteString(n.Value)
		return nil
	}
	var v any
	switch n.Tag {
	case "!!null", "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err != nil {
			return p.fail(n, "%s cannot be read as a value", swarm.Quote(n.Value)).WithHint("put it in quotes")
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return p.fail(n, "%s is not a number that JSON has", n.Value).WithHint("put it in quotes")
		}
	default:
		v = n.Value
	}
	b.Write(swarm.Encode(v))
	return nil
}

// isNumber says whether a text is a number in JSON.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text)) &&
		strings.TrimSpace(text) == text
}

// checkScriptAgent allows the name of the supervisor beside those of agents.
func checkScriptAgent(name string) error {
	if name == swarm.Supervisor {
		return nil
	}
	return swarm.CheckAgentName(name)
}
