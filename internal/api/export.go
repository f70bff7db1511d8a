package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strings"

	"swarm"
	"swarm/internal/run"
)

// exportRun sends a run as one file: JSON, or the page with the run in it. An agent chose the texts,
// so the headers make a browser save the file.
func (a *API) exportRun(w http.ResponseWriter, r *http.Request) {
	kind, text, err := a.export(r)
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // an error means that the client is gone
}

func (a *API) export(r *http.Request) (kind string, text []byte, err error) {
	q := ask(r, "format")
	format := q.text("format")
	if format != "html" && format != "json" {
		q.fail(swarm.Errorf(swarm.BadInput, "format cannot be %s", swarm.Quote(format)).WithHint("choose one of html, json"))
	}
	if q.err != nil {
		return "", nil, q.err
	}
	l, err := a.openReader(r)
	if err != nil {
		return "", nil, err
	}
	defer l.Close()
	e, err := l.Export(r.Context())
	if err != nil {
		return "", nil, err
	}
	if format == "json" {
		text, err = json.Marshal(e)
		return "application/json", text, err
	}
	text, err = ExportPage(a.Page, e)
	return "text/html; charset=utf-8", text, err
}

// The elements of the built page that load its two files.
var (
	loadsScript = regexp.MustCompile(`<script[^>]* src="/(assets/[^"]+)"[^>]*></script>`)
	loadsStyle  = regexp.MustCompile(`<link[^>]* href="/(assets/[^"]+\.css)"[^>]*>`)
)

// ExportPage returns the page with a run in it as one file, which loads nothing. Its content security
// policy allows the page's own script and style by their hashes, and nothing else.
func ExportPage(files fs.FS, e run.Export) ([]byte, error) {
	var page []byte
	err := fs.ErrNotExist
	if files != nil {
		page, err = fs.ReadFile(files, "index.html")
	}
	if err != nil {
		return nil, swarm.Errorf(swarm.NotFound, "this program was built without its web page").WithHint("build it with Node installed: make build; or export JSON")
	}
	script, err := loaded(files, page, loadsScript)
	if err != nil {
		return nil, err
	}
	style, err := loaded(files, page, loadsStyle)
	if err != nil {
		return nil, err
	}
	// Neither text may end its element, or begin a comment in it. The escapes mean the same.
	script = strings.NewReplacer("</script", `<\/script`, "</SCRIPT", `<\/SCRIPT`, "<!--", `<\!--`).Replace(script)
	style = strings.ReplaceAll(style, "</style", `<\/style`)
	data, err := json.Marshal(e) // writes <, > and & as escapes, so no text of a run ends the element
	if err != nil {
		return nil, err
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; font-src data:; base-uri 'none'; form-action 'none'", hashOf(script), hashOf(style))
	page = loadsScript.ReplaceAllLiteral(page, nil)
	page = loadsStyle.ReplaceAllLiteral(page, []byte("<style>"+style+"</style>"))
	page = bytes.Replace(page, []byte("<head>"), []byte(`<head><meta http-equiv="Content-Security-Policy" content="`+policy+`">`), 1)
	end := bytes.LastIndex(page, []byte("</body>"))
	if end < 0 {
		return nil, swarm.Errorf(swarm.Other, "the web page has no end")
	}
	var b bytes.Buffer
	b.Write(page[:end])
	b.WriteString(`<script type="application/json" id="swarm-export">`)
	b.Write(data)
	b.WriteString("</script><script type=\"module\">" + script + "</script>")
	b.Write(page[end:])
	return b.Bytes(), nil
}

// loaded returns the texts that the page loads by elements of one kind.
func loaded(files fs.FS, page []byte, element *regexp.Regexp) (string, error) {
	var all strings.Builder
	for _, match := range element.FindAllSubmatch(page, -1) {
		text, err := fs.ReadFile(files, string(match[1]))
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), nil
}

// hashOf returns the source of a content security policy that allows a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
