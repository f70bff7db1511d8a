// Package web holds the page that shows runs in a browser. The program carries its files.
package web

import (
	"embed"
	"io/fs"
)

// dist is what `make web` built. Git has only .keep of it, so that the program can be built without
// Node.
//
//go:embed all:dist
var dist embed.FS

// Files returns the page: index.html, and below assets what it loads. Without index.html the program
// was built without the page.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}
