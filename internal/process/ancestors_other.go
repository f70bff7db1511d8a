//go:build unix && !linux

package process

func idOf(pid int) ID { return ID{PID: pid} }

// Ancestors returns nothing: only Linux has /proc.
func Ancestors(int) []ID { return nil }
