package provider

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"swarm"
)

func TestNotify(t *testing.T) {
	got := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("Content-Type") + " " + string(body)
		if strings.Contains(string(body), "refuse") {
			w.WriteHeader(500)
		}
	}))
	defer hook.Close()
	file := filepath.Join(t.TempDir(), "told")
	for _, c := range []struct {
		name, text, want string
		spec             swarm.ProviderSpec
		told             func() string
		trouble          string
	}{
		{"by a command", "the build is done", "the build is done", swarm.ProviderSpec{Command: []string{"sh", "-c", `printf %s "$1" > "$2"`, "x", "{text}", file}},
			func() string { b, _ := os.ReadFile(file); return string(b) }, ""},
		{"by a webhook", `say "hi"`, `application/json {"text":"say \"hi\""}`, swarm.ProviderSpec{BaseURL: hook.URL}, func() string { return <-got }, ""},
		{"a webhook that refuses fails nothing", "refuse", `application/json {"text":"refuse"}`, swarm.ProviderSpec{BaseURL: hook.URL}, func() string { return <-got }, "500"},
		{"nor does a command that is not there", "x", "", swarm.ProviderSpec{Command: []string{"no-such-program"}}, func() string { return "" }, "no-such-program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spec.Name, c.spec.Kind = "notify", "notify"
			p, err := OpenNotifier(c.spec, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var trouble string
			reply, err := p.Turn(t.Context(), Request{Prompt: c.text + "\n", Dir: t.TempDir()}, func(d swarm.Delta) {
				if d.Kind == swarm.DeltaStderr {
					trouble += d.Text
				}
			})
			if err != nil || string(reply.Output) != c.text+"\n" {
				t.Errorf("its output is %q, %v", reply.Output, err)
			}
			if told := c.told(); told != c.want {
				t.Errorf("told was %q, want %q", told, c.want)
			}
			if !strings.Contains(trouble, c.trouble) || (c.trouble == "") != (trouble == "") {
				t.Errorf("the trouble is %q, want %q in it", trouble, c.trouble)
			}
		})
	}
}
