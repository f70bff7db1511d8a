// Package disk is the floor of everything durable: bytes are written, and they are on disk.
package disk

import "os"

// Write appends b to f and waits for the disk.
func Write(f *os.File, b []byte) error {
	if _, err := f.Write(b); err != nil {
		return err
	}
	return sync(f)
}
