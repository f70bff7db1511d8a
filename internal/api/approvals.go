package api

import (
	"encoding/json"
	"net/http"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/run"
)

type askedList struct {
	Approvals []control.Question `json:"approvals"`
}

func (a *API) listApprovals(r *http.Request) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	all, err := a.Control.Questions("")
	return reply{http.StatusOK, askedList{all}}, err
}

// answerApproval approves or denies what an agent asks for. The first answer counts.
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
	d := run.Decision{OK: *given.OK, Reason: given.Reason}
	if string(given.Edit) != "null" {
		d.Edit = given.Edit
	}
	q, err := a.Control.Question(given.Run, id, d.Verb())
	if err != nil {
		return reply{}, err
	}
	result, err := a.Control.Answer(r.Context(), q.Run, q.ID, d)
	return reply{http.StatusAccepted, result}, err
}
