package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/a2a"
	"swarm/internal/control"
	"swarm/internal/engine/local"
	"swarm/internal/excerpt"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/statedir"
	"swarm/internal/term"
	"swarm/internal/view"
)

// serveOptions are the address of the server, and the files with its token and certificate.
type serveOptions struct {
	listen    string
	tokenFile string
	cert, key string
	a2a       bool
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve runs over HTTP: show, start and control them",
		Long: `Serve the runs of this folder, or of every folder with -g, to programs and browsers on this machine.
The JSON API under /api/v1 does what the commands do, and streams a run's events as Server-Sent
Events. GET /openapi.json describes it. This process drives the runs that are started through the
API. Ctrl-C interrupts them; swarm resume continues them.

A browser gets in by the address that is printed; --open opens your browser. The address has a
one-time code, which is good for a minute; Enter prints another. Every other request needs a token:
Authorization: Bearer TOKEN. The token is in SWARM_TOKEN or in --token-file. Without either, the
server creates one in the state folder, readable by you alone, and keeps it. The tokens of agents are
refused.

With --a2a, the agents of this folder's compose file are published over the A2A protocol. Each has a
card at /a2a/AGENT/.well-known/agent-card.json, and a message to it starts a run of the team. GET /a2a
lists the agents. Unfinished A2A tasks continue when the server starts again.

Only this machine can reach the server. To listen on other addresses, pass a certificate with
--tls-cert and --tls-key.`,
		Example: `  swarm serve
  swarm serve -g --listen 127.0.0.1:0 --json
  swarm serve --a2a
  curl -H "Authorization: Bearer $(cat ~/.swarm/token)" http://127.0.0.1:7777/api/v1/runs
  swarm serve --listen 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.serve(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7777", "the `address` to listen on; port 0 picks a free one")
	f.Var((*something)(&o.tokenFile), "token-file", "the `file` with the token, readable by you alone")
	f.Var((*something)(&o.cert), "tls-cert", "the `file` with the certificate")
	f.Var((*something)(&o.key), "tls-key", "the `file` with its key")
	f.BoolVar(&o.a2a, "a2a", false, "publish the agents of the compose file as A2A agents")
	a.openFlagFor(cmd, "show the page in your browser")
	return cmd
}

func (a *app) serve(o serveOptions) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	c, err := a.control()
	if err != nil {
		return err
	}
	cert, err := o.certificate()
	if err != nil {
		return err
	}
	key, where, err := o.token(h)
	if err != nil {
		return err
	}
	s := stopSignals()
	defer s.end()
	hub := feed.New(h)
	d := &control.Drivers{Control: c, Context: s.ctx, Version: version, Follow: hub.Watch, Ended: a.left()}
	d.Options.Engine, d.Options.Serve, d.Options.Telemetry = local.Run, httpd.Serve, a.runTelemetry()
	c.GoOn, c.Caller, c.Steering = d.Resume, control.Caller{How: swarm.HowHTTP}, false // a client with the token is a person
	s.killing(d.Kill)
	routes, published, err := a.routes(o, c, d, hub)
	if err != nil {
		hub.Close()
		return err
	}
	options := httpd.Options{Listen: o.listen, Routes: routes, Key: key, TLS: cert, Version: version, Fault: a.complain}
	forBrowsers(&options, h)
	if o.a2a {
		options.Refuse = a2a.Refuse
	}
	server, err := httpd.Start(options)
	if err != nil {
		hub.Close()
		return err
	}
	if cert == nil { // agents' programs would not trust our certificate
		d.Options.Server = server
	}
	err = a.listening(server, where, published)
	if err == nil && o.a2a {
		err = d.ResumeFromPrograms(s.ctx, a.complain)
	}
	if err == nil {
		<-s.ctx.Done()
	}
	d.Wait() // before the hub and the server close, so that clients get the last events of the runs
	hub.Close()
	if err2 := server.Close(); err == nil {
		err = err2
	}
	return err
}

// listening prints where the server listens, and the address of its page. At a terminal, Enter prints
// a new address.
func (a *app) listening(server *httpd.Server, token string, published []a2a.Agent) error {
	url := server.URL()
	if a.open {
		a.browser.open(server.OpenURL("/")) // with a code of its own: the printed address stays good
	}
	if a.json {
		result := map[string]any{"url": url, "token": token, "open": server.OpenURL("/")}
		if published != nil {
			at := map[string]string{}
			for _, agent := range published {
				at[agent.Name] = a2a.Address(url, agent.Name)
			}
			result["agents"] = at
		}
		return a.print(result)
	}
	_, err := fmt.Fprintf(a.stdout, "listening at %s\nthe token is in %s\n", url, token)
	for _, agent := range published {
		fmt.Fprintf(a.stdout, "@%s is at %s\n", agent.Name, a2a.Address(url, agent.Name))
	}
	a.inviteAgain(a.stdout, "the page", func() string { return server.OpenURL("/") })
	return err
}

// inviteAgain prints an address of a page. At a terminal, Enter prints a new one.
func (a *app) inviteAgain(w io.Writer, what string, address func() string) {
	more := ""
	if a.typed() {
		more = "; Enter prints another"
		signal.Ignore(syscall.SIGTTIN) // in the background the read fails, and must not stop the server
		go func() {
			for {
				enter := bufio.NewScanner(a.stdin)
				for enter.Scan() {
					fmt.Fprintf(w, "the page: %s\n", address())
				}
				if !errors.Is(enter.Err(), syscall.EIO) {
					return
				}
				time.Sleep(time.Second) // no signal tells that a running job is in the foreground again
			}
		}()
	}
	fmt.Fprintf(w, "%s: %s (good once, for a minute%s)\n", what, address(), more)
}

// token reads the server's token, and returns where it is kept.
func (o *serveOptions) token(h *statedir.Home) (key httpd.Key, where string, err error) {
	if o.tokenFile != "" {
		key, err = httpd.ReadKey(o.tokenFile)
		return key, o.tokenFile, err
	}
	if token := os.Getenv("SWARM_TOKEN"); token != "" {
		key, err = httpd.NewKey(token)
		return key, "$SWARM_TOKEN", err
	}
	if err := h.Make(); err != nil {
		return key, "", err
	}
	key, err = httpd.KeepKey(h.TokenPath())
	return key, h.TokenPath(), err
}

func (o *serveOptions) certificate() (*tls.Certificate, error) {
	if o.cert == "" && o.key == "" {
		return nil, nil
	}
	if o.cert == "" || o.key == "" {
		return nil, swarm.Errorf(swarm.BadInput, "a certificate and its key go together").WithHint("give both: --tls-cert and --tls-key")
	}
	cert, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, swarm.Errorf(swarm.BadInput, "the certificate cannot be used: %w", err).WithHint("both files must be in PEM format, and the key must belong to the certificate")
	}
	return &cert, nil
}

// left prints a line when a run ends. Runs end on their own goroutines, so a mutex keeps lines
// whole.
func (a *app) left() func(view.Picture, error) {
	var mu sync.Mutex
	return func(p view.Picture, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			a.complain(err)
		case !a.json:
			fmt.Fprintf(a.stdout, "run %s %s%s\n", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason)))
			if p.Status == swarm.Interrupted {
				fmt.Fprintf(a.stdout, "to resume it: swarm resume %s\n", p.ID)
			}
		}
	}
}
