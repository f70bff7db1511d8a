package hostrule

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAllows(t *testing.T) {
	rules := map[string]Rule{}
	for _, entry := range []string{"example.org", "*.example.org", "localhost:8080", "10.0.0.1"} {
		rules[entry], _ = Parse(entry, strings.Clone)
	}
	for _, c := range []struct {
		entry, host, port string
		want              bool
	}{
		{"example.org", "example.org", "443", true},
		{"example.org", "example.org", "80", true},
		{"example.org", "example.org", "22", false},
		{"example.org", "www.example.org", "443", false},
		{"example.org", "example.org.evil.net", "443", false},
		{"example.org", "evilexample.org", "443", false},
		{"*.example.org", "www.example.org", "443", true},
		{"*.example.org", "a.b.example.org", "443", true},
		{"*.example.org", "example.org", "443", false},
		{"*.example.org", ".example.org", "443", false},
		{"*.example.org", "evilexample.org", "443", false},
		{"localhost:8080", "localhost", "8080", true},
		{"localhost:8080", "localhost", "80", false},
	} {
		if got := rules[c.entry].AllowsHost(c.host, c.port); got != c.want {
			t.Errorf("%s from %s:%s is %v", c.entry, c.host, c.port, got)
		}
	}
	for _, c := range []struct {
		entry, addr, port string
		want              bool
	}{
		{"localhost:8080", "127.0.0.1", "8080", true},
		{"localhost:8080", "::1", "8080", true},
		{"localhost:8080", "127.0.0.1", "6379", false},
		{"localhost:8080", "10.0.0.1", "8080", false},
		{"10.0.0.1", "10.0.0.1", "80", true},
		{"10.0.0.1", "::ffff:10.0.0.1", "80", true},
		{"10.0.0.1", "10.0.0.2", "80", false},
		{"example.org", "10.0.0.1", "80", false},
	} {
		if got := rules[c.entry].AllowsAddr(netip.MustParseAddr(c.addr), c.port); got != c.want {
			t.Errorf("%s reaches %s:%s: %v", c.entry, c.addr, c.port, got)
		}
	}
}

// A list allows what is on the internet, and of private networks only what it names.
func TestList(t *testing.T) {
	var list List
	for _, text := range []string{"example.org", "10.0.0.1", "[::1]:8080"} {
		r, err := Parse(text, strings.Clone)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	for host, want := range map[string]bool{
		"Example.ORG.": true, "10.0.0.1": true, "::ffff:10.0.0.1": true, "10.0.0.2": false, "evil.net": false, "": false,
	} {
		if got := list.AllowsHost(host, "443"); got != want {
			t.Errorf("the host %q is %v", host, got)
		}
	}
	for at, want := range map[string]bool{
		"93.184.216.34:443": true, "10.0.0.1:443": true, "[::1]:8080": true, "[::1]:80": false, "10.0.0.2:443": false,
		"127.0.0.1:443": false, "169.254.169.254:80": false, "[::ffff:127.0.0.1]:443": false, "100.64.0.1:443": false,
		"[fe80::1%eth0]:443": false, "0.0.0.0:443": false,
	} {
		if got := list.AllowsAddr(netip.MustParseAddrPort(at)); got != want {
			t.Errorf("the address %s is %v", at, got)
		}
	}
	if got := list.String(); got != "example.org, 10.0.0.1, [::1]:8080" {
		t.Errorf("the list is %s", got)
	}
}
