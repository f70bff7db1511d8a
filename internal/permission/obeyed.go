package permission

import (
	"strings"
	"unicode"
)

// What executes or obeys a file, in words that stand before "it".
const (
	byGit    = "git runs"
	bySwarm  = "swarm obeys"
	byAgents = "coding agents obey"
	byShells = "shells and editors run"
)

// obeyed are the files and folders that programs execute or obey without being asked to, wherever
// they lie in a project. An agent that writes one of them gives commands, or instructions, to a
// program that has more rights than the agent itself. A folder covers everything in it.
//
// Ordinary source is not in the list: a Makefile, a test or a CI workflow runs when a person or an
// `expect` runs it, and writing it is what agents are for.
var obeyed = []struct{ path, by string }{
	{".git", byGit},
	{".husky", byGit},
	{".pre-commit-config.yaml", byGit},
	{"lefthook.yml", byGit},
	{".lefthook.yml", byGit},
	{"lefthook.yaml", byGit},
	{".lefthook.yaml", byGit},
	{".gitconfig", byGit},
	{".config/git", byGit},

	{"swarm.yaml", bySwarm},
	{"swarm.yml", bySwarm},
	{"swarm/prompts", bySwarm},

	{".claude", byAgents},
	{".claude.json", byAgents},
	{".mcp.json", byAgents},
	{"CLAUDE.md", byAgents},
	{"CLAUDE.local.md", byAgents},
	{".codex", byAgents},
	{".agents", byAgents},
	{"AGENTS.md", byAgents},
	{"AGENTS.override.md", byAgents},
	{"AGENT.md", byAgents},
	{".gemini", byAgents},
	{"GEMINI.md", byAgents},
	{".opencode", byAgents},
	{"opencode.json", byAgents},
	{"opencode.jsonc", byAgents},
	{".cursor", byAgents},
	{".cursorrules", byAgents},
	{".windsurf", byAgents},
	{".windsurfrules", byAgents},
	{".clinerules", byAgents},
	{".roo", byAgents},
	{".roorules", byAgents},
	{".kiro", byAgents},
	{".qwen", byAgents},
	{"QWEN.md", byAgents},
	{".goosehints", byAgents},
	{".aider.conf.yml", byAgents},
	{".continue", byAgents},
	{".junie", byAgents},
	{".claude-plugin", byAgents},
	{".roomodes", byAgents},
	{".trae", byAgents},
	{".augment", byAgents},
	{".augment-guidelines", byAgents},
	{".amazonq", byAgents},
	{".openhands", byAgents},
	{".factory", byAgents},
	{".agent", byAgents},
	{".crush.json", byAgents},
	{"crush.json", byAgents},
	{"CRUSH.md", byAgents},
	{"WARP.md", byAgents},
	{".rules", byAgents},
	{".github/copilot-instructions.md", byAgents},
	{".github/instructions", byAgents},
	{".github/agents", byAgents},
	{".github/prompts", byAgents},
	{".github/chatmodes", byAgents},
	{".github/hooks", byAgents},

	{".vscode", byShells},
	{".zed", byShells},
	{".idea", byShells},
	{".devcontainer", byShells},
	{".devcontainer.json", byShells},
	{".envrc", byShells},
	{".fleet", byShells},
	{".theia", byShells},
	{".nova", byShells},
	{".exrc", byShells},
	{".nvimrc", byShells},
	{".nvim.lua", byShells},
	{".dir-locals.el", byShells},
	{".gdbinit", byShells},
	{"mise.toml", byShells},
	{".mise.toml", byShells},
	{".mise", byShells},

	// The home folder may be an agent's root.
	{".profile", byShells},
	{".bashrc", byShells},
	{".bash_profile", byShells},
	{".bash_login", byShells},
	{".bash_logout", byShells},
	{".bash_aliases", byShells},
	{".zshrc", byShells},
	{".zshenv", byShells},
	{".zprofile", byShells},
	{".zlogin", byShells},
	{".zlogout", byShells},
	{".kshrc", byShells},
	{".cshrc", byShells},
	{".tcshrc", byShells},
	{".login", byShells},
	{".config/fish", byShells},
	{".xprofile", byShells},
	{".xinitrc", byShells},
	{".xsession", byShells},
	{".config/autostart", byShells},
	{".config/systemd", byShells},
	{".local/bin", byShells},
	{".ssh", byShells},
	{".tmux.conf", byShells},
	{".vimrc", byShells},
	{".vim", byShells},
	{".config/nvim", byShells},
	{".emacs", byShells},
	{".emacs.d", byShells},
}

// A Guard knows which files of a run's project are executed or obeyed.
type Guard struct {
	Dir   string   // the run's folder; absolute, without links
	Paths []string // what this run executes or obeys, files and folders; absolute
}

// Find finds what is guarded on the way to an absolute path below an agent's root. It returns the
// path up to that file or folder, and what obeys it: "" if nothing on the way is guarded.
func (g Guard) Find(root, path string) (upto, by string) {
	for _, guarded := range g.Paths {
		if Within(guarded, path) {
			return guarded, bySwarm
		}
	}
	base := root
	if Within(g.Dir, root) { // a root inside .claude is no way around the list
		base = g.Dir
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(base, "/")+"/")
	if !ok {
		return "", ""
	}
	if upto, by = Obeyed(rest); by != "" {
		upto = strings.TrimSuffix(base, "/") + "/" + upto
	}
	return upto, by
}

// Obeyed finds the name of the list in a slash-separated path. It returns the path up to that name,
// and what obeys it: "" if there is none.
func Obeyed(path string) (upto, by string) {
	parts := strings.Split(path, "/")
	for i := range parts {
		for _, o := range obeyed {
			n := strings.Count(o.path, "/") + 1
			if i+n <= len(parts) && samePath(strings.Join(parts[i:i+n], "/"), o.path) {
				return strings.Join(parts[:i+n], "/"), o.by
			}
		}
	}
	return "", ""
}

// InGit reports whether a guarded path is a repository's own folder. No rule opens it to agents: its
// settings name programs, and every git that runs there starts them, even the user's own.
func InGit(upto string) bool { return samePath(upto[strings.LastIndexByte(upto, '/')+1:], ".git") }

// Within reports whether a path is a folder or lies in it, on some file system.
func Within(folder, path string) bool {
	want, have := strings.Split(strings.TrimSuffix(folder, "/"), "/"), strings.Split(path, "/")
	return len(want) <= len(have) && samePath(strings.Join(want, "/"), strings.Join(have[:len(want)], "/"))
}

// samePath reports whether two paths could be one file on some file system: macOS ignores case, and
// an older one of its file systems also characters that are not shown.
func samePath(a, b string) bool { return strings.EqualFold(visible(a), visible(b)) }

// visible removes characters that are not shown.
func visible(path string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, path)
}
