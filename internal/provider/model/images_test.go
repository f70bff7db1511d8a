package model_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"swarm"
	"swarm/internal/modeltest"
	"swarm/internal/provider"
)

// camera is a tool that returns images of so many bytes.
func camera(sizes ...int) func(context.Context, string, json.RawMessage) (string, error) {
	return func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
		var text []string
		for _, n := range sizes {
			text = append(text, "an image"+swarm.PassImage(ctx, swarm.ToolImage{MIMEType: "image/png", Data: bytes.Repeat([]byte{'x'}, n)}))
		}
		return strings.Join(text, "; "), nil
	}
}

var look = swarm.ToolSpec{Name: "look", Description: "looks"}

// A model that takes images is shown those that tools return, in the form of its API. Another one is
// told of them.
func TestImages(t *testing.T) {
	yes, no := true, false
	shown := map[string]string{
		"anthropic": `"content":[{"type":"text","text":"an image, shown to the model"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eHh4eA=="}}]`,
		"openai": `{"role":"tool","content":"an image, shown to the model","tool_call_id":"x"},{"role":"user","content":[{"type":"text","text":"What the tool call x shows:"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,eHh4eA=="}}]}`,
		"responses": `"output":[{"type":"input_text","text":"an image, shown to the model"},{"type":"input_image","image_url":"data:image/png;base64,eHh4eA=="}]`,
	}
	for _, c := range []struct {
		name, model string
		images      *bool
		seen        bool
	}{
		{"known", "claude-sonnet-5-5-20261001", nil, true},
		{"known, off", "gpt-6.1-terra", &no, false},
		{"unknown", "tiny", nil, false},
		{"unknown, on", "tiny", &yes, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, kind string) {
				b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "look", Args: `{}`}}}, modeltest.Answer{Text: "a cat"})
				spec := specOf(kind, b.server.URL)
				spec.Env, spec.Images = map[string]string{keyName(kind): "$LOCAL"}, c.images
				b.model = open(t, spec, "LOCAL="+key)
				if _, err := b.turn(t.Context(), provider.Request{Model: c.model, Prompt: "look", ToolSpecs: []swarm.ToolSpec{look}, Call: camera(4)}); err != nil {
					t.Fatal(err)
				}
				body := string(b.server.Requests()[1].Body)
				if want := shown[kind]; strings.Contains(body, want) != c.seen || strings.Contains(body, "eHh4eA") != c.seen {
					t.Errorf("the request is %s\nwant %s: %v", body, want, c.seen)
				}
			})
		})
	}
}

// Images have a limit of bytes, and a turn a limit of images. The text says what was left out.
func TestImagesHaveLimits(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "look", Args: `{}`}}}, modeltest.Answer{Text: "cats"})
		r := provider.Request{Model: "gpt-6.1-terra", Prompt: "look", ToolSpecs: []swarm.ToolSpec{look}, Call: camera(3<<20+1, 4, 4, 4, 4, 4, 4, 4, 4, 4)}
		if _, err := b.turn(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		asked := b.server.Requests()[1]
		if n := bytes.Count(asked.Body, []byte(base64.StdEncoding.EncodeToString([]byte("xxxx")))); n != 8 {
			t.Errorf("%d images were sent", n)
		}
		if got := asked.Results[0]; !strings.HasPrefix(got, "an image, which is not shown: it has more than 3 MB; an image, shown") || !strings.HasSuffix(got, "not shown: a turn has at most 8 images") {
			t.Error(got)
		}
	})
}

// A server that refuses images gets the text alone.
func TestImagesThatAreRefused(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "look", Args: `{}`}}},
			modeltest.Answer{Status: http.StatusBadRequest, Message: "This model does not support image input"}, modeltest.Answer{Text: "a cat"})
		reply, err := b.turn(t.Context(), provider.Request{Model: "gpt-6.1-terra", Prompt: "look", ToolSpecs: []swarm.ToolSpec{look}, Call: camera(4)})
		if err != nil || string(reply.Output) != "a cat" {
			t.Fatal(err)
		}
		if body := string(b.server.Requests()[2].Body); strings.Contains(body, "eHh4eA") || len(b.server.Requests()) != 3 {
			t.Errorf("%d requests, the last is %s", len(b.server.Requests()), body)
		}
	})
}

// Images of earlier turns are shown again, the newest that fit into a request. A model that takes none
// is told that it does not see them.
func TestImagesOfEarlierTurns(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		b := newBench(t, kind, modeltest.Answer{Calls: []modeltest.Call{{ID: "x", Name: "look", Args: `{}`}}}, modeltest.Answer{Text: "a cat"}, modeltest.Answer{Text: "a cat, I said"})
		r := provider.Request{Model: "gpt-6.1-terra", Prompt: "look", ToolSpecs: []swarm.ToolSpec{look}, Call: camera(4)}
		reply, err := b.turn(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		stored := swarm.Encode(reply.Messages)
		ask := func(model string, copies int) string {
			t.Helper()
			r.Model, r.Session, r.Fresh, r.History = model, "a/1/1", "What was it?", []swarm.ChatMessage{{Role: swarm.RoleUser, Text: "look"}}
			for range copies {
				var said []swarm.ChatMessage
				if err := json.Unmarshal(stored, &said); err != nil {
					t.Fatal(err)
				}
				r.History = append(r.History, said...)
			}
			if _, err := b.turn(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			all := b.server.Requests()
			return string(all[len(all)-1].Body)
		}
		const shown, gone = "an image, shown to the model", "an image, no longer shown to the model"
		if body := ask("gpt-6.1-terra", 1); !strings.Contains(body, "eHh4eA==") || !strings.Contains(body, shown) {
			t.Errorf("the next turn is sent %s", body)
		}
		if body := ask("tiny", 1); strings.Contains(body, "eHh4eA==") || !strings.Contains(body, gone) {
			t.Errorf("a model without eyes is sent %s", body)
		}
		body := ask("gpt-6.1-terra", 22)
		if n, left := strings.Count(body, "eHh4eA=="), strings.Count(body, gone); n != 20 || left != 2 || strings.LastIndex(body, gone) > strings.Index(body, shown) {
			t.Errorf("%d images are sent, and %d are left out: %s", n, left, body)
		}
	})
}
