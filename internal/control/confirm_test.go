package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// A confirmation is for one file, one key and one destination, and for one content of a file that an
// agent has changed.
func TestAConfirmationIsForWhatWasAsked(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "a key")
	t.Setenv("ANTHROPIC_API_KEY", "another key")
	dir := t.TempDir()
	h, err := statedir.At(filepath.Join(dir, "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return absolute(dir, path)
	}
	uses := func(file, address, key string) *fileUse {
		spec := swarm.ProviderSpec{Name: "p", Kind: "openai", BaseURL: address, Env: map[string]string{"OPENAI_API_KEY": "$" + key}}
		return &fileUse{plan: &swarm.Plan{Providers: []swarm.ProviderSpec{spec}}, dir: dir, file: file, reads: []string{file}}
	}
	asked := 0
	yes := func(Confirmation) bool { asked++; return true }
	changed := func(path, text string) {
		t.Helper()
		if err := h.NoteChange(statedir.Change{Path: path, Hash: swarm.HashOf([]byte(text)), Run: "r", Turn: "a/1/1", Agent: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	mine := write("mine.yaml", "mine")
	write("theirs.yaml", "theirs")
	for _, c := range []struct {
		name      string
		use       *fileUse
		before    func()
		questions int
	}{
		{"the vendor's own key", uses("mine.yaml", "", "OPENAI_API_KEY"), nil, 0},
		{"a key of another vendor", uses("mine.yaml", "", "ANTHROPIC_API_KEY"), nil, 1},
		{"another address", uses("mine.yaml", "http://127.0.0.1:1", "OPENAI_API_KEY"), nil, 1},
		{"one more address", uses("mine.yaml", "http://127.0.0.1:2", "OPENAI_API_KEY"), nil, 1},
		{"one more key", uses("mine.yaml", "http://127.0.0.1:1", "ANTHROPIC_API_KEY"), nil, 1},
		{"another file", uses("theirs.yaml", "http://127.0.0.1:1", "OPENAI_API_KEY"), nil, 1},
		{"a file that an agent has changed", uses("mine.yaml", "", "OPENAI_API_KEY"), func() { changed(mine, "mine") }, 1},
		{"a file that a person has changed since", uses("mine.yaml", "", "OPENAI_API_KEY"), func() { write("mine.yaml", "by hand") }, 0},
		{"a file that an agent has changed again", uses("mine.yaml", "", "OPENAI_API_KEY"), func() { changed(mine, "by hand") }, 1},
	} {
		if c.before != nil {
			c.before()
		}
		err := c.use.confirm(h, nil)
		if open := swarm.KindOf(err) == swarm.Unconfirmed; open != (c.questions > 0) || !open && err != nil {
			t.Errorf("%s: without a person: %v", c.name, err)
		}
		err = c.use.confirm(h, func(Confirmation) bool { return false })
		if open := swarm.KindOf(err) == swarm.Unconfirmed; open != (c.questions > 0) || !open && err != nil {
			t.Errorf("%s: after a no: %v", c.name, err)
		}
		asked = 0
		if err := c.use.confirm(h, yes); err != nil || asked != c.questions {
			t.Errorf("%s: %d questions, %v", c.name, asked, err)
		}
		if err := c.use.confirm(h, nil); err != nil {
			t.Errorf("%s: it is asked again: %v", c.name, err)
		}
	}
}

// A person confirms the store of a file, whatever passwords this process knows of: a password file may
// have one for every server, and the server gets all that is said. A store of the person's own
// environment needs no question.
func TestTheStoreOfAFileIsConfirmed(t *testing.T) {
	t.Setenv(storePassword, "")
	t.Setenv(StoreVariable, "")
	dir := t.TempDir()
	h, err := statedir.At(filepath.Join(dir, "state"), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	const mine, other = "postgres://me@127.0.0.1:1/x", "postgres://me@127.0.0.1:2/x"
	open := func(address string) (Confirmation, bool) {
		t.Helper()
		c, needed := StoreConfirmation(h, dir, "swarm.yaml", []string{"store=" + address}, address, compose.Place{})
		return c, needed && c.Open()
	}
	c, asks := open(mine)
	if !asks {
		t.Fatal("the store of a file is used without a question")
	}
	if hint := swarm.HintOf(c.Refusal()); !strings.Contains(hint, "--set 'store="+mine+"'") {
		t.Errorf("the hint confirms another store: %s", hint)
	}
	if err := Confirm(h, c); err != nil {
		t.Fatal(err)
	}
	if _, asks := open(mine); asks {
		t.Error("a confirmed store is asked about again")
	}
	if _, asks := open(other); !asks {
		t.Error("another store is not asked about")
	}
	t.Setenv(StoreVariable, other)
	if _, asks := open(other); asks {
		t.Error("the store of the environment is asked about")
	}
}
