package process

// IDOf returns the ID of a process.
func IDOf(pid int) ID { return ID{pid, statOf(pid).started} }

// Ancestors returns the processes above a process, its parent first. A driver of runs is a
// subreaper. So it is an ancestor of every process that its programs started, daemons included.
//
// The list ends early at a process whose parent is in another pid namespace, or that /proc hides.
func Ancestors(pid int) (above []ID) {
	const most = 1000 // a parent that exits during the walk could lead back to a reused pid
	for parent := statOf(pid).parent; parent > 0 && len(above) < most; {
		s := statOf(parent)
		if s.state == "" { // gone
			break
		}
		above = append(above, ID{parent, s.started})
		parent = s.parent
	}
	return above
}
