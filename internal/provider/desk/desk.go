// Package desk does turns through desks: the prompt becomes the instructions of a desk, the worker
// reads and writes files there, and what it delivers is the turn's result. The worker is the agent's
// own provider, or an external worker.
package desk

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/process"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// Variable tells a program where its desk is.
const Variable = "SWARM_DESK"

// Open makes the provider of agents that nobody starts. Their turns are those of a [Turn] without a
// worker.
func Open(spec swarm.ProviderSpec, _ provider.Options) (provider.Provider, error) {
	return nobody{spec.Name}, nil
}

type nobody struct{ name string }

// Check has nothing to look at: who works at a desk is not known before.
func (nobody) Check(context.Context) provider.Health { return provider.Health{Found: true} }

func (n nobody) Turn(context.Context, provider.Request, func(swarm.Delta)) (provider.Reply, error) {
	return provider.Reply{Free: true}, swarm.Errorf(swarm.BadInput, "the provider %q does turns at desks only", n.name).
		WithHint("choose another provider for this")
}

// A Need is a task that another one depends on.
type Need struct {
	swarm.Dependency
	Dir   string // its desk; "" = it has none
	Again bool   // this run has done it, and not one that it retries
	// Delivered are the files that were collected there; nil = they are not known, and those that are there
	// now are passed on.
	Delivered []desk.Delivery
}

// An Opening is a desk that is ready for its worker.
type Opening struct {
	Manifest desk.Manifest
	Archived string    // the new path of the desk that was there before; "" = there was none
	Until    time.Time // when the attempt ends by itself; zero = it does not
}

// A Turn is a turn that goes through a desk. It is the provider of that one turn.
type Turn struct {
	Watcher *desk.Watcher
	Worker  provider.Provider // nil = an external worker
	Dir     string            // the folder of the desk
	Title   string            // of the task
	Spans   []swarm.Span      // of the prompt: which of its bytes came from where
	Files   []string          // for the inbox of a new desk
	Needs   []Need            // tasks that this one depends on
	// Messages is the folder by whose files the agent writes to others; "" = it has none.
	Messages string
	// Corrected is a desk of the run that this one retries, whose inbox a person has corrected; "" = none.
	Corrected string
	Rewritten bool // the person has also rewritten its instructions
	// Late is a desk of the run that this one retries. An external worker finished there after the
	// attempt had ended; "" = there is no such desk.
	Late string
	// Asked says that a person has asked for this attempt: the inbox counts as they left it.
	Asked bool
	// Archive is the name under which the desk of an earlier iteration is archived.
	Archive string
	// Failures say why the earlier attempts of this iteration failed.
	Failures []prompt.Failure
	// Before is the manifest of the last of them, and Opened that of an earlier start of this attempt;
	// nil = there is none.
	Before, Opened *desk.Manifest
	// Replaced is where the desk is now that had the place before the first attempt of this iteration; "" =
	// there was none, or the log does not have it yet.
	Replaced string
	// Judged says that the work of the attempt of Before was collected without a violation. A later check
	// failed that attempt, such as what its task expects, so the same work would fail again.
	Judged bool

	// Open records that the desk is ready, before the worker is started. It returns when that is on disk.
	Open func(Opening) error
	// Notice tells people something unexpected about the desk.
	Notice func(reason, hint string)
	// Tell is called with each change of the status.
	Tell func(desk.Status)
	// Take stores a file of the outbox, as in [desk.CollectOptions].
	Take func(desk.File, []byte) error

	// Collected is what the worker has delivered; nil = the turn did not come so far.
	Collected *desk.Collection

	archived string // the new path of the desk that was there before
	finished bool   // the worker of an earlier start has completed the attempt
}

// Turn does the turn.
func (t *Turn) Turn(ctx context.Context, r provider.Request, live func(swarm.Delta)) (provider.Reply, error) {
	reply := provider.Reply{Free: true}
	d, manifest, unlock, err := t.prepare(ctx, r)
	if err != nil {
		return reply, err
	}
	defer d.Close()
	defer unlock()
	var mu sync.Mutex // the worker's stream and its status come from two goroutines
	say := func(delta swarm.Delta) {
		mu.Lock()
		defer mu.Unlock()
		if live != nil {
			live(delta)
		}
	}
	a := desk.Attempt{Watcher: t.Watcher, Manifest: manifest, Take: t.Take, Resumed: true}
	a.Tell = func(now desk.Reading) { t.Tell(now.Status) }
	a.Notice = t.Notice
	var failed error // the worker's own failure
	if t.Worker != nil && !t.finished {
		a.Work = func(ctx context.Context) string {
			reply, failed = t.Worker.Turn(ctx, order(r, d, manifest), say)
			if failed != nil {
				return failed.Error()
			}
			return fmt.Sprintf("exit code %d", reply.Exit)
		}
	}
	t.Collected, err = d.Do(ctx, a)
	reply.Session = "" // another turn has another folder
	reply.Output, reply.Bytes = nil, 0
	if err != nil {
		return reply, err
	}
	why := t.Collected.Failure()
	text := t.Collected.Summary
	if why != nil {
		text = cmp.Or(text, t.Collected.ErrorReport, why.String())
	}
	tail := process.Tail{}
	_, _ = tail.Write([]byte(text))
	reply.Output, reply.Bytes = tail.Bytes(), tail.Len()
	if why == nil {
		return reply, nil
	}
	if why.Type == desk.AgentExited && failed != nil {
		return reply, failed
	}
	return reply, t.explain(r, *why)
}

// explain makes an error of a failure. Its kind is the one by which loops decide about another attempt.
func (t *Turn) explain(r provider.Request, why desk.Failure) error {
	e := swarm.Errorf(swarm.BadInput, "%s", why.String())
	switch {
	case why.Type == desk.Violated: // its next attempt is told why
		e.Kind = swarm.Unexpected
	case why.Type == desk.AgentExited:
		e.Kind = swarm.NoResult
	case why.Recoverable:
		e.Kind = swarm.Other
	default:
		return e.WithHint("correct its inputs: swarm desk fix %s; then swarm retry %s --from %s", t.Dir, r.Run, r.Task)
	}
	return e.WithHint("for another attempt: swarm retry %s --from %s", r.Run, r.Task)
}

// order is the request to the worker. The desk is its only folder, and says everything else. Inputs
// that are too large to copy are read where they are.
func order(r provider.Request, d *desk.Desk, m desk.Manifest) provider.Request {
	r.Prompt, r.Session, r.Phase = orders, "", ""
	r.Fresh, r.Dir, r.Root, r.Desk = r.Prompt, d.Path(), d.Path(), true
	r.Read = nil
	for _, f := range m.References {
		r.Read = append(r.Read, f.Path)
	}
	r.Env = maps.Clone(r.Env)
	if r.Env == nil {
		r.Env = map[string]string{}
	}
	r.Env[Variable] = d.Path()
	return r
}

const orders = `Your folder is a desk: you get your task and deliver your work as files in it.
Read SKILL.md and inbox/instructions.md, and do what they say.
Put what you make into outbox/, with a summary in outbox/summary.md.
Keep the state in status.json: "running" when you begin, "completed" or "failed" in the end.
`

// messages tells a worker how it writes to other agents. An external worker has no other way.
const messages = `The messages are files in %[1]s. To write to AGENT, put a file there that is named
%[2]s_to_AGENT_001.json, with another number for each message:
{"from": "%[2]s", "to": "AGENT", "timestamp": "2024-01-15T10:30:00Z", "type": "question", "content": {"text": "…"}}
A file that breaks a rule moves to refused/ beside a .error with the reason.

`

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
		return desk.Open(t.Dir)
	}
	d, err := desk.Open(t.making())
	if err != nil {
		return desk.Open(t.Dir)
	}
	if len(d.Verify(*t.Opened)) > 0 { // the log has another desk, so this one was never opened
		d.Close()
		return desk.Open(t.Dir)
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

// making is the folder in which a new desk is made. It gets its name when the log has it, so a worker
// outside never sees a desk that is not ready.
func (t *Turn) making() string {
	return filepath.Join(filepath.Dir(t.Dir), "."+filepath.Base(t.Dir)+".new")
}

// make makes a new desk under its temporary name, and archives what has the final name.
func (t *Turn) make(r provider.Request) (*desk.Desk, desk.Manifest, error) {
	none := desk.Manifest{}
	// One of these may be the desk that is archived below. It stays open.
	corrected, late := t.openOld(t.Corrected), t.openOld(t.Late)
	for _, d := range []*desk.Desk{corrected, late} {
		if d != nil {
			defer d.Close()
		}
	}
	var err error
	if t.archived, err = desk.SetAside(t.Dir, t.Archive); err != nil {
		return nil, none, err
	}
	if t.archived == "" && t.Before == nil && t.Opened == nil { // a crash may have come after the archiving
		t.archived = desk.LastArchived(t.Dir, t.Archive)
	}
	if err := os.RemoveAll(t.making()); err != nil { // a crash came before the log had it
		return nil, none, err
	}
	if err := os.MkdirAll(filepath.Dir(t.Dir), 0o755); err != nil {
		return nil, none, err
	}
	s := t.setup(r)
	others, err := t.addNeeds(&s)
	defer func() {
		for _, d := range others {
			d.Close()
		}
	}()
	if err != nil {
		return nil, none, err
	}
	d, m, err := desk.Create(t.making(), s)
	if err != nil {
		return nil, none, t.unmade(err)
	}
	references := m.References
	if corrected != nil {
		_, err = d.TakeInputs(corrected, t.fresh(s, corrected))
	}
	if err == nil && t.Before == nil && late != nil {
		err = t.takeLate(r, d, late)
	}
	if err == nil {
		err = t.addAttempts(d)
	}
	if err == nil {
		m, err = d.Record()
	}
	if err != nil {
		d.Close()
		return nil, none, t.unmade(err)
	}
	m.References = references
	return d, m, nil
}

func (t *Turn) unmade(err error) error {
	return swarm.Errorf(swarm.KindOf(err), "the desk of %s cannot be created: %w", t.Title, err).WithHint("%s", swarm.HintOf(err))
}

// openOld opens a desk of the run that this one retries; nil = there is none. A crash may have come after it
// was archived.
func (t *Turn) openOld(dir string) *desk.Desk {
	if dir == t.Dir && (t.Before != nil || t.Opened != nil) { // a desk of this run has the place
		dir = t.Replaced
	}
	if dir == "" {
		return nil
	}
	d, err := desk.Open(dir)
	if dir == t.Dir && swarm.KindOf(err) == swarm.NotFound {
		if archived := desk.LastArchived(t.Dir, t.Archive); archived != "" {
			d, err = desk.Open(archived)
		}
	}
	if err != nil {
		t.Notice(fmt.Sprintf("the desk of %s starts from the plan, because the earlier desk cannot be used: %v", t.Title, err), "")
		return nil
	}
	return d
}

// takeLate takes over work that an external worker finished too late for the run before.
func (t *Turn) takeLate(r provider.Request, d, late *desk.Desk) error {
	where := late.Path()
	if where == t.Dir {
		where = t.archived
	}
	if !d.SameTask(late) {
		t.Notice(fmt.Sprintf("%s does not use the work that was finished too late at %s: its inputs have changed", t.Title, where),
			"see that work: swarm desk collect "+where)
		return nil
	}
	t.Notice(fmt.Sprintf("%s uses the work that was finished too late at %s", t.Title, where),
		fmt.Sprintf("to have it done again: swarm retry %s --from %s", r.Run, r.Task))
	return d.TakeOutbox(late)
}

// addAttempts tells a recreated desk of the earlier attempts.
func (t *Turn) addAttempts(d *desk.Desk) error {
	for _, f := range t.Failures {
		if err := d.ExplainFailure(f.Attempt, desk.Failure{Message: f.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// takePartial has a recreated desk keep what earlier attempts left. The log has the desk then: until
// then a crash deletes the new desk, and the old outbox would go with it.
func (t *Turn) takePartial(d *desk.Desk) error {
	if t.archived == "" || t.Before == nil && t.Opened == nil {
		return nil
	}
	return d.TakePartial(t.archived)
}

// fresh are the paths of a new inbox that are not taken from a corrected one: what tasks that were done again
// have delivered, and what tells of it. Instructions that a person has rewritten stay theirs.
func (t *Turn) fresh(s desk.Setup, corrected *desk.Desk) (paths []string) {
	old, _ := corrected.Dependencies() // what cannot be read is corrected as well
	for _, n := range t.Needs {
		if !n.Again {
			continue
		}
		for _, deps := range []*desk.Dependencies{s.Dependencies, &old} {
			for _, d := range deps.DependsOn {
				if d.Agent == n.Task {
					paths = append(paths, d.Targets()...)
				}
			}
		}
	}
	if paths != nil {
		paths = append(paths, desk.DependenciesFile)
		if !t.Rewritten {
			paths = append(paths, desk.InstructionsFile)
		}
	}
	return paths
}

// addNeeds adds the files of the task, and the outputs of the tasks that it depends on, to the inputs of
// a new desk. The desks of those are open until it is made.
func (t *Turn) addNeeds(s *desk.Setup) (others []*desk.Desk, err error) {
	for _, file := range t.Files {
		s.Inputs = append(s.Inputs, desk.Input{Name: filepath.Base(file), Source: file})
	}
	var deps desk.Dependencies
	for _, n := range t.Needs {
		deps.WaitFor = append(deps.WaitFor, n.Task)
		if n.Dir == "" {
			continue
		}
		dep := desk.Dependency{Agent: n.Task, Outputs: n.Outputs, CopyTo: cmp.Or(n.CopyTo, path.Join(desk.Inbox, n.Task))}
		d, err := desk.Open(n.Dir)
		switch {
		case err == nil:
			others = append(others, d)
		case n.Delivered != nil: // it is gone, and what it delivered is stored
		case n.Outputs == nil: // it did not run, and nothing of it is needed
			continue
		default:
			return others, missing(t, n, n.Outputs[0], err)
		}
		switch {
		case dep.Outputs != nil:
		case n.Delivered != nil:
			dep.Outputs = desk.PassedOn(n.Delivered)
		default:
			dep.Outputs = d.Delivered()
		}
		for _, output := range dep.Outputs {
			files, err := desk.FindDelivery(n.Delivered, output)
			if n.Delivered == nil {
				err = d.Has(output)
			}
			if err != nil {
				return others, missing(t, n, output, err)
			}
			name := path.Join(strings.TrimPrefix(dep.CopyTo, desk.Inbox), path.Base(output))
			s.Inputs = append(s.Inputs, desk.Input{Name: strings.TrimPrefix(name, "/"), Description: "from " + n.Task, Source: output, From: d, Delivered: files})
		}
		deps.DependsOn = append(deps.DependsOn, dep)
	}
	if deps.WaitFor != nil {
		s.Dependencies = &deps
	}
	return others, nil
}

// missing is the error for an output that the worker cannot start without.
func missing(t *Turn, n Need, output string, err error) error {
	return swarm.Errorf(swarm.WaitFailed, "the output %s of %s, which %s depends on: %w", output, n.Task, t.Title, err).
		WithHint("see what it has: swarm desk collect %s", n.Dir)
}

// setup makes what a new desk starts with from the prompt. The role becomes SKILL.md, the task's text
// the objective, and everything else the context. Ids and earlier failures have other places.
func (t *Turn) setup(r provider.Request) desk.Setup {
	var role, context strings.Builder
	var text []desk.Part
	for _, s := range t.Spans {
		piece := r.Prompt[s.Start:s.End]
		switch s.From {
		case prompt.FromIDs, prompt.FromRetry:
		case prompt.FromRole:
			role.WriteString(piece)
		case prompt.FromMode, prompt.FromPack, prompt.FromFinding, prompt.FromInbox, prompt.FromSent:
			context.WriteString(strings.TrimSpace(piece) + "\n\n")
		case prompt.FromSeparator:
		default:
			text = append(text, desk.Part{Text: piece, Data: s.From != prompt.KindText})
		}
	}
	i := desk.NewInstructions(t.Title, text)
	if t.Messages != "" {
		fmt.Fprintf(&context, messages, t.Messages, r.Agent)
	}
	i.Context = strings.TrimSpace(i.Context + "\n\n" + context.String())
	if i.Objective == "" {
		i.Objective = "Do what the messages in the context ask of you."
	}
	about := strings.TrimSpace(role.String())
	if about == "" {
		about = "You do the task in `" + desk.InstructionsFile + "`."
	}
	return desk.Setup{Skill: desk.Skill(r.Agent, about), Instructions: i}
}
