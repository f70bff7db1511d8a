package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"

	"swarm/internal/excerpt"
	"swarm/internal/term"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/a2a"
	"swarm/internal/api"
	"swarm/internal/engine/local"
	"swarm/internal/home"
	"swarm/internal/httpd"
	"swarm/internal/process"
	"swarm/internal/run"
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
	own := os.Getenv("SWARM_RUN_ID")
	if h.Exists(own) { // another home has nothing that is near an agent
		if err := aPersons(own, "serving runs"); err != nil {
			return err
		}
	}
	dir, err := a.dir()
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
	d := &drivers{app: a, home: h, stops: s, driving: map[string]bool{}}
	s.killing(d.kill)
	d.window = api.New(api.Options{Home: h, Dir: dir, Anywhere: a.anywhere, Driver: d})
	routes, published, err := a.routes(o, d)
	if err != nil {
		d.window.Close()
		return err
	}
	server, err := httpd.Start(httpd.Options{Listen: o.listen, Routes: routes, Key: key, TLS: cert, Version: version, Fault: a.complain})
	if err != nil {
		d.window.Close()
		return err
	}
	if cert == nil { // agents' programs would not know our certificate
		d.server = server
	}
	err = a.listening(server.URL(), where, published)
	if err == nil && o.a2a {
		err = d.takeUp(dir)
	}
	if err == nil {
		<-s.ctx.Done()
	}
	d.wait() // first: what they have to say at the end still gets out
	d.window.Close()
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
func (o *serveOptions) token(h *home.Home) (key httpd.Key, where string, err error) {
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

// drivers drive the runs that were started over HTTP.
type drivers struct {
	app    *app
	home   *home.Home
	stops  *stops
	window *api.API
	server *httpd.Server // where agents' programs find our tools; nil = each run has a server of its own
	all    sync.WaitGroup

	mu      sync.Mutex
	driving map[string]bool
	closed  bool

	speaking sync.Mutex // one line after the other
}

// Start begins a run, in the way that `swarm up` or `swarm team` does.
func (d *drivers) Start(ctx context.Context, w api.Wanted) (string, error) {
	b, err := d.plan(w)
	if err != nil {
		return "", err
	}
	o, err := b.options()
	if err != nil {
		return "", err
	}
	if err := d.enter(); err != nil {
		return "", err
	}
	r, err := b.start(ctx, d.home)
	if err != nil {
		d.all.Done()
		return "", err
	}
	go d.drive(r, o)
	return r.ID, nil
}

// plan is what a run is to do.
func (d *drivers) plan(w api.Wanted) (*begin, error) {
	src := &source{dir: w.Dir, file: w.File, set: w.Set, provider: w.Provider, parallel: w.Jobs, only: w.Only, alone: w.Asked != nil}
	if w.Goal != "" {
		return d.team(src, w)
	}
	selected := w.Tasks
	if w.Pipeline != "" {
		selected = []string{w.Pipeline}
	}
	o, err := src.options(d.app, selected)
	if err != nil {
		return nil, err
	}
	o.Stdin = func() ([]byte, error) { return []byte(w.Stdin), nil }
	bundle, err := composeWork(o)
	if err != nil {
		return nil, err
	}
	return &begin{bundle: bundle, file: o.File, dir: o.Dir, args: append([]string{"up"}, selected...)}, nil
}

func (d *drivers) team(src *source, w api.Wanted) (*begin, error) {
	mode, phase := teamModes(), teamPhases()
	for flag, text := range map[*oneOf]string{&mode: w.Mode, &phase: w.Phase} {
		if text != "" {
			if err := flag.Set(text); err != nil {
				return nil, swarm.Errorf(swarm.BadInput, "no team has the mode or phase %s", swarm.Quote(text)).WithHint("%v", err)
			}
		}
	}
	given := opening{goal: w.Goal, to: w.To, done: w.Done, structured: w.Structured}
	bundle, o, err := d.app.composeTeam(src, given, swarm.TeamMode(mode.value), swarm.Phase(phase.value))
	if err != nil {
		return nil, err
	}
	b := &begin{bundle: bundle, file: o.File, dir: o.Dir, args: []string{"team", w.Goal}, asked: w.Asked}
	return b, b.open(given)
}

// Resume goes on with a run that nobody drives.
func (d *drivers) Resume(ctx context.Context, id string) error {
	r, err := run.Open(d.home, id)
	if err != nil {
		return err
	}
	if r.Began().Replay {
		r.Close()
		return swarm.Errorf(swarm.BadInput, "the run %s was a replay", id).WithHint("name its recording: swarm resume %s --replay FILE", id)
	}
	if err = d.enter(); err == nil {
		if err = r.Take(ctx); err != nil {
			d.all.Done()
		}
	}
	if err != nil {
		r.Close()
		return err
	}
	go d.drive(r, run.Options{Unpause: true})
	return nil
}

// enter counts a run in, as long as this process is not about to end.
func (d *drivers) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.stops.ctx.Err() != nil {
		return swarm.Errorf(swarm.Stopped, "this server is ending").WithHint("start it again")
	}
	d.all.Add(1)
	return nil
}

// drive drives a run to its end.
func (d *drivers) drive(r *run.Run, o run.Options) {
	defer d.all.Done()
	defer r.Close()
	o.Engine, o.Server, o.Beside = local.Run, d.server, d.app.beside()
	d.note(r.ID, true)
	defer d.note(r.ID, false)
	defer d.window.Heed(r.ID, r.Log())()
	p, err := r.Drive(d.stops.ctx, o)
	d.speaking.Lock()
	defer d.speaking.Unlock()
	if err != nil {
		d.app.complain(err)
		return
	}
	d.tell(p)
}

// tell says in a line how a run ended.
func (d *drivers) tell(p view.Picture) {
	if d.app.json {
		return
	}
	fmt.Fprintf(d.app.stdout, "run %s %s%s\n", p.ID, p.Status, excerpt.Reason(term.Escape(p.Reason)))
	if p.Status == swarm.Interrupted {
		fmt.Fprintf(d.app.stdout, "to go on: swarm resume %s\n", p.ID)
	}
}

func (d *drivers) note(id string, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.driving[id] = on
}

// wait waits until all runs were left. No other begins from then on.
func (d *drivers) wait() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.all.Wait()
}

// kill ends what the runs' agents have started, before the program is killed.
func (d *drivers) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, on := range d.driving {
		if on {
			process.Kill(id)
		}
	}
}
