//go:build !linux

package sqlite

// listen returns false: this system cannot report reads of a file, so followers poll.
func listen(string, chan<- struct{}) (watch int, ok bool) { return 0, false }

func unlisten(int, chan<- struct{}) {}
