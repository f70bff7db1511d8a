package main

import "syscall"

// dup makes the descriptor to refer to the file of from.
func dup(from, to int) error { return syscall.Dup2(from, to) }
