package desk

import (
	"fmt"
	"os"
	"path/filepath"

	"swarm"
	"swarm/internal/desk"
	"swarm/internal/provider"
)

// making is the folder in which a new desk is made. It gets its name when the log has it, so a worker
// outside never sees a desk that is not ready.
func (t *Turn) making() string {
	return filepath.Join(filepath.Dir(t.Dir), "."+filepath.Base(t.Dir)+".new")
}

// make makes a new desk under its temporary name, and archives what has the final name.
func (t *Turn) make(r provider.Request) (*desk.Desk, desk.Manifest, error) {
	none := desk.Manifest{}
	// One of these may be the desk that is archived below. It stays open.
	corrected, late := t.openOld(t.Corrected), t.openOld(t.Late)
	for _, d := range []*desk.Desk{corrected, late} {
		if d != nil {
			defer d.Close()
		}
	}
	var err error
	if t.archived, err = desk.SetAside(t.Dir, t.Archive); err != nil {
		return nil, none, err
	}
	if t.archived == "" && t.Before == nil && t.Opened == nil { // a crash may have come after the archiving
		t.archived = desk.LastArchived(t.Dir, t.Archive)
	}
	if err := os.RemoveAll(t.making()); err != nil { // a crash came before the log had it
		return nil, none, err
	}
	if err := os.MkdirAll(filepath.Dir(t.Dir), 0o755); err != nil {
		return nil, none, err
	}
	s := t.setup(r)
	others, err := t.addNeeds(&s)
	defer func() {
		for _, d := range others {
			d.Close()
		}
	}()
	if err != nil {
		return nil, none, err
	}
	d, m, err := desk.Create(t.making(), s)
	if err != nil {
		return nil, none, t.unmade(err)
	}
	references := m.References
	if corrected != nil {
		_, err = d.TakeInputs(corrected, t.fresh(s, corrected))
	}
	if err == nil && t.Before == nil && late != nil {
		err = t.takeLate(r, d, late)
	}
	if err == nil {
		err = t.addAttempts(d)
	}
	if err == nil {
		m, err = d.Record()
	}
	if err != nil {
		d.Close()
		return nil, none, t.unmade(err)
	}
	m.References = references
	return d, m, nil
}

func (t *Turn) unmade(err error) error {
	return swarm.Errorf(swarm.KindOf(err), "the desk of %s cannot be created: %w", t.Title, err).WithHint("%s", swarm.HintOf(err))
}

// openOld opens a desk of the run that this one retries; nil = there is none. A crash may have come after it
// was archived.
func (t *Turn) openOld(dir string) *desk.Desk {
	if dir == t.Dir && (t.Before != nil || t.Opened != nil) { // a desk of this run has the place
		dir = t.Replaced
	}
	if dir == "" {
		return nil
	}
	d, err := desk.OpenInRun(dir)
	if dir == t.Dir && swarm.KindOf(err) == swarm.NotFound {
		if archived := desk.LastArchived(t.Dir, t.Archive); archived != "" {
			d, err = desk.OpenInRun(archived)
		}
	}
	if err != nil {
		t.Notice(fmt.Sprintf("the desk of %s starts from the plan, because the earlier desk cannot be used: %v", t.Title, err), "")
		return nil
	}
	return d
}

// takeLate takes over work that an external worker finished too late for the run before.
func (t *Turn) takeLate(r provider.Request, d, late *desk.Desk) error {
	where := late.Path()
	if where == t.Dir {
		where = t.archived
	}
	if !d.SameTask(late) {
		t.Notice(fmt.Sprintf("%s does not use the work that was finished too late at %s: its inputs have changed", t.Title, where),
			"see that work: swarm desk collect "+where)
		return nil
	}
	t.Notice(fmt.Sprintf("%s uses the work that was finished too late at %s", t.Title, where),
		fmt.Sprintf("to have it done again: swarm retry %s --from %s", r.Run, r.Task))
	return d.TakeOutbox(late)
}

// addAttempts tells a recreated desk of the earlier attempts.
func (t *Turn) addAttempts(d *desk.Desk) error {
	for _, f := range t.Failures {
		if err := d.ExplainFailure(f.Attempt, desk.Failure{Message: f.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// takePartial has a recreated desk keep what earlier attempts left. The log has the desk then: until
// then a crash deletes the new desk, and the old outbox would go with it.
func (t *Turn) takePartial(d *desk.Desk) error {
	if t.archived == "" || t.Before == nil && t.Opened == nil {
		return nil
	}
	return d.TakePartial(t.archived)
}

// fresh are the paths of a new inbox that are not taken from a corrected one: what tasks that were done again
// have delivered, and what tells of it. Instructions that a person has rewritten stay theirs.
func (t *Turn) fresh(s desk.Setup, corrected *desk.Desk) (paths []string) {
	old, _ := corrected.Dependencies() // what cannot be read is corrected as well
	for _, n := range t.Needs {
		if !n.Again {
			continue
		}
		for _, deps := range []*desk.Dependencies{s.Dependencies, &old} {
			for _, d := range deps.DependsOn {
				if d.Agent == n.Task {
					paths = append(paths, d.Targets()...)
				}
			}
		}
	}
	if paths != nil {
		paths = append(paths, desk.DependenciesFile)
		if !t.Rewritten {
			paths = append(paths, desk.InstructionsFile)
		}
	}
	return paths
}
