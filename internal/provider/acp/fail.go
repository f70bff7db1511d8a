package acp

import (
	"errors"
	"strings"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// errGone says that the program is not there any more.
var errGone = errors.New("the program has ended")

// judge says whether the turn is good, by how the agent says that it ended.
func (t *turn) judge(end ending) error {
	if e := t.denied(); e != nil {
		return e
	}
	t.mu.Lock()
	silent := t.output.Len() == 0 && t.used == 0
	t.mu.Unlock()
	switch end.Stop {
	case "max_tokens":
		return swarm.Errorf(swarm.NoResult, "the answer was cut: the model has no more tokens for it").WithHint("ask for less at once, or choose another model")
	case "max_turn_requests":
		return swarm.Errorf(swarm.NoResult, "the agent asked its model more often than it may in one turn").WithHint("ask for less at once")
	case "refusal":
		return swarm.Errorf(swarm.NoResult, "the model refused to answer").WithHint("ask for it in other words, or ask another model")
	case "cancelled":
		return swarm.Errorf(swarm.NoResult, "the agent says that it was cancelled, and nobody here did that")
	}
	if silent {
		return swarm.Errorf(swarm.NoResult, "it ended its turn without a word").WithHint("see what it wrote to standard error, or ask it for an answer")
	}
	return nil
}

// explain makes an error of what went wrong with the program.
func (g *guest) explain(err error, stderr []byte) error {
	var said *complaint
	var e *swarm.Error
	switch {
	case errors.Is(err, errGone):
		e = g.gone(stderr)
	case errors.As(err, &said):
		e = g.complains(said, stderr)
	case errors.As(err, &e):
		if e.Kind == swarm.Protocol {
			e = swarm.Errorf(e.Kind, "%s%s", e.Msg, process.LastWords(stderr)).WithHint("%s", e.Hint)
		}
	default:
		e = &swarm.Error{Kind: swarm.Other, Msg: "the turn broke off", Err: err}
	}
	e.Msg, e.Hint = g.hide.String(e.Msg), g.hide.String(e.Hint)
	return e
}

// gone says how a program ended that should not have.
func (g *guest) gone(stderr []byte) *swarm.Error {
	last := process.LastWords(stderr)
	if process.ExitCode(g.how) != 0 {
		e := provider.Ended("", g.how, last)
		if kind, hint := g.classify(0, string(stderr)); kind != "" && e.Kind == swarm.Exited {
			e.Kind, e.Hint = kind, hint
		}
		return e
	}
	return swarm.Errorf(swarm.NoResult, "it ended in the middle of its turn%s", last).
		WithHint("see whether it speaks the Agent Client Protocol when it is started as %s", strings.Join(g.host.arguments(provider.Request{}), " "))
}

// complains makes an error of an agent's own. One that only says that something went wrong inside has mostly said before what.
func (g *guest) complains(c *complaint, stderr []byte) *swarm.Error {
	e := swarm.Errorf(swarm.NoResult, "the agent failed: %w", c).WithHint(provider.TryAgain)
	if kind, hint := g.classify(c.Code, c.Error()); kind != "" {
		e.Kind, e.Hint = kind, hint
	} else {
		e.Msg += process.LastWords(stderr)
	}
	return e
}

// classify finds the kind of what an agent says, and what to do about it. The protocol itself has a code for a login and no other.
func (g *guest) classify(code int, text string) (swarm.ErrorKind, string) {
	_, limit, login := provider.Blame(text)
	switch {
	case code == codeNotSignedIn || code == 401 || login:
		return swarm.NotSignedIn, g.signIn()
	case code == 429 || limit:
		return swarm.RateLimited, provider.ComeBack
	}
	return "", ""
}

// signIn says how one signs in to the agent, in its own words.
func (g *guest) signIn() string {
	if g.host.kind.Program.SignIn != "" {
		return g.host.kind.Program.SignIn
	}
	var ways []string
	for _, way := range g.hello.Auth {
		text := way.Name
		if way.Description != "" {
			text += " (" + strings.TrimSuffix(way.Description, ".") + ")"
		}
		ways = append(ways, text)
	}
	hint := "start " + g.host.argv[0] + " by itself and sign in, or set the variable that holds its key and name it in `env` of the provider"
	if len(ways) > 0 {
		hint += "; it knows these ways: " + strings.Join(ways, ", ")
	}
	return hint
}

func needsLogin(err error) bool {
	var c *complaint
	return errors.As(err, &c) && c.Code == codeNotSignedIn
}
