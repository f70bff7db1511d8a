package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"swarm/internal/npmtest"
)

// TestRealMCPPage runs the first commands of docs/mcp.md with the real Claude Code.
func TestRealMCPPage(t *testing.T) {
	claude := npmtest.Path(t, npmtest.Claude, "claude")
	text, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```sh\n")
	block, _, _ := strings.Cut(rest, "```")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "swarm"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "swarm", "swarm.yaml"), []byte("tasks: {a: {prompt-string: hi}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", block+"swarm mcp uninstall claude\n")
	cmd.Dir = dir
	cmd.Env = append(npmtest.Env(t), "HOME="+dir, "SWARM_HOME="+filepath.Join(dir, "state"), "DISABLE_AUTOUPDATER=1",
		"PATH="+filepath.Dir(claude)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"claude mcp add --scope local swarm-drive -- ", "mcp --drive --key claude --budget usd=5", "claude can drive runs now, for this folder", "Connected", "claude does not know it any more, for this folder", "claude does not know it, for this folder"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
}

// TestRealClientsKnowTheServer: the real programs take our entry, twice, and give it up again.
func TestRealClientsKnowTheServer(t *testing.T) {
	for name, program := range map[string]string{"codex": npmtest.Codex, "gemini": npmtest.Gemini} {
		t.Run(name, func(t *testing.T) {
			path := npmtest.Path(t, program, name)
			home := t.TempDir()
			dir := filepath.Join(home, "project")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "swarm", append([]string{"mcp"}, args...)...)
				cmd.Dir = dir
				cmd.Env = append(npmtest.Env(t), "HOME="+home, "SWARM_HOME="+filepath.Join(dir, "state"),
					"PATH="+filepath.Dir(path)+string(filepath.ListSeparator)+filepath.Dir(npmtest.Path(t, npmtest.Node, "node"))+string(filepath.ListSeparator)+os.Getenv("PATH"))
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			config := func() string {
				file := map[string]string{"codex": filepath.Join(home, ".codex/config.toml"), "gemini": filepath.Join(dir, ".gemini/settings.json")}[name]
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			run("install", name, "--may-approve")
			first := config()
			run("install", name, "--may-approve")
			if again := config(); again != first || !strings.Contains(first, "swarm-drive") || !strings.Contains(first, "--may-approve") {
				t.Errorf("first\n%s\nthen\n%s", first, again)
			}
			run("uninstall", name)
			if left := config(); strings.Contains(left, "swarm-drive") {
				t.Error(left)
			}
			if out := run("uninstall", name); !strings.Contains(out, "does not know it, for") {
				t.Error(out)
			}
		})
	}
}

// The server of the plugin has a key and a budget of its own, beside the server of `swarm mcp install`.
func TestPluginHasABudget(t *testing.T) {
	text, err := os.ReadFile("../../plugin/.mcp.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	args := strings.Join(config.Servers[driveName].Args, " ")
	if args != "mcp --drive --key claude-plugin --budget ${SWARM_PLUGIN_BUDGET:-usd=5}" {
		t.Error(args)
	}
	d := newDriver(t, strings.Fields(strings.ReplaceAll(args, "${SWARM_PLUGIN_BUDGET:-usd=5}", "usd=5"))[2:]...)
	d.end(d.must("run_pipeline", nil)["run"].(string))
	if out, err := d.swarm("ls", "--json"); err != nil || !strings.Contains(out, `"key":"claude-plugin"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRealPluginIsValid: Claude Code itself checks the plugin and the marketplace of this repository.
func TestRealPluginIsValid(t *testing.T) {
	claude := npmtest.Path(t, npmtest.Claude, "claude")
	for _, path := range []string{"../../plugin", "../.."} {
		cmd := exec.CommandContext(t.Context(), claude, "plugin", "validate", "--strict", path)
		cmd.Env = append(npmtest.Env(t), "HOME="+t.TempDir(), "DISABLE_AUTOUPDATER=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Validation passed") {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
