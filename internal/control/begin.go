package control

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"swarm"
	"swarm/internal/compose"
	"swarm/internal/recording"
	"swarm/internal/run"
	"swarm/internal/statedir"
)

// A Begin is a run that is about to begin.
type Begin struct {
	Bundle      *compose.Bundle
	File, Dir   string
	Set         []string // what the command line changes in the file
	Provider    string   // the provider that the command line prefers
	Args        []string
	AnswerTo    string         // the file that gets a swarm's answer; "" = none
	Engine      string         // EngineTemporal = a worker drives it; "" = the process that begins it does
	Replay      string         // the recording that replaces its agents; "" = agents are reached
	From        swarm.RunID    // the run that this one retries
	Origin      *swarm.Origin  // the message of another program that begins it
	Key         string         // the key of the MCP client that begins it; "" = none does
	Parent      *swarm.TurnRef // the turn in which an agent begins it; nil = a person does
	Confirm     Asker          // asks the person at the terminal; nil = there is none
	Waiting     ProgressReport // reports slow preflight checks
	firstEvents []swarm.Event  // events after its plan: a goal, or the events carried over from another run
	recording   *recording.Recording
	id          swarm.RunID     // "" = a new one is made
	lock        swarm.StoreLock // under which it begins; nil = under none
}

// Retry returns a run that retries what failed in an ended one, or with from that task and its
// dependents.
func (c *Control) Retry(id swarm.RunID, from string) (*Begin, error) {
	if err := c.maySteer(id); err != nil {
		return nil, err
	}
	again, err := run.PlanRetry(c.Home, id, from)
	if err != nil {
		return nil, err
	}
	args := []string{"retry", string(id)}
	if from != "" {
		args = append(args, "--from", from)
	}
	return beginRetry(again, args), nil
}

// Fork returns a run that begins where a turn of another began, and carries over all turns before it.
// With edit, the turn has this prompt; or a message that is read there has this text.
func (c *Control) Fork(id swarm.RunID, at string, edit *string, message string) (*Begin, error) {
	if err := c.maySteer(id); err != nil {
		return nil, err
	}
	f := run.Fork{At: at, Message: message, Actor: c.Caller.Actor()}
	args := []string{"fork", string(id), "--at", at}
	what, whole := "prompt", "the whole prompt of the turn"
	if message != "" {
		what, whole, args = "message", "the whole text of the message", append(args, "--message", message)
	}
	switch {
	case edit == nil && message != "":
		return nil, swarm.Errorf(swarm.BadInput, "there is no new text for the message %s", swarm.Quote(message)).WithHint("give the text: --edit FILE, or {\"edit\": …} over HTTP")
	case edit == nil:
	case strings.TrimSpace(*edit) == "" || strings.ContainsRune(*edit, 0) || !utf8.ValidString(*edit):
		return nil, swarm.Errorf(swarm.BadInput, "the edited %s is empty, or is no text", what).WithHint("write %s, or leave the edit out", whole)
	default:
		f.Edit = []byte(*edit)
	}
	again, err := run.PlanFork(c.Home, id, f)
	if err != nil {
		return nil, err
	}
	return beginRetry(again, args), nil
}

// beginRetry returns a run that retries an ended one.
func beginRetry(r *run.RetryPlan, args []string) *Begin {
	return &Begin{Bundle: &compose.Bundle{Plan: *r.Plan, Bodies: r.Bodies, Sources: r.Start.Sources, NoFile: r.Start.NoFile}, File: r.Start.File, Dir: r.Start.Dir,
		Args: args, Set: r.Start.Set, Provider: r.Start.Provider, Engine: r.Start.Engine, From: r.Start.ID, firstEvents: r.CarriedOver}
}

// Ready reports whether the run can begin: a person has confirmed what its file does and its agents
// pass the preflight check, or its recording can be read. The preflight check comes second, because
// it starts programs and sends keys. The agents of a run that a worker drives are on its machine.
func (b *Begin) Ready(h *statedir.Home) error {
	if b.Replay != "" {
		_, err := b.Recording()
		return err
	}
	if err := b.Confirmed(h); err != nil || b.Engine != "" {
		return err
	}
	return preflight(b.Bundle, b.Dir, h, b.Waiting)
}

// Confirmed reports whether a person has confirmed what the run's file does. The person is asked, if
// there is one.
func (b *Begin) Confirmed(h *statedir.Home) error {
	return b.fileUse().confirm(h, b.Confirm)
}

func (b *Begin) fileUse() *fileUse {
	u := &fileUse{plan: &b.Bundle.Plan, places: b.Bundle.Places, dir: b.Dir, file: b.File, set: b.Set, provider: b.Provider, store: b.Bundle.Settings.Store}
	if b.From == "" { // a retry has the plan of the run before
		u.reads = append([]string{b.File}, b.Bundle.Sources...)
	}
	return u
}

// Recording returns the recording that the run replays; nil = its agents are reached.
func (b *Begin) Recording() (_ *recording.Recording, err error) {
	if b.recording == nil && b.Replay != "" {
		b.recording, err = recording.Open(b.Replay)
	}
	return b.recording, err
}

// Start makes the run. When it returns, the run is on disk. A run that began under a lock exists only if
// the lock was held until then: otherwise another process may have begun it, too.
func (b *Begin) Start(ctx context.Context, h *statedir.Home, version string) (*run.Run, error) {
	p := &b.Bundle.Plan
	r, err := run.Start(ctx, h, swarm.RunStart{ID: b.id, Kind: p.Kind, Name: p.Name, Dir: b.Dir, File: b.File, NoFile: b.Bundle.NoFile, Sources: b.Bundle.Sources, Args: b.Args,
		Set: b.Set, Provider: b.Provider, Version: version, Engine: b.Engine,
		Replay: b.Replay != "", From: b.From, Parent: b.Parent, Origin: b.Origin, Key: b.Key, AnswerTo: b.AnswerTo, Time: time.Now()}, p, b.Bundle.Bodies, b.firstEvents...)
	if err != nil {
		return nil, err
	}
	if err := held(ctx, b.lock); err != nil {
		r.Undo(ctx)
		return nil, err
	}
	return r, nil
}

// Continue opens a run to drive it on. A replay needs its recording, unless it is cancelled, and no
// other run takes one. What a person has not confirmed is asked again.
func Continue(h *statedir.Home, id swarm.RunID, recorded bool, ask Asker) (*run.Run, run.Options, error) {
	o := run.Options{Unpause: true}
	r, err := run.Open(h, id)
	if err != nil {
		return nil, o, err
	}
	replay := r.Began().Replay
	o.Unpause = !replay // A replay obeys the recorded commands only.
	cancelled, err := r.Cancelled()
	switch {
	case err != nil:
	case replay && !recorded && !cancelled:
		err = refuse("name its recording: swarm resume "+string(id)+" --replay FILE", "the run %s was a replay", id)
	case recorded && !replay:
		err = refuse("leave out --replay: swarm resume "+string(id), "the run %s is no replay: its agents were reached", id)
	case !replay && !cancelled:
		var p *swarm.Plan
		if p, err = r.Plan(); err == nil {
			start := r.Began()
			err = (&fileUse{plan: p, dir: start.Dir, file: start.File, set: start.Set, provider: start.Provider}).confirm(h, ask)
		}
	}
	if err == nil {
		return r, o, nil
	}
	_ = r.Close() // nothing was written
	return nil, o, err
}
