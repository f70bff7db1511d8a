package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// An agent that runs as the same user as its driver cannot read the keys that were kept from it,
// however the run was started, and does everything else. Root could, so root starts this as another
// user.
func TestAgentsCannotReadTheirDriversKeys(t *testing.T) {
	t.Parallel()
	p := newPlaceOfNobody(t)
	without := p.env
	p.env = append(slices.Clone(p.env), "ANTHROPIC_API_KEY=canary-model", "OPENAI_API_KEY=canary-model-2", "SWARM_TOKEN=canary-server",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=canary-collector")
	// The names of files must not have the word in them that is searched for.
	p.write("spy.sh", `
echo canary- > word
for file in environ mem maps auxv fd/0 cwd/swarm; do
	cat /proc/$SWARM_DRIVER/$file > stolen 2> said && [ -s stolen ] && echo "read: $file"
done
grep -lf word /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2> said | sed 's/^/holds a key: /'
swarm publish facts "from $SWARM_AGENT" 2>&1 | sed 's/ as .*//'
sh -c 'setsid sleep 1000 > said 2>&1 &'
echo "uid $(id -u)"
`)
	p.write("swarm/swarm.yaml", `
provider: sh
providers: {sh: {kind: command, command: [sh, spy.sh]}}
agents: {spy: {}}
tasks: {a: {agent: spy, prompt-string: x}}
`)
	uid := os.Getuid()
	if p.as != nil {
		uid = int(p.as.Uid)
	}
	want := "published on facts\nuid " + strconv.Itoa(uid) + "\n"
	check := func(how string) {
		t.Helper()
		if out, _ := p.runs(0, "out", "@last", "a"); out != want {
			t.Errorf("%s: the agent says %q, want %q", how, out, want)
		}
		if left := p.inside(); len(left) > 0 {
			t.Errorf("%s: left behind: %v", how, left)
		}
	}
	p.runs(0, "up")
	check("up")
	browsing := append(slices.Clone(p.env), "BROWSER=true")
	keys := p.env
	p.env = browsing
	p.runs(0, "up", "--open")
	p.env = keys
	check("up --open")
	p.runs(0, "up", "-d")
	p.env = without // a program can be inspected between its start and its first instruction
	p.runs(0, "wait", "@last")
	p.env = keys
	check("up -d")
	if out, errs := p.runs(0, "run", "@spy hello"); !strings.Contains(strings.ReplaceAll(out, "spy | ", ""), want) {
		t.Errorf("run: the agent says %q%s", out, errs)
	}
	if out, errs := p.runs(0, "doctor"); !strings.Contains(out, "✓  keys ") || !strings.Contains(out, "✓  agents' tokens ") {
		t.Errorf("doctor says %q%s", out, errs)
	}
}

// newPlaceOfNobody makes a place whose programs run as a user who is not root.
func newPlaceOfNobody(t *testing.T) *place {
	t.Helper()
	p := &place{T: t}
	if os.Getuid() != 0 {
		p.dir = t.TempDir()
		p.home = filepath.Join(p.dir, "home")
		return p
	}
	var err error
	p.dir, err = os.MkdirTemp("", "nobody") //nolint:usetesting // folders of t.TempDir are within one of root's
	p.check(err)
	t.Cleanup(func() { _ = os.RemoveAll(p.dir) })
	p.home = filepath.Join(p.dir, "home")
	p.as = &syscall.Credential{Uid: 65534, Gid: 65534}
	self, err := os.Executable()
	p.check(err)
	program, err := os.ReadFile(self)
	p.check(err)
	p.write("bin/swarm", string(program))
	p.check(os.Chmod(filepath.Join(p.dir, "bin", "swarm"), 0o755))
	p.check(os.Chown(p.dir, 65534, 65534))
	return p
}

// write writes a file that every user may read.
func (p *place) write(name, text string) {
	p.Helper()
	file := filepath.Join(p.dir, name)
	p.check(os.MkdirAll(filepath.Dir(file), 0o755))
	p.check(os.WriteFile(file, []byte(text), 0o644))
}
