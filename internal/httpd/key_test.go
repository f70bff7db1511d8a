package httpd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarm"
	"swarm/internal/agenttoken"
)

const goodToken = "a-token-that-nobody-guesses"

func TestAKeyOpensForItsTokenOnly(t *testing.T) {
	k, err := NewKey(goodToken)
	if err != nil {
		t.Fatal(err)
	}
	if !k.Opens(goodToken) {
		t.Error("its own token does not open it")
	}
	for _, other := range []string{"", goodToken[1:], goodToken + " ", strings.ToUpper(goodToken), agenttoken.New("run").For("a")} {
		if k.Opens(other) || (Key{}).Opens(other) {
			t.Errorf("%q opens it", other)
		}
	}
	for _, bad := range []string{"", "short", strings.Repeat("ü", 20), strings.Repeat("x", 20) + "\n", strings.Repeat("x ", 20), agenttoken.New("run").For("agent")} {
		if _, err := NewKey(bad); swarm.KindOf(err) != swarm.BadInput || strings.Contains(err.Error(), "xx") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestATokenIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	var all sync.WaitGroup
	for range 8 { // at once, as processes would
		all.Go(func() {
			if _, err := KeepKey(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	if err != nil || len(strings.TrimSpace(string(text))) < 32 {
		t.Fatalf("%q, %v", text, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if k, err := KeepKey(path); err != nil || !k.Opens(strings.TrimSpace(string(text))) {
		t.Errorf("later it is another one: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".token-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestATokenThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err := ReadKey(file("good", goodToken+"\r\n", 0o400)); err != nil || !k.Opens(goodToken) {
		t.Errorf("a good one: %v", err)
	}
	for path, want := range map[string]string{
		file("open", goodToken, 0o644):                     "others may read",
		file("group", goodToken, 0o640):                    "others may read",
		file("empty", "", 0o600):                           "shorter than",
		file("two", goodToken+"\n"+goodToken, 0o600):       "cannot stand in a header",
		file("agent", agenttoken.New("r").For("a"), 0o600): "as those of agents do",
		filepath.Join(dir, "nosuch"):                       "no such file",
		dir:                                                "not in a file",
		pipe:                                               "not in a file",
		file("zero", strings.Repeat("\x00", 40), 0o600):    "cannot stand in a header",
	} {
		if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), goodToken) || swarm.ExitCode(err) != swarm.ExitBadInput {
			t.Errorf("%s: %v, want %s", filepath.Base(path), err, want)
		}
	}
}

// certificate returns a certificate for swarm.example and this machine, and a pool that trusts it.
func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"swarm.example", "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(192, 0, 2, 7)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// With a certificate, the server accepts the names in it as Host, and may listen beyond this
// machine.
func TestWithACertificateItIsCalledByTheNamesInIt(t *testing.T) {
	cert, pool := certificate(t)
	key, err := NewKey(goodToken)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(Options{Listen: "0.0.0.0:0", TLS: cert, Key: key, Routes: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "in") })})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.URL() != "https://swarm.example:"+s.port {
		t.Errorf("it is at %s", s.URL())
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	for _, x := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:" + s.port, "", 200}, {"localhost:" + s.port, "", 200}, {"swarm.example:" + s.port, "", 200}, {"192.0.2.7:" + s.port, "", 200},
		{"swarm.example:" + s.port, "https://swarm.example:" + s.port, 200},
		{"evil.example:" + s.port, "", 403}, {"swarm.example", "", 403}, {"0.0.0.0:" + s.port, "", 403},
		{"swarm.example:" + s.port, "http://swarm.example:" + s.port, 403}, {"swarm.example:" + s.port, "https://evil.example:" + s.port, 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://127.0.0.1:"+s.port+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = x.host
		r.Header.Set("Authorization", "Bearer "+goodToken)
		if x.origin != "" {
			r.Header.Set("Origin", x.origin)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != x.want {
			t.Errorf("host %s, origin %q: %d, want %d", x.host, x.origin, answer.StatusCode, x.want)
		}
	}
	plain, err := http.Get("http://127.0.0.1:" + s.port + "/")
	if err == nil {
		plain.Body.Close()
		if plain.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", plain.Status)
		}
	}
}

// Agents of many runs share one server. Each is itself, only while its run is driven. The key is no
// agent.
func TestAgentsOfManyRunsComeToOneServer(t *testing.T) {
	key, err := NewKey(goodToken)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(Options{Listen: "127.0.0.1:0", Key: key, Routes: http.NotFoundHandler(), Fault: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tokens, clerks, leave := map[string]*agenttoken.Tokens{}, map[string]*clerk{}, map[string]func(){}
	for _, run := range []string{"one", "two"} {
		tokens[run], clerks[run] = agenttoken.New(run), newClerk(run)
		leave[run] = s.Admit(func(token string) (Agent, error) {
			if _, ok := tokens[run].Agent(token); !ok {
				return nil, errors.New("nobody")
			}
			return clerks[run], nil
		})
	}
	connect := func(token string) (*mcp.ClientSession, error) {
		return mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL() + "/mcp", MaxRetries: -1,
			HTTPClient: &http.Client{Transport: &bearer{token: token, base: http.DefaultTransport}}}, nil)
	}
	sessions := map[string]*mcp.ClientSession{}
	for run := range tokens {
		if sessions[run], err = connect(tokens[run].For("a")); err != nil {
			t.Fatal(err)
		}
		defer sessions[run].Close()
		if r, err := call(t, sessions[run], "keep", `{"text":"x"}`); err != nil || !strings.Contains(said(t, r), `"by":"`+run+`"`) {
			t.Errorf("%s: %v %v", run, r, err)
		}
	}
	for what, token := range map[string]string{"the key": goodToken, "another run's": agenttoken.New("one").For("a")} {
		if _, err := connect(token); err == nil {
			t.Errorf("%s opens the agents' door", what)
		}
	}
	waits := make(chan error)
	go func() {
		_, err := sessions["one"].CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
		waits <- err
	}()
	<-clerks["one"].waiting
	leave["one"]()
	select {
	case <-clerks["one"].left:
	default:
		t.Error("its run has ended, and a call still runs")
	}
	<-waits
	if _, err := connect(tokens["one"].For("a")); err == nil {
		t.Error("an agent of a run that has ended gets in")
	}
	if r, err := call(t, sessions["two"], "keep", `{"text":"still here"}`); err != nil || r.IsError {
		t.Errorf("the other run: %v %v", r, err)
	}
}
