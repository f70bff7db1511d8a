//go:build unix

package examples_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestDistVersion: a package has the number of its tag. A commit after a tag is newer than the tag, and a
// commit without a tag is older than every release, also if its hash has digits only.
func TestDistVersion(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil || runtime.GOOS != "linux" {
		t.Skip("dpkg-deb is not there")
	}
	compiler := filepath.Join(t.TempDir(), "go")
	script := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho program > \"$2\"\n"
	if err := os.WriteFile(compiler, []byte(script), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	for version, want := range map[string][2]string{
		"v0.1.0":             {"0.1.0", "0.1.0"},
		"v0.1.0-3-g0123abc":  {"0.1.0-3-g0123abc", "0.1.0+3+g0123abc"},
		"0123abc":            {"0.0.0-0123abc", "0.0.0+0123abc"},
		"1234567":            {"0.0.0-1234567", "0.0.0+1234567"},
		"01234567-dirty":     {"0.0.0-01234567-dirty", "0.0.0+01234567+dirty"},
		"v0.2.0-rc.1-dirty":  {"0.2.0-rc.1-dirty", "0.2.0+rc.1+dirty"},
		"deadbee.f1.2-dirty": {"0.0.0-deadbee.f1.2-dirty", "0.0.0+deadbee.f1.2+dirty"},
	} {
		dir := t.TempDir()
		cmd := exec.Command("sh", "scripts/dist.sh", dir)
		cmd.Dir = ".."
		cmd.Env = append(os.Environ(), "GO="+compiler, "VERSION="+version, "COMMIT=0123abc", "DATE=2026-11-16T20:00:00Z", "PLATFORMS=linux/amd64")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", version, err, out)
		}
		name := filepath.Join(dir, "swarm-"+want[0])
		if got := strings.TrimSpace(says(t, "dpkg-deb", "--field", name+"-linux-amd64.deb", "Version")); got != want[1] {
			t.Errorf("%s: the version of the deb is %s, want %s", version, got, want[1])
		}
		folder := t.TempDir()
		unpack(t, name+"-npm.tgz", folder)
		about, err := os.ReadFile(filepath.Join(folder, "package", "package.json"))
		if err != nil || !strings.Contains(string(about), `"version": "`+want[0]+`"`) {
			t.Errorf("%s: the npm package is %s, %v", version, about, err)
		}
	}
	says(t, "dpkg", "--compare-versions", "0.1.0+3+g0123abc", "gt", "0.1.0")
	says(t, "dpkg", "--compare-versions", "0.0.0+1234567", "lt", "0.1.0")
}

// TestNpmSignals: a terminal sends Ctrl-C to the program itself, so the npm package does not send it once
// more: two would kill a run. A SIGTERM is passed on, and the exit code comes back.
func TestNpmSignals(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not there")
	}
	wrapper, err := os.ReadFile("../packaging/npm/bin/swarm.js")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, runtime.GOOS+"-"+runtime.GOARCH, "swarm")
	for path, text := range map[string]string{
		filepath.Join(dir, "swarm.js"): string(wrapper),
		program: `#!/usr/bin/env node
process.on('SIGINT', () => console.log('int'))
process.on('SIGHUP', () => console.log('hup'))
process.on('SIGTERM', () => { console.log('term'); process.exit(7) })
process.stdin.on('end', () => process.exit(8)).resume()
console.log('ready')
`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	cmd := exec.Command("node", filepath.Join(dir, "swarm.js"))
	in, err := cmd.StdinPipe() // it stays open until the end
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if said = append(said, lines.Text()); lines.Text() == "ready" {
			for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM} {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 || strings.Join(said, " ") != "ready term" {
		t.Errorf("it said %q and ended with %v", said, err)
	}
}
