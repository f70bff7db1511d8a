package coding

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"swarm"
	"swarm/internal/process"
	"swarm/internal/provider"
)

// request makes a turn with a run id of this test's own, so that its processes can be told from all
// others.
func request(t testing.TB, prompt string) provider.Request {
	run := swarm.RunID(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) + "-" + strconv.Itoa(os.Getpid()))
	return provider.Request{Run: run, Turn: "code/2/1", Task: "code", Agent: "coder", Iteration: 2, Attempt: 1, Prompt: prompt, Dir: t.TempDir()}
}

func wantKind(t testing.TB, err error, kind swarm.ErrorKind) *swarm.Error {
	t.Helper()
	var e *swarm.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v has the kind %q, want %q", err, swarm.KindOf(err), kind)
	}
	return e
}

// wantNobody fails if a process of the run is left.
func wantNobody(t testing.TB, run swarm.RunID) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("only Linux shows all environments: not checked")
		return
	}
	if left := process.OfRun(run); len(left) > 0 {
		t.Errorf("%d processes are left of the run %s: %v", len(left), run, left)
	}
}

// A recorder keeps the deltas of a turn.
type recorder struct {
	mu     sync.Mutex
	deltas []swarm.Delta
	heard  func(swarm.Delta) // is told of each, when set
}

func (r *recorder) live(d swarm.Delta) {
	r.mu.Lock()
	r.deltas = append(r.deltas, d)
	r.mu.Unlock()
	if r.heard != nil {
		r.heard(d)
	}
}

func (r *recorder) of(kind swarm.DeltaKind) (list []swarm.Delta) {
	for _, d := range r.deltas {
		if d.Kind == kind {
			list = append(list, d)
		}
	}
	return list
}

func (r *recorder) said(kind swarm.DeltaKind) string {
	var b strings.Builder
	for _, d := range r.of(kind) {
		b.WriteString(d.Text)
	}
	return b.String()
}

// wantNoSecret looks for keys and tokens in everything that came out of a turn.
func (d *desk) wantNoSecret(reply provider.Reply, err error) {
	d.Helper()
	told, _ := json.Marshal([]any{d.deltas, string(reply.Output), string(reply.Stderr), reply.Session})
	text := string(told)
	var e *swarm.Error
	if errors.As(err, &e) {
		text += e.Error() + e.Hint
	}
	for _, s := range []string{modelKey, doorToken} {
		if strings.Contains(text, s[:12]) { // half of it is too much
			d.Errorf("the secret %s came out: %s", s, text)
		}
	}
}
