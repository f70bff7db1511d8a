package turn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarm"
	"swarm/internal/flow"
	"swarm/internal/provider"
)

// refuse ends a turn that never calls its provider: its prompt cannot be made, the budget is used
// up, or it was cancelled while no worker ran it. If another worker has started the turn meanwhile,
// that worker ends it.
func (r *Runner) refuse(ctx context.Context, loop string, w *work, why error) (flow.Result, error) {
	if stop := stopCause(ctx, why); stop != nil {
		return flow.Result{}, stop
	}
	switch swarm.KindOf(why) {
	case swarm.BadPrompt, swarm.OverBudget, swarm.OverShare, swarm.CutByCancel:
	default:
		return flow.Result{}, why
	}
	end := failure(why)
	end.Unbegun, end.Waited = true, w.waited
	_, end.Crowded = errors.AsType[crowdedError](why)
	return r.end(ctx, loop, w.c, end, swarm.Batch{Absent: []string{w.nextStart()}})
}

// carriedOver returns the end of a call in the run that this one retries, or nil.
func (r *Runner) carriedOver(c flow.Call) (*swarm.CallEnd, error) {
	if !r.CarriesOver {
		return nil, nil
	}
	end, ok, err := swarm.FindBody[swarm.CallEnd](r.Log, swarm.CarriedOverKey(swarm.TurnID(c.ID)))
	if err != nil || !ok {
		return nil, err
	}
	end.CarriedOver, end.Usage, end.Requests, end.Cut = true, swarm.Usage{}, nil, swarm.Usage{}
	return &end, nil
}

// carryOver ends a turn as it ended in the run that this one retries.
func (r *Runner) carryOver(ctx context.Context, loop string, c flow.Call, kept swarm.CallEnd) (flow.Result, error) {
	kept.Want, kept.Shown = "", 0
	var text []byte
	var err error
	if kept.Output != "" { // a turn that was cut has none
		if text, err = r.Log.Body(kept.Output); err != nil {
			return flow.Result{}, err
		}
	}
	done, err := r.end(ctx, loop, c, kept, swarm.Batch{})
	if err == nil && r.Watch != nil && kept.Output != "" {
		r.Watch.Output(c, text)
	}
	return done, err
}

// conclude appends the turn's end, its output and its diff in one batch.
func (r *Runner) conclude(ctx context.Context, loop string, w *work, reply provider.Reply, verdicts []swarm.Verdict, changed *diff, err error) (flow.Result, error) {
	end := swarm.CallEnd{Status: swarm.CallOK}
	if err != nil {
		end = failure(err)
		if end.Limit = w.limitOf(err, time.Now()); end.Limit != nil {
			end.Hint = w.limitHint(r.Run, end.Limit.Until)
		}
	}
	if reply.Free { // otherwise waiting for room would repeat the work
		_, end.Crowded = errors.AsType[crowdedError](err)
	}
	end.Usage, end.Session, end.Exit, end.Verdicts = usage(reply, w), r.clean(reply.Session), reply.Exit, verdicts
	end.Forgotten, end.SessionTotal, end.Provider = end.Session != reply.Session, reply.SessionTotal, w.substitute()
	end.Requests, end.Waited = reply.Requests, w.waited
	end.Outside = w.violation.files()
	b := swarm.Batch{Absent: []string{w.nextStart()}}
	var output []byte
	if end.Status != swarm.CallCut {
		output = r.storedOutput(reply)
		end.Output, end.Bytes = swarm.NoText, reply.Bytes
		if len(output) > 0 {
			end.Output, b.Bodies = swarm.HashOf(output), [][]byte{output}
		}
	}
	if w.remembers() && reply.Messages != nil && end.Status != swarm.CallCut {
		var messages []byte
		end.Exchange, messages = r.exchange(w, reply, output)
		end.Session, b.Bodies = cmp.Or(w.session, string(w.turn)), append(b.Bodies, messages)
	}
	if n := reply.Notice; n != nil && end.Status == swarm.CallOK {
		b.Events = append(b.Events, w.event(swarm.Notice, swarm.Reason{Reason: r.clean(n.Reason), Hint: r.clean(n.Hint)}))
	}
	if e := r.collected(w); e != nil {
		b.Events = append(b.Events, *e)
	}
	if w.done && end.Status == swarm.CallOK {
		end.Done, end.Report = true, r.clean(w.report)
	}
	if end.Status == swarm.CallOK && w.action != nil {
		end.Action = w.action
		end.Action.Words = r.clean(end.Action.Words)
		bodies, err := r.remember(w, &end, output)
		if err != nil {
			return flow.Result{}, err
		}
		b.Bodies = append(b.Bodies, bodies...)
	}
	if end.Status == swarm.CallOK && w.inputs.Upto > w.inputs.From {
		end.Inputs = w.inputs
		b.Events = append(b.Events, swarm.Event{Kind: swarm.HandoffConsumed, Key: swarm.UsedKey(w.c.Agent, w.inputs.From), Task: w.c.Task, Agent: w.c.Agent,
			Turn: w.turn, Data: swarm.Encode(swarm.Consumption{Inputs: w.inputs, Turn: w.turn})})
	}
	if end.Status == swarm.CallOK {
		if end.Findings, err = r.findings(w, output); err != nil {
			return flow.Result{}, err
		}
	}
	end.Findings = append(end.Findings, w.violation.finding()...)
	if end.Action != nil && w.asks.Kind != "" && w.asks.Kind != swarm.ActDone && bytes.Equal(output, reply.Output) { // otherwise secrets were removed
		r.handOver(w) // before the loop can ask for the action
	}
	result, err := r.endWith(ctx, loop, w.c, end, b, changed)
	if err == nil && end.Status == swarm.CallOK {
		r.takeRead(w, w.inputs.Upto)
	}
	if err == nil && r.Watch != nil && end.Status != swarm.CallCut {
		r.Watch.Output(w.c, output)
	}
	return result, err
}

// endWith appends the end with the diff of the turn. If an agent, or the run that this one retries,
// has stored the same text before, the artifact exists already. Then the end is appended without
// it.
func (r *Runner) endWith(ctx context.Context, loop string, c flow.Call, end swarm.CallEnd, b swarm.Batch, changed *diff) (flow.Result, error) {
	if changed == nil {
		return r.end(ctx, loop, c, end, b)
	}
	with := b
	with.Events = append([]swarm.Event{changed.record}, b.Events...)
	with.Bodies = append([][]byte{changed.text}, b.Bodies...)
	result, err := r.end(ctx, loop, c, end, with)
	if !errors.Is(err, swarm.ErrConflict) {
		return result, err
	}
	if _, there, found := r.Log.Find(changed.record.Key); found != nil || !there {
		return result, errors.Join(err, found)
	}
	return r.end(ctx, loop, c, end, b)
}

// failure returns the end of a turn that failed or was cut with err.
func failure(err error) swarm.CallEnd {
	end := swarm.CallEnd{Status: swarm.CallFailed, Kind: swarm.KindOf(err), Reason: err.Error(), Hint: swarm.HintOf(err)}
	if end.Kind == swarm.CutByCancel || end.Kind == swarm.CutToSpeak || end.Kind == swarm.CutToReset {
		end.Status = swarm.CallCut
	}
	return end
}

// limitOf returns the limit that a turn's provider names as the reason of its failure, or nil.
//
// A time that has just passed counts, since clocks differ. Each further attempt waits at least twice
// as long as the one before: a provider that is limited again and again is not asked all the time.
func (w *work) limitOf(err error, now time.Time) *swarm.Limit {
	e, ok := errors.AsType[*swarm.Error](err)
	if !ok || e.Kind != swarm.RateLimited || e.Until.IsZero() || e.Until.Before(now.Add(-mostSkew)) {
		return nil
	}
	until := e.Until
	if least := now.Add(time.Second << min(w.c.Attempt-1, 12)); until.Before(least) {
		until = least
	}
	return &swarm.Limit{Provider: w.spec.Name, Until: until.UTC().Truncate(time.Microsecond)}
}

// limitHint says what to do about a limit.
func (w *work) limitHint(run swarm.RunID, until time.Time) string {
	rule, at := w.agent.OnLimit, until.Local().Format("2006-01-02 15:04")
	switch {
	case rule != nil && rule.Fail:
		return fmt.Sprintf("write on_limit: wait for the agent %q, or type `swarm retry %s` after %s", w.agent.Name, run, at)
	case until.After(time.Now().Add(rule.LimitWait())):
		return fmt.Sprintf("its limit_wait is %s: write a longer one for the agent %q, or type `swarm retry %s` after %s",
			rule.LimitWait(), w.agent.Name, run, at)
	}
	return fmt.Sprintf("it goes on by itself at %s; to try it before that: swarm retry %s", at, run)
}

// mostSkew is the most by which the clock of a provider may differ from ours.
const mostSkew = time.Hour

func usage(r provider.Reply, w *work) swarm.Usage {
	u := r.Usage
	if r.Free {
		return u
	}
	u.Calls = 1
	if u.Tokens() == 0 {
		u.InputTokens, u.OutputTokens, u.Estimated = swarm.EstimateTokens(int64(len(w.made.Text))), swarm.EstimateTokens(r.Bytes), true
	}
	if u.USD == 0 {
		u.USD = w.spec.Price.Of(u)
	}
	return u
}

// end appends the call's end, addressed to its loop. It does so even if the process is about to
// stop, so finished work is not lost.
func (r *Runner) end(ctx context.Context, loop string, c flow.Call, end swarm.CallEnd, b swarm.Batch) (flow.Result, error) {
	end.ID, end.Call = c.ID, c.Print()
	if c.Again {
		var err error
		if end.Cut, err = r.lostBefore(swarm.TurnID(c.ID), end.Unbegun); err != nil {
			return flow.Result{}, err
		}
	}
	end.Reason, end.Hint = r.clean(end.Reason), r.clean(end.Hint)
	b.Fence, b.Early = c.Fence, true // the next turn's start takes it to disk, before that provider is called
	b.Events = append(b.Events, swarm.Event{Kind: swarm.TurnEnded, Key: swarm.EndKey(c.ID), To: swarm.ToLoop(loop), Task: c.Task, Agent: c.Agent,
		Turn: swarm.TurnID(c.ID), Data: swarm.Encode(end)})
	seqs, err := r.Log.Append(context.WithoutCancel(ctx), b)
	if err != nil {
		return flow.Result{}, err
	}
	return flow.Result{CallEnd: end, Seq: seqs[len(seqs)-1]}, nil
}

// Answer reads the record of a call's end.
func Answer(e swarm.Event) (flow.Result, error) {
	end, err := swarm.Body[swarm.CallEnd](&e)
	return flow.Result{CallEnd: end, Seq: e.Seq}, err
}

func (r *Runner) redact(b []byte) []byte {
	if r.Redact == nil || len(b) == 0 {
		return b
	}
	return r.Redact(b)
}

// clean removes secrets from a text that may have been shortened before.
func (r *Runner) clean(text string) string {
	if r.Cut == nil {
		return text
	}
	return r.Cut(text)
}

// storedOutput returns the output as it is stored. Of a long output only the end is kept, and that
// may begin in the middle of a secret.
func (r *Runner) storedOutput(reply provider.Reply) []byte {
	if !reply.IsCut() {
		return r.redact(reply.Output)
	}
	end, _ := reply.Ends()
	return []byte(strings.TrimPrefix(r.clean(end), "…"))
}
