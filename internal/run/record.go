package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/agentapi"
	"swarm/internal/contextpack"
	"swarm/internal/mail"
	"swarm/internal/provider"
	"swarm/internal/view"
)

// Record writes the run's turns as a cassette: an export of the log, from which the same run can be replayed.
func (r *Run) Record(path string) error {
	details, err := view.Collect(swarm.Events(r.log, 0))
	if err != nil {
		return err
	}
	acts, err := r.acts(details)
	if err != nil {
		return err
	}
	prompted, byTool := readMail(details)
	header := provider.CassetteHeader{Run: r.ID, Name: r.start.Name, Program: r.start.Version}
	if header.Pack, err = r.pack(); err != nil {
		return err
	}
	out, err := provider.Record(path, header)
	if err != nil {
		return err
	}
	// A turn that was given before an answer was dealt with may have started after it: where it stood is what counts.
	slices.SortStableFunc(details.Turns, func(a, b view.Turn) int { return cmp.Compare(a.Answered, b.Answered) })
	dealt := 0
	for _, t := range details.Turns {
		if !recorded(&t) {
			continue
		}
		rec := provider.RecordedTurn{Turn: t.ID, Agent: t.Agent, PromptHash: t.First, Bytes: t.Output.Bytes, Usage: t.Usage, Session: t.Session, Exit: t.Exit,
			Kind: t.Kind, Reason: t.Reason, Hint: t.Hint, Verdicts: t.Verdicts, Tools: untimed(t.Tools),
			Mail: prompted[t.ID], Read: byTool[t.ID], Acts: acts.by[t.ID], Topics: acts.publishedBy(t.Topics)}
		if t.Done {
			args, err := json.Marshal(map[string]string{"response": t.Report})
			if err != nil {
				out.Discard()
				return err
			}
			rec.Acts = append(rec.Acts, provider.Act{Tool: "report_done", Args: args})
		}
		if upto := min(t.Answered, len(acts.answers)); upto > dealt {
			rec.Answers, dealt = acts.answers[dealt:upto], upto
		}
		if rec.Asides, err = r.asides(&t, details); err != nil {
			out.Discard()
			return err
		}
		for text, hash := range map[*provider.Text]swarm.Hash{&rec.Prompt: t.First, &rec.Output: t.Output.Hash} {
			if hash == "" {
				continue
			}
			b, err := r.log.Body(hash)
			if err != nil {
				out.Discard()
				return err
			}
			*text = provider.Text(b)
		}
		if err := out.Write(rec); err != nil {
			return out.Close() // it says what is wrong, and leaves nothing behind
		}
	}
	return out.Close()
}

// pack is the context pack that goes with the goal of a team; nil = there is none.
func (r *Run) pack() ([]byte, error) {
	e, ok, err := r.log.Find(planKey)
	if err != nil || !ok {
		return nil, err
	}
	p, err := swarm.Body[swarm.Plan](&e)
	if err != nil || p.Team == nil || p.Team.Pack == "" {
		return nil, err
	}
	found, err := (&agentapi.Service{Run: r.ID, Log: r.log}).Pack(p.Team.Pack)
	return found.Portable().JSON(), err
}

// readMail is which envelopes each turn has read: those that stood in its prompt, whatever became of the turn, and those that it
// read by a tool. Of a turn that has not committed the log does not tell the latter, and nothing came of its reading.
func readMail(d view.Details) (prompted, byTool map[string][]string) {
	prompted, byTool = map[string][]string{}, map[string][]string{}
	stood := map[string]swarm.Inputs{}
	boxes := map[string][]view.Envelope{}
	for _, t := range d.Turns {
		stood[t.ID] = t.Inputs
	}
	for _, env := range d.Envelopes {
		boxes[env.ToNodeID] = append(boxes[env.ToNodeID], env)
		if turn := env.Receipt.Turn; turn != "" && env.Receipt.Seq > stood[turn].Upto {
			byTool[turn] = append(byTool[turn], env.Ref())
		}
	}
	for _, t := range d.Turns {
		box := boxes[t.Agent]
		first, _ := slices.BinarySearchFunc(box, t.Inputs.From+1, func(env view.Envelope, seq int64) int { return cmp.Compare(env.Receipt.Seq, seq) })
		for _, env := range box[first:] {
			if env.Receipt.Seq > t.Inputs.Upto {
				break
			}
			prompted[t.ID] = append(prompted[t.ID], env.Ref())
		}
	}
	return prompted, byTool
}

// asides is what a turn was given between two tools. Of one that has not committed nothing came.
func (r *Run) asides(t *view.Turn, d view.Details) (all []provider.Aside, err error) {
	if t.Status != swarm.Completed {
		return nil, nil
	}
	for _, in := range t.Injected {
		aside := provider.Aside{Tool: in.Tool}
		for _, env := range d.Envelopes {
			if env.ToNodeID == t.Agent && in.From < env.Receipt.Seq && env.Receipt.Seq <= in.Upto {
				aside.Mail = append(aside.Mail, env.Ref())
			}
		}
		text, err := r.log.Body(in.Text)
		if err != nil {
			return nil, err
		}
		aside.Text = provider.Text(text)
		all = append(all, aside)
	}
	return all, nil
}

// recorded says of which turns there is something to replay. One that a person has cut is cut again, and the next attempt has what
// the person said.
func recorded(t *view.Turn) bool {
	return !t.Ended.IsZero() && t.Prompt != ""
}

// acts are what turns did to the run by our own tools, as it would be asked for again, and what was answered to their growth requests.
type acts struct {
	by      map[string][]provider.Act // by turn
	boxes   map[string]int            // how many envelopes have come into each inbox
	entries []int64                   // the numbers of the topic entries
	wishes  map[string]wished
	answers []string // growth requests, in the order in which they were dealt with
}

// A wished is where the act stands by which a growth request was made, and what was answered to it.
type wished struct {
	turn   string
	at     int
	answer swarm.ApprovalAnswer
}

// acts finds them. What a person wrote, or a clock had the run write, is sent again with the turn that had begun last when it came; what came before any had begun is
// the replay's own to say.
func (r *Run) acts(d view.Details) (acts, error) {
	a := acts{by: map[string][]provider.Act{}, boxes: map[string]int{}, wishes: map[string]wished{}}
	turns, last := map[string]bool{}, ""
	for i := range d.Turns {
		turns[d.Turns[i].ID] = recorded(&d.Turns[i])
	}
	for e, err := range swarm.Events(r.log, 0) {
		if err != nil {
			return a, err
		}
		if err := a.wish(e); err != nil {
			return a, err
		}
		if e.Kind == swarm.TurnStarted && turns[e.Turn] {
			last = e.Turn
		}
		act, err := r.act(e)
		if err != nil {
			return a, err
		}
		if act.Tool == "" {
			continue
		}
		if act.To != "" {
			act.After = a.boxes[act.To]
			a.boxes[act.To]++
		}
		turn := e.Turn
		if e.Kind == swarm.TopicPublished {
			act.Published = len(a.entries)
			a.entries = append(a.entries, e.Seq)
			if turn == "" {
				act.Tool, act.Args, turn = provider.OthersFinding, e.Data, last
			}
		}
		own := e.Agent == swarm.Orchestrator && turn != ""
		if act.To != "" && (own || turn == "" && (e.Agent == swarm.User || agentapi.ByChance(e))) {
			act.Tool, act.Args = provider.OthersMail, e.Data
			if !own {
				turn = last
			}
		}
		a.by[turn] = append(a.by[turn], act)
	}
	return a, nil
}

// publishedBy is how many topic entries there were up to an event.
func (a *acts) publishedBy(seq int64) int {
	n, found := slices.BinarySearch(a.entries, seq)
	if found {
		n++
	}
	return n
}

// wish notes what was wished for, what was answered, and when who made the growth request was told.
func (a *acts) wish(e *swarm.Event) error {
	switch e.Kind {
	case swarm.ApprovalAsked, swarm.ApprovalAnswered:
		answer, err := swarm.Body[swarm.ApprovalAnswer](e) // of what is asked, it has the id
		if err != nil {
			return err
		}
		if w, there := a.wishes[answer.ID]; there {
			w.answer = answer
			a.wishes[answer.ID] = w
		} else if answer.Growth != nil {
			a.wishes[answer.ID] = wished{turn: e.Turn, at: len(a.by[e.Turn])}
		}
	case swarm.HandoffStored:
		id, ok, err := agentapi.AnswerTo(e)
		if w, there := a.wishes[id]; ok && there {
			a.answers = append(a.answers, id)
			act := &a.by[w.turn][w.at]
			act.Answer, act.Told = &w.answer, a.boxes[strings.TrimPrefix(e.To, swarm.ToAgent(""))]
		}
		return err
	}
	return nil
}

// act is the call that an event comes from, if it comes from one.
func (r *Run) act(e *swarm.Event) (act provider.Act, err error) {
	var args any
	switch e.Kind {
	case swarm.HandoffStored:
		env, err := swarm.Body[swarm.Envelope](e)
		if err != nil {
			return act, err
		}
		act.To = env.ToNodeID
		act.Tool, args = mail.Again(env)
	case swarm.TopicPublished:
		entry, err := swarm.Body[swarm.TopicEntry](e)
		if err != nil {
			return act, err
		}
		act.Tool, args = "publish_data", entry
	case swarm.ArtifactStored:
		a, err := swarm.Body[swarm.Artifact](e)
		if err != nil {
			return act, err
		}
		content, err := r.log.Body(a.Hash)
		if err != nil {
			return act, err
		}
		if p, bad := contextpack.Read(content); a.Kind == "contextpack" && bad == nil {
			content = p.Portable().JSON() // it is of another run then
		}
		act.Tool, args = "put_artifact", map[string]string{"kind": a.Kind, "name": a.Name, "content": string(content)}
	case swarm.ApprovalAsked:
		a, err := swarm.Body[swarm.Approval](e)
		if err != nil || a.Growth == nil {
			return act, err
		}
		if act.Tool, args = "spawn_node", a.Growth.Spawn; a.Growth.Edge != nil {
			act.Tool, args = "create_edge", a.Growth.Edge
		}
	default:
		return act, nil
	}
	act.Args, err = json.Marshal(args)
	return act, err
}

// untimed is tool uses without how long they took: a recording is of what was done.
func untimed(uses []swarm.ToolUse) []swarm.ToolUse {
	uses = slices.Clone(uses)
	for i := range uses {
		uses[i].Took = 0
	}
	return uses
}
