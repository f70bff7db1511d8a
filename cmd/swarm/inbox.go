package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/mail"
	"swarm/internal/term"
	"swarm/internal/view"
)

// An inbox is a page of mail to a person or an agent.
type inbox struct {
	Envelopes []mail.Item `json:"envelopes"`
	More      bool        `json:"more,omitempty"`
	// Approvals are the requests that wait for the person's answer. An agent's inbox has none.
	Approvals []control.Question `json:"approvals,omitempty"`
}

func (a *app) inboxCommand() *cobra.Command {
	var ref string
	var most int
	var everything bool
	cmd := &cobra.Command{
		Use:   "inbox [RUN]",
		Short: "Read what agents have written to you",
		Long: `Print your unread messages from the agents of a run: answers, and requests for help. Printed messages
are marked as read. A question that needs your reply is printed until it is answered, and so is an
approval. With --all, print every message and mark none. To answer, use ` + "`swarm reply`" + `, and
` + "`swarm approve`" + ` or ` + "`swarm deny`" + ` for an approval.

Inside an agent's turn, where SWARM_URL and SWARM_AGENT_TOKEN are set, print the agent's inbox: the
messages that arrived after its turn started.

With --json the result is {envelopes, more?, approvals?}.

` + whichRun,
		Example:           "  swarm inbox\n  swarm inbox --max 5\n  swarm inbox --all --json | jq '.envelopes[].payload.message'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				if ref, err = oneRun(args[0], ref); err != nil {
					return err
				}
			}
			if most < 1 || most > 100 {
				return swarm.Errorf(swarm.BadInput, "--max %d: choose a number from 1 to 100", most)
			}
			if control.CallerFromEnv().InTurn() {
				return a.agentInbox(cmd.Context(), ref, most)
			}
			return a.userInbox(cmd.Context(), ref, most, everything)
		},
	}
	f := cmd.Flags()
	f.StringVar(&ref, "run", "", "the `run` of the inbox")
	f.IntVar(&most, "max", 20, "print at most `N` messages")
	f.BoolVar(&everything, "all", false, "print read messages too, and mark none as read")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

func (a *app) agentInbox(ctx context.Context, ref string, most int) error {
	p, err := a.mailer(ctx, ref)
	if err != nil {
		return err
	}
	defer p.close()
	v, ok := p.(*visitor)
	if !ok {
		return swarm.Errorf(swarm.Other, "this is not an agent's turn")
	}
	var in inbox
	if err := v.call(ctx, "read_inbox", map[string]int{"max": most}, &in); err != nil {
		return err
	}
	return a.printInbox(in)
}

func (a *app) userInbox(ctx context.Context, ref string, most int, everything bool) error {
	p, err := a.mailer(ctx, ref)
	if err != nil {
		return err
	}
	defer p.close()
	u, ok := p.(*person)
	if !ok {
		return swarm.Errorf(swarm.Other, "this is an agent's turn")
	}
	in := inbox{Envelopes: []mail.Item{}}
	if everything {
		err = u.All(func(item mail.Item) { in.Envelopes = append(in.Envelopes, item) })
	} else {
		var items []mail.Item
		var open []mail.Item
		items, in.More, err = u.UserMail(most)
		if err == nil {
			open, err = u.OpenQuestions()
		}
		in.Envelopes = append(append(in.Envelopes, open[:min(len(open), most-len(items))]...), items...)
	}
	if err == nil {
		in.Approvals, err = a.openApprovals(u.Run)
	}
	if err != nil {
		return err
	}
	if err := a.printInbox(in); err != nil {
		return err
	}
	if n := len(in.Envelopes); n > 0 && !everything {
		return u.UserRead(ctx, in.Envelopes[n-1].Seq)
	}
	return nil
}

// openApprovals returns the approvals of a run that only a person can answer.
func (a *app) openApprovals(id swarm.RunID) ([]control.Question, error) {
	c, err := a.control()
	if err != nil {
		return nil, err
	}
	asked, err := c.Questions(string(id))
	return slices.DeleteFunc(asked, func(q control.Question) bool { return q.Auto }), err
}

func (a *app) printInbox(in inbox) error {
	switch {
	case a.json:
		return a.print(in)
	case len(in.Envelopes) == 0 && len(in.Approvals) == 0:
		_, err := fmt.Fprintln(a.stdout, "nothing new")
		return err
	}
	for _, item := range in.Envelopes {
		if err := a.printMessage(item.Envelope); err != nil {
			return err
		}
	}
	if in.More {
		if _, err := fmt.Fprintln(a.stdout, "there is more: swarm inbox"); err != nil {
			return err
		}
	}
	for _, q := range in.Approvals {
		if _, err := fmt.Fprintln(a.stdout, term.OneLine(view.NeedsAnswer(q.Agent, q.Approval.Approval))); err != nil {
			return err
		}
	}
	return nil
}

// printMessage prints a message for a person.
func (a *app) printMessage(e swarm.Envelope) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from @%s, %s", e.ID, e.FromNodeID, ago(e.CreatedAt, time.Now()))
	if t := mail.MetaOf(e).Type; t != "" {
		fmt.Fprintf(&b, " (%s)", term.Escape(t))
	}
	b.WriteString("\n")
	for line := range strings.Lines(strings.TrimRight(e.Payload.Message, "\r\n")) {
		b.WriteString("  " + term.Escape(strings.TrimRight(line, "\r\n")) + "\n")
	}
	if len(e.Payload.Structured) > 0 {
		fmt.Fprintf(&b, "  structured: %s\n", term.Escape(string(e.Payload.Structured)))
	}
	for _, it := range e.Payload.Artifacts {
		fmt.Fprintf(&b, "  artifact: %s\n", term.Escape(it.Ref))
	}
	if s := e.Payload.Status; s != nil && s.Reason != "" {
		fmt.Fprintf(&b, "  status: %s\n", term.Escape(s.Reason))
	}
	if mail.Expects(e) {
		fmt.Fprintf(&b, "  reply required: swarm reply %s \"…\"\n", e.ID)
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}
