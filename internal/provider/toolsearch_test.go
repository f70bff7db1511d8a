package provider

import (
	"slices"
	"strings"
	"testing"
)

func TestShowAllTools(t *testing.T) {
	for command, want := range map[string]string{
		"claude":                    "ENABLE_TOOL_SEARCH=false",
		"claude-agent-acp":          "ENABLE_TOOL_SEARCH=false",
		"/opt/bin/claude-agent-acp": "ENABLE_TOOL_SEARCH=false",
		"npx -y @agentclientprotocol/claude-agent-acp@0.99.1": "ENABLE_TOOL_SEARCH=false",
		"node node_modules/.bin/claude-code-acp":              "ENABLE_TOOL_SEARCH=false",
		"qwen --acp":                                          "--exclude-tools=tool_search QWEN_CODE_LEGACY_MCP_BLOCKING=1",
		"npx @qwen-code/qwen-code --acp":                      "--exclude-tools=tool_search QWEN_CODE_LEGACY_MCP_BLOCKING=1",
		"qwen --experimental-acp":                             "QWEN_CODE_LEGACY_MCP_BLOCKING=1",
		"npx @qwen-code/qwen-code@latest":                     "--exclude-tools=tool_search QWEN_CODE_LEGACY_MCP_BLOCKING=1",
		"gemini --acp":                                        "",
		"my-claude":                                           "",
		"codex-acp":                                           "",
		"my-agent --model qwen":                               "",
	} {
		args, env := ShowAllTools(strings.Fields(command)...)
		for k, v := range env {
			args = append(slices.Clone(args), k+"="+v)
		}
		if got := strings.Join(args, " "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
