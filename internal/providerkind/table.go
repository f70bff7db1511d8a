package providerkind

// The kinds that are built in.
const (
	Command    = "command"
	Script     = "script"
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Gemini     = "gemini"
	Opencode   = "opencode"
	ACP        = "acp"
	A2A        = "a2a"
	Anthropic  = "anthropic"
	OpenAI     = "openai"
	Desk       = "desk"
	Notify     = "notify"
)

// The APIs of OpenAI's servers.
const (
	Responses = "responses"
	Chat      = "chat"
)

// The keys of a provider that not every kind takes.
const (
	keyCommand     = "command"
	keyScript      = "script"
	keyBaseURL     = "base_url"
	keyAPI         = "api"
	keyModels      = "models"
	keyMode        = "mode"
	keyMaxTokens   = "max_tokens"
	keyTemperature = "temperature"
	keyEffort      = "effort"
	keyThinking    = "thinking"
	keyServiceTier = "service_tier"
	keyImages      = "images"
	keyExtra       = "extra"
	keyContext     = "context"
	keyEnv         = "env"
	keyHeaders     = "headers"
	keySandbox     = "sandbox"
)

var (
	programKeys = []string{keyCommand, keyModels, keyEnv, keySandbox}
	modelKeys   = []string{keyBaseURL, keyModels, keyMaxTokens, keyTemperature, keyEffort, keyServiceTier, keyImages, keyExtra, keyContext, keyEnv, keyHeaders}

	// The program of a coding agent decides which server it uses.
	ownServer = map[string]string{
		keyBaseURL: "leave it out: where its models are, its program is told by its own settings, or by a variable under env",
	}

	claudeLogin = Login{
		Folders: []string{".claude"},
		Obeyed: []string{
			".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md", ".claude/agents", ".claude/commands",
			".claude/hooks", ".claude/skills", ".claude/rules", ".claude/output-styles",
		},
	}
	codexLogin = Login{
		Folders: []string{".codex"},
		Obeyed:  []string{".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/rules", ".codex/skills"},
	}
	geminiLogin = Login{
		Folders: []string{".gemini"},
		Obeyed: []string{
			".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/extensions", ".gemini/commands", ".gemini/policies",
		},
	}
	opencodeLogin = Login{
		Folders: []string{".local/share/opencode", ".local/state/opencode", ".config/opencode"},
		Obeyed: []string{
			".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/opencode/AGENTS.md",
			".config/opencode/agent", ".config/opencode/command", ".config/opencode/plugin",
		},
	}

	openAIModels = map[string]string{"small": "gpt-6-luna", "medium": "gpt-6.1-terra", "large": "gpt-6.1-sol"}
)

// table has the kinds in the order in which lists show them.
var table = []*Kind{
	{
		Name: Command, Keys: programKeys, Needs: Need{Key: keyCommand, Example: "[program, argument]"},
		Tools: ByDoor, Commands: true, Files: ByProgram,
		Confined: Confined{Planning: "is held by nothing; a turn in which it writes outside of docs/ fails"},
	},
	{
		Name: Script, Keys: []string{keyScript, keyModels, keyEnv}, Needs: Need{Key: keyScript, Example: "FILE.yaml"},
		Tools: InProcess, ToolNames: OurNames, Files: ByTools, Plays: true,
	},
	{
		Name: ClaudeCode, Keys: programKeys, Instead: ownServer,
		Tools: ByDoor, ToolNames: ProgramNames, ToolSample: `Read, Write, "Bash(go test:*)"`, CommandTool: "Bash", CommandSample: "go test", Sessions: ProgramSessions, Files: ByAgent, Checked: Started,
		Confined: Confined{
			Always:   "changes files in its folders, and asks before it does what neither its tools list nor its own rules allow (these allow touch, mkdir and the like); it has no sandbox on unless your settings say so",
			Planning: "is held to docs/ by its own permissions, and runs no commands; rules of your settings that allow more stay in force",
		},
		Login: claudeLogin,
		Model: OwnModel, ReportsCost: true, Vendor: "anthropic",
		Models: map[string]string{"small": "haiku", "medium": "sonnet", "large": "opus"},
		Program: Program{
			"Claude Code",
			"claude",
			"@anthropic-ai/claude-code",
			"run `claude` and type /login, or set ANTHROPIC_API_KEY",
		},
		KeyVars: []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"},
	},
	{
		Name: Codex, Keys: programKeys, Instead: ownServer,
		Tools: ByDoor, ToolNames: ProgramNames, ToolPrefix: "mcp__", Sessions: ProgramSessions, Files: ByAgent, Checked: Started,
		Confined: Confined{
			Always:   "runs in its own sandbox (workspace-write); it asks a person before it does more, if its version can ask",
			KeyVar:   "CODEX_API_KEY",
			WithKey:  "runs in its own sandbox (workspace-write); with CODEX_API_KEY it cannot ask a person to do more",
			Planning: "is held to docs/ by its own sandbox",
		},
		Login: codexLogin,
		Model: OwnModel, Vendor: "openai", Models: openAIModels,
		Program: Program{"Codex", "codex", "@openai/codex", "run `codex login`, or set CODEX_API_KEY"},
		KeyVars: []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
	},
	{
		Name: Gemini, Keys: programKeys, Instead: ownServer,
		Tools: ByDoor, ToolNames: ProgramNames, ToolSample: "read, edit, execute", CommandTool: "execute", Sessions: ProgramSessions, Files: ByAgent, Checked: Started,
		Confined: Confined{
			Always:   "asks before it does what its tools do not list; it has no sandbox on unless your settings say so",
			Planning: "asks before it writes or runs anything, and is answered by the phase",
		},
		Login: geminiLogin,
		Model: OwnModel, Vendor: "gcp.gemini", Models: map[string]string{"small": "flash-lite", "medium": "flash", "large": "pro"},
		Program: Program{
			"Gemini CLI",
			"gemini",
			"@google/gemini-cli",
			"run `gemini` and sign in, or set GEMINI_API_KEY",
		},
		KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
	},
	{
		Name: Opencode, Keys: programKeys, Instead: ownServer,
		Tools: ByDoor, ToolNames: ProgramNames, ToolSample: `read, edit, "bash(go test*)"`, Sessions: ProgramSessions, Files: ByAgent, Checked: Started,
		Confined: Confined{
			Always:   "has no sandbox: it does what its own settings do not forbid",
			Planning: "is held to docs/ by its own permissions, and runs no commands; rules of your settings that allow some paths stay in force",
		},
		Model: OwnModel, ReportsCost: true,
		Login: opencodeLogin,
		Program: Program{"opencode", "opencode", "opencode-ai",
			"run `opencode auth login`, or set the variable that holds your key and name it in `env` of the provider"},
		KeyVars: []string{"OPENCODE_API_KEY"},
	},
	{
		Name: ACP, Keys: append([]string{keyMode}, programKeys...), Instead: ownServer,
		Needs: Need{
			Key:     keyCommand,
			Example: "[gemini, --acp]",
			About:   "which program speaks the Agent Client Protocol",
		},
		Tools: ByDoor, ToolNames: ProgramNames, ToolSample: "read, edit, execute", Sessions: ProgramSessions, Files: ByAgent, Checked: Started,
		Confined: Confined{
			Always:   "is held by nothing but what it asks for by itself",
			Planning: "is answered by the phase when it asks, and is held by nothing else",
		},
		Model: OwnModel,
	},
	{
		Name: A2A, Keys: []string{keyBaseURL, keyHeaders},
		Needs: Need{
			Key:     keyBaseURL,
			Example: "http://127.0.0.1:7777/a2a/coder",
			About:   "where the agent's card is, or what that begins with",
		},
		Instead: map[string]string{
			keyEnv:    "leave it out; for a key write headers: {Authorization: Bearer $NAME}",
			keyModels: "leave it out: the agent's owner chooses its model",
		},
		Tools: NoTools, Sessions: ProgramSessions, Files: NoFiles, Checked: Asked,
	},
	{
		Name: Anthropic, Keys: append([]string{keyThinking}, modelKeys...), Tools: InProcess, ToolNames: OurNames, Files: ByTools,
		Sessions: LogSessions, Model: NeedModel, ListPrices: true,
		Models: map[string]string{
			"small":  "claude-haiku-5-5",
			"medium": "claude-sonnet-5-5",
			"large":  "claude-opus-5-5",
		},
		BaseURL: "https://api.anthropic.com", KeyVars: []string{"ANTHROPIC_API_KEY"},
	},
	{
		Name: OpenAI, Keys: append([]string{keyAPI}, modelKeys...), Tools: InProcess, ToolNames: OurNames, Files: ByTools,
		Instead:  map[string]string{keyThinking: "write effort: low, or the server's own fields for it under extra"},
		Sessions: LogSessions, Model: NeedModel, ListPrices: true, Models: openAIModels,
		BaseURL: "https://api.openai.com/v1", KeyVars: []string{"OPENAI_API_KEY"},
	},
	{Name: Desk, Tools: NoTools, Files: NoFiles, Outside: true},
	{Name: Notify, Tools: NoTools, Files: NoFiles, Person: true},
}
