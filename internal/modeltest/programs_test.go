package modeltest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A program is a coding agent, and how to start it so that it talks to a model and to tools of ours
// and leaves the user's files alone.
type program struct {
	name, spec, bin string
	key             string         // the variable that holds the model's key
	good            *regexp.Regexp // what a stream says at a good end, and only then
	slow            bool
	args            func(d *desk) []string
	env             func(d *desk) []string
}

var programs = []program{
	{name: "claude", good: regexp.MustCompile(`"is_error":false`), spec: "@anthropic-ai/claude-code@2.1.325", bin: "claude", key: "ANTHROPIC_API_KEY", args: claudeArgs, env: claudeEnv},
	{name: "codex", good: regexp.MustCompile(`"turn.completed"`), spec: "@openai/codex@0.166.0", bin: "codex", key: "OPENAI_API_KEY", args: codexArgs, env: codexEnv},
	{name: "gemini", slow: true, good: regexp.MustCompile(`"type":"result",[^\n]*"status":"success"`), spec: "@google/gemini-cli@0.61.0", bin: "gemini", key: "GEMINI_API_KEY", args: geminiArgs, env: geminiEnv},
	{name: "opencode", slow: true, good: regexp.MustCompile(`"reason":"stop"`), spec: "opencode-ai@1.18.33", bin: "opencode", key: "LOCAL_API_KEY", args: opencodeArgs, env: opencodeEnv},
}

func claudeArgs(d *desk) []string {
	config := d.file("mcp.json", fmt.Sprintf(`{"mcpServers": {"swarm": {"type": "http", "url": %q, "headers": {"Authorization": "Bearer ${SWARM_AGENT_TOKEN}"}}}}`, d.tools))
	args := []string{"-p", "--output-format", "stream-json", "--verbose", "--mcp-config", config, "--strict-mcp-config"}
	if !d.denied {
		args = append(args, "--allowedTools", "mcp__swarm")
	}
	if d.session != "" {
		args = append(args, "--resume", d.session)
	}
	return args
}

func claudeEnv(d *desk) []string {
	return []string{"ANTHROPIC_BASE_URL=" + d.server.URL, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
		"ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_MAX_RETRIES=1"}
}

func codexArgs(d *desk) []string {
	args := []string{"exec"}
	if d.session != "" {
		args = append(args, "resume")
	}
	args = append(args, "--json", "--skip-git-repo-check")
	approval := "approve"
	if d.denied {
		approval = "prompt" // no person can be asked
	}
	for _, setting := range []string{
		"model=gpt-5.4", "model_provider=local", "approval_policy=never",
		"model_providers.local.name=local", "model_providers.local.wire_api=responses", "model_providers.local.env_key=OPENAI_API_KEY",
		"model_providers.local.base_url=" + d.server.URL + "/v1", "model_providers.local.request_max_retries=1", "model_providers.local.stream_max_retries=1",
		"mcp_servers.swarm.url=" + d.tools, "mcp_servers.swarm.bearer_token_env_var=SWARM_AGENT_TOKEN", "mcp_servers.swarm.default_tools_approval_mode=" + approval,
	} {
		args = append(args, "-c", setting)
	}
	if d.session != "" {
		args = append(args, d.session)
	}
	return append(args, "-")
}

func codexEnv(d *desk) []string {
	home := filepath.Join(d.home, ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		d.Fatal(err)
	}
	return []string{"CODEX_HOME=" + home}
}

func geminiArgs(d *desk) []string {
	args := []string{"--output-format", "stream-json", "--skip-trust", "--model", "gemini-2.5-flash"}
	if d.session != "" {
		args = append(args, "--resume", d.session)
	}
	return args
}

// geminiEnv gives it a home of its own, because it accepts a file of system settings only from
// root.
func geminiEnv(d *desk) []string {
	d.file(".gemini/settings.json", fmt.Sprintf(`{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false},
		"general": {"enableAutoUpdate": false, "maxAttempts": 2}, "mcpServers": {"swarm": {"httpUrl": %q, "trust": %t, "headers": {"Authorization": "Bearer $SWARM_AGENT_TOKEN"}}}}`,
		d.tools, !d.denied))
	return []string{"GEMINI_CLI_HOME=" + d.home, "GOOGLE_GEMINI_BASE_URL=" + d.server.URL}
}

func opencodeArgs(d *desk) []string {
	args := []string{"run", "--format", "json"}
	if d.session != "" {
		args = append(args, "--session", d.session)
	}
	return args
}

func opencodeEnv(d *desk) []string {
	permission := "allow"
	if d.denied {
		permission = "ask" // no person can be asked
	}
	return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_CONFIG_CONTENT=" + fmt.Sprintf(`{"autoupdate": false, "share": "disabled", "model": "local/m",
		"permission": {"swarm_*": %q},
		"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "%s/v1", "apiKey": "{env:LOCAL_API_KEY}"},
			"models": {"m": {"tool_call": true, "limit": {"context": 100000, "output": 8000}, "cost": {"input": 1, "output": 10, "cache_read": 0.1}}}}},
		"mcp": {"swarm": {"type": "remote", "url": %q, "oauth": false, "headers": {"Authorization": "Bearer {env:SWARM_AGENT_TOKEN}"}}}}`,
		permission, d.server.URL, d.tools)}
}

func eachProgram(t *testing.T, test func(t *testing.T, p program)) {
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) { t.Parallel(); test(t, p) })
	}
}
