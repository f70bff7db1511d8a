package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/provider"
	"swarm/internal/schema"
)

// callTools runs the tool calls of an answer and appends both to the conversation. A call that
// cannot be done is answered too, so that the model can correct it. A model that makes only such
// calls several times in a row is given up.
func (t *turn) callTools(ctx context.Context, said swarm.ChatMessage) error {
	t.endLine()
	r := swarm.ChatMessage{Role: swarm.RoleUser}
	senseless := ""
	for _, c := range said.Calls {
		t.live(swarm.Delta{
			Kind: swarm.DeltaTool,
			Tool: &swarm.ToolUse{ID: c.ID, Name: c.Name, Input: t.showInput(c.Args)},
		})
		x, calling := swarm.ToolResult{Call: c.ID}, ctx
		if t.seesImages() {
			calling = swarm.WithToolImages(ctx, func(image swarm.ToolImage) string { return t.takeImage(&x, image) })
		}
		text, err := "", t.checkCall(c)
		if err != nil {
			senseless = err.Error()
		} else {
			t.badRounds = -1
			text, err = t.request.Call(calling, c.Name, arguments(c.Args))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			text = errorText(err)
		}
		t.live(swarm.Delta{
			Kind: swarm.DeltaToolDone,
			Tool: &swarm.ToolUse{
				ID:     c.ID,
				Name:   c.Name,
				Output: provider.ShowText(t.redactor, text),
				Failed: err != nil,
			},
		})
		x.Text, x.Failed = text, err != nil
		r.Results = append(r.Results, x)
	}
	if t.badRounds++; t.badRounds == maxBadRounds {
		return swarm.Errorf(swarm.Protocol, "the tool calls of the model make no sense%s", excerpt.Said(t.redactor.String(senseless))).
			WithHint("ask a larger model, or one that was made to use tools")
	}
	if t.request.Aside != nil {
		var err error
		if r.Text, err = t.request.Aside(ctx, said.Calls[len(said.Calls)-1].Name); err != nil {
			return err
		}
	}
	t.append(said, r)
	return t.checkProgress(said.Calls, r.Results)
}

// checkProgress gives a model up that makes the same calls again and again, though they give the same.
func (t *turn) checkProgress(calls []swarm.ToolCall, results []swarm.ToolResult) error {
	var round []string
	for i, c := range calls {
		round = append(round, c.Name, c.Args, results[i].Text)
	}
	now := swarm.HashOf(swarm.Encode(round))
	if t.same++; now != t.last {
		t.last, t.same = now, 1
	}
	if t.same < maxSame {
		return nil
	}
	t.endless = true
	return swarm.Errorf(swarm.NoResult, "the model has made the same call of %s %d times in a row, with the same result", calls[0].Name, maxSame).
		WithHint("say in the prompt when the work is done, or ask a larger model")
}

// checkCall returns why a call cannot be done, whatever the tool would say: an unknown tool, or
// arguments that do not match its schema.
func (t *turn) checkCall(c swarm.ToolCall) error {
	var names []string
	for _, spec := range t.conversation.tools {
		if names = append(names, spec.Name); spec.Name != c.Name || t.request.Call == nil {
			continue
		}
		value, err := object(c.Args)
		if err != nil {
			return swarm.Errorf(swarm.Protocol, "the arguments of %s are not one JSON object: %w", c.Name, err).
				WithHint("%s", spec.Usage())
		}
		if len(spec.Schema) == 0 {
			return nil
		}
		s, err := schema.Parse(spec.Schema)
		if err == nil {
			err = s.Check(value)
		}
		if err != nil {
			return swarm.Errorf(swarm.Protocol, "the arguments of %s are not what it takes: %w", c.Name, err).
				WithHint("%s", spec.Usage())
		}
		return nil
	}
	err := swarm.Errorf(swarm.Protocol, "there is no tool %s", swarm.Quote(c.Name))
	if len(names) == 0 || t.request.Call == nil {
		return err.WithHint("there are no tools; answer in words")
	}
	return err.WithHint("%s", swarm.DidYouMean(c.Name, names))
}

// arguments returns the arguments of a call. A model may leave them out if there are none.
func arguments(args string) json.RawMessage {
	if args == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(args)
}

// object decodes arguments, which are one JSON object with nothing after it.
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

// validArguments returns a call's arguments as they are repeated to the model. Servers reject a
// request with arguments that are not JSON, so those become an empty object.
func validArguments(args string) json.RawMessage {
	if _, err := object(args); err != nil {
		return json.RawMessage("{}")
	}
	return arguments(args)
}

// errorText encodes an error for the model.
func errorText(err error) string {
	return string(swarm.Encode(struct {
		Error string `json:"error"`
		Hint  string `json:"hint,omitempty"`
	}{err.Error(), swarm.HintOf(err)}))
}

// showInput returns a call's arguments for observers. Arguments that are not JSON are shown as a
// text.
func (t *turn) showInput(args string) json.RawMessage {
	if _, err := object(args); err != nil {
		return swarm.Encode(provider.ShowText(t.redactor, args))
	}
	return provider.ShowInput(t.redactor, arguments(args))
}
