package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/process"
	"swarm/internal/secret"
)

// notifyPatience is the timeout for notifying a person.
const notifyPatience = 10 * time.Second

// The formats of notifications, which are the API of their [swarm.ProviderSpec].
const (
	SlackFormat   = "slack"
	NtfyFormat    = "ntfy"
	DesktopFormat = "desktop" // a message of the operating system, by a program of it
)

// A notifier notifies a person by a command, a webhook, a message on the desktop or the terminal's
// bell. It never fails: a missed notification is no reason to stop the work, so it is only reported.
type notifier struct {
	command *command
	webhook string
	format  string
}

func newNotifier(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	n := &notifier{webhook: spec.BaseURL, format: spec.API}
	if name, ok := secret.Reference(n.webhook); ok {
		if n.webhook, _ = process.Lookup(nil, name); n.webhook == "" {
			return nil, swarm.Errorf(swarm.BadInput, "the environment has no %s, which notify names", name).WithHint("set it to the address, or leave out notify")
		}
	}
	if n.format == DesktopFormat {
		spec.Command = desktopCommand(runtime.GOOS)
	}
	if len(spec.Command) > 0 {
		args := make([]string, len(spec.Command))
		for i, arg := range spec.Command {
			args[i] = strings.ReplaceAll(arg, "{text}", "{prompt}")
		}
		spec.Command = args
		c, err := newCommand(spec, opt)
		if err != nil {
			return nil, err
		}
		n.command = c
	}
	return n, nil
}

// Turn sends the prompt to the person. The text is also its output, so that a chain can continue
// from it.
func (n *notifier) Turn(ctx context.Context, r Request, live func(swarm.Delta)) (Reply, error) {
	text := strings.TrimRight(r.Prompt, "\n")
	within, stop := context.WithTimeoutCause(
		ctx, notifyPatience, swarm.Errorf(swarm.TimedOut, "nobody took it within %s", notifyPatience))
	defer stop()
	r.Prompt = text
	if err := n.notify(within, r); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return Reply{}, cause
		}
		live(swarm.Delta{Kind: swarm.DeltaStderr, Text: fmt.Sprintf("nobody was told: %v\n", err)})
	}
	live(swarm.Delta{Kind: swarm.DeltaText, Text: text + "\n"})
	t := process.Tail{Max: MaxOutput}
	_, _ = t.Write([]byte(text + "\n"))
	return Reply{Output: t.Bytes(), Bytes: int64(len(text) + 1), Free: true}, nil
}

// notify uses the first way that is configured, or else the bell.
func (n *notifier) notify(ctx context.Context, r Request) error {
	switch {
	case n.command != nil:
		_, err := n.command.Turn(ctx, r, func(swarm.Delta) {})
		return err
	case n.webhook != "":
		return n.post(ctx, r.Prompt)
	}
	return ring()
}

// desktopCommand is the program that shows a message on the desktop of an operating system. A text
// cannot become an option or a part of a script.
func desktopCommand(system string) []string {
	if system == "darwin" {
		return []string{"osascript", "-e", "on run argv", "-e", `display notification (item 1 of argv) with title "swarm"`, "-e", "end run", "--", "{text}"}
	}
	return []string{"notify-send", "--app-name=swarm", "--", "swarm", "{text}"}
}

// maxNtfy is the longest text that ntfy shows as a message. It makes a file of a longer one.
const maxNtfy = 4000

// body returns the body of a notification and its type.
func (n *notifier) body(text string) (body []byte, kind string) {
	switch n.format {
	case SlackFormat: // & < > begin markup
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
		return swarm.Encode(map[string]string{"text": escaped}), "application/json"
	case NtfyFormat:
		return []byte(excerpt.Head(text, maxNtfy)), "text/plain; charset=utf-8"
	}
	return swarm.Encode(map[string]string{"text": text}), "application/json" // which most chats accept
}

// post sends a notification to the webhook. No error has the address: it may be all that a stranger
// needs to write there.
func (n *notifier) post(ctx context.Context, text string) error {
	body, kind := n.body(text)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.webhook, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of the webhook is not a URL")
	}
	req.Header.Set("Content-Type", kind)
	if n.format == NtfyFormat {
		req.Header.Set("Title", "swarm")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the webhook answered %s", resp.Status)
	}
	return nil
}

// ring rings the bell of the terminal, if there is one.
func ring() error {
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	defer tty.Close()
	_, err = tty.WriteString("\a")
	return err
}
