// Package toolrule parses the entries of an agent's `tools`. The compose file uses it to report
// mistakes early. The tools use it to check every call. A call that no entry allows is refused.
package toolrule

import (
	"slices"
	"strings"

	"swarm"
	"swarm/internal/hostrule"
)

// The built-in tools.
const (
	FileRead  = "file_read"
	FileWrite = "file_write"
	FileList  = "file_list"
	Command   = "command"
	WebFetch  = "web_fetch"
)

// Tools lists the built-in tools.
var Tools = []string{FileRead, FileWrite, FileList, Command, WebFetch}

// A Rule is a parsed entry.
type Rule struct {
	Tool   string        // one of Tools; "" = a tool of an MCP server
	Words  []string      // of Command: the first words of a command
	Host   hostrule.Rule // of WebFetch
	Path   PathPattern   // of FileWrite; "" = every file below the root that no program obeys
	Server string        // an MCP server
	Name   string        // of the server's tool; "" = all its tools
}

// Parse parses an entry. servers are the names of the declared MCP servers.
func Parse(entry string, servers []string) (Rule, error) {
	name, inner, braced := strings.Cut(strings.TrimSpace(entry), "(")
	name = strings.TrimSpace(name)
	if braced {
		var closed bool
		if inner, closed = strings.CutSuffix(strings.TrimSpace(inner), ")"); !closed {
			return Rule{}, swarm.Errorf(swarm.BadInput, "%s has no ) at its end", swarm.Quote(entry)).WithHint("write %s(…)", name)
		}
	}
	switch {
	case braced && name == Command:
		return parseCommand(inner)
	case braced && name == WebFetch:
		return parseHost(inner)
	case braced && name == FileWrite:
		files, err := ParsePath(name, inner)
		return Rule{Tool: name, Path: files}, err
	case name == Command:
		return Rule{}, swarm.Errorf(swarm.BadInput, "command does not say which commands").
			WithHint("write how they begin, one entry for each: command(go test), command(git diff)")
	case name == WebFetch:
		return Rule{}, swarm.Errorf(swarm.BadInput, "web_fetch does not say from which hosts").
			WithHint("write them, one entry for each: web_fetch(example.org), web_fetch(*.example.org)")
	case braced && slices.Contains(Tools, name):
		return Rule{}, swarm.Errorf(swarm.BadInput, "%s has nothing in parentheses", name).
			WithHint("write %s; its folder is the agent's root", name)
	case !braced && slices.Contains(Tools, name):
		return Rule{Tool: name}, nil
	}
	if !braced {
		if r, ok := ofServer(name, servers); ok {
			return r, nil
		}
	}
	return Rule{}, unknown(entry, name, servers)
}

func unknown(entry, name string, servers []string) error {
	choices := slices.Concat([]string{FileRead, FileWrite, FileList, "command(…)", "web_fetch(…)"}, servers)
	err := swarm.Errorf(swarm.BadInput, "there is no tool %s", swarm.Quote(entry))
	if server, _, ok := strings.Cut(name, "."); ok {
		err.Msg += ", and no tool server " + swarm.Quote(server)
		name = server
	}
	switch near := swarm.Nearest(name, slices.Concat(Tools, servers)); near {
	case "":
		return err.WithHint("choose one of %s, or declare a server under tools.mcp", strings.Join(choices, ", "))
	case Command:
		return err.WithHint("did you mean command(…), with how the command begins: command(go test)?")
	case WebFetch:
		return err.WithHint("did you mean web_fetch(…), with the host: web_fetch(example.org)?")
	default:
		return err.WithHint("did you mean %q?", near)
	}
}

// ofServer finds the server that an entry begins with. The longest matching name wins.
func ofServer(entry string, servers []string) (r Rule, ok bool) {
	for _, s := range servers {
		rest, found := strings.CutPrefix(entry, s)
		if !found || len(s) <= len(r.Server) {
			continue
		}
		switch {
		case rest == "":
			r, ok = Rule{Server: s}, true
		case len(rest) > 1 && rest[0] == '.':
			r, ok = Rule{Server: s, Name: rest[1:]}, true
		case len(rest) > 2 && strings.HasPrefix(rest, "__"):
			r, ok = Rule{Server: s, Name: rest[2:]}, true
		}
	}
	return r, ok
}

func parseCommand(inner string) (Rule, error) {
	words := strings.Fields(inner)
	switch {
	case len(words) == 0:
		return Parse(Command, nil)
	case strings.ContainsAny(inner, "\"'`"):
		const msg = "%s holds quotes, and there is no shell that would take them away"
		return Rule{}, swarm.Errorf(swarm.BadInput, msg, swarm.Quote("command("+inner+")")).
			WithHint("write the words that a command begins with, with spaces between them: command(go test)")
	case strings.ContainsAny(words[0], "*?;&|<>$(){}[]"):
		const msg = "%s does not begin with a program's name"
		const hint = "write one entry for each program: command(go), command(git diff); " +
			"whatever follows these words is allowed"
		return Rule{}, swarm.Errorf(swarm.BadInput, msg, swarm.Quote("command("+inner+")")).WithHint(hint)
	case strings.ContainsRune(inner, 0):
		return Rule{}, swarm.Errorf(swarm.BadInput, "a command cannot hold a NUL byte").WithHint("take it out")
	}
	return Rule{Tool: Command, Words: words}, nil
}

func parseHost(inner string) (Rule, error) {
	if strings.TrimSpace(inner) == "" {
		return Parse(WebFetch, nil)
	}
	host, err := hostrule.Parse(inner, func(host string) string { return WebFetch + "(" + host + ")" })
	if err != nil {
		return Rule{}, err
	}
	return Rule{Tool: WebFetch, Host: host}, nil
}

// Runs reports whether a command begins with the rule's words.
func (r Rule) Runs(argv []string) bool {
	return r.Tool == Command && len(argv) >= len(r.Words) && slices.Equal(argv[:len(r.Words)], r.Words)
}

// Hosts returns the hosts from which rules allow to fetch.
func Hosts(rules []Rule) (list hostrule.List) {
	for _, r := range rules {
		if r.Tool == WebFetch {
			list = append(list, r.Host)
		}
	}
	return list
}

// String returns the rule as an entry.
func (r Rule) String() string {
	switch {
	case r.Tool == Command:
		return "command(" + strings.Join(r.Words, " ") + ")"
	case r.Tool == WebFetch:
		return "web_fetch(" + r.Host.String() + ")"
	case r.Path != "":
		return r.Tool + "(" + string(r.Path) + ")"
	case r.Tool != "":
		return r.Tool
	case r.Name != "":
		return r.Server + "." + r.Name
	}
	return r.Server
}
