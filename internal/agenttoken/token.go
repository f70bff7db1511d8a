// Package agenttoken makes the credentials by which a server knows the agents of a run.
package agenttoken

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// Tokens are the credentials of the agents of one run, as long as this process drives it. They are
// made from a secret that is never stored, so one of another run or of last week's process is
// nobody's. All of them begin with the same random text, by which they are recognized wherever one
// is written.
type Tokens struct {
	run    string
	begin  []byte
	secret []byte
}

// beginBytes is a multiple of 3, so that the text of it in base64 does not depend on what follows.
const beginBytes = 12

// New makes credentials for a run's agents.
func New(run string) *Tokens {
	t := &Tokens{run: run, begin: make([]byte, beginBytes), secret: make([]byte, sha256.Size)}
	_, _ = rand.Read(t.begin) // never fails: the program would end
	_, _ = rand.Read(t.secret)
	return t
}

// Prefix begins every token of an agent.
const Prefix = "swa_"

// For is an agent's token.
func (t *Tokens) For(agent string) string {
	return t.Beginning() + base64.RawURLEncoding.EncodeToString(append(t.sign(agent), agent...))
}

// Beginning begins every token of these, and no other text. It opens nothing.
func (t *Tokens) Beginning() string { return Prefix + base64.RawURLEncoding.EncodeToString(t.begin) }

// MaxRest is the most that follows the beginning of a token: a signature, and a name of at most 80
// bytes.
const MaxRest = (sha256.Size + 80) * 4 / 3

// Agent says whose token it is. How long that takes tells nothing of how good a guess was.
func (t *Tokens) Agent(token string) (agent string, ok bool) {
	text, ok := strings.CutPrefix(token, t.Beginning())
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
