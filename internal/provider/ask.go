package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"swarm"
)

// A PersonRefused is a person's no to an agent's request. The agent is told, and its turn goes on and ends
// as the agent ends it: a person who refuses one request has not cancelled the turn. Any other
// refusal fails the turn at its end, because only its error tells a person what the agent lacked.
type PersonRefused struct{ Reason string }

func (r PersonRefused) Error() string { return r.Reason }

// AskPerson asks for an approval to use a tool, and waits for the answer. The error says why the
// tool may not be used. same is what makes two requests the same one: an answer that was given
// before a crash is found by it.
func (r Request) AskPerson(ctx context.Context, same any, a swarm.Approval) error {
	if r.Ask == nil {
		return errors.New("nobody can be asked")
	}
	text, _ := json.Marshal(same)
	sum := sha256.Sum256(text)
	a.ID, a.What = string(r.Turn)+"/"+hex.EncodeToString(sum[:8]), "use "+a.Tool
	ok, reason, err := r.Ask(ctx, a)
	if err == nil && !ok {
		err = PersonRefused{reason}
	}
	return err
}
