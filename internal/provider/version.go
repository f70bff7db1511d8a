package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Versions remembers which version a program has said it is, because asking takes some of them
// seconds. stamp changes with the program's files.
type Versions interface {
	Version(program, stamp string) (version string, ok bool)
	NoteVersion(program, stamp, version string)
}

// AskVersion returns the version of a program: the remembered one if its files are the same, else
// what ask says, which starts it. Failures are not remembered. known may be nil.
func AskVersion(known Versions, path string, argv []string, dir string, ask func() (string, error)) (string, error) {
	if known == nil {
		return ask()
	}
	program, stamp := path+"\x00"+strings.Join(argv, "\x00"), fileStamp(path)
	for _, arg := range argv[1:] { // of a program that runs another: node agent.js
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(dir, arg)
		}
		stamp += fileStamp(arg)
	}
	if version, ok := known.Version(program, stamp); ok {
		return version, nil
	}
	version, err := ask()
	if err == nil {
		known.NoteVersion(program, stamp, version)
	}
	return version, err
}

// fileStamp describes the content of a file without reading it, or is "" if there is no file.
func fileStamp(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	info, err := os.Stat(real)
	if err != nil || info.IsDir() {
		return ""
	}
	return fmt.Sprintf("%s %d %d;", real, info.Size(), info.ModTime().UnixNano())
}
