package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/api"
	"swarm/internal/control"
	"swarm/internal/feed"
	"swarm/internal/httpd"
	"swarm/internal/statedir"
	"swarm/web"
)

// A personServer is the one server of a process that drives runs. Agents' programs find their tools
// there, and the person who started the process finds the API and the page. It starts for its first
// user, and closes with its last. mu guards the fields below it.
type personServer struct {
	mu    sync.Mutex
	users int
	http  *httpd.Server
	hub   *feed.Hub
}

// A serverUse is the server as one user has it.
type serverUse struct {
	*httpd.Server
	hub   *feed.Hub
	close func() error
}

// Close ends the use.
func (u *serverUse) Close() error { return u.close() }

// serveTools is [run.ServeTools]. Inside an agent's turn the server is for agents only: a person's API
// has no place there.
func (a *app) serveTools(version string, fault func(error)) (swarm.ToolHost, error) {
	c, err := a.control()
	if err != nil {
		return nil, err
	}
	if c.Caller.Agent {
		return httpd.Serve(version, fault)
	}
	return a.useServer(c, fault)
}

// useServer starts the server of this process, or shares the one that runs.
func (a *app) useServer(c *control.Control, fault func(error)) (*serverUse, error) {
	p := &a.server
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 {
		hub := feed.New(c.Home)
		server, err := httpd.Start(driverOptions(c, hub, fault))
		if err != nil {
			hub.Close()
			return nil, err
		}
		p.http, p.hub = server, hub
	}
	p.users++
	return &serverUse{p.http, p.hub, sync.OnceValue(func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users--; p.users > 0 {
			return nil
		}
		p.hub.Close() // before the server, which waits for its streams
		return p.http.Close()
	})}, nil
}

// driverOptions are the options of a server beside the runs that this process drives. It acts for the
// person, as `swarm serve` does, and takes the same token if there is one. It starts and resumes no
// other runs, because they would end with this process.
func driverOptions(c *control.Control, hub *feed.Hub, fault func(error)) httpd.Options {
	refusal := swarm.Errorf(swarm.Denied, "this server ends with the run that its process drives, so it begins no other").
		WithHint("begin it in a terminal, or in the page of swarm serve")
	byHTTP := *c
	byHTTP.Caller, byHTTP.Steering = control.Caller{How: swarm.HowHTTP}, false
	byHTTP.DrivesNone, byHTTP.GoOn = refusal, func(context.Context, swarm.RunID) error { return refusal }
	routes := api.New(api.Options{Control: &byHTTP, Feed: hub, Page: web.Files(),
		Start:     func(context.Context, control.Request) (string, error) { return "", refusal },
		StartLine: func(context.Context, control.Request, string) (string, error) { return "", refusal },
		Begin:     func(context.Context, *control.Begin) (string, error) { return "", refusal }})
	o := httpd.Options{Listen: "127.0.0.1:0", Routes: routes, Key: knownKey(c.Home), Version: version, Fault: fault,
		Again: "for a new address type /open in its session, or press Enter in its terminal after the run's end; the page of swarm serve shows the same runs"}
	forBrowsers(&o, c.Home)
	return o
}

// forBrowsers adds the page to a server, and checks which processes use it.
func forBrowsers(o *httpd.Options, h *statedir.Home) {
	o.Page = web.Files()
	o.CheckPeer = func(conn net.Conn) error { return control.CheckPeer(h, conn) }
	o.CheckBrowser = func(conn net.Conn) error { return control.CheckBrowser(h, conn) }
}

// knownKey is the token that `swarm serve` takes without flags. If there is none, or it cannot be
// used, only a one-time code opens the server: a run does not fail for it.
func knownKey(h *statedir.Home) httpd.Key {
	if token := os.Getenv("SWARM_TOKEN"); token != "" {
		key, _ := httpd.NewKey(token)
		return key
	}
	key, _ := httpd.ReadKey(h.TokenPath())
	return key
}

// openFlag adds --open to a command that drives a run.
func (a *app) openFlag(cmd *cobra.Command) {
	a.openFlagFor(cmd, "show the run in your browser, by the page that swarm serve has too")
}

// openFlagFor adds --open with its help to a command.
func (a *app) openFlagFor(cmd *cobra.Command, help string) {
	cmd.Flags().BoolVar(&a.open, "open", false, help)
	act := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.open {
			if detach := cmd.Flags().Lookup("detach"); detach != nil && detach.Changed {
				return swarm.Errorf(swarm.BadInput, "a detached run prints no address of its page").WithHint("leave out -d, or take the page of swarm serve")
			}
			if err := a.mayOpen(); err != nil {
				return err
			}
			a.browser = startOpener() // before the first program of a run starts
			defer a.browser.close()
		}
		return act(cmd, args)
	}
}

// mayOpen refuses the page to an agent: it acts for a person.
func (a *app) mayOpen() error {
	c, err := a.control()
	if err != nil {
		return err
	}
	return c.Caller.Person("opening the page")
}

// errNoPage refuses --open for a run that another process drives.
func errNoPage(who swarm.Owner, id swarm.RunID) error {
	return swarm.Errorf(swarm.BadInput, "%s drives the run %s, so this one has no page of it", who.Process(), id).
		WithHint("leave out --open; swarm serve has the page of every run")
}

// A shownPage is the page of a run that this process drives.
type shownPage struct {
	run     swarm.RunID
	server  *serverUse
	browser *opener
	stop    func() // watching the run
}

// showPage opens the page of a run, and prints its address. Where no person watches, nothing keeps the
// page when the run ends.
func (a *app) showPage(id swarm.RunID, log swarm.Log) (*shownPage, error) {
	p, err := a.openPage(id, log)
	if err != nil {
		return nil, err
	}
	address := p.invite()
	switch {
	case a.json:
		fmt.Fprintf(a.stderr, "%s\n", swarm.Encode(map[string]string{"page": address}))
	case a.attended():
		fmt.Fprintf(a.stderr, "the page: %s (good once, for a minute)\n", address)
	default:
		fmt.Fprintf(a.stderr, "the page: %s (good once, for a minute, until the run ends; later: swarm serve)\n", address)
	}
	return p, nil
}

// openPage starts the server for a run's page.
func (a *app) openPage(id swarm.RunID, log swarm.Log) (*shownPage, error) {
	c, err := a.control()
	if err == nil {
		err = c.Caller.Person("opening the page")
	}
	if err != nil {
		return nil, err
	}
	server, err := a.useServer(c, a.complain)
	if err != nil {
		return nil, err
	}
	return &shownPage{id, server, a.browser, server.hub.Watch(id, log)}, nil
}

// invite opens the page in a browser, and returns its address.
func (p *shownPage) invite() string {
	address := p.address()
	p.browser.open(address)
	return address
}

// address returns an address of the page, with a new code.
func (p *shownPage) address() string { return p.server.OpenURL("/r/" + string(p.run)) }

// linger keeps the page until Ctrl-C if a person watches: the run may have ended before the browser
// had shown it. A machine without a browser needs an address with a new code: the first one has
// scrolled away, and is older than a minute.
func (p *shownPage) linger(ctx context.Context, a *app) {
	if p != nil && ctx.Err() == nil && a.attended() && !a.json {
		a.inviteAgain(a.stderr, "the page stays until Ctrl-C", p.address)
		<-ctx.Done()
	}
}

func (p *shownPage) close() {
	if p != nil {
		p.stop()
		_ = p.server.Close() // the run's end is what counts
	}
}
