package provider

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"swarm"
	"swarm/internal/process"
)

// notifyPatience is the timeout for notifying a person.
const notifyPatience = 10 * time.Second

// A notifier notifies a person by a command, a webhook or the terminal's bell. It never fails: a
// missed notification is no reason to stop the work, so it is only reported.
type notifier struct {
	command *command
	webhook string
}

func newNotifier(spec swarm.ProviderSpec, opt Options) (Provider, error) {
	n := &notifier{webhook: spec.BaseURL}
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
		return post(ctx, n.webhook, r.Prompt)
	}
	return ring()
}

// post sends {"text": …}, which most chats accept.
func post(ctx context.Context, url, text string) error {
	body := swarm.Encode(map[string]string{"text": text})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
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
