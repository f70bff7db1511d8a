package control

import (
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/contextpack"
	"swarm/internal/project"
	"swarm/internal/recording"
	"swarm/internal/run"
	"swarm/internal/strictjson"
	"swarm/internal/view"
)

// addGoal puts the goal at the beginning of a team's run, as an envelope from a person. A context
// pack with the facts known about the folder goes with it, if there are any. A replay takes those
// facts from its recording, because its agents have changed the folder since.
func (b *Begin) addGoal(r Request) error {
	team := b.Bundle.Plan.Team
	if r.To == "" {
		r.To = team.Lead
	}
	switch {
	case strings.TrimSpace(r.Goal) == "":
		return swarm.Errorf(swarm.BadInput, "the goal is empty").WithHint(`write what the team is to do: swarm team "Write …"`)
	case len(r.Goal) > maxGoal:
		return swarm.Errorf(swarm.BadInput, "the goal has %d bytes, and a message has room for %d", len(r.Goal), maxGoal).
			WithHint("write it into a file of this folder, and have the goal name the file")
	case slices.ContainsFunc(r.Done, func(d string) bool { return strings.TrimSpace(d) == "" }):
		return swarm.Errorf(swarm.BadInput, "--done is empty").WithHint(`write how it is seen that the goal is reached: --done "go test ./... passes"`)
	}
	if r.DoneCommand != "" && strings.TrimSpace(r.DoneCommand) == "" {
		return emptyCommand()
	}
	p, unread, err := b.survey(r.Goal)
	if err != nil {
		return err
	}
	redact := run.Redactor(&b.Bundle.Plan)
	clean := func(text string) string { return string(redact([]byte(text))) }
	r.Goal, b.Bundle.Plan.Name = clean(r.Goal), firstWords(clean(r.Goal))
	rules := b.Bundle.Settings.Team
	p.Goal, p.NodeID, p.GlobalMode, p.NodeMode = r.Goal, swarm.Orchestrator, team.Phase, team.Mode
	for _, sentence := range append(slices.Clone(rules.Done), r.Done...) {
		team.Done = append(team.Done, clean(sentence))
	}
	p.DefinitionOfDone, p.Constraints = append(slices.Clone(team.Done), checkedSentences(team)...), rules.Constraints
	p, left, err := contextpack.Fit(p.Redacted(redact), contextpack.MaxTokens)
	if err != nil {
		return err
	}
	for i := range unread {
		unread[i].Name = clean(unread[i].Name)
	}
	left = append(unread, left...)
	now := time.Now().UTC()
	env := swarm.Envelope{Kind: swarm.Handoff, ID: swarm.GoalID, FromNodeID: swarm.User, ToNodeID: r.To, CreatedAt: now,
		Payload: swarm.Payload{Message: r.Goal, Structured: strictjson.Redact(r.Structured, redact)}}
	if !p.Bare() {
		if p, err = p.Identified(); err != nil {
			return err
		}
		b.id = swarm.NewRunID(now)
		p.RunID, p.CreatedAt = string(b.id), now
		env.ContextRef, team.Pack = p.Ref(), p.Ref()
		stored, text := agentapi.PackStored(swarm.Event{Agent: swarm.Orchestrator}, "goal", p, left)
		b.firstEvents, b.Bundle.Bodies = append(b.firstEvents, stored), append(b.Bundle.Bodies, text)
	} else if len(left) > 0 { // without a pack, only a notice can say so
		why := swarm.Reason{Reason: "no context pack goes with the goal" + view.LeftNote(left)}
		b.firstEvents = append(b.firstEvents, swarm.NewEvent(swarm.Notice, why))
	}
	b.firstEvents = append(b.firstEvents, swarm.Event{Kind: swarm.HandoffStored, Key: swarm.MailKey(env.Ref()),
		To: swarm.ToAgent(r.To), Agent: swarm.User, Data: swarm.Encode(swarm.StoredEnvelope{Envelope: env, Client: b.Key})})
	return nil
}

// emptyCommand is the error of a check that checks nothing.
func emptyCommand() error {
	return swarm.Errorf(swarm.BadInput, "--done-command is empty").WithHint(`write a command that ends with 0 when the goal is reached: --done-command "go test ./..."`)
}

// checkedSentences tells the agents of a team what the run checks before it is completed.
func checkedSentences(team *swarm.Team) (sentences []string) {
	if team.Expect == nil {
		return nil
	}
	for _, part := range view.ExpectParts(team.Expect) {
		sentences = append(sentences, "The run checks this before it is completed: "+part)
	}
	return sentences
}

// survey returns the facts known about the folder.
func (b *Begin) survey(goal string) (found contextpack.Pack, left []swarm.LeftOut, err error) {
	if b.Replay == "" {
		found, left = project.Open(b.Dir, "", "").Survey(goal)
		return found, left, nil
	}
	rec, err := b.Recording()
	if err != nil {
		return found, nil, err
	}
	p, err := goalPack(rec)
	if err != nil {
		return found, nil, &swarm.Error{Kind: swarm.BadInput, File: b.Replay, Msg: "the context pack of the recording", Err: err, Hint: "record the run again with --record"}
	}
	found.DocsRoot, found.DocRefs, found.RepoFacts, found.RelevantFiles = p.DocsRoot, p.DocRefs, p.RepoFacts, p.RelevantFiles
	return found, nil, nil
}

// goalPack returns the context pack of a recorded team's goal, or an empty one.
func goalPack(rec *recording.Recording) (p contextpack.Pack, err error) {
	ref := ""
	for i := range rec.Events {
		switch e := &rec.Events[i]; e.Kind {
		case swarm.PlanAdded:
			was, err := swarm.Body[swarm.Plan](e)
			if err != nil || was.Team == nil || was.Team.Pack == "" {
				return p, err
			}
			ref = was.Team.Pack
		case swarm.ArtifactStored:
			it, err := swarm.Body[swarm.Artifact](e)
			if err != nil {
				return p, err
			}
			if it.Ref == ref {
				text, _ := rec.Text(it.Hash)
				return contextpack.Read(text)
			}
		}
	}
	return p, nil
}

// maxGoal is the maximum length of any message, in bytes.
const maxGoal = 8 << 10
