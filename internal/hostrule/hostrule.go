// Package hostrule says which hosts may be reached. It is the one home of that question: web_fetch
// asks it for models, and the sandbox asks it for programs.
//
// A check has two halves. [List.AllowsHost] looks at the name that was asked for. [List.AllowsAddr]
// looks at the address at the moment of dialling, because DNS may answer differently from one moment
// to the next (DNS rebinding).
package hostrule

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"swarm"
)

// A Rule allows one host, or all hosts below one.
type Rule struct {
	Host string // in lower case: one host, or *.example.org for all hosts below it
	Port string // "" = 80 and 443
}

// Parse parses a rule. write makes an example of how the user writes a rule for a host.
func Parse(text string, write func(host string) string) (Rule, error) {
	given := text
	text = strings.ToLower(strings.TrimSpace(text))
	bad := func(why, hint string) (Rule, error) {
		return Rule{}, swarm.Errorf(swarm.BadInput, "%s %s", swarm.Quote(write(given)), why).WithHint("%s", hint)
	}
	r := Rule{Host: text}
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
				write("example.org")+", "+write("localhost:8080"))
		}
		r.Host, r.Port = host, strconv.Itoa(n)
	}
	name := strings.TrimPrefix(r.Host, "*.")
	switch {
	case name == "*", name != r.Host && !strings.Contains(name, "."):
		return bad("allows too much",
			"name the hosts: "+write("example.org")+", or all below one: "+write("*.example.org"))
	case !isHost(name):
		return bad("is not a host", "write the host alone, without http:// and path: "+write("example.org")+"; "+
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

// AllowsHost reports whether the rule allows a host, which is in lower case.
func (r Rule) AllowsHost(host, port string) bool {
	if r.Host == "" || !r.opens(port) {
		return false
	}
	below := r.Host[0] == '*' && strings.HasSuffix(host, r.Host[1:]) && len(host) > len(r.Host)-1
	return host == r.Host || below
}

// AllowsAddr reports whether the rule allows an address in a private network. Only the address
// itself, or localhost, does: a name may point anywhere.
func (r Rule) AllowsAddr(addr netip.Addr, port string) bool {
	addr = addr.Unmap()
	return r.opens(port) && (r.Host == addr.String() || r.Host == "localhost" && addr.IsLoopback())
}

func (r Rule) opens(port string) bool {
	if r.Port == "" {
		return port == "80" || port == "443"
	}
	return port == r.Port
}

// String returns the rule as it is written.
func (r Rule) String() string {
	switch {
	case r.Port != "" && strings.Contains(r.Host, ":"):
		return "[" + r.Host + "]:" + r.Port
	case r.Port != "":
		return r.Host + ":" + r.Port
	}
	return r.Host
}

// A List is the rules of one agent. A host that no rule allows is refused.
type List []Rule

// AllowsHost reports whether a rule allows a host by its name.
func (l List) AllowsHost(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.Unmap().String()
	}
	return slices.ContainsFunc(l, func(r Rule) bool { return r.AllowsHost(host, port) })
}

// AllowsAddr reports whether an address may be dialled: it is on the internet, or a rule names it.
func (l List) AllowsAddr(at netip.AddrPort) bool {
	addr := at.Addr().Unmap().WithZone("")
	port := strconv.Itoa(int(at.Port()))
	return isPublic(addr) || slices.ContainsFunc(l, func(r Rule) bool { return r.AllowsAddr(addr, port) })
}

// String lists the rules for a message.
func (l List) String() string {
	texts := make([]string, len(l))
	for i, r := range l {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// reserved are networks that are not on the internet, beside those that netip knows.
var reserved = parsePrefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "fec0::/10",
)

func parsePrefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// isPublic reports whether an address is on the internet.
func isPublic(addr netip.Addr) bool {
	isReserved := slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !isReserved
}
