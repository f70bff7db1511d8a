package run

import (
	"swarm"
	"swarm/internal/recording"
)

// Record writes the run's log to a file. The run can be replayed from it.
func (r *Run) Record(path string) error { return record(path, r.start, r.log) }

// Record is [Run.Record] for a run that no process drives.
func (r *Reader) Record(path string) error {
	start, err := firstEvent(r.log)
	if err != nil {
		return err
	}
	if who, driven := r.Driver(); driven {
		return swarm.Errorf(swarm.BadInput, "the run %s has not ended: %s drives it", r.ID, who.Process()).WithHint("wait for its end: swarm wait %s", r.ID)
	}
	if err := CheckRecordable(start); err != nil {
		return err
	}
	return record(path, start, r.log)
}

func record(path string, start swarm.RunStart, log swarm.Log) error {
	return recording.Create(path, recording.Header{Run: start.ID, Name: start.Name, Program: start.Version}, log)
}

// CheckRecordable refuses runs that cannot be replayed from their log.
func CheckRecordable(start swarm.RunStart) error {
	switch {
	case start.Replay: // its log lacks the recorded timing
		return swarm.Errorf(swarm.BadInput, "a replay is recorded already").WithHint("copy its recording")
	case start.Kind == swarm.LineRun: // its lines are commands of a person, which no loop decides again
		return swarm.Errorf(swarm.BadInput, "a session of lines cannot be recorded").
			WithHint("run one prompt: swarm run -s TEXT --agent NAME --record FILE; or a pipeline: swarm up --record FILE")
	}
	return nil
}
