package subtask_test

import (
	"reflect"
	"strings"
	"testing"

	"swarm"
	. "swarm/internal/subtask"
)

func TestReadAnswer(t *testing.T) {
	got, err := ReadAnswer("Here is my plan:\n```json\n" + `{"reasoning": "by country", "subtasks": [
		{"description": " The US market ", "effort": "high"},
		{"id": "jp", "description": "The Japanese market", "role": "researcher"},
		{"id": "sum", "description": "Compare", "depends_on": ["t1", "jp", "jp"]},
	]}` + "\n```")
	want := []swarm.Subtask{
		{ID: "t1", Description: "The US market"},
		{ID: "jp", Description: "The Japanese market", Role: "researcher"},
		{ID: "sum", Description: "Compare", DependsOn: []string{"jp", "t1"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestReadReplan(t *testing.T) {
	known := []string{"t1", "t2"}
	all, messages, err := ReadReplan(`{"subtasks": [{"id": "t1", "description": "again"}, {"description": "b", "depends_on": ["t2", "t1"]}, {"id": "x", "description": "c"}], "messages": [{"to": "mitaka", "message": "Hi"}]}`, known)
	want := []swarm.Subtask{{ID: "t3", Description: "again"}, {ID: "t4", Description: "b", DependsOn: []string{"t2", "t3"}}, {ID: "x", Description: "c"}}
	if err != nil || !reflect.DeepEqual(all, want) || !reflect.DeepEqual(messages, []Message{{"mitaka", "Hi"}}) {
		t.Errorf("%+v, %+v, %v", all, messages, err)
	}
	if all, messages, err := ReadReplan(`{"subtasks": []}`, known); err != nil || len(all)+len(messages) != 0 {
		t.Errorf("nothing is %+v, %+v, %v", all, messages, err)
	}
	for text, want := range map[string]string{
		"no": "has no object", `{"messages": []}`: "must be a list of objects", `{"subtasks": [{"description": "a", "depends_on": ["t9"]}]}`: `depends on "t9", which does not exist`,
		`{"subtasks": [], "messages": [{"to": "x"}]}`: "message 1 has no receiver or no text", `{"subtasks": [], "messages": "x"}`: "must be a list",
		`{"subtasks": [{"id": "a", "description": "a"}, {"id": "a", "description": "b"}]}`: "have the same id",
	} {
		if _, _, err := ReadReplan(text, known); err == nil || !strings.Contains(err.Error(), want) || swarm.KindOf(err) != swarm.Unexpected || swarm.HintOf(err) == "" {
			t.Errorf("%s: %v (%s), want %s", text, err, swarm.HintOf(err), want)
		}
	}
}

func TestReadFile(t *testing.T) {
	got, err := ReadFile([]byte(`{"subtasks": [{"description": "a"}, {"id": "b", "description": "b", "depends_on": ["t1"]}]}`))
	want := []swarm.Subtask{{ID: "t1", Description: "a"}, {ID: "b", Description: "b", DependsOn: []string{"t1"}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if got, err = ReadFile([]byte("\xef\xbb\xbf" + `{"subtasks": [{"description": "a"}]}`)); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("after a byte order mark: %+v, %v", got, err)
	}
	if _, err := ReadFile([]byte(`{"subtasks": [{"description": "a", "depend_on": []}]}`)); err == nil || swarm.HintOf(err) == "" {
		t.Errorf("an unknown field gives %v", err)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"prose":               {"First the US, then Japan.", "has no object with the field"},
		"no list":             {`{"subtasks": "US"}`, "must be a list"},
		"none":                {`{"subtasks": []}`, "there are no subtasks"},
		"a text in the list":  {`{"subtasks": ["US"]}`, "must be a list of objects"},
		"no description":      {`{"subtasks": [{"id": "us"}]}`, `subtask "us" has no description`},
		"a number":            {`{"subtasks": [{"description": 1}]}`, "subtask 1 cannot be read"},
		"an id twice":         {`{"subtasks": [{"id": "t2", "description": "a"}, {"description": "b"}]}`, "subtasks 1 and 2 have the same id"},
		"an unknown need":     {`{"subtasks": [{"id": "us", "description": "a", "depends_on": ["su"]}]}`, `depends on "su", which does not exist`},
		"a cycle":             {`{"subtasks": [{"id": "a", "description": "a", "depends_on": ["b"]}, {"id": "b", "description": "b", "depends_on": ["a"]}]}`, "a → b → a"},
		"itself":              {`{"subtasks": [{"id": "a", "description": "a", "depends_on": ["a"]}]}`, "a → a"},
		"a long description":  {`{"subtasks": [{"description": "` + strings.Repeat("a", 9000) + `"}]}`, "8192 are allowed"},
		"cut in the last one": {`{"subtasks": [{"description": "a"}, {"descr`, "breaks off"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadAnswer(test.text)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %+v, %v, want %q", got, err, test.want)
			}
			if swarm.KindOf(err) != swarm.Unexpected || swarm.HintOf(err) == "" {
				t.Errorf("the error has kind %s and hint %q", swarm.KindOf(err), swarm.HintOf(err))
			}
		})
	}
}

func TestCap(t *testing.T) {
	kept, dropped := Cap([]swarm.Subtask{{ID: "a", DependsOn: []string{"c"}}, {ID: "b"}, {ID: "c"}}, 2)
	if len(kept) != 2 || len(kept[0].DependsOn) != 0 || !reflect.DeepEqual(dropped, []string{"c"}) {
		t.Errorf("kept %+v, dropped %v", kept, dropped)
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add(`{"subtasks": [{"description": "a", "depends_on": ["t1"]},]}`)
	f.Add(`x {"subtasks": [{"id": "a", "description": "a"`)
	f.Fuzz(func(t *testing.T, answer string) {
		all, err := ReadAnswer(answer)
		if err != nil {
			return
		}
		again, err := ReadFile(swarm.Encode(map[string]any{"subtasks": all}))
		if err == nil && !reflect.DeepEqual(all, again) {
			t.Errorf("%+v becomes %+v", all, again)
		}
	})
}
