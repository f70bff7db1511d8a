// Package toolrule parses the entries of an agent's `tools`. The compose file uses it to report
// mistakes early. The tools use it to check every call. A call that no entry allows is refused.
package toolrule

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"swarm"
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
	Tool   string   // one of Tools; "" = a tool of an MCP server
	Words  []string // of Command: the first words of a command
	Host   string   // of WebFetch, in lower case: one host, or *.example.org for all hosts below it
	Port   string   // of WebFetch; "" = 80 and 443
	Server string   // an MCP server
	Name   string   // of the server's tool; "" = all its tools
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
	text := strings.ToLower(strings.TrimSpace(inner))
	bad := func(why, hint string) (Rule, error) {
		return Rule{}, swarm.Errorf(swarm.BadInput, "%s %s", swarm.Quote("web_fetch("+inner+")"), why).WithHint("%s", hint)
	}
	r := Rule{Tool: WebFetch, Host: text}
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		r.Host = addr.Unmap().String()
		return r, nil
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		r.Host, r.Port = at.Addr().Unmap().String(), strconv.Itoa(int(at.Port()))
		return r, nil
	}
	if host, port, found := strings.Cut(text, ":"); found {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return bad("is not a host", "write the host alone, without http:// and path, or with a port: "+
				"web_fetch(example.org), web_fetch(localhost:8080)")
		}
		r.Host, r.Port = host, strconv.Itoa(n)
	}
	name := strings.TrimPrefix(r.Host, "*.")
	switch {
	case text == "":
		return Parse(WebFetch, nil)
	case name == "*", name != r.Host && !strings.Contains(name, "."):
		return bad("allows too much",
			"name the hosts: web_fetch(example.org), or all below one: web_fetch(*.example.org)")
	case !isHost(name):
		return bad("is not a host", "write the host alone, without http:// and path: web_fetch(example.org); "+
			"letters beyond a-z in their form xn--…")
	}
	return r, nil
}

// isHost reports whether a text can be the name of a host.
func isHost(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.ContainsFunc(label, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
		}) {
			return false
		}
	}
	return len(name) <= 253
}

// Runs reports whether a command begins with the rule's words.
func (r Rule) Runs(argv []string) bool {
	return r.Tool == Command && len(argv) >= len(r.Words) && slices.Equal(argv[:len(r.Words)], r.Words)
}

// Fetches reports whether the rule allows a host, which is in lower case.
func (r Rule) Fetches(host, port string) bool {
	if r.Tool != WebFetch || !r.opens(port) {
		return false
	}
	below := r.Host[0] == '*' && strings.HasSuffix(host, r.Host[1:]) && len(host) > len(r.Host)-1
	return host == r.Host || below
}

// Reaches reports whether the rule allows an address in a private network. Only the address itself,
// or localhost, allows that. Other names don't count, because their owner may point them anywhere.
func (r Rule) Reaches(addr netip.Addr, port string) bool {
	addr = addr.Unmap()
	return r.Tool == WebFetch && r.opens(port) && (r.Host == addr.String() || r.Host == "localhost" && addr.IsLoopback())
}

func (r Rule) opens(port string) bool {
	if r.Port == "" {
		return port == "80" || port == "443"
	}
	return port == r.Port
}

// String returns the rule as an entry.
func (r Rule) String() string {
	switch {
	case r.Tool == Command:
		return "command(" + strings.Join(r.Words, " ") + ")"
	case r.Tool == WebFetch && r.Port != "" && strings.Contains(r.Host, ":"):
		return "web_fetch([" + r.Host + "]:" + r.Port + ")"
	case r.Tool == WebFetch && r.Port != "":
		return "web_fetch(" + r.Host + ":" + r.Port + ")"
	case r.Tool == WebFetch:
		return "web_fetch(" + r.Host + ")"
	case r.Tool != "":
		return r.Tool
	case r.Name != "":
		return r.Server + "." + r.Name
	}
	return r.Server
}
