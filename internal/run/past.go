package run

import (
	"context"
	"errors"
	"strconv"

	"swarm"
	"swarm/internal/view"
)

// pastEvery is the distance of the stored folds by which past moments of a run are found.
const pastEvery = 10_000

// pastName is the name of the stored fold up to an event.
func pastName(seq int64) string { return foldName + ":" + strconv.FormatInt(seq, 10) }

// keepsPast reports whether a fold is stored for later questions about the past. A fold is as large as
// its plan, so those of a large plan are stored less often.
func keepsPast(v *view.Run) bool {
	every := pastEvery * (1 + int64(4*v.Len())/pastEvery)
	return v.Seq > 0 && v.Seq%every == 0
}

// storePast stores the fold of a past moment.
func storePast(log swarm.RunLog, v *view.Run) error {
	return log.SaveFold(pastName(v.Seq), foldVersion, v.Seq, v.Marshal())
}

// FoldAt returns the fold of the run as it was after an event. It begins with the nearest stored fold
// before it. If none is near and no process drives the run, it stores those that it comes by.
func (r *Reader) FoldAt(seq int64) (*view.Run, error) {
	// Otherwise the search for a stored fold would begin at whatever number a client has written.
	if there, err := r.log.Read(seq-1, 1); err != nil {
		return nil, err
	} else if len(there) == 0 {
		now, err := r.Fold()
		if err != nil {
			return nil, err
		}
		return nil, swarm.Errorf(swarm.BadInput, "run %s has no event %d", r.ID, seq).WithHint("its last event is %d", now.Seq)
	}
	v := view.New(r.ID)
	for at := seq / pastEvery * pastEvery; at > 0; at -= pastEvery {
		if _, data, ok := r.log.LoadFold(pastName(at), foldVersion); ok {
			if known, err := view.Unmarshal(data); err == nil {
				v = known
				break
			}
		}
	}
	keep := func(*view.Run) error { return nil }
	if seq-v.Seq >= 2*pastEvery && !r.Driven() {
		if log, err := r.home.Store.Open(context.Background(), r.ID, swarm.ReadWrite); err == nil { // without it the next reader folds again
			defer log.Close()
			keep = func(v *view.Run) error { return storePast(log, v) }
		}
	}
	reached := errors.New("that is the moment")
	err := r.log.Scan(v.Seq, func(e *swarm.Event) error {
		if err := v.Apply(e); err != nil {
			return err
		}
		if keepsPast(v) {
			_ = keep(v) // a cache
		}
		if e.Seq == seq {
			return reached
		}
		return nil
	})
	if err != nil && !errors.Is(err, reached) {
		return nil, err
	}
	return v, nil
}

// PictureAt returns the run as it was after an event.
func (r *Reader) PictureAt(seq int64) (view.Picture, error) {
	v, err := r.FoldAt(seq)
	if err != nil {
		return view.Picture{}, err
	}
	p := v.Picture()
	for i := range p.Agents {
		a := &p.Agents[i]
		switch {
		case p.Status.Ended() || p.Status == swarm.Interrupted:
			a.Connection = view.Disconnected
		case a.Turn == "":
			a.Connection = view.IdleAgent
		default:
			a.Connection = view.Connected
		}
	}
	return p, nil
}
