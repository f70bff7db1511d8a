// Package process runs programs. Each is started in a process group of its own, with marks in its environment that say to which
// run and turn it belongs, and which process started it. When it ends, or has to, nothing of it is left: neither its group, nor
// children that have left the group, nor, after this program was killed itself, what that has left behind.
package process
