package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/control"
	"swarm/internal/httpd"
	"swarm/internal/mail"
	"swarm/internal/process"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A mailer sends messages to the agents of a run. It acts for a person, or for the agent whose turn
// started this program.
type mailer interface {
	find(name string) (agent string, err error) // the agent that a user names
	send(ctx context.Context, d mail.Draft) (agentapi.SendResult, error)
	post(ctx context.Context, e swarm.Envelope, cut bool) (agentapi.SendResult, error) // a complete envelope
	reply(ctx context.Context, id string, d mail.Draft) (to string, sent agentapi.SendResult, err error)
	runActions
}

// runActions are the other actions of a mailer on its run.
type runActions interface {
	publish(ctx context.Context, topic string, data json.RawMessage) (seq int64, err error)
	run() swarm.RunID
	idle() bool // no process drives the run
	close()
}

// mailer opens the mailer of the caller: a person or an agent.
func (a *app) mailer(ctx context.Context, ref string) (mailer, error) {
	c, err := a.control()
	if err != nil {
		return nil, err
	}
	if c.Caller.InTurn() {
		if ref != "" && ref != string(c.Caller.Run) {
			return nil, control.ErrOtherRun()
		}
		return a.visit(ctx, c.Caller.Door)
	}
	s, err := c.Meant(ref)
	if err == nil {
		err = c.Caller.Steer(c.Home, s.ID, "writing without the agent's own token") // else an agent could pass as a person
	}
	if err != nil {
		return nil, err
	}
	p, err := run.OpenUserMailbox(c.Home, s.ID)
	if err != nil {
		return nil, err
	}
	return &person{p, c.Home}, nil
}

// A person acts on a run through its log, from outside.
type person struct {
	*run.UserMailbox
	home *statedir.Home
}

func (p *person) find(name string) (string, error) { return p.Find(name) }

func (p *person) send(ctx context.Context, d mail.Draft) (agentapi.SendResult, error) {
	return p.FromUser(ctx, d)
}

func (p *person) post(ctx context.Context, e swarm.Envelope, cut bool) (agentapi.SendResult, error) {
	return p.UserMailbox.Service.SendEnvelope(ctx, e, cut)
}

func (p *person) reply(ctx context.Context, id string, d mail.Draft) (string, agentapi.SendResult, error) {
	sent, err := p.Answer(ctx, id, d)
	if err != nil {
		return "", sent, err
	}
	e, err := p.Envelope(sent.ID)
	return e.ToNodeID, sent, err
}

func (p *person) publish(ctx context.Context, topic string, data json.RawMessage) (int64, error) {
	return p.Publish(ctx, topic, data)
}

func (p *person) run() swarm.RunID { return p.Run }
func (p *person) idle() bool       { return !p.home.Driven(p.Run) }
func (p *person) close()           { _ = p.Close() } // sent messages are on disk already

// A visitor is an agent that acts on its run with this program, over the run's HTTP endpoint.
type visitor struct {
	httpd.Agent
	app   *app
	leave func() error
}

func (a *app) visit(ctx context.Context, door swarm.ToolEndpoint) (*visitor, error) {
	process.AllowInspection()
	agent, leave, err := httpd.Connect(ctx, door, version)
	if err != nil {
		return nil, err
	}
	return &visitor{agent, a, leave}, nil
}

// call calls a tool of the agent, and decodes its answer.
func (v *visitor) call(ctx context.Context, tool string, args, answer any) error {
	raw, err := v.Call(ctx, tool, swarm.Encode(args))
	if err != nil {
		return inCommands(err)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return swarm.Errorf(swarm.Protocol, "%s gave an answer that cannot be read: %w", tool, err)
	}
	return nil
}

// inCommands rewrites an error of a tool for an agent that uses commands: it names `swarm send`,
// not send_handoff.
func inCommands(err error) error {
	var e *swarm.Error
	if !errors.As(err, &e) {
		return err
	}
	rewritten := *e
	rewritten.Msg, rewritten.Hint = mail.InCommands(e.Msg), mail.InCommands(e.Hint)
	return &rewritten
}

// find only removes the @: the run itself checks the name.
func (v *visitor) find(name string) (string, error) { return strings.TrimPrefix(name, "@"), nil }

func (v *visitor) send(ctx context.Context, d mail.Draft) (sent agentapi.SendResult, err error) {
	switch {
	case d.Interrupt:
		return sent, swarm.Errorf(swarm.BadInput, "only a person can interrupt an agent").WithHint("leave --interrupt out: the agent reads the message in its next turn")
	case d.Priority == mail.High:
		return sent, mail.ForPeople()
	}
	for _, in := range d.Enclosed {
		if !utf8.Valid(in.Content) {
			return sent, swarm.Errorf(swarm.BadInput, "%s is not text", in.Name).WithHint("agents can store only text; leave the file where it is, and send its path")
		}
	}
	return sent, v.call(ctx, "send_handoff", mail.Handoff(d), &sent)
}

func (v *visitor) post(ctx context.Context, e swarm.Envelope, _ bool) (agentapi.SendResult, error) {
	meta := mail.MetaOf(e)
	if err := agentsMeta(e.Meta); err != nil {
		return agentapi.SendResult{}, err
	}
	// The run identifies the sender by the token and ignores fromNodeId. A wrong one is a mistake.
	if me := os.Getenv("SWARM_AGENT"); e.FromNodeID != "" && !strings.EqualFold(e.FromNodeID, me) {
		return agentapi.SendResult{}, swarm.Errorf(swarm.BadInput, "fromNodeId is %s, but you are %s", swarm.Quote(e.FromNodeID), me)
	}
	d := mail.Draft{To: e.ToNodeID, Message: e.Payload.Message, Structured: e.Payload.Structured, Artifacts: e.Payload.Artifacts,
		Status: e.Payload.Status, Response: e.Payload.Response, ContextRef: e.ContextRef, Type: meta.Type, Priority: meta.Priority, ID: e.ID}
	if e.Kind == swarm.Signal {
		d.Type = string(swarm.Signal)
	}
	return v.send(ctx, d)
}

// agentsMeta refuses fields of meta that only the runtime may set.
func agentsMeta(meta json.RawMessage) error {
	var fields map[string]any
	if meta != nil && json.Unmarshal(meta, &fields) != nil {
		return swarm.Errorf(swarm.BadInput, "the envelope's meta cannot be read")
	}
	for name, value := range fields {
		if _, text := value.(string); name != "type" && name != "priority" || !text {
			return swarm.Errorf(swarm.BadInput, "an agent may set only type and priority in an envelope's meta").WithHint(`write "meta": {"type": "info"}, or leave meta out`)
		}
	}
	return nil
}

// reply finds the sender of the message in the log, because an agent's tools show each message only
// once.
func (v *visitor) reply(ctx context.Context, id string, d mail.Draft) (to string, sent agentapi.SendResult, err error) {
	_, l, err := v.app.openMeant("")
	if err != nil {
		return "", sent, err
	}
	defer l.Close()
	asked, err := l.Envelope(id)
	if err != nil {
		return "", sent, err
	}
	if me := os.Getenv("SWARM_AGENT"); asked.ToNodeID != me {
		return "", sent, swarm.Errorf(swarm.BadInput, "message %s is for %s, not for %s", swarm.Quote(id), asked.ToNodeID, me)
	}
	d.To = mail.ReplyTo(asked)
	sent, err = v.send(ctx, d)
	return d.To, sent, err
}

func (v *visitor) publish(ctx context.Context, topic string, data json.RawMessage) (int64, error) {
	var published struct{ Seq int64 }
	err := v.call(ctx, "publish_data", map[string]any{"topic": topic, "data": data}, &published)
	return published.Seq, err
}

func (v *visitor) run() swarm.RunID { return swarm.RunID(os.Getenv("SWARM_RUN_ID")) }
func (v *visitor) idle() bool       { return false }
func (v *visitor) close()           { _ = v.leave() }

// openMeant opens a run for reading. Without ref it is the run that commands use by default.
func (a *app) openMeant(ref string) (*statedir.Home, *run.Reader, error) {
	c, err := a.control()
	if err != nil {
		return nil, nil, err
	}
	s, err := c.Meant(ref)
	if err == nil {
		err = c.Caller.OwnRun(s.ID)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := c.OpenReader(s.ID)
	return c.Home, l, err
}

// text returns the text of an argument; - is standard input.
func (a *app) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	b, err := a.readFile("-", mail.MaxEnvelope)
	return strings.TrimRight(string(b), "\r\n"), err
}

// readFile reads a file of at most most bytes; - is standard input.
func (a *app) readFile(path string, most int64) ([]byte, error) {
	var in io.Reader = a.stdin
	if path != "-" {
		f, err := os.Open(path) //nolint:gosec // the user names the file
		if err != nil {
			return nil, &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the file cannot be read", Err: swarm.WithoutPath(err)}
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, &swarm.Error{Kind: swarm.BadInput, File: path, Msg: "the file cannot be read", Err: err}
	case int64(len(b)) > most && path == "-":
		return nil, swarm.Errorf(swarm.BadInput, "standard input has more than %d bytes", most)
	case int64(len(b)) > most:
		return nil, swarm.Errorf(swarm.BadInput, "%s has more than %d bytes", path, most)
	}
	return b, nil
}

// inFile adds the path of the file to an error about its content.
func inFile(err error, path string) error {
	var e *swarm.Error
	if path == "-" || !errors.As(err, &e) {
		return err
	}
	there := *e
	there.File = path
	return &there
}

// completeAgent offers agents for a command's first argument.
func (a *app) completeAgent(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, args, begun, offerAgents)
}

func offerAgents(l *run.Reader) (offers []string, err error) {
	p, err := l.Picture()
	for _, agent := range p.Agents {
		status := string(agent.Status)
		if p.Status.Ended() { // every agent is idle then
			status = "agent"
		}
		offers = append(offers, "@"+agent.Name+"\t"+status)
	}
	return offers, err
}

// offer completes a command's first argument with names from the run of --run.
func (a *app) offer(cmd *cobra.Command, args []string, begun string, all func(*run.Reader) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ref, _ := cmd.Flags().GetString("run")
	return a.offerOf(ref, begun, all)
}

// offerOf completes with names from a run; "" is the run that commands use by default.
func (a *app) offerOf(ref, begun string, all func(*run.Reader) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	_, l, err := a.openMeant(ref)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer l.Close()
	offers, err := all(l)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.DeleteFunc(offers, func(o string) bool { return !strings.HasPrefix(o, begun) }), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeRunFlag offers runs for --run.
func (a *app) completeRunFlag(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.completeRun(cmd, nil, begun)
}
