package plan

import (
	"slices"
	"time"

	"swarm"
)

// A Limit is a provider's limit that is reached. No turn of the provider starts until a fact ends
// it.
type Limit struct {
	swarm.Limit
	Since time.Time `json:"since"`
}

// Limits are the limits that are reached now, at most one for each provider.
type Limits []Limit

// A Route says which providers do an agent's turns.
type Route struct {
	Provider string         `json:"provider,omitempty"`
	OnLimit  *swarm.OnLimit `json:"on_limit,omitempty"` // nil = it waits
}

// RouteOf returns the route of an agent.
func RouteOf(a *swarm.Agent) Route { return Route{a.Provider, a.OnLimit} }

// reach adds a limit. Of two limits of one provider the later one counts: it may have an hourly and
// a weekly one.
func (l *Limits) reach(limit swarm.Limit, now time.Time) {
	if old := l.of(limit.Provider); old == nil {
		*l = append(*l, Limit{limit, now})
	} else if limit.Until.After(old.Until) {
		old.Limit = limit
	}
}

// With returns the limits with one more.
func (l Limits) With(limit swarm.Limit) Limits {
	all := slices.Clone(l)
	all.reach(limit, time.Time{})
	return all
}

func (l *Limits) end(provider string) {
	*l = slices.DeleteFunc(*l, func(r Limit) bool { return r.Provider == provider })
}

func (l Limits) of(provider string) *Limit {
	if i := slices.IndexFunc(l, func(r Limit) bool { return r.Provider == provider }); i >= 0 {
		return &l[i]
	}
	return nil
}

// Choose returns the provider that does an agent's turn now. If a limit holds the turn back, Choose
// returns that limit; of two it is the one that ends first. An agent that fails at a limit does not
// wait for one: its turn finds out.
func (l Limits) Choose(r Route) (provider string, held *Limit) {
	first := l.of(r.Provider)
	switch {
	case first == nil || r.OnLimit != nil && r.OnLimit.Fail:
		return r.Provider, nil
	case r.OnLimit == nil || r.OnLimit.Use == "":
		return "", first
	}
	other := l.of(r.OnLimit.Use)
	switch {
	case other == nil:
		return r.OnLimit.Use, nil
	case other.Until.Before(first.Until):
		return "", other
	}
	return "", first
}

// Outlasts says whether a turn that ended with a limit is no failure: another provider does it, or it
// waits. since is when the first of such ends in a row came, and the wait counts from there: a
// provider that is limited again and again does not keep a turn for ever.
func (l Limits) Outlasts(r Route, end *swarm.CallEnd, since time.Time) bool {
	if end.Limit == nil || end.Status == swarm.CallOK || end.CarriedOver || r.OnLimit != nil && r.OnLimit.Fail {
		return false
	}
	_, held := l.With(*end.Limit).Choose(r)
	return held == nil || !held.Until.After(since.Add(r.OnLimit.LimitWait()))
}

// LimitedSince returns when the first of the ends by a limit in a row came, with another end. before is
// the same without it; zero = there was none.
func LimitedSince(before time.Time, end *swarm.CallEnd, now time.Time) time.Time {
	switch {
	case end.Limit == nil && end.Status != swarm.CallCut:
		return time.Time{}
	case end.Limit != nil && before.IsZero():
		return now
	}
	return before
}

// providers returns those of a route whose limits are reached.
func (l Limits) providers(r Route) (names []string) {
	for i := range l {
		if name := l[i].Provider; name == r.Provider || r.OnLimit != nil && name == r.OnLimit.Use {
			names = append(names, name)
		}
	}
	return names
}

// all returns the providers whose limits are reached, for a command to the whole run; of others none.
func (l Limits) all(target string) (names []string) {
	for i := range l {
		if target == "" {
			names = append(names, l[i].Provider)
		}
	}
	return names
}

// Due is when the first limit ends; zero = there is none.
func (l Limits) Due() (due time.Time) {
	for i := range l {
		due = earlier(due, l[i].Until)
	}
	return due
}

// wait is what a task or an agent waits for that a limit holds back.
func (l *Limit) wait() Wait {
	return Wait{For: ForLimit, Provider: l.Provider, Since: l.Since, Until: l.Until, Reason: l.Reason}
}
