package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"

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

// serveOptions are where the server listens, and what opens it.
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
		Short: "Show runs, and drive them, over HTTP",
		Long: `Serve the runs of this folder, or of every folder with -g, to programs and browsers of this machine: what commands show and do, as JSON under /api/v1, and
a run's events as they happen, as Server-Sent Events. GET /openapi.json tells all there is. Runs that are started here are driven by this process;
Ctrl-C interrupts them, and they can be resumed.

Every request has to show a token: Authorization: Bearer TOKEN. It is the one in SWARM_TOKEN or in --token-file, else one that is made once and kept,
readable by you alone, in the state folder. An agent's token does not open it.

With --a2a the agents of this folder's compose file are A2A agents too: each has a card at /a2a/AGENT/.well-known/agent-card.json, and a message to it
begins a run of the team with that agent. GET /a2a lists them. Tasks that were not through when the server ended go on when it starts again.

Only this machine can reach it. To listen beyond, give it a certificate: --tls-cert and --tls-key.`,
		Example: `  swarm serve
  swarm serve -g --listen 127.0.0.1:0 --json
  swarm serve --a2a
  curl -H "Authorization: Bearer $(cat ~/.swarm/token)" http://127.0.0.1:7777/api/v1/runs
  swarm serve --listen 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.serve(o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7777", "the `address` to listen on; port 0 is any free one")
	f.Var((*something)(&o.tokenFile), "token-file", "the `file` with the token, readable by you alone")
	f.Var((*something)(&o.cert), "tls-cert", "the `file` with the certificate")
	f.Var((*something)(&o.key), "tls-key", "the `file` with its key")
	f.BoolVar(&o.a2a, "a2a", false, "publish the agents of the compose file as A2A agents")
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
	if h.Exists(c.Caller.Run) { // another home has nothing that is near an agent
		if err := c.Caller.Person(c.Caller.Run, "serving runs"); err != nil {
			return err
		}
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
	c.GoOn, c.Caller = d.Resume, control.Caller{} // whoever shows the token is a person
	s.killing(d.Kill)
	routes, published, err := a.routes(o, c, d, hub)
	if err != nil {
		hub.Close()
		return err
	}
	server, err := httpd.Start(httpd.Options{Listen: o.listen, Routes: routes, Key: key, TLS: cert, Version: version, Fault: a.complain})
	if err != nil {
		hub.Close()
		return err
	}
	if cert == nil { // agents' programs would not know our certificate
		d.Options.Server = server
	}
	err = a.listening(server.URL(), where, published)
	if err == nil && o.a2a {
		err = d.ResumeFromPrograms(s.ctx, a.complain)
	}
	if err == nil {
		<-s.ctx.Done()
	}
	d.Wait() // first: what they have to say at the end still gets out
	hub.Close()
	if err2 := server.Close(); err == nil {
		err = err2
	}
	return err
}

func (a *app) listening(url, token string, published []a2a.Agent) error {
	if a.json {
		said := map[string]any{"url": url, "token": token}
		if published != nil {
			at := map[string]string{}
			for _, agent := range published {
				at[agent.Name] = a2a.Address(url, agent.Name)
			}
			said["agents"] = at
		}
		return a.print(said)
	}
	_, err := fmt.Fprintf(a.stdout, "listening at %s\nthe token is in %s\n", url, token)
	for _, agent := range published {
		fmt.Fprintf(a.stdout, "@%s is at %s\n", agent.Name, a2a.Address(url, agent.Name))
	}
	return err
}

// token finds what opens the server, and says where it is.
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
		return nil, swarm.Errorf(swarm.BadInput, "the certificate cannot be used: %w", err).WithHint("both files are in PEM, and the key is the certificate's")
	}
	return &cert, nil
}

// left says in a line how each run ended, one line after the other.
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
				fmt.Fprintf(a.stdout, "to go on: swarm resume %s\n", p.ID)
			}
		}
	}
}
