package sqlite

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// bells tells when files are read, through one inotify instance for all logs of the process: a user may have 128 of them.
//
// A watch is for one event. The first read rings and takes the watch away, so that a busy log costs nothing until somebody
// listens again.
var bells struct {
	once sync.Once
	fd   int // -1 = the system has none to give
	mu   sync.Mutex
	ring map[int][]chan<- struct{} // by watch: who listens; two logs of one file share a watch
}

// listen has a value sent to ring when the file is next read, or before: whoever hears it has to look. It says false if the
// system cannot tell.
func listen(path string, ring chan<- struct{}) (watch int, ok bool) {
	b := &bells
	b.once.Do(openBells)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fd < 0 {
		return 0, false
	}
	watch, err := unix.InotifyAddWatch(b.fd, path, unix.IN_ACCESS|unix.IN_ONESHOT)
	if err != nil {
		return 0, false
	}
	b.ring[watch] = append(b.ring[watch], ring)
	return watch, true
}

// unlisten takes back what listen asked for.
func unlisten(watch int, ring chan<- struct{}) {
	b := &bells
	b.mu.Lock()
	defer b.mu.Unlock()
	rings, ok := b.ring[watch]
	if !ok {
		return // it has rung
	}
	b.ring[watch] = slices.DeleteFunc(rings, func(r chan<- struct{}) bool { return r == ring })
	if len(b.ring[watch]) == 0 {
		delete(b.ring, watch)
		_, _ = unix.InotifyRmWatch(b.fd, uint32(watch))
	}
}

func openBells() {
	b := &bells
	b.ring = map[int][]chan<- struct{}{}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	b.fd = fd
	if err != nil {
		b.fd = -1
		return
	}
	go readBells(os.NewFile(uintptr(fd), "inotify"))
}

// readBells hands out what the system tells, for as long as the process lives.
func readBells(f *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		// An event is the watch and twelve bytes; a name would follow if folders were watched. What happened does not matter:
		// when a watch is taken away, as after its one event, nobody may go on waiting for it.
		for at := 0; at+unix.SizeofInotifyEvent <= n; at += unix.SizeofInotifyEvent {
			ringBells(int(int32(binary.NativeEndian.Uint32(buf[at:]))))
		}
	}
}

func ringBells(watch int) {
	b := &bells
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ring := range b.ring[watch] {
		select {
		case ring <- struct{}{}:
		default: // it has not heard the last one yet
		}
	}
	delete(b.ring, watch)
}
