// Package process runs programs and makes sure that none of their processes outlives them.
//
// [Job.Start] starts a program in its own session and process group, without our terminal. So it can
// neither type into the terminal nor wait there for a password. [Process.Wait] reads its output and
// returns when no process of it is left. The environment of each process carries marks: the run,
// the turn, and the driver, which is the process that started it. [NewEnvironment] makes that
// environment and leaves out keys that the program must not see.
//
// Leftovers are found in four ways:
//   - Processes that stay in the group get the group's signals.
//   - Processes that leave the group are found by descent on Linux (see children_linux.go), and by
//     their marks elsewhere.
//   - All processes of a run are in a cgroup where one can be made (see cgroup_linux.go). It is ended
//     as a whole when the run ends, and by the next process after a crash of this one: [Reap].
//   - Without a cgroup, the next process finds the orphaned processes by their marks. On Linux they
//     have one that is hard to lose (see limitmark_linux.go).
package process
