package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"swarm"
)

// Tell says in one sentence what an event changed, or "" when a person need not be told: it only carries what others tell.
func Tell(e *swarm.Event) string {
	switch e.Kind {
	case swarm.RunStarted:
		var s swarm.RunStart
		read(e, &s)
		what := strings.TrimSpace(string(s.Kind)+" "+s.Name) + " started"
		switch {
		case s.From != "":
			return what + ", to try " + s.From + " again"
		case s.Replay:
			return what + ", from a recording"
		}
		return what
	case swarm.RunOwned:
		var o swarm.Ownership
		if read(e, &o); o.Fence > 1 {
			return fmt.Sprintf("process %d drives the run from here on", o.PID)
		}
		return ""
	case swarm.RunPausing:
		return "pausing: running turns finish, none starts"
	case swarm.RunPaused:
		return "paused"
	case swarm.RunUnpaused:
		return "goes on"
	case swarm.RunInterrupted:
		return "interrupted" + why(e)
	case swarm.RunEnded:
		var end swarm.RunEnd
		read(e, &end)
		return string(end.Status) + because(end.Reason)
	case swarm.BudgetSpent:
		return "the budget is spent" + why(e)
	case swarm.Notice:
		var n swarm.Reason
		read(e, &n)
		if n.Hint != "" {
			return n.Reason + " (" + n.Hint + ")"
		}
		return n.Reason
	case swarm.Control:
		var c swarm.ControlWord
		if read(e, &c); c.Target != "" {
			return fmt.Sprintf("asked to %s %s", c.Word, c.Target)
		}
		return fmt.Sprintf("asked to %s", c.Word)
	}
	return tellTask(e)
}

func tellTask(e *swarm.Event) string {
	switch e.Kind {
	case swarm.IterationStarted, swarm.TaskStarted:
		var it swarm.Iteration
		read(e, &it)
		switch {
		case e.Kind == swarm.IterationStarted:
			return fmt.Sprintf("iteration %d of %d", it.Iteration, it.Of)
		case it.Of > 1:
			return fmt.Sprintf("started (iteration %d of %d)", it.Iteration, it.Of)
		}
		return "started"
	case swarm.TurnStarted:
		var s swarm.TurnStart
		if read(e, &s); s.Start > 1 {
			return fmt.Sprintf("turn %s was cut, and runs again", e.Turn)
		}
		return ""
	case swarm.ApprovalAsked:
		var a swarm.Approval
		read(e, &a)
		return fmt.Sprintf("may it %s? swarm approve %s, or swarm deny %s", Wish(a), a.ID, a.ID)
	case swarm.ApprovalAnswered:
		var a swarm.ApprovalAnswer
		read(e, &a)
		by := ""
		if a.By != "" {
			by = " by " + a.By
		}
		if a.OK {
			return "may: " + a.ID + " was approved" + by
		}
		return "may not: " + a.ID + " was denied" + by + because(a.Reason)
	case swarm.TaskRetrying:
		var r swarm.Retry
		read(e, &r)
		again := "again at once"
		if r.After > 0 {
			again = "again in " + r.After.Round(time.Millisecond).String()
		}
		return fmt.Sprintf("attempt %d failed%s; %s", r.Attempt, because(r.Reason), again)
	case swarm.TaskBlocked:
		return "failed, and waits for a person" + why(e)
	case swarm.TaskCompleted:
		return string(swarm.Completed)
	case swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		return string(endOf(e.Kind)) + why(e)
	}
	return tellAgent(e)
}

// tellAgent tells what agents do to each other and to their run, and what people do to them.
func tellAgent(e *swarm.Event) string {
	switch e.Kind {
	case swarm.WaitBegan:
		var w swarm.AgentWait
		read(e, &w)
		return "waits for @" + strings.Join(w.For, ", @")
	case swarm.AgentPaused:
		return "is paused: it has no turn until it is resumed"
	case swarm.AgentResumed:
		return "is resumed"
	case swarm.AgentStarted:
		return "is started again"
	case swarm.AgentEnded:
		return "has ended" + why(e)
	case swarm.HandoffStored:
		var env swarm.Envelope
		read(e, &env)
		return fmt.Sprintf("@%s → @%s: %s", env.FromNodeID, env.ToNodeID, FirstLine(env.Payload.Message))
	case swarm.ReplyOverdue:
		return tellOverdue(e)
	case swarm.HandoffConsumed:
		if e.Turn == "" {
			return "" // a person has read the mail
		}
		return "read its mail in turn " + e.Turn
	case swarm.HandoffInjected:
		var in swarm.Injection
		read(e, &in)
		return "was given urgent mail beside the answer of " + in.Tool
	case swarm.TopicPublished:
		var t swarm.TopicEntry
		read(e, &t)
		return "published on " + t.Topic
	case swarm.ArtifactStored:
		var a swarm.Artifact
		read(e, &a)
		return fmt.Sprintf("kept %s as %s", a.Name, a.Ref) + PackNote(a)
	}
	return ""
}

// tellOverdue says that a reply has not come. Of a person nobody else reminds.
func tellOverdue(e *swarm.Event) string {
	var o swarm.Overdue
	read(e, &o)
	switch {
	case o.Over:
		return fmt.Sprintf("@%s never replied to %s; nobody waits for it any more", e.Agent, o.ID)
	case e.Agent == swarm.User:
		return fmt.Sprintf("%s still wants your reply: swarm reply %s", o.ID, o.ID)
	}
	return fmt.Sprintf("@%s has not replied to %s, and is reminded", e.Agent, o.ID)
}

// PackNote says of a context pack how large it is, and what it had no room for; of other artifacts nothing.
func PackNote(a swarm.Artifact) string {
	if a.Tokens == 0 {
		return ""
	}
	return fmt.Sprintf(", ~%d tokens", a.Tokens) + LeftNote(a.LeftOut)
}

// LeftNote says what is not in a context pack, and why; of many only the first.
func LeftNote(left []swarm.LeftOut) (note string) {
	const most = 3
	for i, l := range left {
		switch {
		case i == 0:
			note += ", without "
		case i == most:
			return note + fmt.Sprintf(" and %d more", len(left)-most)
		default:
			note += ", "
		}
		if note += FirstLine(l.Name) + " (" + l.How; l.Why != "" {
			note += ": " + FirstLine(l.Why)
		}
		note += ")"
	}
	return note
}

// read reads an event's body; what cannot be read is left out of the sentence, the fold complains about it.
func read(e *swarm.Event, body any) { _ = json.Unmarshal(e.Data, body) }

// FirstLine is the beginning of a text, for a sentence.
func FirstLine(text string) string {
	const most = 80
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > most {
		line, more = string(runes[:most]), true
	}
	if more {
		line += "…"
	}
	return line
}

func why(e *swarm.Event) string {
	var r swarm.Reason
	read(e, &r)
	return because(r.Reason)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
