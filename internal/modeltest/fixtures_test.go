package modeltest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// keep stores what a program printed with the recorded streams: SWARM_TEST_AGENTS=1
// SWARM_RECORD_STREAMS=1 go test -run TestReal. Values that differ between machines or days are
// replaced.
func (d *desk) keep(name string, o outcome) {
	d.Helper()
	all := o.stdout + o.stderr
	for _, secret := range []string{modelKey, agentToken} {
		if strings.Contains(all, secret) {
			d.Errorf("the program says %s: %s", secret, all)
		}
	}
	if os.Getenv("SWARM_RECORD_STREAMS") == "" {
		return
	}
	folder := filepath.Join("testdata", "streams", d.program.name)
	scrub := d.scrubber()
	err := errors.Join(os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, name+".jsonl"), []byte(scrub(o.stdout)), 0o644),
		os.WriteFile(filepath.Join(folder, name+".stderr"), []byte(scrub(o.stderr)), 0o644),
		os.WriteFile(filepath.Join(folder, name+".exit"), []byte(o.exit+"\n"), 0o644))
	if err != nil {
		d.Fatal(err)
	}
}

// scrubber returns a function that keeps equal values equal: the first id it meets is 1, wherever
// it stands.
func (d *desk) scrubber() func(string) string {
	installed := strings.TrimSuffix(d.path, filepath.Join("node_modules", ".bin", d.program.bin))
	places := strings.NewReplacer(installed, "/opt/agent/", d.home, "/home/user", d.dir, "/home/user/project",
		strings.ReplaceAll(d.home, "/", "-"), "-home-user", strings.ReplaceAll(d.dir, "/", "-"), "-home-user-project",
		strings.TrimPrefix(d.server.URL, "http://"), "127.0.0.1:8001", strings.TrimSuffix(strings.TrimPrefix(d.tools, "http://"), "/mcp"), "127.0.0.1:8002")
	number := func(form string) func(string) string {
		seen := map[string]int{}
		return func(id string) string {
			if seen[id] == 0 {
				seen[id] = len(seen) + 1
			}
			return fmt.Sprintf(form, seen[id])
		}
	}
	rules := []struct {
		form *regexp.Regexp
		with func(string) string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), number("00000000-0000-4000-8000-%012d")},
		{regexp.MustCompile(`call_[A-Z2-7]{26}`), number("call_%d")},
		{regexp.MustCompile(`msg_[A-Z2-7]{26}`), number("msg_%d")},
		{regexp.MustCompile(`ses_[0-9A-Za-z]{20,}`), number("ses_%026d")},
		{regexp.MustCompile(`prt_[0-9A-Za-z]{20,}`), number("prt_%026d")},
		{regexp.MustCompile(`msg_[0-9a-f]{12}[0-9A-Za-z]{14}`), number("msg_%026d")},
		{regexp.MustCompile(`cc-socks/[0-9]+`), func(string) string { return "cc-socks/1" }},
		{regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}[:-][0-9]{2}[:-][0-9]{2}[.-][0-9]{3,}Z`), func(string) string { return "2026-01-01T00:00:00.000Z" }},
		{regexp.MustCompile(`[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} 20[0-9]{2} [0-9:]{8} GMT`), func(string) string { return "Thu, 01 Jan 2026 00:00:00 GMT" }},
		{regexp.MustCompile(`\b1[78][0-9]{11}\b`), func(string) string { return "1767225600000" }},
		{regexp.MustCompile(`"[a-z_]+_ms":[0-9.]+`), func(s string) string { return s[:strings.Index(s, ":")] + ":100" }},
	}
	return func(s string) string {
		s = places.Replace(s)
		for _, r := range rules {
			s = r.form.ReplaceAllStringFunc(s, r.with)
		}
		return s
	}
}
