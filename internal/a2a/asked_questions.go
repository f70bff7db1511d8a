package a2a

import (
	"sync"

	"swarm"
)

// An askedQuestions remembers, for each task, the approval that clients were last shown. A yes or
// no answers only that one: agents may have asked something else since. The memory is not on disk.
// After a restart of the server, a client that says yes is shown the question once more.
type askedQuestions struct {
	mu      sync.Mutex
	asked   map[swarm.RunID]string // by task: the id of the approval
	refused map[[2]string]bool     // by task and message: answers that came too late, refused for good
}

// maxRefused limits the memory. At the limit everything is forgotten, which is safe: clients are
// then shown each question again before an answer counts.
const maxRefused = 10_000

// note records the approval that clients are shown for a task; "" is none.
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

// meant reports whether a yes or no is the answer to this approval. If not, the message is refused
// from then on, even when it is sent again. The caller shows the client the approval instead.
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
