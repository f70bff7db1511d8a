package desk

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/provider"
)

// prepare has the desk ready for the worker, and keeps other processes away from it.
func (t *Turn) prepare(ctx context.Context, r provider.Request) (d *desk.Desk, m desk.Manifest, unlock func(), err error) {
	if t.Opened != nil || t.Before != nil {
		if d, m, unlock, err = t.goOn(ctx); d != nil || err != nil {
			return d, m, unlock, err
		}
	}
	if d, m, err = t.make(r); err != nil {
		return nil, m, nil, err
	}
	if err = t.open(ctx, m); err == nil {
		err = t.takePartial(d)
	}
	if err == nil {
		err = d.Move(t.Dir)
	}
	if err == nil {
		unlock, err = d.Lock()
	}
	if err != nil {
		d.Close()
		return nil, m, nil, err
	}
	return d, m, unlock, nil
}

func (t *Turn) open(ctx context.Context, m desk.Manifest) error {
	until, _ := ctx.Deadline()
	return t.Open(Opening{m, t.archived, until})
}

// goOn prepares the desk of an earlier start or attempt. It returns no desk if that desk cannot be
// used; the caller then makes a new one.
func (t *Turn) goOn(ctx context.Context) (d *desk.Desk, m desk.Manifest, unlock func(), err error) {
	d, err = t.reopen()
	if err != nil {
		return nil, m, nil, t.giveUp(err)
	}
	if unlock, err = d.Lock(); err != nil {
		d.Close()
		return nil, m, nil, err
	}
	var unfit error // why the worker cannot use it
	if m, unfit, err = t.ready(ctx, d); unfit == nil && err == nil {
		err = t.open(ctx, m)
	}
	if unfit == nil && err == nil {
		return d, m, unlock, nil
	}
	unlock()
	d.Close()
	if err == nil {
		err = t.giveUp(unfit)
	}
	return nil, m, nil, err
}

// giveUp announces that a new desk replaces this one. It returns the error instead if an external
// worker may have worked there in this attempt: that work must not be replaced.
func (t *Turn) giveUp(why error) error {
	gone := swarm.KindOf(why) == swarm.NotFound
	if t.Opened != nil && t.Worker == nil && !gone {
		return why
	}
	hint := ""
	if !gone {
		hint = "the old desk is in " + filepath.Join(filepath.Dir(t.Dir), "_archive")
	}
	t.Notice(fmt.Sprintf("the desk of %s was recreated: %v", t.Title, why), hint)
	return nil
}

// reopen opens the desk of an earlier start or attempt. If a crash came before the desk was
// renamed, reopen renames it.
func (t *Turn) reopen() (*desk.Desk, error) {
	if t.Opened == nil {
		return desk.OpenInRun(t.Dir)
	}
	d, err := desk.OpenInRun(t.making())
	if err != nil {
		return desk.OpenInRun(t.Dir)
	}
	if len(d.Verify(*t.Opened)) > 0 { // the log has another desk, so this one was never opened
		d.Close()
		return desk.OpenInRun(t.Dir)
	}
	if err := d.Move(t.Dir); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// ready prepares the desk of an earlier start or attempt for this one. unfit says why it cannot be used.
func (t *Turn) ready(ctx context.Context, d *desk.Desk) (m desk.Manifest, unfit, err error) {
	if t.Opened != nil {
		if t.Worker == nil { // an external worker may be working there
			return *t.Opened, nil, nil
		}
		// Completed is final, so the work is not repeated. A worker that was stopped may have set
		// failed.
		if t.finished = d.Status(context.WithoutCancel(ctx)).Status.State == desk.Completed; t.finished {
			t.Notice(fmt.Sprintf("the worker of %s had completed before the crash: its work is used", t.Title), "")
			return *t.Opened, nil, nil
		}
		return *t.Opened, nil, d.Restart()
	}
	if !t.Asked {
		if changed := t.changed(d); changed != nil {
			return m, changed, nil
		}
	}
	state := d.Status(context.WithoutCancel(ctx)).Status.State
	if t.Worker == nil && (state == desk.Running || state == desk.Completed && !t.Judged) {
		// The last attempt set the state to failed. The external worker did not notice, and went on.
		hint := ""
		if hint, err = d.GoOn(t.Before.Unfinished); err == nil {
			t.Notice(desk.WentOn(t.Title), hint)
			m, err = t.record(d)
		}
	} else {
		m, err = t.reset(d)
	}
	if kind := swarm.KindOf(err); kind == swarm.Protocol || kind == swarm.NotFound {
		return m, err, nil
	}
	return m, nil, err
}

// changed returns how the last attempt changed its inputs, or nil. After a crash, the instructions
// may already contain the reason of the failure. That change does not count.
func (t *Turn) changed(d *desk.Desk) error {
	inputs := desk.Manifest{Files: t.Before.Files}
	if n, _ := t.lastFailure(); d.Explains(n) {
		inputs.Files = slices.DeleteFunc(slices.Clone(inputs.Files), func(f desk.Recorded) bool { return f.Path == desk.InstructionsFile })
	}
	if all := d.Verify(inputs); len(all) > 0 {
		return all[0]
	}
	return nil
}

// lastFailure says why the last attempt failed, and which it was.
func (t *Turn) lastFailure() (attempt int, why desk.Failure) {
	if k := len(t.Failures); k > 0 {
		return t.Failures[k-1].Attempt, desk.Failure{Message: t.Failures[k-1].Reason}
	}
	return 1, desk.Failure{Message: "it was cut"}
}

// reset prepares the desk of the last attempt for this one.
func (t *Turn) reset(d *desk.Desk) (desk.Manifest, error) {
	unfinished := d.Unfinished(t.Before.Unfinished)
	if err := d.Reset(t.lastFailure()); err != nil {
		return desk.Manifest{}, err
	}
	m, err := t.record(d)
	m.Unfinished = unfinished
	return m, err
}

// record makes the manifest of the inputs as they are now: a person may have edited them.
func (t *Turn) record(d *desk.Desk) (desk.Manifest, error) {
	m, err := d.Record()
	m.References = t.Before.References
	return m, err
}
