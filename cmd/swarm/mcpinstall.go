package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/jsonedit"
	"swarm/internal/providerkind"
	"swarm/internal/term"
)

// driveName is the name under which clients know `swarm mcp --drive`. The tools of an agent inside a
// run are the server `swarm`, so a client that is an agent can have both.
const driveName = "swarm-drive"

// An mcpClient is a program in whose configuration `swarm mcp --drive` can be written.
type mcpClient struct {
	name string
	// The client's own commands for its configuration. everywhere says that the entry is for every
	// folder. Without commands its file is edited.
	add, remove func(everywhere bool, server []string) []string
	replaces    bool // add replaces an entry of the same name
	global      bool // it has one configuration for all folders
	file        func(dir string, everywhere bool) string
	entry       func(server []string) string
	path        []string // of keys, to the entry
	// config is the configuration file of a client that passes only listed environment variables to
	// its servers. The command of the client cannot write that list.
	config func() string
}

var mcpClients = []mcpClient{
	{
		name: "claude",
		add: func(everywhere bool, server []string) []string {
			return append([]string{"claude", "mcp", "add", "--scope", claudeScope(everywhere), driveName, "--"}, server...)
		},
		remove: func(everywhere bool, _ []string) []string {
			return []string{"claude", "mcp", "remove", "--scope", claudeScope(everywhere), driveName}
		},
	},
	{
		name: "codex", global: true, replaces: true,
		add: func(_ bool, server []string) []string {
			return append([]string{"codex", "mcp", "add", driveName, "--"}, server...)
		},
		remove: func(bool, []string) []string { return []string{"codex", "mcp", "remove", driveName} },
		config: codexFile,
	},
	{
		name: "gemini", file: geminiFile, path: []string{"mcpServers", driveName}, // its own command removes nothing in folders that it does not trust
		entry: func(server []string) string {
			return fmt.Sprintf(`{"command": %s, "args": %s}`, swarm.Encode(server[0]), swarm.Encode(server[1:]))
		},
	},
	{
		name: "opencode", file: openCodeFile, path: []string{"mcp", driveName}, // its own command asks questions
		entry: func(server []string) string {
			return fmt.Sprintf(`{"type": "local", "command": %s, "enabled": true}`, swarm.Encode(server))
		},
	},
}

func claudeScope(everywhere bool) string {
	if everywhere {
		return "user"
	}
	return "local"
}

// codexFile returns the configuration of Codex.
func codexFile() string {
	dir := os.Getenv("CODEX_HOME")
	if dir == "" {
		home, _ := os.UserHomeDir() // see openCodeFile
		dir = filepath.Join(home, ".codex")
	}
	return filepath.Join(dir, "config.toml")
}

// passedVariables returns the line of Codex's configuration that lists the variables for the
// server: the keys of known vendors, the variables that the compose file of this folder names, and
// SWARM_HOME. Values are written nowhere.
func (a *app) passedVariables() (string, error) {
	c, err := a.control()
	if err != nil {
		return "", err
	}
	named, _ := c.Variables((&source{}).request(a, nil)) // no file is no error: the entry serves every folder
	names := append(append(providerkind.AllKeyVars(), named...), "SWARM_HOME")
	slices.Sort(names)
	return "env_vars = " + string(swarm.Encode(slices.Compact(names))), nil
}

// passOn writes the line into the entry that the client's own command has added.
func (c *mcpClient) passOn(change *clientChange) error {
	text, err := os.ReadFile(change.File)
	head := "[mcp_servers." + driveName + "]\n"
	before, after, found := strings.Cut("\n"+string(text), "\n"+head)
	if err != nil || !found {
		return &swarm.Error{Kind: swarm.BadInput, File: change.File, Msg: c.name + " has no entry " + driveName + ", so it passes no variables to the server", Err: swarm.WithoutPath(err),
			Hint: "write this line below " + strings.TrimSpace(head) + ": " + change.Entry}
	}
	return writeConfig(change.File, strings.TrimPrefix(before+"\n"+head+change.Entry+"\n"+after, "\n"))
}

// geminiFile returns the settings of Gemini CLI.
func geminiFile(dir string, everywhere bool) string {
	if everywhere {
		dir, _ = os.UserHomeDir() // see openCodeFile
	}
	return filepath.Join(dir, ".gemini", "settings.json")
}

// openCodeFile returns the configuration of opencode: the one that is there, or a new one.
func openCodeFile(dir string, everywhere bool) string {
	if everywhere {
		dir = os.Getenv("XDG_CONFIG_HOME")
		if dir == "" {
			home, _ := os.UserHomeDir() // without one the file is below the current folder
			dir = filepath.Join(home, ".config")
		}
		dir = filepath.Join(dir, "opencode")
	}
	for _, name := range []string{"opencode.jsonc", "opencode.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(dir, "opencode.json")
}

func mcpClientNames() (names []string) {
	for _, c := range mcpClients {
		names = append(names, c.name)
	}
	return names
}

func findMCPClient(name string) (*mcpClient, error) {
	for i := range mcpClients {
		if mcpClients[i].name == name {
			return &mcpClients[i], nil
		}
	}
	return nil, swarm.Errorf(swarm.BadInput, "swarm does not know the MCP client %s", swarm.Quote(name)).
		WithHint("%s; for any other client, name this as an MCP server: swarm mcp --drive", swarm.DidYouMean(name, mcpClientNames()))
}

func (a *app) mcpInstallCommand() *cobra.Command {
	var o driveOptions
	var show bool
	cmd := &cobra.Command{
		Use:   "install claude|codex|gemini|opencode",
		Short: "Let an MCP client drive runs: add swarm mcp --drive to its configuration",
		Long: `Add ` + "`swarm mcp --drive`" + ` to the configuration of an MCP client, as the server swarm-drive. The
client's own command does that, where it has one. Otherwise its configuration file is edited, and all
else in it stays as it is. The entry is for this folder, or with -g for every folder; Codex knows only
the latter. An entry that is there already is replaced.

Codex gives its servers few variables of the environment. So the entry names those that runs need: the
keys of known vendors, the variables that the compose file of this folder names, and SWARM_HOME. It has
no values. After a change of these names, install it again.

The key is the client's name, unless --key names another. --budget and --may-approve go into the entry.
swarm mcp uninstall takes it out again.`,
		Example:           "  swarm mcp install claude --budget usd=5\n  swarm mcp install codex --print\n  swarm mcp install opencode -g",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(mcpClientNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := findMCPClient(args[0])
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("key") {
				o.key = c.name
			}
			server, err := o.command()
			if err != nil {
				return err
			}
			return a.configureClient(c, server, show)
		},
	}
	o.flags(cmd)
	for _, flag := range []string{"key", "budget", "may-approve"} {
		f := cmd.Flags().Lookup(flag)
		f.Usage = strings.TrimPrefix(f.Usage, "with --drive: ")
	}
	cmd.Flags().Lookup("key").DefValue = "the client's name"
	cmd.Flags().BoolVar(&show, "print", false, "show what would be done, and do nothing")
	a.restrict(cmd, people)
	return cmd
}

func (a *app) mcpUninstallCommand() *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:               "uninstall claude|codex|gemini|opencode",
		Short:             "Take swarm mcp --drive out of the configuration of an MCP client",
		Long:              "Take the server swarm-drive out of the configuration of an MCP client: of this folder, or with -g of\nevery folder.",
		Example:           "  swarm mcp uninstall claude",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(mcpClientNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := findMCPClient(args[0])
			if err != nil {
				return err
			}
			return a.configureClient(c, nil, show)
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "show what would be done, and do nothing")
	a.restrict(cmd, people)
	return cmd
}

// command returns the command line of the server. The program has its whole path, because clients
// that a desktop starts have another PATH.
func (o *driveOptions) command() ([]string, error) {
	if _, err := control.NewClientKey(o.key); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server := []string{self, "mcp", "--drive", "--key", o.key}
	if text := o.budget.String(); text != "" {
		server = append(server, "--budget", text)
	}
	if o.mayApprove {
		server = append(server, "--may-approve")
	}
	return server, nil
}

// A clientChange is what was done, or would be, to the configuration of a client.
type clientChange struct {
	Client  string     `json:"client"`
	Server  string     `json:"server"`
	Done    bool       `json:"done"`               // false with --print
	Changed bool       `json:"changed"`            // false: it was so already
	Command [][]string `json:"commands,omitempty"` // of the client
	File    string     `json:"file,omitempty"`
	Entry   string     `json:"entry,omitempty"` // in the file; "" = taken out
}

// configureClient writes the server into a client's configuration, or without a server takes it out.
func (a *app) configureClient(c *mcpClient, server []string, show bool) error {
	dir, err := a.dir()
	if err != nil {
		return err
	}
	change := clientChange{Client: c.name, Server: driveName, Done: !show, Changed: true}
	if c.file != nil {
		err = c.edit(&change, c.file(dir, a.anywhere), server, show)
	} else {
		err = a.runClient(c, &change, dir, server, show)
	}
	if err != nil {
		return err
	}
	return a.printChange(c, change, server != nil)
}

// runClient has the client's own command change its configuration.
func (a *app) runClient(c *mcpClient, change *clientChange, dir string, server []string, show bool) error {
	remove := c.remove(a.anywhere, server)
	if server == nil {
		change.Command = [][]string{remove}
	} else {
		change.Command = [][]string{c.add(a.anywhere, server)}
	}
	if server != nil && c.config != nil {
		line, err := a.passedVariables()
		if err != nil {
			return err
		}
		change.File, change.Entry = c.config(), line
	}
	if show {
		return nil
	}
	if _, err := exec.LookPath(change.Command[0][0]); err != nil {
		return swarm.Errorf(swarm.NotFound, "there is no program %q", change.Command[0][0]).
			WithHint("install it, or see what would be done: --print")
	}
	if server != nil && !c.replaces {
		_, _ = runIn(dir, remove) // there is usually none
	}
	out, err := runIn(dir, change.Command[0])
	if said := bytes.ToLower(out); server == nil && (bytes.Contains(said, []byte("no mcp server named")) || bytes.Contains(said, []byte("not found"))) {
		change.Changed = false // there is none to take out: Claude Code fails then, and Codex does not
		return nil
	}
	if err != nil {
		return swarm.Errorf(swarm.Other, "%s says: %s", strings.Join(change.Command[0], " "), strings.TrimSpace(string(out))).
			WithHint("to see what to write into its configuration: --print")
	}
	if change.Entry != "" {
		return c.passOn(change)
	}
	return nil
}

func runIn(dir string, command []string) ([]byte, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:gosec // it is one of our table
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// edit changes one entry of the client's file. Everything else in it stays, byte for byte.
func (c *mcpClient) edit(change *clientChange, file string, server []string, show bool) error {
	change.File = file
	text, err := os.ReadFile(file) //nolint:gosec // the client's own configuration
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &swarm.Error{Kind: swarm.BadInput, File: file, Msg: "the configuration cannot be read", Err: swarm.WithoutPath(err)}
	}
	var edited string
	if server == nil {
		edited, change.Changed, err = jsonedit.Delete(string(text), c.path...)
	} else {
		change.Entry = c.entry(server)
		edited, err = jsonedit.Set(string(text), change.Entry, c.path...)
		change.Changed = edited != string(text)
	}
	if err != nil {
		return &swarm.Error{Kind: swarm.BadInput, File: file, Msg: "it is not a JSON object that can be changed, so nothing was", Err: err,
			Hint: "correct it, or write the entry yourself; --print shows it"}
	}
	if show || !change.Changed {
		return nil
	}
	return writeConfig(file, edited)
}

// writeConfig replaces a file as a whole, so that no reader sees half of it. A link stays a link, and
// the file keeps its mode.
func writeConfig(file, text string) error {
	mode := fs.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(filepath.Dir(file), ".swarm-*")
	}
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), file)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return &swarm.Error{Kind: swarm.Storage, File: file, Msg: "the configuration cannot be written", Err: swarm.WithoutPath(err)}
	}
	return nil
}

// printChange says what was done.
func (a *app) printChange(c *mcpClient, change clientChange, added bool) error {
	if a.json {
		return a.print(change)
	}
	for _, command := range change.Command {
		var words []string
		for _, w := range command {
			if strings.ContainsAny(w, " \t'\"$\\") {
				w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
			}
			words = append(words, w)
		}
		fmt.Fprintln(a.stdout, term.Escape(strings.Join(words, " ")))
	}
	switch {
	case !added || change.File == "":
	case c.config != nil:
		fmt.Fprintf(a.stdout, "%s: [mcp_servers.%s] %s\n", term.Escape(change.File), driveName, term.Escape(change.Entry))
	default:
		fmt.Fprintf(a.stdout, "%s: %q: {%q: %s}\n", term.Escape(change.File), c.path[0], c.path[1], term.Escape(change.Entry))
	}
	where := "for this folder"
	if a.anywhere || c.global {
		where = "for every folder"
	}
	switch {
	case !change.Done:
		fmt.Fprintln(a.stdout, "nothing was done: --print only shows it")
	case !change.Changed && added:
		fmt.Fprintf(a.stdout, "%s knows it already, %s\n", c.name, where)
	case !change.Changed:
		fmt.Fprintf(a.stdout, "%s does not know it, %s\n", c.name, where)
	case added:
		fmt.Fprintf(a.stdout, "%s can drive runs now, %s: start it there, and ask it to run something with swarm\n", c.name, where)
	default:
		fmt.Fprintf(a.stdout, "%s does not know it any more, %s\n", c.name, where)
	}
	return nil
}
