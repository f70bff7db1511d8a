package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"swarm"
	"swarm/internal/home"
	"swarm/internal/run"
	"swarm/internal/term"
	"swarm/internal/view"
)

func (a *app) approveCommand() *cobra.Command {
	var edit string
	cmd := a.answerCommand("approve", "Let an agent do what it asks for", `
A request for a new agent or a new edge can be granted otherwise than it was asked: with --edit it is opened in $VISUAL or $EDITOR; --edit=FILE reads
it from a file, --edit=- from standard input, written whole as one JSON object.`,
		func(q question) (run.Decision, error) {
			d := run.Decision{OK: true, By: "swarm approve"}
			var err error
			if edit != "" {
				d.Edit, err = a.edited(q, edit)
			}
			return d, err
		})
	cmd.Example += "\n  swarm approve planner/1/1/5c0e --edit\n  swarm approve planner/1/1/5c0e --edit=- < wish.json"
	cmd.Flags().StringVar(&edit, "edit", "", "grant what `FILE` says instead; without FILE, an editor is opened")
	cmd.Flags().Lookup("edit").NoOptDefVal = inEditor
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	var reason string
	cmd := a.answerCommand("deny", "Refuse what an agent asks for", `
The agent is told --reason.`,
		func(question) (run.Decision, error) {
			return run.Decision{Reason: reason, By: "swarm deny"}, nil
		})
	cmd.Example += "\n  swarm deny planner/1/1/5c0e --reason 'coder can do that'"
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a few `words`")
	return cmd
}

func (a *app) answerCommand(word string, short, more string, decide func(question) (run.Decision, error)) *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   word + " [ID]",
		Short: short,
		Long: short + `: a tool that it may not use by itself, another agent, another edge. Who asks for a tool waits until somebody answers; who asks
for an agent or an edge goes on, and gets the answer by mail. Without ID, what is asked in this folder's runs is listed; the beginning of an ID is
enough. Two runs may ask under the same ID; then --run says which one is meant. The first answer counts, and is on disk when this command returns.
` + more,
		Example: fmt.Sprintf("  swarm %s\n  swarm %s code/1/1/7abaf349e9a746ca\n  swarm %s code/1/1 --run @last", word, word, word),
		Args: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags().Lookup("edit"); f != nil && f.Changed && len(args) == 2 {
				return swarm.Errorf(swarm.BadInput, "--edit and its file are one word").WithHint("write --edit=%s", args[1])
			}
			return cobra.MaximumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			h, asked, err := a.asked(ref)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listAsked(asked)
			}
			q, err := a.choose(asked, ref, args[0], word)
			if err != nil {
				return err
			}
			if err := aPersons(q.Run, "answering what an agent asks for"); err != nil {
				return err
			}
			d, err := decide(q)
			if err == nil {
				err = run.Decide(cmd.Context(), h, q.Run, q.ID, d)
			}
			if err != nil {
				return err
			}
			return a.said(q.Run, word, q.ID)
		},
		ValidArgsFunction: a.completeAsked,
	}
	cmd.Flags().StringVar(&ref, "run", "", "the `run` whose agent asks")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRunFlag)
	return cmd
}

// A question is what an agent of some run asks.
type question struct {
	Run string `json:"run"`
	view.Approval
}

// asked is what agents of this folder's runs want somebody to allow, or those of one run.
func (a *app) asked(ref string) (*home.Home, []question, error) {
	h, runs, err := a.asking(ref)
	if err != nil {
		return nil, nil, err
	}
	all := []question{}
	for _, s := range runs {
		if s.Status.Ended() {
			continue
		}
		p, err := picture(h, s.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, q := range p.Approvals {
			all = append(all, question{s.ID, q})
		}
	}
	return h, all, nil
}

// asking are the runs in which somebody may ask, or have asked, what a person answers now: those of this folder that go on, or the one
// that is named.
func (a *app) asking(ref string) (*home.Home, []swarm.RunSummary, error) {
	if ref != "" {
		h, id, err := a.find(ref)
		if err != nil {
			return nil, nil, err
		}
		return h, []swarm.RunSummary{h.Summary(id)}, nil
	}
	h, err := a.home()
	if err != nil {
		return nil, nil, err
	}
	runs, err := a.list()
	over := func(s swarm.RunSummary) bool { return s.Status.Ended() || s.Problem != "" }
	return h, slices.DeleteFunc(runs, over), err
}

func picture(h *home.Home, id string) (view.Picture, error) {
	l, err := run.LookAt(h, id)
	if err != nil {
		return view.Picture{}, err
	}
	defer l.Close()
	return l.Picture()
}

// answered says who has answered already what an id means, in one of the runs that may be meant; nil = nobody has.
func (a *app) answered(ref, id string) error {
	h, runs, err := a.asking(ref)
	if err != nil {
		return err
	}
	for _, s := range runs {
		l, err := run.LookAt(h, s.ID)
		if err != nil {
			return err
		}
		how, ok, err := l.Answered(id)
		l.Close()
		if err != nil {
			return err
		}
		if ok {
			return &swarm.Error{Kind: swarm.BadInput, Msg: how + " in run " + s.ID, Err: run.ErrAnswered}
		}
	}
	return nil
}

func (a *app) listAsked(asked []question) error {
	if a.json {
		return a.print(asked)
	}
	if len(asked) == 0 {
		_, err := fmt.Fprintln(a.stdout, "nobody asks for anything")
		return err
	}
	t := term.NewTable("ID", "RUN", "AGENT", "FOR", "WANTS TO")
	for _, q := range asked {
		t.Row(q.ID, q.Run, "@"+q.Agent, term.Duration(time.Since(q.Asked)), view.Wish(q.Approval.Approval))
	}
	return a.table(t)
}

// choose finds the one question that a user means. Ids are those of turns, which other runs have, too: an answer that was given already in
// one of them, and is only repeated, must not become another run's.
func (a *app) choose(asked []question, ref, id string, word string) (question, error) {
	q, err := meantBy(asked, id, word)
	if err == nil {
		id = q.ID
	} else if q.ID != "" {
		return question{}, err
	}
	before := a.answered(ref, id)
	var said *swarm.Error
	if errors.As(before, &said) && err == nil {
		said.Hint = fmt.Sprintf("run %s asks the same: swarm %s %s --run %s", q.Run, word, id, q.Run)
	}
	return q, cmp.Or(before, err)
}

// meantBy is the one of some questions that an id means. If it means one that several runs ask, that comes with the error.
func meantBy(asked []question, id string, word string) (question, error) {
	var found []question
	var ids, runs []string
	for _, q := range asked {
		if ids = append(ids, q.ID); strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
	}
	if slices.Contains(ids, id) {
		found = slices.DeleteFunc(found, func(q question) bool { return q.ID != id })
	}
	for _, q := range found {
		if q.ID == found[0].ID {
			runs = append(runs, q.Run)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && len(runs) == len(found):
		return found[0], swarm.Errorf(swarm.BadInput, "%d runs ask %s: %s", len(runs), found[0].ID, strings.Join(runs, ", ")).
			WithHint("say which one is meant: swarm %s %s --run %s", word, found[0].ID, runs[0])
	case len(found) > 1:
		return found[0], swarm.Errorf(swarm.BadInput, "%d questions begin with %q", len(found), id).WithHint("write more of it; `swarm approve` lists them")
	case len(ids) == 0:
		return question{}, swarm.Errorf(swarm.BadInput, "no agent of this folder's runs asks for anything").WithHint("-g looks at the runs of all folders")
	}
	return question{}, swarm.Errorf(swarm.BadInput, "nobody asks %q", id).WithHint("%s", swarm.DidYouMean(id, ids))
}
