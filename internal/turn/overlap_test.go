package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/provider"
)

// A file that two concurrent turns may both have written gives a notice with both agents, since one
// may have overwritten the other. The files that an agent names are believed.
func TestTwoTurnsThatChangeTheSameFile(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: it takes a second or more")
	}
	for _, c := range []struct {
		what, kind   string
		a, b         string // the files that each writes, and names if its program does
		aSays, bSays string
		want         string
	}{
		{"programs, one file", "command", "same.txt", "same.txt", "", "", "same.txt"},
		{"agents that name it", "claude-code", "same.txt", "same.txt", "same.txt", "same.txt", "same.txt"},
		{"agents that name others", "claude-code", "a.txt", "b.txt", "a.txt", "b.txt", ""},
		{"an agent that names it, and one that names nothing", "claude-code", "same.txt", "same.txt", "same.txt", "", "same.txt"},
		{"models that name others", "openai", "a.txt", "b.txt", "a.txt", "b.txt", ""},
		{"models that name it", "openai", "same.txt", "same.txt", "same.txt", "same.txt", "same.txt"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newShop(t, c.kind, &swarm.Team{}, "file_write")
			begun, wait, over := make(chan bool), make(chan bool), make(chan error)
			say := func(file string, live func(swarm.Delta)) {
				switch {
				case file == "":
				case c.kind == "openai":
					in, _ := json.Marshal(map[string]string{"path": file, "content": "x"})
					live(swarm.Delta{Kind: swarm.DeltaTool, Tool: &swarm.ToolUse{ID: "1", Name: "file_write", Input: in}})
					live(swarm.Delta{Kind: swarm.DeltaToolDone, Tool: &swarm.ToolUse{ID: "1", Name: "file_write"}})
				default:
					live(swarm.Delta{Kind: swarm.DeltaFile, File: file})
				}
			}
			h := s.runner(func(_ context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
				if r.Agent == "a" {
					s.write(c.a, "of a\n")
					say(c.aSays, live)
					begun <- true
					<-wait
					return provider.Reply{}, nil
				}
				s.write(c.b, "of b\n")
				say(c.bSays, live)
				return provider.Reply{}, nil
			})
			go func() {
				_, err := h.Do(context.Background(), "root", ask("a", 1, 1))
				over <- err
			}()
			<-begun
			_, err := h.Do(t.Context(), "root", ask("b", 1, 1))
			s.check(err)
			close(wait)
			s.check(<-over)
			_, err = s.runner(s.writes("same.txt", "later\n", nil)).Do(t.Context(), "root", ask("b", 2, 1))
			s.check(err)
			var notices []string
			for _, e := range s.events(swarm.Notice) {
				n, err := swarm.Body[swarm.Reason](&e)
				s.check(err)
				notices = append(notices, n.Reason)
			}
			got := strings.Join(notices, "\n")
			want := ""
			switch {
			case c.want != "" && c.aSays != "" && c.bSays != "":
				want = "@b (b/1/1) and @a (a/1/1) worked at the same time, and both changed " + c.want + ": one may have overwritten the other's work"
			case c.want != "":
				want = "@b (b/1/1) and @a (a/1/1) worked at the same time in one folder, and nobody can tell who changed " + c.want + ": one may have overwritten the other's work"
			}
			if got != want {
				t.Errorf("it is told:\n%s\nwant\n%s", got, want)
			}
		})
	}
}
