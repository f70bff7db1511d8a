package run

import "swarm/internal/recording"

// Record writes the run's log to a file. The run can be replayed from it.
func (r *Run) Record(path string) error {
	return recording.Create(path, recording.Header{Run: r.ID, Name: r.start.Name, Program: r.start.Version}, r.log)
}
