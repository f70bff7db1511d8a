package coding

import (
	"encoding/json"
	"errors"
	"strings"
	"syscall"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/permission"
	"swarm/internal/provider"
	"swarm/internal/toolrule"
)

// failure makes the error of a program that reports a failure. status is the answer of its model's
// server, 0 if the program does not say. Without a status the text decides what kind of failure it
// is.
func (t *turn) failure(status int, text string) *swarm.Error {
	said := t.facts.Title + " failed" + excerpt.Said(t.redactor.String(text))
	limit, login := provider.Busy(status), status == 401 || status == 403
	if status == 0 {
		_, limit, login = provider.Blame(text)
	}
	switch {
	case limit:
		e := swarm.Errorf(swarm.RateLimited, "%s", said).WithHint(provider.ComeBack)
		if e.Until = t.resets; e.Until.IsZero() {
			e.Until = provider.ResetAt(text, time.Now())
		}
		return e
	case login:
		return swarm.Errorf(swarm.NotSignedIn, "%s", said).WithHint("%s", t.facts.SignIn)
	case provider.Unreached(text):
		return swarm.Errorf(swarm.NoResult, "%s", said).WithHint(provider.CheckNetwork)
	}
	return swarm.Errorf(swarm.NoResult, "%s", said).WithHint(provider.TryAgain)
}

// exitError makes the error of a program that exited with a failure and reported none in its
// stream.
func (t *turn) exitError(status syscall.WaitStatus) *swarm.Error {
	if t.request.Session != "" && t.facts.sessionGone != "" &&
		strings.Contains(string(t.stderr.Bytes()), t.facts.sessionGone) {
		t.failSessionLost()
		return t.fault
	}
	words := t.lastWords()
	err := provider.Ended(t.facts.Title, status, words)
	switch blamed := t.failure(0, words); {
	case err.Kind == swarm.Exited && blamed.Kind != swarm.NoResult:
		err.Kind, err.Hint, err.Until = blamed.Kind, blamed.Hint, blamed.Until
	case err.Kind == swarm.Exited && provider.Unreached(words):
		err.Hint = provider.CheckNetwork
	}
	return err
}

// deniedError makes the error of a turn whose agent was refused a permission. allow is the entry of
// `tools` that would grant it.
func (t *turn) deniedError(tool, input, allow string) *swarm.Error {
	e := swarm.Errorf(
		swarm.Denied, "%s was not allowed to use %s%s", t.facts.Title, tool, excerpt.Said(t.redactor.String(input)))
	var shut *swarm.Error
	// Web tools change no files, so the phase is not why they were refused.
	if errors.As(permission.Acting(t.request.Phase, tool), &shut) && !strings.HasPrefix(strings.ToLower(tool), "web") {
		return e.WithHint("%s", shut.Hint)
	}
	if allow == tool {
		allow = toolrule.Suggest(tool, json.RawMessage(input))
	}
	return e.WithHint("if it may, write %s", t.redactor.String(toolrule.Lines(t.request.Agent, t.request.Tools, allow)))
}
