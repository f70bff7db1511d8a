package a2a

import (
	"sync"

	"swarm"
)

// An askedQuestions is which question clients were told last, of each task: a yes belongs to that one. It is not kept when the server ends: whoever
// then says yes is told once more what he says it to.
type askedQuestions struct {
	mu      sync.Mutex
	asked   map[swarm.RunID]string // by task: the approval
	refused map[[2]string]bool     // by task and message: it came too late for its question, and answers no other
}

// maxRefused is how many messages are remembered. With more everything is forgotten, and every question is told again.
const maxRefused = 10_000

// note keeps what clients are told of a task.
func (m *askedQuestions) note(task swarm.RunID, approval string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(task, approval)
}

func (m *askedQuestions) put(task swarm.RunID, approval string) {
	if approval == "" {
		delete(m.asked, task)
		return
	}
	if m.asked == nil {
		m.asked = map[swarm.RunID]string{}
	}
	m.asked[task] = approval
}

// meant says whether a message that says yes or no is meant for what is asked now. One that is not is refused from then on, and who sent
// it is told what is asked.
func (m *askedQuestions) meant(task swarm.RunID, message, approval string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{string(task), message}
	if m.refused[key] {
		return false
	}
	if m.asked[task] == approval {
		return true
	}
	if m.refused == nil || len(m.refused) == maxRefused {
		m.refused, m.asked = map[[2]string]bool{}, nil
	}
	m.refused[key] = true
	m.put(task, approval)
	return false
}
