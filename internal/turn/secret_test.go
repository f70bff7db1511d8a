package turn_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/secret"
	"swarm/internal/turn"
)

const canary = "sk-canary/0123456789-abcdef"

// secretive runs one turn of an agent that must store no secret.
func (b *team) secretive(agent string, iteration int, a liveAgent) {
	b.Helper()
	h := b.runner(a)
	hide := secret.New([]string{"API_KEY=" + canary}, nil)
	h.Redact, h.Cut = hide.Bytes, hide.Cut
	_, err := h.Do(b.Context(), "root", ask(agent, iteration, 1))
	b.check(err)
}

// stored returns all events and bodies of the log.
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

// Secrets are removed from the names of tools, files and sessions.
func TestNamesHoldNoSecret(t *testing.T) {
	b := newTeam(t, "acp", swarm.Approvals{Tools: "ask"})
	b.secretive("coder", 1, func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
		use := swarm.ToolUse{ID: "call-" + canary, Name: "Run " + canary, Output: "done"}
		for _, kind := range []swarm.DeltaKind{swarm.DeltaTool, swarm.DeltaToolDone} {
			live(swarm.Delta{Kind: kind, Tool: &use})
		}
		live(swarm.Delta{Kind: swarm.DeltaFile, File: "/tmp/" + canary})
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
	b.secretive("coder", 2, func(_ context.Context, r provider.Request, _ func(swarm.Delta)) (provider.Reply, error) {
		if r.Session != "" {
			t.Errorf("a session of another name is continued: %s", r.Session)
		}
		return provider.Reply{}, nil
	})
}

// Only the end of a long output is kept. Wherever the cut falls within a secret, no half of it is
// stored.
func TestNoHalfOfASecretIsStored(t *testing.T) {
	p, err := provider.OpenCommand(swarm.ProviderSpec{Name: "sh", Command: []string{"sh", "-c", "cat out; cat err >&2; exit 3"}}, provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// says has a file end with so many bytes after all but a few of the secret.
	says := func(file string, kept, cut int, with string) {
		text := strings.Repeat("x", 600) + canary + strings.Repeat(with, kept-(len(canary)-cut)-len("end")) + "end"
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, cut := range []int{1, 2, 7, len(canary) - 5} {
		for kept, with := range map[int]string{400: "y", 8 << 10: "\n"} { // the last words, and what is kept to find them in
			b := newTeam(t, "command", swarm.Approvals{})
			says("out", swarm.MaxOutput, cut, "z")
			says("err", kept, cut, with)
			b.secretive("coder", 1, func(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
				r.Dir = dir
				return p.Turn(ctx, r, live)
			})
			all := b.stored()
			if !strings.Contains(all, "exit status 3") || !strings.Contains(all, "zzzend") {
				t.Fatalf("the program did not do its part:\n%.2000s", all)
			}
			for i := 0; i+5 <= len(canary); i++ {
				if piece := canary[i : i+5]; strings.Contains(all, piece) {
					t.Fatalf("%d bytes cut off before %d: %s is stored", cut, kept, piece)
				}
			}
		}
	}
}
