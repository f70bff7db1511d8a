// Command sdk calls a model by its vendor's own library, and does nothing else. A turn of swarm is
// compared with it.
//
//	sdk anthropic|openai URL CALLERS EACH    CALLERS at once send EACH requests, one after the
//	                                         other; the prompt is on standard input
//
// It is a module of its own, so that these libraries are in nothing that users build.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

// An ask sends one request, reads the stream to its end, and returns the text.
type ask func(ctx context.Context, prompt string) (string, error)

func run(args []string) error {
	if len(args) != 4 {
		return errors.New("usage: sdk anthropic|openai URL CALLERS EACH")
	}
	callers, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	ask, err := open(args[0], args[1])
	if err != nil {
		return err
	}
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for range each {
				text, err := ask(context.Background(), string(prompt))
				if err == nil && text == "" {
					err = errors.New("the model said nothing")
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func open(kind, url string) (ask, error) {
	// By default the libraries keep two connections to a server, and a thousand callers would spend
	// their time making new ones. A program with a thousand callers would change that too.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 1024
	client := &http.Client{Transport: transport}
	switch kind {
	case "anthropic":
		c := anthropic.NewClient(
			anthropicoption.WithBaseURL(url),
			anthropicoption.WithAPIKey("none"),
			anthropicoption.WithHTTPClient(client),
		)
		return func(ctx context.Context, prompt string) (string, error) { return askAnthropic(ctx, c, prompt) }, nil
	case "openai":
		c := openai.NewClient(
			openaioption.WithBaseURL(url+"/v1"),
			openaioption.WithAPIKey("none"),
			openaioption.WithHTTPClient(client),
		)
		return func(ctx context.Context, prompt string) (string, error) { return askOpenAI(ctx, c, prompt) }, nil
	}
	return nil, fmt.Errorf("nobody sells %q", kind)
}

func askAnthropic(ctx context.Context, c anthropic.Client, prompt string) (text string, err error) {
	stream := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: "tiny", MaxTokens: 32_000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))}})
	defer func() { err = errors.Join(err, stream.Close()) }()
	var message anthropic.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return "", err
		}
	}
	for _, block := range message.Content {
		text += block.Text
	}
	return text, stream.Err()
}

func askOpenAI(ctx context.Context, c openai.Client, prompt string) (text string, err error) {
	stream := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "tiny",
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}})
	defer func() { err = errors.Join(err, stream.Close()) }()
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if len(all.Choices) > 0 {
		text = all.Choices[0].Message.Content
	}
	return text, stream.Err()
}
