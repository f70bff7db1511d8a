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
		title := r.Header.Get("Title")
		if title != "" {
			title = " " + title + " " + r.Method + " " + r.URL.Path
		}
		got <- r.Header.Get("Content-Type") + title + " " + string(body)
		if strings.Contains(string(body), "refuse") {
			w.WriteHeader(500)
		}
	}))
	defer hook.Close()
	t.Setenv("HOOK", hook.URL+"/services/T0/B0/hidden")
	t.Setenv("GONE", "http://127.0.0.1:1/services/T0/B0/hidden")
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
		{"by Slack: a JSON object, with its markup escaped", "1 < 2 & 3", `application/json {"text":"1 &lt; 2 &amp; 3"}`, swarm.ProviderSpec{BaseURL: "$HOOK", API: SlackFormat}, func() string { return <-got }, ""},
		{"by ntfy: the text as it is, to the topic", "say <it>", "text/plain; charset=utf-8 swarm POST /topic say <it>", swarm.ProviderSpec{BaseURL: hook.URL + "/topic", API: NtfyFormat}, func() string { return <-got }, ""},
		{"a webhook that is not there is named by its host", "x", "", swarm.ProviderSpec{BaseURL: "$GONE", API: SlackFormat}, func() string { return "" }, "nobody was told: 127.0.0.1:1: dial tcp"},
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
			if strings.Contains(trouble, "hidden") || !strings.Contains(trouble, c.trouble) || (c.trouble == "") != (trouble == "") {
				t.Errorf("the trouble is %q, want %q in it", trouble, c.trouble)
			}
		})
	}
}

// A message on the desktop is shown by a program of the system. The text is an argument of its own.
func TestDesktopCommand(t *testing.T) {
	for system, want := range map[string]string{"linux": "notify-send --app-name=swarm -- swarm {text}", "darwin": `osascript -e on run argv -e display notification (item 1 of argv) with title "swarm" -e end run -- {text}`} {
		if got := strings.Join(desktopCommand(system), " "); got != want {
			t.Errorf("%s: %s", system, got)
		}
	}
	if _, err := OpenNotifier(swarm.ProviderSpec{Name: "notify", Kind: "notify", BaseURL: "$NO_SUCH_HOOK"}, Options{}); err == nil || !strings.Contains(err.Error(), "NO_SUCH_HOOK") {
		t.Error(err)
	}
	// A file cannot have the credentials of the store sent somewhere.
	t.Setenv("SWARM_STORE", "postgres://me@host/db")
	for _, name := range []string{"SWARM_STORE", "SWARM_TOKEN", "PGPASSWORD"} {
		t.Setenv(name, "http://127.0.0.1:1/")
		if _, err := OpenNotifier(swarm.ProviderSpec{Name: "notify", Kind: "notify", BaseURL: "$" + name}, Options{}); err == nil {
			t.Errorf("notify gets %s", name)
		}
	}
}
