package acp

import (
	"errors"
	"strings"
	"time"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// errGone says that the program has ended.
var errGone = errors.New("the program has ended")

// silentError makes the error of a turn in which the agent's model said nothing for too long.
func silentError(limit time.Duration) error {
	return swarm.Errorf(swarm.NoResult, "the agent said nothing for %s, and used no tool: its model does not answer", limit).
		WithHint(provider.CheckNetwork)
}

// codexFailures begin the lines in which Codex tells that its model's server has failed it.
var codexFailures = []string{"exceeded retry limit, last status: ", "unexpected status ", "stream disconnected before completion"}

// failureInWords returns the failure of a turn that codex-acp tells in its last message only, and
// else ends as a good one. In such a turn nothing was paid for and no tool was used.
func (p *agentProgram) failureInWords(t *turn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.isCodex() || t.usage.Tokens() > 0 || t.toolCount > 0 {
		return nil
	}
	for line := range strings.Lines(string(t.output.Bytes())) {
		for _, begin := range codexFailures {
			if strings.HasPrefix(line, begin) {
				return &rpcError{Message: strings.TrimSpace(line)}
			}
		}
	}
	return nil
}

// checkEnd returns the error of a turn that the agent has ended, or nil for a good one.
func (t *turn) checkEnd(end promptResult) error {
	if e := t.deniedError(end.Stop == "cancelled"); e != nil {
		return e
	}
	t.mu.Lock()
	silent := t.output.Len() == 0 && t.toolCount == 0
	t.mu.Unlock()
	switch end.Stop {
	case "max_tokens":
		return swarm.Errorf(swarm.NoResult, "the answer was cut: the model has no more tokens for it").
			WithHint("ask for less at once, or choose another model")
	case "max_turn_requests":
		return swarm.Errorf(swarm.NoResult, "the agent asked its model more often than it may in one turn").
			WithHint("ask for less at once")
	case "refusal":
		return swarm.Errorf(swarm.NoResult, "the model refused to answer").
			WithHint("ask for it in other words, or ask another model")
	case "cancelled":
		return swarm.Errorf(swarm.NoResult, "the agent says that it was cancelled, but swarm has not cancelled it")
	}
	if silent {
		return swarm.Errorf(swarm.NoResult, "it ended its turn and %w", provider.ErrSaidNothing).
			WithHint("see what it wrote to standard error, or ask it for an answer")
	}
	return nil
}

// explain turns any failure of the program into an error with a kind and a hint, without secrets.
func (p *agentProgram) explain(err error, stderr []byte) error {
	var said *rpcError
	var e *swarm.Error
	switch {
	case errors.Is(err, errGone):
		e = p.exitError(stderr)
	case errors.As(err, &said):
		e = p.agentError(said, stderr)
	case errors.As(err, &e):
		if e.Kind == swarm.Protocol {
			e = swarm.Errorf(e.Kind, "%s%s", e.Msg, process.LastWords(stderr)).WithHint("%s", e.Hint)
		}
	default:
		e = &swarm.Error{Kind: swarm.Other, Msg: "the turn broke off", Err: err}
	}
	e.Msg, e.Hint = p.redactor.String(e.Msg), p.redactor.String(e.Hint)
	return e
}

// exitError makes the error of a program that ended in the middle of a turn.
func (p *agentProgram) exitError(stderr []byte) *swarm.Error {
	last := process.LastWords(stderr)
	if process.ExitCode(p.status) != 0 {
		e := provider.Ended("", p.status, last)
		if kind, hint := p.classify(0, string(stderr)); kind != "" && e.Kind == swarm.Exited {
			e.Kind, e.Hint, e.Until = kind, hint, resetAt(kind, string(stderr))
		}
		return e
	}
	return swarm.Errorf(swarm.NoResult, "it ended in the middle of its turn%s", last).
		WithHint("see whether it speaks the Agent Client Protocol when it is started as %s", strings.Join(p.host.arguments(provider.Request{}), " "))
}

// agentError makes an error of one that the agent reported. An agent that says only "internal
// error" has mostly written the reason to standard error, so that is added.
func (p *agentProgram) agentError(c *rpcError, stderr []byte) *swarm.Error {
	e := swarm.Errorf(swarm.NoResult, "the agent failed: %w", c).WithHint(provider.TryAgain)
	if kind, hint := p.classify(c.Code, c.Error()); kind != "" {
		e.Kind, e.Hint, e.Until = kind, hint, resetAt(kind, c.Error())
	} else {
		e.Msg += process.LastWords(stderr)
	}
	return e
}

// resetAt finds when the limit resets that an error is about.
func resetAt(kind swarm.ErrorKind, text string) time.Time {
	if kind != swarm.RateLimited {
		return time.Time{}
	}
	return provider.ResetAt(text, time.Now())
}

// classify finds the kind of an agent's error, and the hint for it. The protocol has a code for a
// missing login and for nothing else, so the text decides the rest.
func (p *agentProgram) classify(code int, text string) (swarm.ErrorKind, string) {
	_, limit, login := provider.Blame(text)
	switch {
	case code == codeNotSignedIn || code == 401 || login:
		return swarm.NotSignedIn, p.signInHint()
	case code == 429 || limit:
		return swarm.RateLimited, provider.ComeBack
	}
	return "", ""
}

// signInHint says how to sign in to the agent. The agent itself names the ways.
func (p *agentProgram) signInHint() string {
	if p.host.kind.Program.SignIn != "" {
		return p.host.kind.Program.SignIn
	}
	var ways []string
	for _, way := range p.hello.Auth {
		text := way.Name
		if way.Description != "" {
			text += " (" + strings.TrimSuffix(way.Description, ".") + ")"
		}
		ways = append(ways, text)
	}
	hint := "start " + p.host.argv[0] + " by itself and sign in, or set the variable that holds its key and name it in `env` of the provider"
	if len(ways) > 0 {
		hint += "; it knows these ways: " + strings.Join(ways, ", ")
	}
	return hint
}

// needsLogin says whether the agent refused because no user is signed in.
func needsLogin(err error) bool {
	var c *rpcError
	return errors.As(err, &c) && c.Code == codeNotSignedIn
}
