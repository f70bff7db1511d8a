package httpd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fixture is the server that the conformance suite expects: tools, resources and prompts with fixed
// names and contents. It replaces our own tools, so the suite tests the handler.
func fixture(s *session) *mcp.Server {
	f := mcp.NewServer(&mcp.Implementation{Name: "fixture", Version: "1"}, &mcp.ServerOptions{
		GetSessionID: func() string { return s.id },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	fixtureTools(f)
	fixtureRequests(f)
	fixtureResources(f)
	fixturePrompts(f)
	return f
}

var (
	pixel   = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	silence = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func decoded(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func text(words string) *mcp.TextContent { return &mcp.TextContent{Text: words} }

func image() *mcp.ImageContent { return &mcp.ImageContent{Data: pixel, MIMEType: "image/png"} }

func resource(uri, words string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: words}}
}

type does func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error)

func addTool(f *mcp.Server, name, takes string, do does) {
	f.AddTool(&mcp.Tool{Name: name, Description: "Part of the conformance suite.", InputSchema: json.RawMessage(takes)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		content, err := do(ctx, r)
		if err != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{text(err.Error())}, IsError: true}, nil
		}
		return &mcp.CallToolResult{Content: content}, nil
	})
}

func fixtureTools(f *mcp.Server) {
	for name, content := range map[string][]mcp.Content{
		"test_simple_text":            {text("This is a simple text response for testing.")},
		"test_image_content":          {image()},
		"test_audio_content":          {&mcp.AudioContent{Data: silence, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {resource("test://embedded-resource", "This is an embedded resource content.")},
		"test_multiple_content_types": {text("Multiple content types test:"), image(), resource("test://mixed-content-resource", `{"test":"data"}`)},
	} {
		addTool(f, name, `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return content, nil })
	}
	addTool(f, "test_error_handling", `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return nil, fmt.Errorf("this tool intentionally returns an error for testing")
	})
	addTool(f, "test_tool_with_logging", `{"type":"object"}`, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		for _, words := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: words}); err != nil { //nolint:staticcheck // the suite still asks for it
				return nil, err
			}
		}
		return []mcp.Content{text("done")}, nil
	})
	addTool(f, "test_tool_with_progress", `{"type":"object"}`, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		for _, at := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: at, Total: 100}); err != nil {
				return nil, err
			}
		}
		return []mcp.Content{text("done")}, nil
	})
	addTool(f, "json_schema_2020_12_tool", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`,
		func(_ context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
			return []mcp.Content{text(string(r.Params.Arguments))}, nil
		})
}

// fixtureRequests adds tools that send requests to the client during a call.
func fixtureRequests(f *mcp.Server) {
	addTool(f, "test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		var args struct{ Prompt string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		answer, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: text(args.Prompt)}}, MaxTokens: 100}) //nolint:staticcheck // the suite still asks for it
		if err != nil {
			return nil, err
		}
		return []mcp.Content{text("LLM response: " + answer.Content.(*mcp.TextContent).Text)}, nil
	})
	for name, wants := range map[string]string{
		"test_elicitation": `{"username":{"type":"string"},"email":{"type":"string"}}`,
		"test_elicitation_sep1034_defaults": `{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
			"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}`,
		"test_elicitation_sep1330_enums": `{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
			"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
			"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
			"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
			"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}`,
	} {
		addTool(f, name, `{"type":"object"}`, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Part of the conformance suite.", RequestedSchema: json.RawMessage(`{"type":"object","properties":` + wants + `}`)})
			if err != nil {
				return nil, err
			}
			return []mcp.Content{text(fmt.Sprintf("Elicitation completed: action=%s, content=%v", answer.Action, answer.Content))}, nil
		})
	}
}

func fixtureResources(f *mcp.Server) {
	read := func(contents func(uri string) *mcp.ResourceContents) mcp.ResourceHandler {
		return func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents(r.Params.URI)}}, nil
		}
	}
	words := read(func(uri string) *mcp.ResourceContents {
		return &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is the content of the static text resource."}
	})
	f.AddResource(&mcp.Resource{Name: "static-text", URI: "test://static-text", MIMEType: "text/plain"}, words)
	f.AddResource(&mcp.Resource{Name: "watched", URI: "test://watched-resource", MIMEType: "text/plain"}, words)
	f.AddResource(&mcp.Resource{Name: "static-binary", URI: "test://static-binary", MIMEType: "image/png"}, read(func(uri string) *mcp.ResourceContents {
		return &mcp.ResourceContents{URI: uri, MIMEType: "image/png", Blob: pixel}
	}))
	f.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}, read(func(uri string) *mcp.ResourceContents {
		id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
		return &mcp.ResourceContents{URI: uri, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)}
	}))
}

func fixturePrompts(f *mcp.Server) {
	add := func(name string, arguments []string, content func(given map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "Part of the conformance suite."}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: "An argument.", Required: true})
		}
		f.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			var messages []*mcp.PromptMessage
			for _, c := range content(r.Params.Arguments) {
				messages = append(messages, &mcp.PromptMessage{Role: "user", Content: c})
			}
			return &mcp.GetPromptResult{Messages: messages}, nil
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(given map[string]string) []mcp.Content {
		return []mcp.Content{text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", given["arg1"], given["arg2"]))}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(given map[string]string) []mcp.Content {
		return []mcp.Content{resource(given["resourceUri"], "Embedded resource content for testing."), text("Please process the embedded resource above.")}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{image(), text("Please analyze the image above.")}
	})
}
