package a2a

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	wire "github.com/a2aproject/a2a-go/v2/a2a"

	"swarm"
	"swarm/internal/npmtest"
	"swarm/internal/provider"
)

// An oldAgent is an agent of A2A 0.3: the JavaScript SDK of that version.
type oldAgent struct {
	provider.Provider
	lines *bufio.Scanner // that it prints
}

func startOldAgent(t *testing.T, env ...string) *oldAgent {
	t.Helper()
	cmd := exec.Command("node", "testdata/agent.mjs")
	cmd.Env = append(append(os.Environ(), "A2A_SDK="+npmtest.Package(t, npmtest.OldA2A)), env...)
	cmd.Stderr = os.Stderr
	stop, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stop.Close()
		_ = cmd.Wait()
	})
	a := &oldAgent{lines: bufio.NewScanner(out)}
	if !a.lines.Scan() {
		t.Fatal("the agent never said where it is")
	}
	spec := swarm.ProviderSpec{Name: "old", Kind: "a2a", BaseURL: a.lines.Text(), Headers: map[string]string{"Authorization": "Bearer $OLD_TOKEN"}}
	a.Provider, err = Open(spec, provider.Options{Environ: []string{"OLD_TOKEN=sesame-0123"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Provider.(provider.Closer).Close() })
	return a
}

// TestAnAgentOfAnOlderVersion: all that a turn does, with and without a stream.
func TestAnAgentOfAnOlderVersion(t *testing.T) {
	for name, env := range map[string]string{"stream": "STREAMING=yes", "polled": "STREAMING=no"} {
		t.Run(name, func(t *testing.T) {
			a := startOldAgent(t, env)
			ask := func(turn, prompt, fresh, session string) (string, string, error) {
				reply, err := a.Turn(t.Context(), provider.Request{
					Run: "r", Turn: swarm.TurnID(turn), Prompt: prompt, Fresh: fresh, Session: session,
					Call: func(context.Context, string, json.RawMessage) (string, error) { return `{}`, nil },
				}, func(swarm.Delta) {})
				return string(reply.Output), reply.Session, err
			}
			output, session, err := ask("a/1/1", "hello", "", "")
			if err != nil || output != "You said: hello" || !strings.HasPrefix(session, "context=") {
				t.Errorf("%q, session %s: %v", output, session, err)
			}
			if output, again, err := ask("a/2/1", "hello and more", "more", session); err != nil || output != "You said: more" || again != session {
				t.Errorf("the next turn: %q, session %s, was %s: %v", output, again, session, err)
			}
			if output, _, err = ask("a/3/1", "everything", "new", "context=c&task=nosuch"); err != nil || output != "You said: everything" {
				t.Errorf("a session that is gone: %q %v", output, err)
			}
			if output, _, err = ask("b/1/1", "direct", "", ""); err != nil || output != "at once" {
				t.Errorf("a message without a task: %q %v", output, err)
			}
			if _, _, err = ask("c/1/1", "fail", "", ""); swarm.KindOf(err) != swarm.NoResult || !strings.Contains(err.Error(), "out of paint") {
				t.Errorf("a failed task: %v", err)
			}
			const want = "see \n{\"n\":1}\n[y: http://x/y]\n[z: 2 bytes, text/plain]"
			if output, _, err = ask("d/1/1", "parts", "", ""); err != nil || output != want {
				t.Errorf("parts: %q %v, want %q", output, err, want)
			}
			// A question is a person's, and the answer goes on with the same task.
			output, session, err = ask("e/1/1", "paint", "", "")
			if err != nil || output != "Which colour?" || !strings.Contains(session, "task=") {
				t.Errorf("a question: %q, session %s: %v", output, session, err)
			}
			if output, again, err := ask("e/2/1", "paint … red", "red", session); err != nil || output != "You said: red" || strings.Contains(again, "task=") {
				t.Errorf("the answer: %q, session %s: %v", output, again, err)
			}
		})
	}
}

// TestACutTurnCancelsItsOldTask: before the turn returns, or soon after.
func TestACutTurnCancelsItsOldTask(t *testing.T) {
	a := startOldAgent(t)
	ctx, cut := context.WithCancelCause(t.Context())
	_, err := a.Turn(ctx, provider.Request{Run: "r", Turn: "a/1/1", Prompt: "wait"}, func(d swarm.Delta) {
		if d.Kind == swarm.DeltaText {
			cut(swarm.Errorf(swarm.CutByCancel, "enough"))
		}
	})
	if swarm.KindOf(err) != swarm.CutByCancel {
		t.Errorf("the turn ended with %v", err)
	}
	if !a.lines.Scan() || a.lines.Text() != "cancelled" {
		t.Errorf("the agent said %q", a.lines.Text())
	}
}

// TestTheNewestInterfaceIsUsed: cards of 0.3, of 1.0, and of both.
func TestTheNewestInterfaceIsUsed(t *testing.T) {
	for card, want := range map[string]string{
		`{"name":"a","url":"http://x/old","preferredTransport":"JSONRPC","protocolVersion":"0.3.0"}`: "http://x/old",
		`{"name":"a","url":"http://x/old"}`: "http://x/old",
		`{"name":"a","url":"http://x/grpc","preferredTransport":"GRPC","protocolVersion":"0.3.0","additionalInterfaces":[{"url":"http://x/rpc","transport":"JSONRPC"}]}`:                                                  "http://x/rpc",
		`{"name":"a","supportedInterfaces":[{"url":"http://x/old","protocolBinding":"JSONRPC","protocolVersion":"0.3"},{"url":"http://x/new","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"url":"http://x/old"}`: "",
		`{"name":"a","securityRequirements":[{"schemes":{"bearer":{"list":[]}}}],"supportedInterfaces":[{"url":"http://x/new","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`:                                     "",
		`{"name":"a","url":"http://x/rest","preferredTransport":"HTTP+JSON","protocolVersion":"0.3.0"}`:                                                                                                                   "HTTP+JSON 0.3.0",
		`{"name":"a","url":"http://x/rpc","protocolVersion":"0.2.5"}`: "JSONRPC 0.2.5",
		`{"name":"a"}`: "speaks nothing",
	} {
		p, err := Open(swarm.ProviderSpec{Name: "x", Kind: "a2a", BaseURL: "http://x"}, provider.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p.(*remote).client.Transport = &transport{p.(*remote), fixed{"application/json", "", card}}
		c, err := p.(*remote).connect(t.Context())
		switch old, isOld := callerOf(c).(*legacy); {
		case err != nil && strings.Contains(err.Error(), want) && want != "":
		case err != nil, isOld && old.url != want, !isOld && want != "":
			t.Errorf("%s: %v, %+v", card, err, c)
		}
	}
}

func callerOf(c *connection) caller {
	if c == nil {
		return nil
	}
	return c.caller
}

// TestAnswersOfAnOlderVersionAreRead: a server may send anything.
func TestAnswersOfAnOlderVersionAreRead(t *testing.T) {
	for text, want := range map[string]error{
		`{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"no"}}`:  wire.ErrTaskNotFound,
		`{"jsonrpc":"2.0","id":"1","error":{"code":-32004,"message":"no"}}`:  wire.ErrUnsupportedOperation,
		`{"jsonrpc":"2.0","id":"1","error":{"code":12345,"message":"what"}}`: wire.ErrInternalError,
	} {
		if _, err := readLegacy([]byte(text)); err == nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{`{}`, `null`, `{"result":null}`, `{"result":{"kind":"odd"}}`, `{"result":{"kind":"artifact-update"}}`, `[]`, `{"result":7}`} {
		if _, err := readLegacy([]byte(text)); swarm.KindOf(err) != swarm.Protocol {
			t.Errorf("%s: %v", text, err)
		}
	}
}
