package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"strings"
	"testing"
	"testing/fstest"

	"swarm/internal/run"
)

// builtPage is a page as Vite builds it, with everything in its script that could end the element.
var builtPage = fstest.MapFS{
	"index.html": {Data: []byte(`<!doctype html><html><head><script type="module" crossorigin src="/assets/index-a1.js"></script>
<link rel="stylesheet" crossorigin href="/assets/index-b2.css"></head><body><div id="root"></div></body></html>`)},
	"assets/index-a1.js":  {Data: []byte(`const end = "</script><!--$1";`)},
	"assets/index-b2.css": {Data: []byte(`body { margin: 0 } /* $1 */`)},
}

// An exported run is one file that loads nothing. No text of the run becomes markup, and the policy
// has the hashes of the script and the style.
func TestAnExportIsOneFile(t *testing.T) {
	h := open(t, func(a *API) { a.Page = builtPage })
	h.project("tasks: {a: {prompt-string: \"</script><script>alert(1)</script>\"}}\n", "cat\n")
	id := h.start()
	h.settle(id)
	status, page := h.ask("GET", "/api/v1/runs/"+id+"/export?format=html", "")
	if status != 200 || strings.Contains(page, "/assets/") || strings.Contains(page, "<script>alert") {
		t.Fatalf("%d %s", status, page)
	}
	between := func(from, to string) string {
		_, rest, ok := strings.Cut(page, from)
		if !ok {
			t.Fatalf("no %s in %s", from, page)
		}
		inner, _, _ := strings.Cut(rest, to)
		return inner
	}
	policy := html.UnescapeString(between(`http-equiv="Content-Security-Policy" content="`, `"`))
	for _, text := range []string{between(`<script type="module">`, "</script>"), between("<style>", "</style>")} {
		sum := sha256.Sum256([]byte(text))
		if !strings.Contains(policy, base64.StdEncoding.EncodeToString(sum[:])) || !strings.Contains(text, "$1") {
			t.Errorf("%s does not allow %s", policy, text)
		}
	}
	var e run.Export
	if err := json.Unmarshal([]byte(between(`id="swarm-export">`, "</script>")), &e); err != nil {
		t.Fatal(err)
	}
	if got := e.Turns["a/1/1"]; !strings.Contains(got.PromptText, "<script>alert(1)</script>") || got.PromptText != got.OutputText || len(e.Nodes) != 1 {
		t.Errorf("%+v", e)
	}
	if status, text := h.ask("GET", "/api/v1/runs/"+id+"/export", ""); status != 400 {
		t.Errorf("%d %s", status, text)
	}
	h.api.Page = nil
	if status, text := h.ask("GET", "/api/v1/runs/"+id+"/export?format=html", ""); status != 404 || !strings.Contains(text, "without its web page") {
		t.Errorf("%d %s", status, text)
	}
}
