//go:build !linux

package disk

import "os"

func sync(f *os.File) error { return f.Sync() }
