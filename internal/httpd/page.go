package httpd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"swarm"
)

// pagePolicy lets the page load its own files and ask this server, and nothing else. No script
// stands in the page, so a text of an agent that became markup by mistake would not run.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// answerPolicy is for everything but the page. An answer that a browser shows as a document, such as
// an artifact, runs nothing and has no origin.
const answerPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// missingPage is the page of a program that was built without it.
const missingPage = `<!doctype html><html lang="en"><meta charset="utf-8"><title>swarm</title>` +
	"<p>This program was built without its page: install Node, run <code>make build</code>, and start it again.</p></html>\n"

// contentTypes are the types of the page's files. Those of the system differ between machines.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".ico": "image/x-icon", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".woff2": "font/woff2",
}

// A pageFile is one file of the page.
type pageFile struct {
	kind string // its media type
	tag  string // its entity tag
	text []byte
}

// A page is the files of the web page. They are the same for everybody and hold nothing of any run,
// so they are served without a token. They are read when the first browser asks.
type page struct {
	files fs.FS
	once  sync.Once
	index pageFile
	// assets are looked up by the whole path of a request, so no path leads to another file.
	assets map[string]pageFile
}

func newPageFile(name string, text []byte) pageFile {
	sum := sha256.Sum256(text)
	kind := contentTypes[path.Ext(name)]
	if kind == "" {
		kind = "application/octet-stream"
	}
	return pageFile{kind, `"` + hex.EncodeToString(sum[:16]) + `"`, text}
}

// read reads all files. One that cannot be read is not there: the files are part of the program.
func (p *page) read() {
	p.assets = map[string]pageFile{}
	text, err := fs.ReadFile(p.files, "index.html")
	if err != nil {
		text = []byte(missingPage)
	}
	p.index = newPageFile("index.html", text)
	_ = fs.WalkDir(p.files, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // the others are served
		}
		if text, err := fs.ReadFile(p.files, name); err == nil {
			p.assets["/"+name] = newPageFile(name, text)
		}
		return nil
	})
}

const assetPath = "/assets/"

// isPagePath reports whether a path belongs to the page. All paths below /r/ are the same page,
// which reads from its address what to show.
func isPagePath(p string) bool {
	return p == "/" || strings.HasPrefix(p, "/r/") || strings.HasPrefix(p, assetPath)
}

// serve answers a request for a file of the page.
func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		Refuse(w, http.StatusMethodNotAllowed, swarm.Errorf(swarm.BadInput, "the page takes no %s", swarm.Quote(r.Method)).WithHint("use GET"))
		return
	}
	p.once.Do(p.read)
	file, found, head := p.index, true, w.Header()
	if strings.HasPrefix(r.URL.Path, assetPath) {
		file, found = p.assets[r.URL.Path]
	}
	if !found {
		head.Set("Cache-Control", "no-store")
		Refuse(w, http.StatusNotFound, swarm.Errorf(swarm.NotFound, "the page has no file %s", swarm.Quote(r.URL.Path)).
			WithHint("the server may be newer than the page: reload it"))
		return
	}
	head.Set("Content-Security-Policy", pagePolicy)
	head.Set("Content-Type", file.kind)
	head.Set("ETag", file.tag)
	head.Set("Cache-Control", "no-store")
	if strings.HasPrefix(r.URL.Path, assetPath) { // its name has a hash of its content
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.text))
}
