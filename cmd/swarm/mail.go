package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

// mailOptions select the messages to print.
type mailOptions struct {
	run     string
	agent   string // "" = all agents
	pending bool
	follow  bool
	last    int // -1 = all
}

func (a *app) mailCommand() *cobra.Command {
	var o mailOptions
	cmd := &cobra.Command{
		Use:   "mail [RUN] [@AGENT]",
		Short: "List the messages of a run, with their receipts",
		Long: `List the messages of a run, or those from and to one agent, with their receipts:
  stored          in the receiver's inbox
  injected        into a turn: in its prompt, or beside the answer of a tool
  answered        by which message
  undeliverable   and why

AGE is how long a message waits, or waited until it was read. A required reply that has not come in
time is marked as overdue.

With --json the result is an array of envelopes with their receipts. With --json -f, each line is one
envelope, printed again when its receipt changes.

` + whichRun,
		Example:           "  swarm mail\n  swarm mail @coder --pending\n  swarm mail -f\n  swarm mail @last --json | jq '.[] | select(.receipt.state == \"undeliverable\")'",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: a.completeRunAnd([]string{"[@AGENT]"}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("number") && o.last < 0 {
				return swarm.Errorf(swarm.BadInput, "-n %d: the number of messages cannot be negative", o.last)
			}
			if len(args) == 2 || len(args) == 1 && namesRun(args[0]) {
				var err error
				if o.run, err = oneRun(args[0], o.run); err != nil {
					return err
				}
				args = args[1:]
			}
			if len(args) > 0 {
				o.agent = args[0]
			}
			return a.mail(o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "the `run` of the mail")
	f.BoolVar(&o.pending, "pending", false, "only messages that are unread or need a reply")
	f.BoolVarP(&o.follow, "follow", "f", false, "print changes until the run ends")
	f.IntVarP(&o.last, "number", "n", -1, "only the last `N` messages")
	f.Lookup("number").DefValue = "all"
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

func (a *app) mail(o mailOptions) error {
	_, l, err := a.openMeant(o.run)
	if err != nil {
		return err
	}
	defer l.Close()
	if o.agent, err = correspondent(l, o.agent); err != nil {
		return err
	}
	if o.follow {
		return a.followMail(l, o)
	}
	d, err := l.Details()
	if err != nil {
		return err
	}
	all := o.choose(d.Envelopes)
	if o.last >= 0 && len(all) > o.last {
		all = all[len(all)-o.last:]
	}
	switch {
	case a.json:
		return a.print(all)
	case len(all) == 0:
		_, err := fmt.Fprintf(a.stdout, "no mail in run %s\n", l.ID)
		return err
	}
	return a.table(receiptTable(all, time.Now()))
}

// correspondent finds the agent that a user names. The user and the orchestrator have names too.
func correspondent(l *run.Reader, name string) (string, error) {
	name = strings.ToLower(strings.TrimPrefix(name, "@"))
	if name == "" || name == swarm.User || name == swarm.Orchestrator {
		return name, nil
	}
	p, err := l.Picture()
	if err != nil {
		return "", err
	}
	var names []string
	for _, agent := range p.Agents {
		if agent.Name == name {
			return name, nil
		}
		names = append(names, agent.Name)
	}
	e := swarm.Errorf(swarm.BadInput, "Unknown agent: '%s'. Valid agents: %s", name, strings.Join(names, ", "))
	if near := swarm.Nearest(name, names); name == "last" {
		e.Hint = "the newest run is @last: swarm mail @last"
	} else if near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return "", e
}

func (o mailOptions) choose(all []view.Envelope) []view.Envelope {
	some := []view.Envelope{}
	for _, e := range all {
		if (o.agent == "" || e.FromNodeID == o.agent || e.ToNodeID == o.agent) && (!o.pending || e.Pending()) {
			some = append(some, e)
		}
	}
	return some
}

// followMail prints the messages so far, and then each one whose receipt changes.
func (a *app) followMail(l *run.Reader, o mailOptions) error {
	ctx, end := leaveSignals()
	defer end()
	first := true
	err := l.FollowMail(ctx, func(changed []view.Envelope) error {
		changed = o.choose(changed)
		if first && o.last >= 0 && len(changed) > o.last {
			changed = changed[len(changed)-o.last:]
		}
		first = false
		for _, e := range changed {
			if a.json {
				if err := a.print(e); err != nil {
					return err
				}
				continue
			}
			if _, err := fmt.Fprintf(a.stdout, "%d  %s  @%s → @%s  %s  %s\n", e.Receipt.Seq, e.ID, e.Sender(), e.ToNodeID, state(&e), term.Escape(view.FirstLine(e.Payload.Message))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil // a reader that stops watching is no failure
	}
	return err
}

// state describes a receipt in words.
func state(e *view.Envelope) string {
	r := e.Receipt
	text := r.State
	switch {
	case r.Reason != "":
		text += " (" + term.Escape(r.Reason) + ")"
	case r.Answer != "":
		text += " by " + r.Answer
	case r.Turn != "":
		text += " into " + r.Turn
		if r.Tool != "" {
			text += ", beside the answer of " + term.Escape(r.Tool)
		}
	}
	switch {
	case r.Answer != "":
	case r.Overdue == view.ReplyOver:
		text += ", its reply never came"
	case r.Overdue != "":
		text += ", its reply is overdue"
	}
	if r.Edited != nil {
		text += ", edited by " + term.Escape(r.Edited.String())
	}
	return text
}

func receiptTable(all []view.Envelope, now time.Time) *term.Table {
	t := term.NewTable("MAIL", "ID", "FROM", "TO", "WAITED", "RECEIPT", "MESSAGE").Right(0, 4).Cut(6)
	for i := range all {
		e := &all[i]
		t.Row(strconv.FormatInt(e.Receipt.Seq, 10), e.ID, "@"+e.Sender(), "@"+e.ToNodeID, term.Duration(e.Age(now)), state(e), view.FirstLine(e.Payload.Message))
	}
	return t
}

// completeMail offers the ids of messages that wait for the person's reply.
func (a *app) completeMail(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.offer(cmd, args, begun, func(l *run.Reader) (offers []string, err error) {
		d, err := l.Details()
		for _, e := range slices.Backward(d.Envelopes) {
			if e.ToNodeID == swarm.User && e.Receipt.Answer == "" && e.FromNodeID != swarm.Orchestrator {
				offers = append(offers, e.ID+"\t@"+e.FromNodeID+": "+view.FirstLine(e.Payload.Message))
			}
		}
		return offers, err
	})
}
