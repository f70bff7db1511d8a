package provider

import (
	"path"
	"slices"
	"strings"
)

// Some programs hide the tools of MCP servers behind a search tool, because there may be hundreds.
// Ours are few, and a model that does not see them does not know that it has teammates. So the
// search is switched off, by a program's own means for that.
var toolSearches = []struct {
	programs []string
	args     []string
	unless   string // a word of the command line with which the program does not know args
	env      map[string]string
}{
	{
		programs: []string{"claude", "claude-agent-acp", "claude-code-acp"},
		env:      map[string]string{"ENABLE_TOOL_SEARCH": "false"},
	},
	{
		programs: []string{"qwen", "qwen-code"},
		args:     []string{"--exclude-tools=tool_search"},
		unless:   "--experimental-acp", // of versions that have no such search, and refuse unknown arguments
		// Else it asks its model first, and our server for its tools meanwhile.
		env: map[string]string{"QWEN_CODE_LEGACY_MCP_BLOCKING": "1"},
	},
}

// ShowAllTools returns the arguments and variables with which the program of a command line shows
// its model all tools at once. The program is the first word, or a path or a package after it,
// because programs are also started by node or npx.
func ShowAllTools(command ...string) (args []string, env map[string]string) {
	for i, word := range command {
		if i > 0 && !strings.Contains(word, "/") {
			continue
		}
		name := strings.TrimSuffix(path.Base(word), ".js")
		if at := strings.LastIndexByte(name, '@'); at > 0 {
			name = name[:at]
		}
		for _, s := range toolSearches {
			for _, program := range s.programs {
				switch {
				case name != program:
				case s.unless != "" && slices.Contains(command, s.unless):
					return nil, s.env
				default:
					return s.args, s.env
				}
			}
		}
	}
	return nil, nil
}
