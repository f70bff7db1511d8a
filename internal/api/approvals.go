package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"swarm"
	"swarm/internal/run"
	"swarm/internal/view"
)

// An asked is what an agent of some run asks a person.
type asked struct {
	Run string `json:"run"`
	view.Approval
}

type askedList struct {
	Approvals []asked `json:"approvals"`
}

func (a *API) listApprovals(r *http.Request) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	all, err := a.asked()
	if err != nil {
		return reply{}, err
	}
	return ok(askedList{all})
}

// asked is what agents wait for somebody to allow, in all runs that have not ended.
func (a *API) asked() ([]asked, error) {
	runs, err := a.Home.List(a.Dir, a.Anywhere)
	if err != nil {
		return nil, err
	}
	all := []asked{}
	for _, s := range runs {
		if s.Status.Ended() || s.Problem != "" {
			continue
		}
		l, err := run.LookAt(a.Home, s.ID)
		if err != nil {
			return nil, err
		}
		p, err := l.Picture()
		l.Close()
		if err != nil {
			return nil, err
		}
		for _, q := range p.Approvals {
			all = append(all, asked{s.ID, q})
		}
	}
	return all, nil
}

// answerApproval allows or refuses what an agent asks. The first answer counts.
func (a *API) answerApproval(r *http.Request) (reply, error) {
	id := r.PathValue("approval")
	var given struct {
		OK     *bool           `json:"ok"`
		Run    string          `json:"run"`
		Reason string          `json:"reason"`
		Edit   json.RawMessage `json:"edit"`
	}
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	if err := readBody(r, &given, "ok", "run", "reason", "edit"); err != nil {
		return reply{}, err
	}
	if given.OK == nil {
		return reply{}, swarm.Errorf(swarm.BadInput, "the body does not say yes or no").WithHint(`write {"ok": true} or {"ok": false}`)
	}
	all, err := a.asked()
	if err != nil {
		return reply{}, err
	}
	var found []asked
	for _, q := range all {
		if q.ID == id && (given.Run == "" || given.Run == q.Run) {
			found = append(found, q)
		}
	}
	switch {
	case len(found) == 0:
		return reply{}, a.answered(id, given.Run)
	case len(found) > 1:
		return reply{}, conflict(`say which run: {"ok": …, "run": "`+found[0].Run+`"}`, "%d runs ask %s", len(found), id)
	}
	d := run.Decision{OK: *given.OK, Reason: given.Reason, By: "HTTP"}
	if string(given.Edit) != "null" {
		d.Edit = given.Edit
	}
	err = run.Decide(r.Context(), a.Home, found[0].Run, id, d)
	if errors.Is(err, run.ErrAnswered) {
		err = refusal{http.StatusConflict, err}
	}
	if err != nil {
		return reply{}, err
	}
	return reply{http.StatusAccepted, noted{found[0].Run, d.Word(), id}}, nil
}

// answered says who has answered what nobody asks any more; if nobody has, nobody asked.
func (a *API) answered(id, only string) error {
	runs, err := a.Home.List(a.Dir, a.Anywhere)
	if err != nil {
		return err
	}
	for _, s := range runs {
		if s.Status.Ended() || s.Problem != "" || only != "" && s.ID != only {
			continue
		}
		l, err := run.LookAt(a.Home, s.ID)
		if err != nil {
			return err
		}
		how, ok, err := l.Answered(id)
		l.Close()
		if err != nil {
			return err
		}
		if ok {
			return refusal{http.StatusConflict, &swarm.Error{Kind: swarm.BadInput, Msg: how, Err: run.ErrAnswered}}
		}
	}
	return swarm.Errorf(swarm.NotFound, "nobody asks %s", swarm.Quote(id)).WithHint("GET /api/v1/approvals lists what is asked")
}
