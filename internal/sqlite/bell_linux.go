package sqlite

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// bells reports reads of files, through one inotify instance for all logs of the process, because a
// user may have only 128 instances.
//
// A watch is for one event. The first read rings and removes the watch. So a busy log costs nothing
// until a follower listens again.
var bells struct {
	once sync.Once
	fd   int // -1 = the system has no instance left
	mu   sync.Mutex
	ring map[int][]chan<- struct{} // the listeners of each watch; two logs of one file share a watch
}

// listen sends a value to ring when the file is next read. It may ring too early, so the receiver
// has to check. It returns false if the system does not support it.
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

// unlisten cancels a listen.
func unlisten(watch int, ring chan<- struct{}) {
	b := &bells
	b.mu.Lock()
	defer b.mu.Unlock()
	rings, ok := b.ring[watch]
	if !ok {
		return // It has rung.
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

// readBells distributes the system's events. It is one goroutine that runs as long as the process.
func readBells(f *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		// An event is the number of the watch and twelve bytes. A name would follow only for
		// folders. The sort of event does not matter: if the system removes a watch, as after its
		// one event, its listeners must be woken too.
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
		default: // The receiver has not read the last value yet.
		}
	}
	delete(b.ring, watch)
}
