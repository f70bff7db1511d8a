package view

import (
	"fmt"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/plan"
)

// SessionLeft is why a session is interrupted that a person has left, and can continue.
const SessionLeft = "the session was left"

// DescribeEvent returns in one sentence what an event changed. It is "" for events that tell a
// person nothing new.
func DescribeEvent(e *swarm.Event) string {
	switch e.Kind {
	case swarm.RunStarted:
		s, _ := swarm.Body[swarm.RunStart](e)
		what := strings.TrimSpace(string(s.Kind)+" "+s.Name) + " started"
		if s.Key != "" {
			what += " by the MCP client " + s.Key
		}
		switch {
		case s.From != "":
			return what + ", to try " + string(s.From) + " again"
		case s.Replay:
			return what + ", from a recording"
		}
		return what
	case swarm.RunOwned:
		if o, _ := swarm.Body[swarm.Ownership](e); o.Fence > 1 {
			return swarm.Owner{PID: o.PID, Host: o.Host, Away: o.Host != ""}.Process() + " drives the run from here on"
		}
		return ""
	case swarm.RunPausing:
		return "pausing: running turns finish, none starts"
	case swarm.RunPaused:
		return "paused"
	case swarm.RunUnpaused:
		return "goes on"
	case swarm.RunInterrupted:
		if r, _ := swarm.Body[swarm.Reason](e); r.Reason == SessionLeft {
			return SessionLeft
		}
		return "interrupted" + why(e)
	case swarm.RunEnded:
		end, _ := swarm.Body[swarm.RunEnd](e)
		return string(end.Status) + excerpt.Reason(end.Reason)
	case swarm.LimitEnded:
		l, _ := swarm.Body[swarm.Limit](e)
		if l.Early {
			return l.Provider + " is asked again, before its limit resets"
		}
		return l.Provider + "'s limit has reset"
	case swarm.CheckStarted, swarm.CheckEnded:
		return describeCheck(e)
	case swarm.BudgetSpent:
		return "the budget is spent" + why(e)
	case swarm.Notice:
		n, _ := swarm.Body[swarm.Reason](e)
		if n.Hint != "" {
			return n.Reason + " (" + n.Hint + ")"
		}
		return n.Reason
	case swarm.Control:
		c, _ := swarm.Body[swarm.ControlCommand](e)
		switch {
		case c.By != "" || c.Target != "":
		case c.Command == swarm.CommandClose: // by a session, at the end of its input
			return "no line follows"
		case c.Command == swarm.CommandResume:
			return "goes on"
		}
		text := "asked to " + string(c.Command)
		if c.Target != "" {
			text += " " + c.Target
		}
		return text + by(c.Actor)
	}
	return describeTask(e)
}

// DescribeAnswer returns how a person has answered a request, and who.
func DescribeAnswer(a swarm.ApprovalAnswer) string {
	if a.OK {
		return "approved" + by(a.Actor)
	}
	return "denied" + by(a.Actor) + excerpt.Reason(a.Reason)
}

// by names the actor of an event, if its log has one.
func by(a swarm.Actor) string {
	if a.By == "" {
		return ""
	}
	return " by " + a.String()
}

func describeTask(e *swarm.Event) string {
	switch e.Kind {
	case swarm.IterationStarted, swarm.TaskStarted:
		it, _ := swarm.Body[swarm.Iteration](e)
		switch {
		case e.Kind == swarm.IterationStarted:
			return fmt.Sprintf("iteration %d of %d", it.Iteration, it.Of)
		case it.Of > 1:
			return fmt.Sprintf("started (iteration %d of %d)", it.Iteration, it.Of)
		}
		return "started"
	case swarm.TurnStarted:
		if e.Key == swarm.StartKey(e.Turn, 1) {
			return "" // saves decoding the body, which is the longest of all kinds
		}
		if s, _ := swarm.Body[swarm.TurnStart](e); s.Start > 1 {
			return fmt.Sprintf("turn %s was cut, and runs again", e.Turn)
		}
		return ""
	case swarm.ApprovalAsked:
		a, _ := swarm.Body[swarm.Approval](e)
		if a.Auto {
			return "wants to " + DescribeApproval(a)
		}
		return fmt.Sprintf("%s swarm approve %s, or swarm deny %s", AskApproval("it", a), a.ID, a.ID)
	case swarm.ApprovalAnswered:
		a, _ := swarm.Body[swarm.ApprovalAnswer](e)
		if a.OK {
			return "may: " + a.ID + " was " + DescribeAnswer(a)
		}
		return "may not: " + a.ID + " was " + DescribeAnswer(a)
	case swarm.TaskRetrying:
		r, _ := swarm.Body[swarm.Retry](e)
		if r.Room {
			return "waits for room" + excerpt.Reason(r.Reason)
		}
		again := "again at once"
		if r.After > 0 {
			again = "again in " + r.After.Round(time.Millisecond).String()
		}
		return fmt.Sprintf("attempt %d failed%s; %s", r.Attempt, excerpt.Reason(r.Reason), again)
	case swarm.LimitReached:
		l, _ := swarm.Body[swarm.Limit](e)
		text := l.Provider + "'s limit is reached: limit until " + plan.ResetTime(l.Until, e.Time)
		if l.Use != "" {
			text += "; goes on with " + l.Use
		}
		return text + excerpt.Reason(l.Reason)
	case swarm.TaskBlocked:
		return "failed, and waits for a person" + why(e)
	case swarm.TaskCompleted:
		return string(swarm.Completed)
	case swarm.TaskFailed, swarm.TaskSkipped, swarm.TaskCancelled:
		if end, _ := swarm.Body[swarm.TaskEnd](e); e.Kind == swarm.TaskCancelled && end.Kind == swarm.CutByCancel {
			return string(swarm.Cancelled) // the reason says the same
		}
		return string(endOf(e.Kind)) + why(e)
	}
	return describeAgent(e)
}

// describeAgent describes actions of agents and of people on them.
func describeAgent(e *swarm.Event) string {
	switch e.Kind {
	case swarm.WaitBegan:
		w, _ := swarm.Body[swarm.AgentWait](e)
		return "waits for @" + strings.Join(w.For, ", @")
	case swarm.AgentPaused:
		return "is paused: it has no turn until it is resumed"
	case swarm.AgentResumed:
		return "is resumed"
	case swarm.AgentRestarted:
		return "is started again"
	case swarm.AgentEnded:
		if end, _ := swarm.Body[swarm.AgentEnd](e); end.Outcome != "" {
			return DescribeOutcome(end.Outcome, end.Reason)
		}
		return "has ended" + why(e)
	case swarm.HandoffStored:
		env, _ := swarm.Body[swarm.StoredEnvelope](e)
		if AsksPerson(&env.Envelope) {
			return Need(e)
		}
		from := sender(env.FromNodeID, env.Client)
		if env.Edited != nil {
			from += " (edited by " + env.Edited.String() + ")"
		}
		return fmt.Sprintf("@%s → @%s: %s", from, env.ToNodeID, FirstLine(env.Payload.Message))
	case swarm.ReplyOverdue:
		return describeOverdue(e)
	case swarm.HandoffConsumed:
		if e.Turn == "" {
			return "" // a person has read the mail
		}
		return "read its mail in turn " + string(e.Turn)
	case swarm.HandoffInjected:
		in, _ := swarm.Body[swarm.Injection](e)
		return "was given urgent mail beside the answer of " + in.Tool
	case swarm.TopicPublished:
		t, _ := swarm.Body[swarm.TopicEntry](e)
		return "published on " + t.Topic + ": " + FirstLine(t.Text())
	case swarm.ArtifactStored:
		a, _ := swarm.Body[swarm.Artifact](e)
		return fmt.Sprintf("kept %s as %s", a.Name, a.Ref) + PackNote(a)
	case swarm.DeskOpened:
		if o, _ := swarm.Body[swarm.DeskOpening](e); o.Worker == swarm.ExternalWorker {
			return "waits for an external worker at " + o.Dir
		}
		return ""
	case swarm.DeskChanged:
		s, _ := swarm.Body[swarm.DeskStatus](e)
		return DescribeDesk(s)
	}
	return ""
}

// DescribeDesk says in one line how far the worker at a desk is: running, 3/5 analyzing_data,
// {"files_processed":12}.
func DescribeDesk(s swarm.DeskStatus) string {
	parts := append([]string{s.State}, deskParts(s)...)
	return "at its desk: " + strings.Join(parts, ", ")
}

// DescribeProgress is DescribeDesk for a narrow place that shows the state elsewhere: the progress
// comes first.
func DescribeProgress(s swarm.DeskStatus) string {
	if parts := deskParts(s); len(parts) > 0 {
		return strings.Join(parts, ", ")
	}
	return DescribeDesk(s)
}

// deskParts are the progress, the metrics and the error of a status, each if there is one.
func deskParts(s swarm.DeskStatus) (parts []string) {
	for _, part := range []string{DeskStep(s), string(s.Metrics), s.Error} {
		if part != "" && part != "{}" {
			parts = append(parts, FirstLine(part))
		}
	}
	return parts
}

// DeskStep says at which step the worker at a desk is: 3/5 analyzing_data.
func DeskStep(s swarm.DeskStatus) string {
	if s.Total == 0 {
		return s.Step
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", s.Done, s.Total, s.Step))
}

// describeOverdue says that a reply is late. For a person it is the only reminder, so it says what
// to type.
func describeOverdue(e *swarm.Event) string {
	o, _ := swarm.Body[swarm.Overdue](e)
	switch {
	case o.Over:
		return fmt.Sprintf("@%s never replied to %s; nobody waits for it any more", e.Agent, o.ID)
	case e.Agent == swarm.User:
		return fmt.Sprintf("%s still wants your reply: swarm reply %s", o.ID, o.ID)
	}
	return fmt.Sprintf("@%s has not replied to %s, and is reminded", e.Agent, o.ID)
}

// PackNote returns the size of a context pack and what it had no room for. It is "" for other
// artifacts.
func PackNote(a swarm.Artifact) string {
	if a.Tokens == 0 {
		return ""
	}
	return fmt.Sprintf(", ~%d tokens", a.Tokens) + LeftNote(a.LeftOut)
}

// LeftNote returns what is not in a context pack, and why. It names only the first few parts.
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

// FirstLine returns the beginning of a text, for use in a sentence.
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
	r, _ := swarm.Body[swarm.Reason](e)
	return excerpt.Reason(r.Reason)
}
