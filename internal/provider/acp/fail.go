package acp

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"

	"swarm"
	"swarm/internal/process"
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
		e = g.complains(said)
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
	status := g.state.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled():
		return swarm.Errorf(swarm.Crashed, "ended by signal %d (%v)%s", int(status.Signal()), status.Signal(), last)
	case status.ExitStatus() > 128:
		return swarm.Errorf(swarm.Crashed, "exit status %d%s", status.ExitStatus(), last)
	case status.ExitStatus() != 0:
		e := swarm.Errorf(swarm.Exited, "exit status %d%s", status.ExitStatus(), last)
		if kind, hint := g.classify(0, string(stderr)); kind != "" {
			e.Kind, e.Hint = kind, hint
		}
		return e
	}
	return swarm.Errorf(swarm.NoResult, "it ended in the middle of its turn%s", last).
		WithHint("see whether it speaks the Agent Client Protocol when it is started as %s", strings.Join(g.host.argv, " "))
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return 0
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()) // as shells say it
	}
	return status.ExitStatus()
}

// complains makes an error of an agent's own.
func (g *guest) complains(c *complaint) *swarm.Error {
	text := c.Message
	var data struct {
		Details string `json:"details"`
		Message string `json:"message"`
		Kind    string `json:"errorKind"`
	}
	if json.Unmarshal(c.Data, &data) == nil {
		for _, more := range []string{data.Details, data.Message} {
			if more != "" && !strings.Contains(text, more) {
				text += ": " + more
			}
		}
	} else if more := plain(c.Data); more != "" {
		text += ": " + more
	}
	e := swarm.Errorf(swarm.Other, "the agent failed: %s", head(strings.Join(strings.Fields(text), " ")))
	if kind, hint := g.classify(c.Code, text+" "+data.Kind); kind != "" {
		e.Kind, e.Hint = kind, hint
	}
	return e
}

// signs are the words by which agents say what is wrong: each has its own, and the protocol has none but for a login.
var signs = []struct {
	kind  swarm.ErrorKind
	words []string
}{
	{swarm.NotSignedIn, []string{"authentication required", "authentication_failed", "authentication_error", "unauthenticated", "unauthorized", "not logged in",
		"please run /login", "invalid api key", "invalid x-api-key", "api key is missing", "api key not valid", "incorrect api key", "invalid_api_key", "status 401", "401 "}},
	{swarm.RateLimited, []string{"rate limit", "rate_limit", "ratelimit", "too many requests", "overloaded", "resource_exhausted", "resource has been exhausted", "exhausted your capacity",
		"quota", "usage limit", "usage_limit", "capacity", "status 429", "429 ", "status 529", "status: 429"}},
}

// classify finds the kind of what an agent says, and what to do about it.
func (g *guest) classify(code int, text string) (swarm.ErrorKind, string) {
	text = strings.ToLower(text) + " "
	if code == 429 {
		return swarm.RateLimited, waitHint
	}
	if code == codeNotSignedIn || code == 401 {
		return swarm.NotSignedIn, g.signIn()
	}
	for _, s := range signs {
		for _, word := range s.words {
			if strings.Contains(text, word) {
				if s.kind == swarm.NotSignedIn {
					return s.kind, g.signIn()
				}
				return s.kind, waitHint
			}
		}
	}
	return "", ""
}

const waitHint = "wait a while, or give the task `retries`"

// signIn says how one signs in to the agent, in its own words.
func (g *guest) signIn() string {
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
