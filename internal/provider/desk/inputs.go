package desk

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/prompt"
	"swarm/internal/provider"
)

// messages tells a worker how it writes to other agents. An external worker has no other way.
const messages = `The messages are files in %[1]s. To write to AGENT, put a file there that is named
%[2]s_to_AGENT_001.json, with another number for each message:
{"from": "%[2]s", "to": "AGENT", "timestamp": "2024-01-15T10:30:00Z", "type": "question", "content": {"text": "…"}}
A file that breaks a rule moves to refused/ beside a .error with the reason.

`

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
		d, err := desk.OpenInRun(n.Dir)
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
			text = append(text, desk.Part{Text: piece, Data: s.From != prompt.KindText && s.From != prompt.FromEdit})
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
