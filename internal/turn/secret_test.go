package turn_test

import (
	"context"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/secret"
	"swarm/internal/turn"
)

const canary = "sk-canary/0123456789-abcdef"

// secretive has an agent do one turn that must store no secret.
func (b *team) secretive(agent string, iteration int, a liveAgent) {
	b.Helper()
	h := b.hand(a)
	hide := secret.New([]string{"API_KEY=" + canary}, nil)
	h.Redact = hide.Bytes
	_, err := h.Do(b.Context(), "root", ask(agent, iteration, 1))
	b.check(err)
}

// stored is all that the log holds, texts too.
func (b *team) stored() string {
	b.Helper()
	var all strings.Builder
	events, err := b.log.Read(0, 10_000)
	b.check(err)
	for _, e := range events {
		all.WriteString(string(e.Kind) + " " + string(e.Data) + "\n")
		if e.Kind == swarm.TurnEnded {
			end, err := turn.Answer(e)
			b.check(err)
			if end.Output != "" && end.Output != swarm.NoText {
				text, err := b.log.Body(end.Output)
				b.check(err)
				all.Write(text)
			}
		}
	}
	return all.String()
}

// Whatever an agent's program calls its tools, its files and its session.
func TestNamesHoldNoSecret(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{Tools: "ask"})
	b.secretive("coder", 1, func(ctx context.Context, r provider.Request, live func(provider.Delta)) (provider.Reply, error) {
		use := swarm.ToolUse{ID: "call-" + canary, Name: "Run " + canary, Output: "done"}
		for _, kind := range []provider.DeltaKind{provider.DeltaTool, provider.DeltaToolDone} {
			live(provider.Delta{Kind: kind, Tool: &use})
		}
		live(provider.Delta{Kind: provider.DeltaFile, File: "/tmp/" + canary})
		asking, stop := context.WithCancel(ctx)
		wake, off := b.log.Watch()
		defer off()
		go func() {
			for len(b.events(swarm.ApprovalAsked)) == 0 {
				<-wake
			}
			stop()
		}()
		_, _, err := r.Ask(asking, swarm.Approval{ID: "coder/1/1/x", What: "use " + canary, Tool: "Run " + canary})
		if err == nil {
			t.Error("nobody has answered")
		}
		return provider.Reply{Output: []byte("said " + canary), Session: "s-" + canary}, nil
	})
	if all := b.stored(); strings.Contains(all, canary) || strings.Count(all, "[secret API_KEY]") < 7 {
		t.Errorf("stored:\n%s", all)
	}
	b.secretive("coder", 2, func(_ context.Context, r provider.Request, _ func(provider.Delta)) (provider.Reply, error) {
		if r.Session != "" {
			t.Errorf("a session of another name is continued: %s", r.Session)
		}
		return provider.Reply{}, nil
	})
}
