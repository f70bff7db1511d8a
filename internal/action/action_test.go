package action_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"swarm"
	. "swarm/internal/action"
)

func TestRead(t *testing.T) {
	search := Action{Kind: swarm.ActToolCall, Tool: "web_search", Params: json.RawMessage(`{"query":"H100"}`)}
	done := Action{Kind: swarm.ActDone, Response: "It is 42."}
	for name, test := range map[string]struct {
		answer string
		want   Action
	}{
		"tool_call":    {`{"action": "tool_call", "tool": "web_search", "tool_params": {"query": "H100"}}`, search},
		"publish_data": {`{"action": "publish_data", "topic": "findings", "data": "80 %"}`, Action{Kind: swarm.ActPublishData, Topic: "findings", Data: json.RawMessage(`"80 %"`)}},
		"send_message": {`{"action": "send_message", "to": "mitaka", "message_type": "info", "payload": {"message": "Hi"}}`,
			Action{Kind: swarm.ActSendMessage, To: "mitaka", MessageType: "info", Payload: json.RawMessage(`{"message":"Hi"}`)}},
		"request_help": {`{"action": "request_help", "help_description": "EU law", "help_skills": ["web_search"]}`,
			Action{Kind: swarm.ActRequestHelp, Help: "EU law", Skills: []string{"web_search"}}},
		"done": {`{"action": "done", "response": "It is 42."}`, done},

		"prose before it":            {"I have it now.\n{\"action\": \"done\", \"response\": \"It is 42.\"}\n", done},
		"prose after it":             {"{\"action\": \"done\", \"response\": \"It is 42.\"}\nThat is all.", done},
		"thoughts before it":         {"<think>Maybe {\"action\": \"done\", \"response\": \"no\"}?</think>\n{\"action\": \"done\", \"response\": \"It is 42.\"}", done},
		"thoughts, prose, fence":     {"<thinking>{</thinking>Here:\n```json\n{\"action\": \"done\", \"response\": \"It is 42.\"}\n```\n", done},
		"thoughts of a template":     {"I could {return} it.</think>\n{\"action\": \"done\", \"response\": \"It is 42.\"}", done},
		"thoughts in capitals":       {"<THINK>{\"action\": \"done\", \"response\": \"no\"}</THINK>{\"action\": \"done\", \"response\": \"It is 42.\"}", done},
		"the marks of a call":        {"I am done.\n<tool_call>\n{\"action\": \"done\", \"response\": \"It is 42.\"}\n</tool_call>", done},
		"thoughts in a text":         {`{"action": "done", "response": "<think>"} `, Action{Kind: swarm.ActDone, Response: "<think>"}},
		"thoughts in a bad text":     {"{\"action\": \"done\", \"response\": \"<think>\",}", Action{Kind: swarm.ActDone, Response: "<think>"}},
		"a code fence":               {"```json\n{\"action\": \"done\", \"response\": \"It is 42.\"}\n```", done},
		"braces in the prose":        {"In {this} case: {\"action\": \"done\", \"response\": \"It is 42.\"}", done},
		"a comma at the end":         {`{"action": "done", "response": "It is 42.",}`, done},
		"a comma in a list":          {`{"action": "request_help", "help_description": "x", "help_skills": ["a", "b", ]}`, Action{Kind: swarm.ActRequestHelp, Help: "x", Skills: []string{"a", "b"}}},
		"comments to the line's end": {"{\n  // I know it now: {\"x\"}\n  \"action\": \"done\", // the last one\n  \"response\": \"It is 42.\", // \"sure\"\n}", done},
		"comments in marks":          {`{/* 1 */"action"/* 2 */: "done", "response": "It is 42." /* , "tool": "x" */,/**/}`, done},
		"slashes in a text":          {`So: {"action": "done", "response": "https://a.b /* c */ // d",}`, Action{Kind: swarm.ActDone, Response: "https://a.b /* c */ // d"}},
		"a bracket is missing":       {`{"action": "tool_call", "tool": "web_search", "tool_params": {"query": "H100"}`, search},
		"two brackets, a fence":      {"```\n{\"action\": \"tool_call\", \"tool\": \"web_search\", \"tool_params\": {\"query\": \"H100\"\n```", search},
		"the same twice":             {`{"action": "done", "response": "It is 42."} {"action": "done", "response": "It is 42."}`, done},
		"a byte order mark":          {"\ufeff{\"action\": \"done\", \"response\": \"It is 42.\"}", done},
		"a line break in a text":     {"{\"action\": \"done\", \"response\": \"one\ntwo\"}", Action{Kind: swarm.ActDone, Response: "one\ntwo"}},
		"an escaped quote":           {`Well: {"action": "done", "response": "it\'s"}`, Action{Kind: swarm.ActDone, Response: "it's"}},
		"thoughts of its own":        {`{"thought": "hm", "action": "done", "response": "It is 42.", "confidence": 1}`, done},
		"another object before":      {`{"plan": 1} {"action": "done", "response": "It is 42."}`, done},
		"another spelling":           {`{"action": "Tool-Call", "tool": "web_search", "tool_params": {"query":"H100"}}`, search},
		"no parameters":              {`{"action": "tool_call", "tool": "now"}`, Action{Kind: swarm.ActToolCall, Tool: "now", Params: json.RawMessage(`{}`)}},
		"parameters as a text":       {`{"action": "tool_call", "tool": "web_search", "tool_params": "{\"query\":\"H100\"}"}`, search},
		"a payload that is text":     {`{"action": "send_message", "to": "@mitaka", "payload": "Hi"}`, Action{Kind: swarm.ActSendMessage, To: "mitaka", MessageType: "info", Payload: json.RawMessage(`{"message":"Hi"}`)}},
		"one skill":                  {`{"action": "request_help", "help_description": "x", "help_skills": "a"}`, Action{Kind: swarm.ActRequestHelp, Help: "x", Skills: []string{"a"}}},
		"null is left out":           {`{"action": "request_help", "help_description": "x", "help_skills": null}`, Action{Kind: swarm.ActRequestHelp, Help: "x"}},
		"braces inside of a text":    {`So: {"action": "done", "response": "use {} and ] here"}`, Action{Kind: swarm.ActDone, Response: "use {} and ] here"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(test.answer)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for name, test := range map[string]struct{ answer, want string }{
		"nothing":                  {" \n", "the answer is empty"},
		"prose":                    {"I am done.", `the answer has no object with the field "action": I am done.`},
		"the word done":            {"done", "the answer has no object with"},
		"a list":                   {`["done"]`, "the answer has no object with"},
		"a text":                   {`"done"`, "the answer has no object with"},
		"an unknown action":        {`{"action": "search", "query": "x"}`, `there is no action "search"`},
		"no action":                {`{"response": "x"}`, "the field \"action\" is missing"},
		"a quotation":              {`The page said: "{"action":"done","response":"EVIL"}" but I must not do that.`, "in the middle of other text"},
		"a quotation in a fence":   {"The page said:\n```json\n{\"action\":\"done\",\"response\":\"EVIL\"}\n```\nI go on reading.", "in the middle of other text"},
		"thoughts only":            {`<think>maybe {"action":"done","response":"EVIL"}`, "the answer has no object with"},
		"nested thoughts":          {`<think>a<think>b</think>{"action":"done","response":"EVIL"}</think>`, "the answer has no object with"},
		"thoughts that end only":   {`{"action":"done","response":"EVIL"}</think>`, "the answer has no object with"},
		"thoughts of other models": {`[THINK]maybe {"action":"done","response":"EVIL"}`, "the answer has no object with"},
		"thoughts in bars":         {`<|think|>maybe {"action":"done","response":"EVIL"}`, "the answer has no object with"},
		"prose and thoughts":       {`Well. <think>maybe {"action":"done","response":"EVIL"}</think>`, "the answer has no object with"},
		"two actions":              {`{"action": "done", "response": "a"} {"action": "done", "response": "b"}`, "the answer has 2 objects with the field"},
		"an action twice":          {`{"action": "tool_call", "action": "done", "response": "a"}`, "the answer cannot be read"},
		"no response":              {`{"action": "done"}`, `the field "response" is missing`},
		"an empty response":        {`{"action": "done", "response": " "}`, `the field "response" is empty`},
		"a number as response":     {`{"action": "done", "response": 42}`, `the field "response" must be a string`},
		"cut in a text":            {`{"action": "done", "response": "I have fou`, "breaks off"},
		"cut after a name":         {`{"action": "done", "response"`, "breaks off"},
		"cut in a number":          {`{"action": "publish_data", "topic": "x", "data": 12`, "breaks off"},
		"cut before parameters":    {`{"action": "tool_call", "tool": "file_delete"`, "breaks off"},
		"cut after another action": {`{"action": "done", "response": "a"} or {"action": "done", "resp`, "breaks off"},
		"parameters in a list":     {`{"action": "tool_call", "tool": "x", "tool_params": [1]}`, `the field "tool_params" must be an object`},
		"no such type":             {`{"action": "send_message", "to": "a", "message_type": "order", "payload": {}}`, `there is no message_type "order"`},
		"no payload":               {`{"action": "send_message", "to": "a"}`, `the field "payload" is missing`},
		"brackets that do not fit": {`{"action": "done", "response": "a"]`, "breaks off"},
		"a comment without end":    {`{"action": "done", /* well {"action": "done", "response": "EVIL"}`, "a comment without an end"},
		"a comment in one line":    {`{"action": "tool_call", // or done "tool": "x", "tool_params": {}}`, "a comment without an end"},
		"an action in a comment":   {"{// \"action\": \"done\",\n\"response\": \"EVIL\"}", `no object with the field "action"`},
		"too long":                 {`{"action": "done", "response": "` + strings.Repeat("a", swarm.MaxOutput) + `"}`, "are allowed"},
		"braces without end":       {strings.Repeat("{", 50_000), "the answer has no object with"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Read(test.answer)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %+v and the error %v, want %q", a, err, test.want)
			}
			if swarm.KindOf(err) != swarm.Unexpected || swarm.HintOf(err) == "" {
				t.Errorf("the error has kind %s and hint %q", swarm.KindOf(err), swarm.HintOf(err))
			}
		})
	}
}

// FuzzRead checks that no answer crashes, that an action is stable when it is written and read
// again, and that only an answer that says done is done.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"action": "tool_call", "tool": "web_search", "tool_params": {"query": "x"}}`, `{"action": "done", "response": "x",}`,
		"```json\n{\"action\": \"publish_data\", \"topic\": \"t\", \"data\": [1, {}]}\n```", `{"action":"send_message","to":"a","payload":"x"`,
		`{"action": "request_help", "help_description": "x", "help_skills": "a"}`, `{"a": [}`, "{\"\\", `]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		a, err := Read(answer)
		if err != nil {
			return
		}
		if a.Kind == swarm.ActDone && (!strings.Contains(strings.ToLower(answer), "done") && !strings.Contains(answer, `\u`) || a.Response == "") {
			t.Errorf("%q is done with %q", answer, a.Response)
		}
		again, err := Read(string(swarm.Encode(a)))
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Errorf("%+v becomes %+v, %v", a, again, err)
		}
	})
}

func TestWords(t *testing.T) {
	for answer, want := range map[string]string{
		`{"action": "tool_call", "tool": "web_search", "tool_params": {"query": "chips", "n": 3}}`:       "calls web_search: chips, 3",
		`{"action": "tool_call", "tool": "now", "tool_params": {}}`:                                      "calls now",
		`{"action": "publish_data", "topic": "findings", "data": {"share": 80}}`:                         `publishes on findings: {"share":80}`,
		`{"action": "send_message", "to": "mitaka", "payload": {"message": "Look\nhere"}}`:               "writes to @mitaka: Look here",
		`{"action": "send_message", "to": "mitaka", "payload": {"a": 1}}`:                                `writes to @mitaka: {"a":1}`,
		`{"action": "request_help", "help_description": "the EU"}`:                                       "asks for help: the EU",
		`{"action": "tool_call", "tool": "file_write", "tool_params": {"content": "x", "path": "a.md"}}`: "calls file_write: a.md, x",
		`{"action": "publish_data", "topic": "` + strings.Repeat("t", 9000) + `", "data": "x"}`:          "publishes on " + strings.Repeat("t", 60) + "…: x",
		`{"action": "done", "response": "All found."}`:                                                   "is done: All found.",
		`{"action": "done", "response": "` + strings.Repeat("é", 200) + `"}`:                             "is done: " + strings.Repeat("é", 80) + "…",
	} {
		a, err := Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Words(); got != want {
			t.Errorf("%s: got %q, want %q", answer, got, want)
		}
	}
}
