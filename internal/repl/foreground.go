package repl

// A foreground is the line that the next one waits for. First the session has it; then it stands
// for the tasks that it made. A face owns one, under the lock of the face's own state.
type foreground struct {
	entering bool     // the session has the line and has not returned yet
	tasks    []string // that it made
	stops    int      // how often it was interrupted
}

// busy says whether the next line has to wait.
func (f *foreground) busy() bool { return f.entering || f.tasks != nil }

// enter says that a line goes to the session.
func (f *foreground) enter() { f.entering = true }

// answer takes the session's result. It returns how often the line was interrupted while the
// session had it, for Session.Interrupt, because there was nothing to cancel then.
func (f *foreground) answer(e Entered, err error) (interrupts int) {
	f.entering = false
	if err != nil || e.Background || len(e.Tasks) == 0 {
		f.stops = 0
		return 0
	}
	f.tasks = e.Tasks
	return f.stops
}

// interrupt counts an interruption. The result is for Session.Interrupt; 0 means that answer will
// report it.
func (f *foreground) interrupt() int {
	f.stops++
	if f.entering {
		return 0
	}
	return f.stops
}

// catchUp ends the line when all its tasks have ended, and says whether there is still one.
func (f *foreground) catchUp(r *roster) (busy bool) {
	if f.tasks != nil && r.haveEnded(f.tasks) {
		*f = foreground{}
	}
	return f.busy()
}
