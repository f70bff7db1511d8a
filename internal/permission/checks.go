// Package permission has the order in which an agent is held back: first by the phase of its team, then by what it may do at all, then by what
// somebody has to allow. So nobody is asked about what would be refused anyway, and no yes of a person opens what the phase has shut.
package permission

// Checks are what may stand in the way of something that an agent wants to do. Each says why not, or nil; one that is missing stands in
// nobody's way.
type Checks struct {
	Phase      func() error // what the phase of the team forbids everybody
	Capability func() error // what this agent may do: its permissions, its tools, its edges
	Approval   func() error // what a person, or the file in his name, has to allow; it may ask and wait
}

// Pass goes through the checks in their order, up to the first that refuses.
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
