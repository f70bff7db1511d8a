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

// Living returns the current picture, with each agent's connection and activity. Both come from the
// streams of running turns, not from the log.
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
			if err := r.addActivity(streams, a); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// addActivity sets what an agent does in its turn, by the end of the turn's stream. If that has no
// text, all of the stream is read: an agent that has said something keeps the status.
func (r *Reader) addActivity(streams *statedir.StreamsReader, a *view.Agent) error {
	a.Connection, a.Stream = view.Connected, view.Reading
	take := func(said statedir.Record) error {
		if said.Time.After(a.Active) {
			a.Active = said.Time
		}
		if a.Stream = view.Writing; a.Status == swarm.Running && said.Kind == string(swarm.DeltaText) {
			a.Status = swarm.Streaming
		}
		return nil
	}
	stream, err := r.streamOf(streams, a.Turn)
	if err != nil || stream == nil {
		return err
	}
	end := *stream
	if err := end.Newest(take); err != nil || a.Status == swarm.Streaming {
		return err
	}
	_, err = stream.Read(take)
	return err
}

// An Action is something that a person can do to one agent.
type Action string

// The actions.
const (
	StartAgent  Action = "start"  // give turns to an agent that has ended
	StopAgent   Action = "stop"   // end it: no more turns, no mail
	PauseAgent  Action = "pause"  // its turn finishes, and it gets no other
	ResumeAgent Action = "resume" // give it turns again
	ResetAgent  Action = "reset"  // drop its session, stop its turn and start it anew
)

// Actions lists all actions.
var Actions = []string{string(StartAgent), string(StopAgent), string(PauseAgent), string(ResumeAgent), string(ResetAgent)}

// Act does something to one agent of a run that has not ended, whichever process drives the run.
// When it returns, the command is on disk. The error is [swarm.NotFound] if there is no such agent,
// and [swarm.BadInput] if the action has no meaning in the agent's state.
func Act(ctx context.Context, h *statedir.Home, id swarm.RunID, agent string, do Action, by swarm.Actor) (swarm.ControlCommand, error) {
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
		return swarm.ControlCommand{}, swarm.Errorf(swarm.NotFound, "Unknown agent: '%s'. Valid agents: %s", agent, strings.Join(names, ", ")).
			WithHint("%s", swarm.DidYouMean(agent, names))
	}
	w, err := commandFor(h, p, agent, do)
	if err != nil {
		return w, err
	}
	w.Actor = by
	return w, Control(ctx, h, id, w)
}

// commandFor returns the command for an action, or says why the action has no meaning now.
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
	if do == ResetAgent && p.Kind == swarm.LineRun { // the next line may be for it
		return w, nil
	}
	if p.Kind.Team() {
		return w, swarm.Errorf(swarm.BadInput, "@%s has ended", agent).WithHint("swarm start @%s lets it have turns again", agent)
	}
	return w, swarm.Errorf(swarm.BadInput, "@%s has nothing left to do", agent).WithHint("its tasks have ended; swarm retry %s tries what failed again", p.ID)
}

// startCommand returns the command that starts an agent. In a team the agent must have ended, or be
// about to. In a pipeline a failed task of the agent must wait for a person. An agent that a
// provider's limit holds back is started before the limit resets.
func startCommand(h *statedir.Home, p view.Picture, agent string) (swarm.ControlCommand, error) {
	for _, t := range p.Tasks {
		if t.Agent == agent && t.Status == swarm.Waiting && t.Waits[0].For == plan.ForPerson {
			return swarm.ControlCommand{Command: swarm.CommandRetry, Target: t.Name}, nil
		}
		if t.Agent == agent && t.Status == swarm.Waiting && t.Waits[0].For == plan.ForLimit {
			return swarm.ControlCommand{Command: swarm.CommandRetry, Target: agent}, nil
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
		err = swarm.Errorf(swarm.BadInput, "@%s has not ended", agent).
			WithHint("it has a turn when it has mail: swarm send @%s; swarm why @%s says what it waits for", agent, agent)
	}
	return w, err
}
