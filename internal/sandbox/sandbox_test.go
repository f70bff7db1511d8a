package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"swarm"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// made is a machine of which the test says what exists. A path that ends with a slash is a folder.
func made(links map[string]string, sockets []string, paths ...string) machine {
	list := func(dir string) (in []string) {
		for _, path := range paths {
			if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/"); ok && rest != "" {
				name, _, _ := strings.Cut(rest, "/")
				in = append(in, filepath.Join(dir, name))
			}
		}
		slices.Sort(in)
		return slices.Compact(in)
	}
	return machine{home: "/home/u", sockets: sockets, list: list, look: func(path string) (string, bool, bool) {
		for from, to := range links {
			if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == '/') {
				path = to + rest
			}
		}
		switch {
		case slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, strings.TrimSuffix(path, "/")+"/") }):
			return path, true, true
		case slices.Contains(paths, path), slices.Contains(sockets, path):
			return path, false, true
		}
		return "", false, false
	}}
}

var plain = []string{
	"/tmp/", "/var/tmp/", "/run/", "/home/u/", "/home/u/.ssh/", "/home/u/.netrc", "/home/u/.claude/", "/home/u/.claude/settings.json",
	"/home/u/.swarm/", "/home/u/work/", "/home/u/work/.git/config", "/home/u/work/c.yaml", "/usr/bin/swarm", "/usr/bin/agent",
}

func TestArguments(t *testing.T) {
	base := policy{
		Bwrap: "/usr/bin/bwrap", Self: "/usr/bin/swarm", Dir: "/home/u/work", Write: []string{"/home/u/work"},
		Hide: []string{"/home/u/.swarm"}, Needed: []string{"/usr/bin/swarm", "/usr/bin/agent"}, Guard: []string{"/home/u/work/c.yaml"},
	}
	for name, c := range map[string]struct {
		change  func(*policy)
		machine machine
	}{
		"plain":  {func(*policy) {}, made(nil, nil, plain...)},
		"online": {func(p *policy) { p.Online = true }, made(nil, nil, plain...)},
		// A coding agent sees its own login, and may not change what a person's own program obeys.
		"login": {func(p *policy) { p.Login, p.Obeyed = []string{".claude"}, []string{".claude/settings.json"} }, made(nil, nil, plain...)},
		// What the file names wins over what is hidden, but not over something more specific.
		"named": {func(p *policy) {
			p.MayWrite, p.MayRead = []string{"/home/u"}, []string{"/home/u/.netrc"}
		}, made(nil, nil, plain...)},
		// The program lies in a folder that is private, and so does the workspace.
		"temporary": {func(p *policy) {
			p.Dir, p.Write, p.Needed = "/tmp/w", []string{"/tmp/w"}, []string{"/tmp/bin/swarm", "/tmp/bin/agent"}
		}, made(nil, nil, append(plain, "/tmp/w/", "/tmp/bin/swarm", "/tmp/bin/agent")...)},
		// Only docs/ may be written in the phase PLANNING.
		"planning": {func(p *policy) {
			p.Dir, p.Write, p.Needed = "/tmp/w", []string{"/tmp/w/docs"}, append(p.Needed, "/tmp/w")
		}, made(nil, nil, append(plain, "/tmp/w/", "/tmp/w/docs/")...)},
		// Links are followed, so that a mask lies where the secret is.
		"links": {func(*policy) {}, made(map[string]string{
			"/home/u/.ssh": "/data/keys", "/etc/resolv.conf": "/run/resolve/resolv.conf",
		}, nil, append(plain, "/data/keys/", "/run/resolve/resolv.conf")...)},
		"sockets": {func(*policy) {}, made(nil,
			[]string{"/run/docker.sock", "/opt/db.sock", "/home/u/work/own.sock", "/home/u/.ssh/agent"}, plain...)},
	} {
		t.Run(name, func(t *testing.T) {
			p := base
			p.Needed = slices.Clone(base.Needed)
			c.change(&p)
			args, empty := p.bwrapArguments(c.machine)
			got := strings.ReplaceAll(strings.Join(args, " "), " --", "\n--") + "\n"
			if n := strings.Count(got, "--ro-bind-data"); n != empty {
				t.Errorf("%d empty files are taken, and %d are said to be", n, empty)
			}
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || got != string(want) {
				t.Errorf("%v; got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestGrants(t *testing.T) {
	p := policy{
		Self: "/usr/bin/swarm", Dir: "/home/u/work", Write: []string{"/home/u/work"}, Temp: "/tmp/t",
		Hide: []string{"/home/u/.swarm", "/home/u/work/plans"}, Needed: []string{"/usr/bin/swarm", "/tmp/agent"},
		Login: []string{".claude"},
	}
	m := made(map[string]string{"/bin": "/usr/bin"}, []string{"/usr/db.sock"}, append(plain,
		"/home/u/work/plans/", "/home/u/work/src/", "/home/u/notes", "/home/v/", "/tmp/t/", "/tmp/agent", "/tmp/others",
		"/dev/null", "/dev/zero", "/dev/tty", "/dev/vda", "/bin/")...)
	var got []string
	for _, g := range p.grants(m) {
		sign := "r "
		if g.write {
			sign = "w "
		}
		got = append(got, sign+g.path)
	}
	// Neither / nor the home folder nor the workspace is allowed as a whole, because of what is hidden.
	want := []string{
		"w /dev/null", "w /dev/zero", "w /home/u/.claude", "w /home/u/work/.git", "w /home/u/work/c.yaml", "r /home/u/work/.git/config",
		"w /home/u/work/src", "r /home/u/notes", "r /home/v", "r /tmp/agent", "w /tmp/t", "r /usr",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatLandlockCannotHold(t *testing.T) {
	how := support{without: "bubblewrap is not here"}
	for network, ok := range map[string]bool{swarm.NetworkAll: true, swarm.NetworkNone: false, swarm.NetworkHosts: false} {
		if err := how.holds(swarm.Sandbox{Network: network}); (err == nil) != ok {
			t.Errorf("%s: %v", network, err)
		}
		if err := (support{bwrap: "bwrap"}).holds(swarm.Sandbox{Network: network}); err != nil {
			t.Error(err)
		}
	}
}

func TestDoors(t *testing.T) {
	p := policy{Hosts: []string{"example.org", "localhost:11434", "[::1]:8080", "10.0.0.1:80", "127.0.0.1"}}
	want := []string{"127.0.0.1:4711", "localhost:11434", "[::1]:8080"}
	if got := p.doors("http://127.0.0.1:4711"); !slices.Equal(got, want) {
		t.Errorf("the doors are %q", got)
	}
	if got := (&policy{}).doors(""); len(got) != 0 {
		t.Errorf("without a server the doors are %q", got)
	}
}

func TestPathsOfTheFile(t *testing.T) {
	got := absolute([]string{"~/go", "~", "/abs/../x", "rel", "~other"}, "/home/u", "/work")
	if want := []string{"/home/u/go", "/home/u", "/x", "/work/rel", "/work/~other"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// ask sends a request through a proxy.
func ask(t *testing.T, proxy, target string) (status int, text string) {
	t.Helper()
	at, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), DisableKeepAlives: true}}
	answer, err := client.Get(target)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestProxy(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello "+r.URL.Path) }))
	defer site.Close()
	address := strings.TrimPrefix(site.URL, "http://")
	_, port, _ := net.SplitHostPort(address)
	for _, c := range []struct {
		hosts  []string
		url    string
		status int
		text   string
	}{
		{[]string{address}, site.URL + "/x", 200, "hello /x"},
		{[]string{address}, "http://localhost:" + port, 403, "does not allow"},
		{[]string{"localhost:" + port}, "http://localhost:" + port + "/y", 200, "hello /y"},
		{[]string{"example.org"}, site.URL, 403, "example.org"},
		{nil, site.URL, 403, "does not allow"},
		{[]string{"example.org"}, "https://" + address, 0, "Forbidden"},
		{[]string{"example.org"}, "http://169.254.169.254/latest", 403, "does not allow"},
	} {
		proxy := httptest.NewServer(newProxy((&policy{Hosts: c.hosts}).rules()))
		status, text := ask(t, proxy.URL, c.url)
		if status != c.status || !strings.Contains(text, c.text) {
			t.Errorf("with %q, %s is %d %s", c.hosts, c.url, status, text)
		}
		proxy.Close()
	}
}

// A name that is listed does not open an address of this machine: DNS belongs to others.
func TestAListedNameThatPointsInside(t *testing.T) {
	defer func(was *net.Resolver) { net.DefaultResolver = was }(net.DefaultResolver)
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerInside(far)
		return near, nil
	}}
	p := newProxy((&policy{Hosts: []string{"inside.example:80", "localhost:81"}}).rules())
	for _, address := range []string{"inside.example:80", "127.0.0.1:80", "localhost:80", "0.0.0.0:81", "[::]:81"} {
		if c, err := p.dial(context.Background(), "tcp", address); swarm.KindOf(err) != swarm.Denied {
			t.Errorf("%s is dialled: %v %v", address, c, err)
		}
	}
}

// answerInside is a name server, for one connection. Every name has the address 127.0.0.1.
func answerInside(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		m := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, m); err != nil {
			return
		}
		const header = 12
		end := header + bytes.IndexByte(m[header:], 0) + 5 // the name, its type and its class
		isA := m[end-3] == 1
		answer := slices.Concat([]byte{m[0], m[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, m[header:end])
		if isA {
			answer[7] = 1
			answer = append(answer, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func TestANilBoxConfinesNothing(t *testing.T) {
	path, argv, err := New(nil, Options{}).Wrap("/bin/x", []string{"x", "y"}, Workspace{})
	if err != nil || path != "/bin/x" || !slices.Equal(argv, []string{"x", "y"}) {
		t.Errorf("%s %q %v", path, argv, err)
	}
}
