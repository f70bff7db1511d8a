package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"swarm/internal/excerpt"
	"swarm/internal/provider"

	"swarm"
	"swarm/internal/schema"
)

// use does what the model asks of tools. What nobody can do is answered too, so that it can be asked better; a model that asks
// for nothing else again and again is given up.
func (t *turn) use(ctx context.Context, said any, calls []*call) error {
	r := round{said: said}
	senseless := ""
	for _, c := range calls {
		t.live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: c.id, Name: c.name, Input: t.shownInput(c.args)}})
		text, err := "", t.sense(c)
		if err != nil {
			senseless = err.Error()
		} else {
			t.nonsense = -1
			text, err = t.request.Call(ctx, c.name, arguments(c.args))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			text = refusal(err)
		}
		t.live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: c.id, Name: c.name, Output: provider.ShowText(t.hide, text), Failed: err != nil}})
		r.results = append(r.results, result{c.id, text, err != nil})
	}
	if t.nonsense++; t.nonsense == maxNonsense {
		return swarm.Errorf(swarm.Protocol, "the model calls tools in a way that nobody understands%s", excerpt.Said(t.hide.String(senseless))).
			WithHint("ask a larger model, or one that was made to use tools")
	}
	if t.request.Aside != nil {
		var err error
		if r.aside, err = t.request.Aside(ctx, calls[len(calls)-1].name); err != nil {
			return err
		}
	}
	t.conversation.rounds = append(t.conversation.rounds, r)
	return nil
}

// sense says why a call cannot be done, whatever the tool would say to it.
func (t *turn) sense(c *call) error {
	var names []string
	for _, spec := range t.conversation.tools {
		if names = append(names, spec.Name); spec.Name != c.name || t.request.Call == nil {
			continue
		}
		value, err := object(c.args)
		if err != nil {
			return swarm.Errorf(swarm.Protocol, "the arguments of %s are not one JSON object: %w", c.name, err).WithHint("%s", spec.Usage())
		}
		if len(spec.Schema) == 0 {
			return nil
		}
		s, err := schema.Parse(spec.Schema)
		if err == nil {
			err = s.Check(value)
		}
		if err != nil {
			return swarm.Errorf(swarm.Protocol, "the arguments of %s are not what it takes: %w", c.name, err).WithHint("%s", spec.Usage())
		}
		return nil
	}
	err := swarm.Errorf(swarm.Protocol, "there is no tool %s", swarm.Quote(c.name))
	if len(names) == 0 || t.request.Call == nil {
		return err.WithHint("there are no tools; answer in words")
	}
	return err.WithHint("%s", swarm.DidYouMean(c.name, names))
}

// arguments is what a tool is given; a model that has nothing to say to it may say nothing.
func arguments(args string) json.RawMessage {
	if args == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(args)
}

// object reads arguments, which are one JSON object and nothing after it.
func object(args string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(arguments(args)))
	var o map[string]json.RawMessage
	if err := d.Decode(&o); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("the end is missing")
		}
		return nil, err
	}
	if o == nil {
		return nil, errors.New("it is null")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows it")
	}
	return schema.Value(arguments(args))
}

// echo is a call's arguments as the model is reminded of them: servers do not take back what is not JSON.
func echo(args string) json.RawMessage {
	if _, err := object(args); err != nil {
		return json.RawMessage("{}")
	}
	return arguments(args)
}

// refusal is an error as agents are told of it.
func refusal(err error) string {
	told := struct {
		Error string `json:"error"`
		Hint  string `json:"hint,omitempty"`
	}{err.Error(), swarm.HintOf(err)}
	b, _ := json.Marshal(told)
	return string(b)
}

func (t *turn) shownInput(args string) json.RawMessage {
	if _, err := object(args); err != nil {
		return swarm.Encode(provider.ShowText(t.hide, args))
	}
	return provider.ShowInput(t.hide, arguments(args))
}
