package sqlite

import (
	"time"

	"swarm"
)

// Intervals of the poll for events of other processes: while the log is being written, and when
// nothing has come for restAfter.
const (
	pollEvery  = 20 * time.Millisecond
	restEvery  = 100 * time.Millisecond
	restAfter  = time.Second
	doubtEvery = time.Second // the interval at rest when commits ring
)

// Watch returns a channel that holds a value soon after an event for one of the receivers was
// appended, see [swarm.Log].
func (l *Log) Watch(to ...string) (<-chan struct{}, func()) {
	if _, ok := l.tail.Position(); !ok {
		_ = l.follow() // A failure shows at the next read.
	}
	return l.tail.Watch(to, func() {
		l.stop = make(chan struct{})
		go l.poll(l.stop)
	}, func() { close(l.stop) })
}

// poll looks for events of other processes, as long as something is watched. While the log is being
// written it looks every pollEvery. At rest it waits until a commit rings. While this process
// writes, it looks only if the mark says that another one did too.
func (l *Log) poll(stop chan struct{}) {
	timer := time.NewTimer(pollEvery)
	defer timer.Stop()
	upto, since := int64(-1), time.Now() // how far the log had come, and since when
	for writes := l.writes.Load(); ; {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		ours := l.writes.Load()
		busy := ours != writes
		if writes = ours; busy && !l.mayLack() {
			timer.Reset(pollEvery)
			continue
		}
		ring := make(chan struct{}, 1)
		watch, told := listen(l.path+".lock", ring) // before the look, so that a later commit rings
		if !l.look() {
			return
		}
		if told {
			if !l.rest(stop, ring, writes, timer) {
				unlisten(watch, ring)
				return
			}
			timer.Reset(pollEvery)
			continue
		}
		now, _ := l.tail.Position()
		if now != upto {
			upto, since = now, time.Now()
		}
		timer.Reset(pollEvery)
		if time.Since(since) > restAfter {
			timer.Reset(restEvery)
		}
	}
}

// rest waits for a commit. If another process made it, the poll looks at once. A commit of this
// process needs no look. It returns false when the poll is over.
func (l *Log) rest(stop, ring chan struct{}, writes int64, timer *time.Timer) bool {
	for {
		timer.Reset(doubtEvery)
		select {
		case <-stop:
			return false
		case <-ring:
			return l.writes.Load() != writes || l.look()
		case <-timer.C: // The writer may have died before it rang, or be an older version.
			if !l.look() {
				return false
			}
		}
	}
}

// look brings the tail up to date. It returns false if the log is closed.
func (l *Log) look() bool {
	err := l.follow()
	if err != nil {
		l.tail.WakeAll() // They read, and get the error.
	}
	return swarm.KindOf(err) != swarm.Stopped
}
