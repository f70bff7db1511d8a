package api

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/feed"
	"swarm/internal/mail"
	"swarm/internal/run"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

type eventList struct {
	Events []swarm.PublicEvent `json:"events"`
	Next   int64               `json:"next,omitempty"` // the value of after for the next page; 0 = there is none yet
}

// listEvents lists a run's events in the order of the log.
func (a *API) listEvents(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "after", "limit", "kind")
	after, limit := q.number("after", 0, 0, math.MaxInt64), q.limit()
	kinds := q.kinds("kind")
	if q.err != nil {
		return reply{}, q.err
	}
	list := eventList{Events: []swarm.PublicEvent{}}
	for {
		events, err := l.Read(after, mostPage)
		if err != nil {
			return reply{}, err
		}
		for _, e := range events {
			if len(kinds) > 0 && !kinds[string(e.Kind)] {
				after = e.Seq
				continue
			}
			if len(list.Events) == limit {
				list.Next = after
				return ok(list)
			}
			after = e.Seq
			list.Events = append(list.Events, e.Public(l.ID))
		}
		if len(events) == 0 {
			return ok(list)
		}
	}
}

// kinds reads a list of event kinds. The result is nil, which means all kinds, when none is given.
func (q *question) kinds(name string, more ...string) map[string]bool {
	text := q.text(name)
	if text == "" {
		return nil
	}
	all := map[string]bool{}
	known := more
	for _, k := range swarm.EventKinds {
		known = append(known, string(k))
	}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(known, name) {
			q.fail(swarm.Errorf(swarm.BadInput, "no event is of the kind %s", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, known)))
		}
		all[name] = true
	}
	return all
}

type turnList struct {
	Turns []view.Turn `json:"turns"`
	Next  int64       `json:"next,omitempty"`
}

// listTurns lists a run's turns in the order in which they started.
func (a *API) listTurns(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "after", "limit", "agent", "task")
	after, limit, agent, task := q.number("after", 0, 0, math.MaxInt64), q.limit(), q.text("agent"), q.text("task")
	if q.err != nil {
		return reply{}, q.err
	}
	d, err := l.Details()
	if err != nil {
		return reply{}, err
	}
	turns := slices.DeleteFunc(d.Turns, func(t view.Turn) bool { return agent != "" && t.Agent != agent || task != "" && t.Task != task })
	some, next := page(turns, after, limit)
	return ok(turnList{some, next})
}

// A shownTurn is a turn with its texts. A running turn has no output yet: Said holds its stream so
// far.
type shownTurn struct {
	run.FullTurn
	Said []feed.StreamRecord `json:"said,omitempty"`
}

// showTurn returns one turn with its texts.
func (a *API) showTurn(r *http.Request, l *run.Reader) (reply, error) {
	if err := ask(r).err; err != nil {
		return reply{}, err
	}
	t, err := l.Turn(r.PathValue("turn"))
	if swarm.KindOf(err) == swarm.BadInput {
		err = refusal{http.StatusNotFound, err}
	}
	if err != nil {
		return reply{}, err
	}
	full, err := l.Full(t)
	if err != nil {
		return reply{}, err
	}
	shown := shownTurn{FullTurn: full}
	if !t.Status.Ended() {
		err = l.ReadStream(t.ID, func(s statedir.Record) error {
			shown.Said = append(shown.Said, feed.StreamRecord(s))
			return nil
		})
	}
	if err != nil {
		return reply{}, err
	}
	return ok(shown)
}

type artifactList struct {
	Artifacts []json.RawMessage `json:"artifacts"`
	Next      int64             `json:"next,omitempty"`
}

func (a *API) listArtifacts(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "after", "limit")
	after, limit := q.number("after", 0, 0, math.MaxInt64), q.limit()
	if q.err != nil {
		return reply{}, q.err
	}
	d, err := l.Details()
	if err != nil {
		return reply{}, err
	}
	some, next := page(d.Artifacts, after, limit)
	return ok(artifactList{some, next})
}

// giveArtifact returns the bytes of artifact://kind/name or contextpack://pack/name. An agent chose
// the bytes, so the headers make a browser save them as a file and never show or run them.
func (a *API) giveArtifact(w http.ResponseWriter, r *http.Request) {
	text, err := a.artifact(r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text)
}

func (a *API) artifact(r *http.Request) ([]byte, error) {
	if err := ask(r).err; err != nil {
		return nil, err
	}
	l, err := a.openReader(r)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	d, err := l.Details()
	if err != nil {
		return nil, err
	}
	ref := "artifact://" + r.PathValue("kind") + "/" + r.PathValue("name")
	if kind := r.PathValue("kind"); kind == "pack" || kind == "contextpack" {
		ref = mail.PackPrefix + r.PathValue("name")
	}
	for _, raw := range d.Artifacts {
		var kept swarm.Artifact
		if json.Unmarshal(raw, &kept) == nil && kept.Ref == ref {
			return l.Text(kept.Hash)
		}
	}
	return nil, swarm.Errorf(swarm.NotFound, "run %s has no %s", l.ID, swarm.Quote(ref)).WithHint("GET /api/v1/runs/%s/artifacts lists what it has", l.ID)
}

type topicList struct {
	Topics []view.Topic `json:"topics"`
	Next   int64        `json:"next,omitempty"` // the value of after for the next page
}

// listTopics lists the findings of a run by topic. The parameter after is the number of an entry,
// and limit counts entries, not topics.
func (a *API) listTopics(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "after", "limit", "topic")
	after, limit, topic := q.number("after", 0, 0, math.MaxInt64), q.limit(), q.text("topic")
	if q.err != nil {
		return reply{}, q.err
	}
	d, err := l.Details()
	if err != nil {
		return reply{}, err
	}
	d.Topics = slices.DeleteFunc(d.Topics, func(t view.Topic) bool { return topic != "" && t.Topic != topic })
	var later []int64 // the numbers of all entries behind after
	for _, t := range d.Topics {
		for _, e := range t.Entries {
			if e.Seq > after {
				later = append(later, e.Seq)
			}
		}
	}
	list, upto := topicList{Topics: []view.Topic{}}, int64(math.MaxInt64)
	if slices.Sort(later); len(later) > limit {
		upto = later[limit-1]
		list.Next = upto
	}
	for _, t := range d.Topics {
		t.Entries = slices.DeleteFunc(t.Entries, func(e view.TopicEntry) bool { return e.Seq <= after || e.Seq > upto })
		if len(t.Entries) > 0 {
			list.Topics = append(list.Topics, t)
		}
	}
	return ok(list)
}

type mailList struct {
	Mail []view.Envelope `json:"mail"`
	Next int64           `json:"next,omitempty"` // the value of after for the next page
}

// listMail lists a run's envelopes with their receipts, in the order in which they were stored. The
// parameter after is the number of a receipt.
func (a *API) listMail(r *http.Request, l *run.Reader) (reply, error) {
	q := ask(r, "after", "limit", "agent", "pending")
	after, limit, agent, pending := q.number("after", 0, 0, math.MaxInt64), q.limit(), q.text("agent"), q.yes("pending")
	if q.err != nil {
		return reply{}, q.err
	}
	d, err := l.Details()
	if err != nil {
		return reply{}, err
	}
	list := mailList{Mail: []view.Envelope{}}
	for _, e := range d.Envelopes {
		switch {
		case e.Receipt.Seq <= after,
			agent != "" && e.FromNodeID != agent && e.ToNodeID != agent,
			pending && e.Receipt.State != view.MailStored:
			continue
		case len(list.Mail) == limit:
			list.Next = list.Mail[limit-1].Receipt.Seq
			return ok(list)
		}
		list.Mail = append(list.Mail, e)
	}
	return ok(list)
}
