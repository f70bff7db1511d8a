package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
	"swarm/internal/term"
)

const whichRun = "Without --run, use the newest run of this folder that a process drives, or else the newest.\n" + runHelp

const insideHelp = `Inside an agent's turn, where SWARM_URL and SWARM_AGENT_TOKEN are set, this command acts for the agent,
within its edges.`

// letter holds the flags of a message.
type letter struct {
	run        string
	interrupt  bool
	priority   string   // one of mail.Priorities, or ""
	structured string   // a file
	artifacts  []string // files
	context    string   // a context pack's ref
	kind       string
	required   bool
	id         string
	envelope   string // a file with the whole envelope
}

func (a *app) sendCommand() *cobra.Command {
	var l letter
	cmd := &cobra.Command{
		Use:   "send @AGENT TEXT",
		Short: "Send a message to an agent of a run",
		Long: `Send a message to an agent of a run. The message is on disk, in the agent's inbox, when this command
returns. The agent reads it in its next turn.

With --priority high, the agent gets the message between two tool calls of its running turn, if its
provider supports that (docs/providers.md). With --interrupt, the running turn is stopped, and the next
one starts with the message. With - as TEXT, the text comes from standard input.

With --envelope, the whole message is a JSON object with the fields kind, id, fromNodeId (your own
name, or left out), toNodeId, createdAt, payload, contextRef and meta.

` + insideHelp + `

` + whichRun,
		Example: `  swarm send @coder "The tests are in ./spec, not in ./test"
  swarm send @coder "The port is 8081 now" --priority high
  swarm send @coder "Stop: the API has changed" --interrupt
  swarm send @planner "Which of the two?" --required
  git diff | swarm send @reviewer - --type request
  swarm send @coder "Here is the log" --artifact build.log --structured facts.json
  swarm send @tester "Test it" --context contextpack://pack/p-0a1b2c3d
  swarm send --envelope message.json`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeAgent,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case l.envelope != "" && len(args) > 1:
				return swarm.Errorf(swarm.BadInput, "the text is in the envelope").WithHint("write only --envelope %s", l.envelope)
			case l.envelope == "" && len(args) < 2:
				return swarm.Errorf(swarm.BadInput, "the agent or the text is missing").WithHint(`write: swarm send @AGENT "text"`)
			}
			return a.send(cmd.Context(), l, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.run, "run", "", "the `run` of the agent")
	f.BoolVar(&l.interrupt, "interrupt", false, "stop the agent's running turn")
	f.StringVar(&l.priority, "priority", "", "the `priority`: normal, or high: the agent reads it between two tool calls, before other mail")
	f.StringVar(&l.structured, "structured", "", "JSON from this `file` as payload.structured")
	f.StringArrayVar(&l.artifacts, "artifact", nil, "store this `file` as an artifact and send its ref; may be given again")
	f.StringVar(&l.context, "context", "", "send the context pack with this `ref` along")
	f.StringVar(&l.kind, "type", "", "handoff, signal (which causes no turn), or a `word` such as request or info")
	f.BoolVar(&l.required, "required", false, "require a reply; swarm inbox shows it")
	f.StringVar(&l.id, "id", "", "an idempotency key: the same `id` with the same text is one message")
	f.StringVar(&l.envelope, "envelope", "", "the whole envelope as JSON from this `file`; - is standard input")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	_ = cmd.RegisterFlagCompletionFunc("context", a.completePack)
	_ = cmd.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(mail.Priorities, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) send(ctx context.Context, l letter, args []string) error {
	p, err := a.mailer(ctx, l.run)
	if err != nil {
		return err
	}
	defer p.close()
	if l.envelope != "" {
		return a.sendEnvelope(ctx, p, l, args)
	}
	to, err := p.find(args[0])
	if err != nil {
		return err
	}
	d := mail.Draft{To: to, Type: l.kind, ID: l.id, Priority: l.priority, Interrupt: l.interrupt, ContextRef: l.context}
	if d.Message, err = a.text(args[1]); err != nil {
		return err
	}
	if err := a.enclose(l, &d); err != nil {
		return err
	}
	sent, err := p.send(ctx, d)
	return a.tellSent(p, to, sent, err)
}

// enclose adds to a draft the parts that come from flags and files, and checks it.
func (a *app) enclose(l letter, d *mail.Draft) error {
	if l.required {
		d.Response = &swarm.Response{Expectation: "required"}
	}
	if l.structured != "" {
		text, err := a.readFile(l.structured, mail.MaxEnvelope)
		if err != nil {
			return err
		}
		if d.Structured, err = strictjson.ReadValue(text); err != nil {
			return inFile(err, l.structured)
		}
	}
	if n := len(d.Message); n > mail.MaxMessage {
		return swarm.Errorf(swarm.BadInput, "the text has %d bytes, and a message has room for %d", n, mail.MaxMessage).WithHint("send the long part as an artifact: --artifact FILE")
	}
	for _, path := range l.artifacts {
		text, err := a.readFile(path, agentapi.MaxArtifact)
		if err != nil {
			return err
		}
		d.Enclosed = append(d.Enclosed, mail.Enclosure{Kind: kindOf(path), Name: filepath.Base(path), Content: text})
	}
	return d.Check()
}

// kindOf chooses the kind of an artifact by the extension of its file.
func kindOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".diff", ".patch":
		return "diff"
	case ".log":
		return "log"
	}
	return "file"
}

func (a *app) sendEnvelope(ctx context.Context, p mailer, l letter, args []string) error {
	text, err := a.readFile(l.envelope, mail.MaxEnvelope)
	if err != nil {
		return err
	}
	e, err := mail.ReadEnvelope(text)
	if err != nil {
		return inFile(err, l.envelope)
	}
	to, err := p.find(e.ToNodeID)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if named, err := p.find(args[0]); err != nil || named != to {
			return swarm.Errorf(swarm.BadInput, "the envelope is for %s, not for %s", e.ToNodeID, args[0]).WithHint("leave %s out", args[0])
		}
	}
	if (l.interrupt || l.priority == mail.High) && !mail.Urgent(e) {
		return swarm.Errorf(swarm.BadInput, "the envelope's priority is not high").WithHint(`write "meta": {"priority": "high"} into it`)
	}
	sent, err := p.post(ctx, e, l.interrupt)
	return a.tellSent(p, to, sent, err)
}

func (a *app) tellSent(p mailer, to string, sent agentapi.SendResult, err error) error {
	switch {
	case err != nil:
		return err
	case a.json:
		return a.print(struct {
			Run swarm.RunID `json:"run"`
			To  string      `json:"to"`
			agentapi.SendResult
		}{p.run(), to, sent})
	}
	_, err = fmt.Fprintf(a.stdout, "message %s to @%s is stored as %d in run %s\n", sent.ID, term.Escape(to), sent.Seq, p.run())
	if err == nil && p.idle() {
		fmt.Fprintf(a.stderr, "note: no process drives the run; the agent reads the message after: swarm resume %s\n", p.run())
	}
	return err
}

func (a *app) replyCommand() *cobra.Command {
	var l letter
	cmd := &cobra.Command{
		Use:   "reply ID TEXT",
		Short: "Reply to a message from an agent",
		Long: `Reply to a message. ID is the id that ` + "`swarm inbox`" + ` prints, or the beginning of it. The reply goes
to the agent that the message names for replies, or else to its sender. With - as TEXT, the text comes
from standard input.

` + insideHelp + `

` + whichRun,
		Example:           "  swarm reply m-3fa9c1 \"Take the second one\"\n  swarm reply m-3fa9c1 - < answer.txt",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeMail,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.mailer(cmd.Context(), l.run)
			if err != nil {
				return err
			}
			defer p.close()
			d := mail.Draft{Type: l.kind}
			if d.Message, err = a.text(args[1]); err == nil {
				err = a.enclose(l, &d)
			}
			if err != nil {
				return err
			}
			to, sent, err := p.reply(cmd.Context(), args[0], d)
			return a.tellSent(p, to, sent, err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.run, "run", "", "the `run` of the message")
	f.StringVar(&l.structured, "structured", "", "JSON from this `file` as payload.structured")
	f.StringArrayVar(&l.artifacts, "artifact", nil, "store this `file` as an artifact and send its ref; may be given again")
	f.StringVar(&l.kind, "type", "", "a `word` for the type of the message")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

func (a *app) publishCommand() *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   "publish TOPIC DATA",
		Short: "Publish a finding to a topic that the whole team reads",
		Long: `Publish a finding to a topic of a run. The newest findings of each topic are in the next prompts of
all agents, but cause no turns. 'swarm show' lists them. DATA is a JSON object or list, or else a
text. With - as DATA, it comes from standard input.

` + insideHelp + `

` + whichRun,
		Example: "  swarm publish facts \"The API has no paging\"\n  swarm publish results '{\"passed\": 12, \"failed\": 0}'\n  go test -json ./... | tail -1 | swarm publish tests -",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.mailer(cmd.Context(), ref)
			if err != nil {
				return err
			}
			defer p.close()
			text, err := a.text(args[1])
			if err != nil {
				return err
			}
			seq, err := p.publish(cmd.Context(), args[0], dataOf(text))
			switch {
			case err != nil:
				return err
			case a.json:
				return a.print(map[string]any{"run": p.run(), "topic": args[0], "seq": seq})
			}
			_, err = fmt.Fprintf(a.stdout, "published on %s as %d in run %s\n", term.Escape(args[0]), seq, p.run())
			return err
		},
	}
	cmd.Flags().StringVar(&ref, "run", "", "the `run` of the topic")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

// dataOf makes the data of a finding from a text: a JSON object or list stays as it is, and
// anything else becomes a JSON string.
func dataOf(text string) json.RawMessage {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		if value, err := strictjson.ReadValue(trimmed); err == nil {
			return value
		}
	}
	return swarm.Encode(text)
}
