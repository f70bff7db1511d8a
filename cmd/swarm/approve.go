package main

import (
	"fmt"
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
	return a.answerCommand(swarm.WordApprove, "approve [ID]", "Let an agent do what it asks for")
}

func (a *app) denyCommand() *cobra.Command {
	return a.answerCommand(swarm.WordDeny, "deny [ID]", "Refuse what an agent asks for")
}

func (a *app) answerCommand(word swarm.Word, use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Long: short + `: a tool that it may not use by itself. The agent waits until somebody answers. Without ID, what is asked in this
folder's runs is listed; the beginning of an ID is enough. The answer is on disk when this command returns.`,
		Example: fmt.Sprintf("  swarm %s\n  swarm %s code/1/1/7abaf349e9a746ca", word, word),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, asked, err := a.asked()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listAsked(asked)
			}
			q, err := choose(asked, args[0])
			if err == nil {
				err = aPersons(q.Run, "answering what an agent asks for")
			}
			if err != nil {
				return err
			}
			if err := run.Control(cmd.Context(), h, q.Run, word, q.ID); err != nil {
				return err
			}
			return a.said(q.Run, string(word), q.ID)
		},
	}
}

// A question is what an agent of some run asks.
type question struct {
	Run string `json:"run"`
	view.Approval
}

// asked is what agents of this folder's runs wait for somebody to allow.
func (a *app) asked() (*home.Home, []question, error) {
	h, err := a.home()
	if err != nil {
		return nil, nil, err
	}
	runs, err := a.list()
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

func picture(h *home.Home, id string) (view.Picture, error) {
	l, err := run.LookAt(h, id)
	if err != nil {
		return view.Picture{}, err
	}
	defer l.Close()
	return l.Picture()
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

// choose finds the one question that a user means.
func choose(asked []question, id string) (question, error) {
	var found []question
	var ids []string
	for _, q := range asked {
		if q.ID == id {
			return q, nil
		}
		if strings.HasPrefix(q.ID, id) {
			found = append(found, q)
		}
		ids = append(ids, q.ID)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return question{}, swarm.Errorf(swarm.BadInput, "%d questions begin with %q", len(found), id).WithHint("write more of it; `swarm approve` lists them")
	case len(ids) == 0:
		return question{}, swarm.Errorf(swarm.BadInput, "no agent of this folder's runs asks for anything").WithHint("-g looks at the runs of all folders")
	}
	return question{}, swarm.Errorf(swarm.BadInput, "nobody asks %q", id).WithHint("%s", swarm.DidYouMean(id, ids))
}
