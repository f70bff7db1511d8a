package mcpdrive

import (
	"context"
	"strings"

	"swarm"
	"swarm/internal/control"
	"swarm/internal/mail"
	"swarm/internal/run"
)

// steerable finds a run that the client may steer and that has not ended.
func (s *Server) steerable(ref string) (swarm.RunSummary, error) {
	r, err := s.find(ref)
	if err != nil {
		return r, err
	}
	if err = s.Control.Steerable(r); run.Current(s.Control.Home, r).Status.Ended() && swarm.KindOf(err) == swarm.BadInput {
		err = withHint(err, "read_run reads it; to start another one: run_pipeline, run_team, run_line or solve")
	}
	return r, err
}

// noted is the answer of a tool that steers a run.
type noted struct {
	control.CommandResult
	Next string `json:"next"`
}

func result(done control.CommandResult, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return noted{done, "wait_run with run " + string(done.Run)}, nil
}

func (s *Server) send(ctx context.Context, a struct {
	Run       string `json:"run"`
	To        string `json:"to"`
	Text      string `json:"text"`
	Interrupt bool   `json:"interrupt"`
},
) (any, error) {
	r, err := s.find(a.Run)
	if err != nil {
		return nil, err
	}
	sent, err := s.Control.Send(ctx, r, mail.Draft{To: strings.TrimPrefix(a.To, "@"), Message: a.Text, Interrupt: a.Interrupt}, "start another one: run_team")
	if err != nil {
		return nil, err
	}
	return struct {
		Run  swarm.RunID `json:"run"`
		ID   string      `json:"id"`
		Seq  int64       `json:"seq"`
		Next string      `json:"next"`
	}{r.ID, sent.ID, sent.Seq, "wait_run with run " + string(r.ID)}, nil
}

func (s *Server) cancelRun(ctx context.Context, a struct {
	Run    string `json:"run"`
	Target string `json:"target"`
},
) (any, error) {
	r, err := s.steerable(a.Run)
	if err != nil {
		return nil, err
	}
	if a.Target != "" {
		if a.Target, err = s.Control.Target(r.ID, a.Target); err != nil {
			return nil, err
		}
	}
	return result(s.Control.Cancel(ctx, r.ID, a.Target))
}

func (s *Server) resumeRun(ctx context.Context, a struct {
	Run string `json:"run"`
},
) (any, error) {
	r, err := s.steerable(a.Run)
	if err != nil {
		return nil, err
	}
	return result(s.Control.Resume(ctx, r.ID))
}

func (s *Server) answerApproval(ctx context.Context, a struct {
	Run    string `json:"run"`
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
},
) (any, error) {
	r, err := s.steerable(a.Run)
	if err != nil {
		return nil, err
	}
	d := run.Decision{OK: a.OK, Reason: a.Reason}
	q, err := s.Control.Choose(string(r.ID), a.ID, d.Verb())
	if err != nil {
		return nil, err
	}
	return result(s.Control.Answer(ctx, q.Run, q.ID, d))
}
