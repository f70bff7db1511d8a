// Package permission defines the order of the checks before an agent acts: first the phase of its
// team, then its own capabilities, then the approval. With this order no person is asked about a
// request that would be refused anyway, and no approval overrides the phase.
package permission

// Checks are the checks of one request. Each returns an error if it refuses; nil checks are
// skipped.
type Checks struct {
	Phase      func() error // what the phase forbids all agents
	Capability func() error // what this agent may do: its permissions, its tools, its edges
	Approval   func() error // what a person, or the file on their behalf, has to allow; it may block
}

// Pass runs the checks in order, up to the first that refuses.
func (c Checks) Pass() error {
	for _, check := range []func() error{c.Phase, c.Capability, c.Approval} {
		if check == nil {
			continue
		}
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}
