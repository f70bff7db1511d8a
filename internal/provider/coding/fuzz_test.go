package coding

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// fuzzListener gives a listener arbitrary lines. It must not panic, must fail only with an error
// that says what is wrong, and must show only text that can be stored.
func fuzzListener(f *testing.F, kind string) {
	recordings, _ := filepath.Glob(streams(cmp.Or(both[kind], kind), "*.jsonl"))
	if len(recordings) == 0 {
		f.Fatal("there are no recordings")
	}
	for _, name := range recordings {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if len(line) < 4000 {
				f.Add(line)
			}
		}
		if len(data) < 20_000 {
			f.Add(data)
		}
	}
	a, err := open(swarm.ProviderSpec{Name: kind, Kind: kind}, provider.Options{Environ: []string{"PATH=/bin"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var shown []swarm.Delta
		turn := a.newTurn(provider.Request{Agent: "coder", Session: "s"}, func(d swarm.Delta) { shown = append(shown, d) }, false)
		defer turn.modelWait.Stop()
		l := process.Lines{Max: maxLine}
		if !l.Write(string(data), turn.hearLine) {
			t.Fatal("a line is too long")
		}
		if len(l.Rest) > 0 {
			turn.hearRest(l.Rest)
		}
		turn.flush()
		if turn.fatal != nil && swarm.KindOf(turn.fatal) != swarm.Protocol {
			t.Errorf("it ends with %v", turn.fatal)
		}
		if turn.fault != nil && (turn.fault.Kind == "" || turn.fault.Msg == "") {
			t.Errorf("it fails with %+v", turn.fault)
		}
		for _, d := range shown {
			if _, err := json.Marshal(d); err != nil {
				t.Errorf("%+v cannot be stored: %v", d, err)
			}
			const most = 3 * 2000
			if d.Tool != nil && (len(d.Tool.Input) > most || len(d.Tool.Output) > most) {
				t.Errorf("too much is shown of a tool: %d and %d bytes", len(d.Tool.Input), len(d.Tool.Output))
			}
		}
	})
}

func FuzzClaude(f *testing.F) { fuzzListener(f, "claude-code") }

func FuzzCodex(f *testing.F) { fuzzListener(f, "codex") }
