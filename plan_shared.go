package swarm

import (
	"runtime"
	"slices"
	"sync"
	"weak"
)

// sharedPlans are the plans that readers of this process hold, by the hash of their event's body. A
// run is read by several at once: the loop, its turns, the view, the agents' tools. A plan of
// 100,000 tasks takes 60 MB, so they share it.
var sharedPlans = struct {
	mu     sync.Mutex
	byBody map[Hash]weak.Pointer[Plan]
}{byBody: map[Hash]weak.Pointer[Plan]{}}

// PlanOf returns the plan of a [PlanAdded] event. It is shared, so the caller must not change it.
// [Body] returns a plan of the caller's own.
func PlanOf(e *Event) (*Plan, error) {
	body := HashOf(e.Data)
	s := &sharedPlans
	s.mu.Lock() // also while it is decoded, so that a second reader waits for it
	defer s.mu.Unlock()
	if p := s.byBody[body].Value(); p != nil {
		return p, nil
	}
	decoded, err := Body[Plan](e)
	if err != nil {
		return nil, err
	}
	p := &decoded
	p.compact()
	s.byBody[body] = weak.Make(p)
	runtime.AddCleanup(p, func(body Hash) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byBody[body].Value() == nil { // otherwise it was decoded again
			delete(s.byBody, body)
		}
	}, body)
	return p, nil
}

// FindPlan returns the plan that is stored under a key, as PlanOf does.
func FindPlan(log Log, key string) (*Plan, error) {
	e, ok, err := log.Find(key)
	if err == nil && !ok {
		err = Errorf(Storage, "the log has no plan %s", key)
	}
	if err != nil {
		return nil, err
	}
	return PlanOf(&e)
}

// compact gives back what decoding took more than it needs: room for more tasks, and a string of its
// own for each of many equal ones.
func (p *Plan) compact() {
	p.Tasks, p.Agents = slices.Clone(p.Tasks), slices.Clone(p.Agents)
	known := map[string]string{}
	share := func(s *string) {
		if have, ok := known[*s]; ok {
			*s = have
		} else {
			known[*s] = *s
		}
	}
	for i := range p.Agents {
		a := &p.Agents[i]
		for _, s := range []*string{&a.Name, &a.Base, &a.Provider, &a.Model, &a.Tier, (*string)(&a.Role), &a.RoleName, &a.Root} {
			share(s)
		}
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		for _, s := range []*string{&t.Agent, &t.Name, &t.Base, (*string)(&t.Prompt), (*string)(&t.OnFailure), &t.Model, &t.Tier, &t.Workdir} {
			share(s)
		}
		for k := range t.DependsOn {
			share(&t.DependsOn[k].Task)
			share((*string)(&t.DependsOn[k].Condition))
		}
	}
}
