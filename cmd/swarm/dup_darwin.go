package main

import "syscall"

// dup makes to another name of from.
func dup(from, to int) error { return syscall.Dup2(from, to) }
