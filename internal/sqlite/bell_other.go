//go:build !linux

package sqlite

// listen would have a value sent to ring when the file is next read. It says that the system cannot tell.
func listen(string, chan<- struct{}) (watch int, ok bool) { return 0, false }

func unlisten(int, chan<- struct{}) {}
