//go:build unix && !linux

package process

// IDOf returns the ID of a process.
func IDOf(pid int) ID { return ID{PID: pid} }

// Ancestors returns nothing: only Linux has /proc.
func Ancestors(int) []ID { return nil }
