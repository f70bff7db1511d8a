package session

import (
	"context"

	"swarm/internal/view"
)

// Wait waits until the tasks have ended, and returns the picture or why it cannot wait.
func (s *Session) Wait(ctx context.Context, tasks []string) (view.Picture, error) {
	wake, off := s.run.Log().Watch()
	defer off()
	for {
		p, err := s.Picture()
		if err != nil || ended(p, tasks) {
			return p, err
		}
		select {
		case <-wake:
		case <-s.over:
			if s.failed != nil {
				return p, s.failed
			}
			return s.last, nil
		case <-ctx.Done():
			return p, context.Cause(ctx)
		}
	}
}

func ended(p view.Picture, tasks []string) bool {
	left := len(tasks)
	for _, t := range p.Tasks {
		for _, name := range tasks {
			if t.Name == name && t.Status.Ended() {
				left--
			}
		}
	}
	return left == 0
}
