package run

import (
	"iter"

	"swarm"
	"swarm/internal/provider"
	"swarm/internal/sqlite"
	"swarm/internal/view"
)

// Events goes through a log from its beginning.
func Events(log *sqlite.Log) iter.Seq2[swarm.Event, error] {
	return func(yield func(swarm.Event, error) bool) {
		for after := int64(0); ; {
			events, err := log.Read(after, 1000)
			if err != nil {
				yield(swarm.Event{}, err)
				return
			}
			if len(events) == 0 {
				return
			}
			for _, e := range events {
				if after = e.Seq; !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Record writes the run's turns as a cassette: an export of the log, from which the same run can be replayed.
func (r *Run) Record(path string) error {
	details, err := view.Collect(Events(r.log))
	if err != nil {
		return err
	}
	out, err := provider.Record(path, provider.CassetteHeader{Run: r.ID, Name: r.start.Name, Program: r.start.Version})
	if err != nil {
		return err
	}
	for _, t := range details.Turns {
		if t.Ended.IsZero() || t.Prompt == "" || t.Status == swarm.Cancelled {
			continue
		}
		rec := provider.RecordedTurn{Turn: t.ID, Agent: t.Agent, PromptHash: t.First, Bytes: t.Output.Bytes, Usage: t.Usage, Session: t.Session, Exit: t.Exit,
			Kind: t.Kind, Reason: t.Reason, Hint: t.Hint, Verdicts: t.Verdicts, Tools: t.Tools}
		for text, hash := range map[*provider.Text]swarm.Hash{&rec.Prompt: t.First, &rec.Output: t.Output.Hash} {
			if hash == "" {
				continue
			}
			b, err := r.log.Body(hash)
			if err != nil {
				return err
			}
			*text = provider.Text(b)
		}
		if err := out.Write(rec); err != nil {
			return err
		}
	}
	return out.Close()
}
