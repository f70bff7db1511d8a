package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/plan"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// Living is what the run looks like now, with how each agent can be reached and what it does: the log does not tell that.
func (r *Reader) Living() (view.Picture, error) {
	p, err := r.Picture()
	if err != nil {
		return p, err
	}
	streams := r.home.ReadStreams(r.ID)
	for i := range p.Agents {
		a := &p.Agents[i]
		switch {
		case p.Status.Ended() || p.Status == swarm.Interrupted:
			a.Connection = view.Disconnected
		case a.Turn == "":
			a.Connection = view.IdleAgent
		default:
			if err := r.listen(streams, a); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// listen finds out what an agent does in its turn.
func (r *Reader) listen(streams *statedir.StreamsReader, a *view.Agent) error {
	a.Connection, a.Stream = view.Connected, view.Reading
	return r.readStream(streams, a.Turn, func(said statedir.Record) error {
		if said.Time.After(a.Active) {
			a.Active = said.Time
		}
		if a.Stream = view.Writing; a.Status == swarm.Running && said.Kind == string(swarm.DeltaText) {
			a.Status = swarm.Streaming
		}
		return nil
	})
}

// An Action is what can be done to one agent.
type Action string

// The actions.
const (
	StartAgent  Action = "start"  // it has ended, and has turns again
	StopAgent   Action = "stop"   // it has no turn any more, and gets no mail
	PauseAgent  Action = "pause"  // its turn finishes, and it has no other
	ResumeAgent Action = "resume" // it has turns again
	ResetAgent  Action = "reset"  // its session is forgotten, its turn cut and begun anew
)

// Actions are all there are.
var Actions = []string{string(StartAgent), string(StopAgent), string(PauseAgent), string(ResumeAgent), string(ResetAgent)}

// Act does something to one agent of a run that has not ended, whichever process drives it. When it returns, the word that it was
// said with is on disk. It is refused with [swarm.NotFound] when there is no such agent, with [swarm.BadInput] when it has no meaning
// as things stand.
func Act(ctx context.Context, h *statedir.Home, id swarm.RunID, agent string, do Action) (swarm.ControlCommand, error) {
	r, err := OpenReader(h, id)
	if err != nil {
		return swarm.ControlCommand{}, err
	}
	p, err := r.Picture()
	if err = errors.Join(err, r.Close()); err != nil {
		return swarm.ControlCommand{}, err
	}
	var names []string
	for _, a := range p.Agents {
		names = append(names, a.Name)
	}
	if !slices.Contains(names, agent) {
		return swarm.ControlCommand{}, swarm.Errorf(swarm.NotFound, "Unknown agent: '%s'. Valid agents: %s", agent, strings.Join(names, ", ")).WithHint("%s", swarm.DidYouMean(agent, names))
	}
	w, err := commandFor(h, p, agent, do)
	if err != nil {
		return w, err
	}
	return w, Control(ctx, h, id, w.Command, w.Target)
}

// commandFor is what is said to have it done.
func commandFor(h *statedir.Home, p view.Picture, agent string, do Action) (w swarm.ControlCommand, err error) {
	w.Target = agent
	if do == ResumeAgent {
		last, err := lastCommand(h, p.ID, agent, swarm.CommandPause, swarm.CommandResume, swarm.CommandStart)
		if err == nil && last != swarm.CommandPause {
			err = swarm.Errorf(swarm.BadInput, "@%s is not paused", agent).WithHint("swarm pause @%s pauses it; swarm why @%s says what it waits for", agent, agent)
		}
		w.Command = swarm.CommandResume
		return w, err
	}
	if do == StartAgent {
		return startCommand(h, p, agent)
	}
	w.Command = map[Action]swarm.Command{StopAgent: swarm.CommandCancel, PauseAgent: swarm.CommandPause, ResetAgent: swarm.CommandReset}[do]
	for _, t := range p.Tasks {
		if t.Agent == agent && (!t.Status.Ended() || t.Iteration < t.Iterations) {
			return w, nil
		}
	}
	if p.Kind.Team() {
		return w, swarm.Errorf(swarm.BadInput, "@%s has ended", agent).WithHint("swarm start @%s lets it have turns again", agent)
	}
	return w, swarm.Errorf(swarm.BadInput, "@%s has nothing left to do", agent).WithHint("its tasks have ended; swarm retry %s tries what failed again", p.ID)
}

// startCommand is what is said to an agent of a team that has ended, or is about to; and of a pipeline to a task that failed and waits for
// a person.
func startCommand(h *statedir.Home, p view.Picture, agent string) (swarm.ControlCommand, error) {
	for _, t := range p.Tasks {
		if t.Agent == agent && t.Status == swarm.Waiting && t.Waits[0].For == plan.ForPerson {
			return swarm.ControlCommand{Command: swarm.CommandRetry, Target: t.Name}, nil
		}
	}
	if !p.Kind.Team() {
		return swarm.ControlCommand{}, swarm.Errorf(swarm.BadInput, "@%s has nothing that it could start", agent).
			WithHint("its tasks start by themselves; only one that failed and waits for a person must be told, and swarm retry %s tries an ended run again", p.ID)
	}
	w := swarm.ControlCommand{Command: swarm.CommandStart, Target: agent}
	for _, a := range p.Agents {
		if a.Name == agent && a.Status.Ended() {
			return w, nil
		}
	}
	last, err := lastCommand(h, p.ID, agent, swarm.CommandCancel, swarm.CommandStart)
	if err == nil && last != swarm.CommandCancel {
		err = swarm.Errorf(swarm.BadInput, "@%s has not ended", agent).WithHint("it has a turn when it has mail: swarm send @%s; swarm why @%s says what it waits for", agent, agent)
	}
	return w, err
}
