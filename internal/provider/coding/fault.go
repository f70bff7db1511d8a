package coding

import (
	"errors"
	"strings"
	"syscall"

	"swarm/internal/excerpt"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/provider"
)

// blamed is the error of a program that says that it failed: status is what its model's server answered, 0 = it does not say.
func (t *turn) blamed(status int, text string) *swarm.Error {
	said := t.facts.Title + " failed" + excerpt.Said(t.hide.String(text))
	limit, login := provider.Busy(status), status == 401 || status == 403
	if status == 0 {
		_, limit, login = provider.Blame(text)
	}
	switch {
	case limit:
		return swarm.Errorf(swarm.RateLimited, "%s", said).WithHint(provider.ComeBack)
	case login:
		return swarm.Errorf(swarm.NotSignedIn, "%s", said).WithHint("%s", t.facts.SignIn)
	case provider.Unreached(text):
		return swarm.Errorf(swarm.NoResult, "%s", said).WithHint(provider.CheckNetwork)
	}
	return swarm.Errorf(swarm.NoResult, "%s", said).WithHint(provider.TryAgain)
}

// exited is the error of a program that has not ended well and said nothing in its stream.
func (t *turn) exited(status syscall.WaitStatus) *swarm.Error {
	if t.request.Session != "" && t.facts.forgot != "" && strings.Contains(string(t.stderr.Bytes()), t.facts.forgot) {
		t.forgotten()
		return t.fault
	}
	words := t.lastWords()
	err := provider.Ended(t.facts.Title, status, words)
	switch blamed := t.blamed(0, words); {
	case err.Kind == swarm.Exited && blamed.Kind != swarm.NoResult:
		err.Kind, err.Hint = blamed.Kind, blamed.Hint
	case err.Kind == swarm.Exited && provider.Unreached(words):
		err.Hint = provider.CheckNetwork
	}
	return err
}

// refused is the error of a turn in which the agent was not allowed what it wanted to do.
func (t *turn) refused(tool, input, allow string) *swarm.Error {
	e := swarm.Errorf(swarm.Denied, "%s was not allowed to use %s%s", t.facts.Title, tool, excerpt.Said(t.hide.String(input)))
	var shut *swarm.Error
	if errors.As(permission.Acting(t.request.Phase, tool), &shut) && !strings.HasPrefix(strings.ToLower(tool), "web") { // pages change no files
		return e.WithHint("%s", shut.Hint)
	}
	return e.WithHint("add %q to `tools` of the agent %q if it may", allow, t.request.Agent)
}
