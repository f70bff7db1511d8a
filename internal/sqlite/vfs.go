package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"swarm/internal/logbase"
)

// SQLite believes every byte that the disk returns. A flipped bit in an index hides a key without a
// word. So this file puts a thin layer between SQLite and its files, as SQLite's own cksumvfs does:
//
//   - A page of the database file carries a checksum in its last bytes, which the schema keeps free
//     of content. The checksum is written with the page, and checked whenever the page is read. It
//     covers the page's number, so that a page in the wrong place is found too.
//   - A frame of the write-ahead log has a checksum of SQLite's own. SQLite checks it only when it
//     opens the log after a crash. Here it is checked whenever a page is read from the frame, and
//     so before the page is moved into the database file.
//
// The layer costs nothing on the path of an append, which writes to the write-ahead log alone.

const (
	reserved    = 4 // bytes at the end of each page, for the checksum
	frameHeader = 24
	walHeader   = 32
	smallest    = 512 // bytes of SQLite's smallest page; shorter reads are of the file's header
)

// pageSum is the checksum of a page. The reserved bytes are left out.
func pageSum(number int64, page []byte) uint32 {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(number))
	return crc32.Update(crc32.Update(0, logbase.Castagnoli(), n[:]), logbase.Castagnoli(), page[:len(page)-reserved])
}

// whole reports whether a page is what was written.
func whole(number int64, page []byte) bool {
	return binary.BigEndian.Uint32(page[len(page)-reserved:]) == pageSum(number, page)
}

// checksummed reports by the first 100 bytes of a file whether its pages have checksums. Two fields
// say it, so that one flipped bit in this header is no way around the check.
func checksummed(header []byte) bool {
	ours := binary.BigEndian.Uint32(header[68:]) == appID
	return header[20] == reserved || ours && binary.BigEndian.Uint32(header[60:]) >= formatChecked
}

// frameSum continues SQLite's checksum of a write-ahead log.
func frameSum(order binary.ByteOrder, s1, s2 uint32, b []byte) (uint32, uint32) {
	for ; len(b) >= 8; b = b[8:] {
		s1 += order.Uint32(b) + s2
		s2 += order.Uint32(b[4:]) + s1
	}
	return s1, s2
}

// wholeFrame reports whether a page in the write-ahead log is what was written. The checksum of a
// frame continues the one of the frame before it. Its byte order is that of the machine that wrote
// the log.
func wholeFrame(before, header, page []byte) bool {
	s1, s2 := binary.BigEndian.Uint32(header[16:]), binary.BigEndian.Uint32(header[20:])
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		a, b := frameSum(order, binary.BigEndian.Uint32(before), binary.BigEndian.Uint32(before[4:]), header[:8])
		if a, b = frameSum(order, a, b, page); a == s1 && b == s2 {
			return true
		}
	}
	return false
}

// vfs is the layer's state. The functions of the layer below are the same for all files.
var vfs struct {
	once    sync.Once
	err     error
	name    uintptr // a C string
	open    func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	mu      sync.Mutex
	tables  map[table]uintptr
	damages sync.Map // *libc.TLS, which is one per connection, to its last damage
}

// A table is a table of methods of the layer below, and what for it is changed.
type table struct {
	below uintptr
	wal   bool
}

type readFunc = func(tls *libc.TLS, file, buf uintptr, n int32, offset lib.Tsqlite_int64) int32

type traitsFunc = func(tls *libc.TLS, file uintptr) int32

// below are the functions of the layer below that this layer replaces.
var below struct {
	read, write readFunc
	traits      traitsFunc
}

var errLayer = errors.New("SQLite has no file layer that checksums can be added to")

// register makes the layer known to SQLite, once per process.
func register(tls *libc.TLS) error {
	vfs.once.Do(func() {
		p := lib.Xsqlite3_vfs_find(tls, 0)
		name, err := libc.CString("swarm")
		if p == 0 || err != nil {
			vfs.err = errors.Join(errLayer, err)
			return
		}
		vfs.name = name
		vfs.tables = map[table]uintptr{}
		ours := *structAt[lib.Tsqlite3_vfs](p)
		vfs.open = function[func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32](ours.FxOpen)
		ours.FpNext, ours.FzName = 0, name
		ours.FxOpen = address(openFile)
		if p = forC(tls, ours); p == 0 || lib.Xsqlite3_vfs_register(tls, p, 0) != lib.SQLITE_OK {
			vfs.err = errLayer
		}
	})
	return vfs.err
}

// structAt returns the C structure at an address.
func structAt[T any](p uintptr) *T {
	var t T
	return (*T)(unsafe.Pointer(unsafe.SliceData(libc.GoBytes(p, int(unsafe.Sizeof(t))))))
}

// forC copies a structure to memory outside of Go's heap, for good. It returns 0 if there is none.
// Go's own memory must not come back from C as an address: the race detector's checks refuse it.
func forC[T any](tls *libc.TLS, t T) uintptr {
	p := lib.Xsqlite3_malloc(tls, int32(unsafe.Sizeof(t)))
	if p != 0 {
		*structAt[T](p) = t
	}
	return p
}

// function returns the function at an address, as C stores it.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// address returns the address of a function for C. The function must not be a closure: nothing
// would keep a closure alive.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// openFile opens a file in the layer below, and puts this layer's functions in the place of those
// that read and write.
func openFile(tls *libc.TLS, self, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := vfs.open(tls, self, name, file, flags, outFlags)
	f := structAt[lib.Tsqlite3_file](file)
	if rc != lib.SQLITE_OK || f.FpMethods == 0 || flags&(lib.SQLITE_OPEN_MAIN_DB|lib.SQLITE_OPEN_WAL) == 0 {
		return rc
	}
	wal := flags&lib.SQLITE_OPEN_WAL != 0
	vfs.mu.Lock()
	defer vfs.mu.Unlock()
	methods := *structAt[lib.Tsqlite3_io_methods](f.FpMethods)
	if below.read == nil {
		below.read, below.write = function[readFunc](methods.FxRead), function[readFunc](methods.FxWrite)
		below.traits = function[traitsFunc](methods.FxDeviceCharacteristics)
	}
	if address(below.read) != methods.FxRead || address(below.write) != methods.FxWrite {
		return lib.SQLITE_CANTOPEN
	}
	if !wal && !hasChecksums(tls, file) {
		return rc
	}
	t := table{f.FpMethods, wal}
	if vfs.tables[t] == 0 {
		if methods.FxRead = address(readFrame); !wal {
			methods.FxRead, methods.FxWrite = address(readPage), address(writePage)
			methods.FxDeviceCharacteristics = address(wholePages)
		}
		if vfs.tables[t] = forC(tls, methods); vfs.tables[t] == 0 {
			return lib.SQLITE_NOMEM
		}
	}
	f.FpMethods = vfs.tables[t]
	return rc
}

// hasChecksums reads the header of a database file. A file without one is new.
func hasChecksums(tls *libc.TLS, file uintptr) bool {
	const header = 100
	p := tls.Alloc(header)
	defer tls.Free(header)
	rc := below.read(tls, file, p, header, 0)
	return rc&0xff == lib.SQLITE_IOERR || checksummed(libc.GoBytes(p, header))
}

func readPage(tls *libc.TLS, file, buf uintptr, n int32, offset lib.Tsqlite_int64) int32 {
	rc := below.read(tls, file, buf, n, offset)
	if rc != lib.SQLITE_OK || n < smallest {
		return rc
	}
	number := offset/pageSize + 1
	if n != pageSize || offset%pageSize != 0 || !whole(number, libc.GoBytes(buf, int(n))) {
		vfs.damages.Store(tls, damage{page: number})
		return lib.SQLITE_IOERR_DATA
	}
	return rc
}

// wholePages makes SQLite read pages whole. Otherwise it reads long texts past its cache, without
// the ends of pages.
func wholePages(tls *libc.TLS, file uintptr) int32 {
	return below.traits(tls, file) &^ lib.SQLITE_IOCAP_SUBPAGE_READ
}

func writePage(tls *libc.TLS, file, buf uintptr, n int32, offset lib.Tsqlite_int64) int32 {
	if n == pageSize {
		page := libc.GoBytes(buf, int(n))
		binary.BigEndian.PutUint32(page[pageSize-reserved:], pageSum(offset/pageSize+1, page))
	}
	return below.write(tls, file, buf, n, offset)
}

// readFrame reads from the write-ahead log. A frame that SQLite reads whole is checked by SQLite.
func readFrame(tls *libc.TLS, file, buf uintptr, n int32, offset lib.Tsqlite_int64) int32 {
	rc := below.read(tls, file, buf, n, offset)
	at := offset - walHeader - frameHeader
	if rc != lib.SQLITE_OK || n != pageSize || at < 0 || at%(pageSize+frameHeader) != 0 {
		return rc
	}
	p := tls.Alloc(frameHeader + 8)
	defer tls.Free(frameHeader + 8)
	header, before := libc.GoBytes(p, frameHeader), libc.GoBytes(p+frameHeader, 8)
	prior := offset - pageSize - 2*frameHeader + 16
	if at == 0 {
		prior = walHeader - 8
	}
	if rc := below.read(tls, file, p, frameHeader, offset-frameHeader); rc != lib.SQLITE_OK {
		return rc
	}
	if rc := below.read(tls, file, p+frameHeader, 8, prior); rc != lib.SQLITE_OK {
		return rc
	}
	if !wholeFrame(before, header, libc.GoBytes(buf, pageSize)) {
		vfs.damages.Store(tls, damage{frame: at/(pageSize+frameHeader) + 1})
		return lib.SQLITE_IOERR_DATA
	}
	return rc
}

// isChecked reports whether a database file's pages have checksums.
func isChecked(file uintptr) bool {
	return structAt[lib.Tsqlite3_io_methods](structAt[lib.Tsqlite3_file](file).FpMethods).FxRead == address(readPage)
}
