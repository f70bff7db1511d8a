// Package agenttoken makes the credentials by which a server knows the agents of a run.
package agenttoken

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Tokens are the credentials of the agents of one run, as long as this process drives it. They are made from a secret that is never
// stored, so one of another run or of last week's process is nobody's.
type Tokens struct {
	run    string
	secret []byte
}

// New makes credentials for a run's agents.
func New(run string) *Tokens {
	t := &Tokens{run: run, secret: make([]byte, sha256.Size)}
	_, _ = rand.Read(t.secret) // never fails: the program would end
	return t
}

// Prefix begins every token of an agent.
const Prefix = "swa_"

// For is an agent's token.
func (t *Tokens) For(agent string) string {
	return Prefix + base64.RawURLEncoding.EncodeToString(append(t.sign(agent), agent...))
}

// Agent says whose token it is. How long that takes tells nothing of how good a guess was.
func (t *Tokens) Agent(token string) (agent string, ok bool) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok {
		return "", false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) <= sha256.Size {
		return "", false
	}
	agent = string(b[sha256.Size:])
	return agent, hmac.Equal([]byte(token), []byte(t.For(agent))) // a token has one spelling
}

func (t *Tokens) sign(agent string) []byte {
	h := hmac.New(sha256.New, t.secret)
	h.Write([]byte(t.run + "\x00" + agent))
	return h.Sum(nil)
}
