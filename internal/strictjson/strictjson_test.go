package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"swarm"
)

func TestValuesComeBackInOneSpelling(t *testing.T) {
	for text, want := range map[string]string{
		` { "\u0061" : [ 1.50, 1e400, "<\/\u00e9>" , null ] } `: `{"a":[1.50,1e400,"</é>",null]}`,
		`12345678901234567890.12345`:                            `12345678901234567890.12345`,
	} {
		got, err := ReadValue([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %v", text, got, err)
		}
		if again, err := ReadValue(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: read again it is %s %v", text, again, err)
		}
	}
}

func TestTheFirstFaultIsKept(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1,"n":2}`:  `the key "n" stands there twice`,
		`{"N":1}`:        `there is no argument "N"`,
		`{"n":1} {}`:     `the arguments are not JSON: invalid character '{' after top-level value`,
		`{"n":"x"}`:      `the argument "n" must be a whole number from 1 to 9`,
		`{"in":{"x":1}}`: `there is no argument "in.x"`,
		`{"n":3}`:        `the argument "text" is missing`,
		`[]`:             `the arguments must be an object`,
	} {
		a := ReadArgs([]byte(text), "n", "in", "text")
		a.Int("n", 1, 1, 9)
		a.Object("in", "y")
		a.Need("text")
		if err := a.Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestRedactedValuesStayJSON(t *testing.T) {
	redact := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("4711"), []byte("***")) }
	for value, want := range map[string]string{
		`{"pin":"4711"}`: `{"pin":"***"}`,
		`{"pin":4711}`:   `"{\"pin\":***}"`,
	} {
		if got := Redact([]byte(value), redact); string(got) != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
	if Redact(nil, redact) != nil {
		t.Error("no value became one")
	}
}

// What is read says the same as what encoding/json reads, and is in one spelling: each string as
// our encoder writes it, and no blanks.
func FuzzReadValue(f *testing.F) {
	for _, text := range []string{
		` { "\u0061" : [ 1.50, 1e400, "<\/\u00e9>" , null ] , "b" : { } , "c" : [ ] } `, `"\\\""`, "\"\u2028\\u2029\"", `"\\\\"`,
		"\n[true,\tfalse , -0.0e-7]\r", `{"a":"}","b":"]","c":"\\","d":{"a":[[]]}}`, `[1,[2,[3]],{"a":{}}]`, `0`, `""`, `{"":""}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadValue([]byte(text))
		if err != nil {
			return
		}
		if want := slowly(t, text); string(got) != want {
			t.Fatalf("%s is read as %s, not as %s", text, got, want)
		}
	})
}

// slowly rewrites a JSON value token by token, by encoding/json.
func slowly(t *testing.T, text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out strings.Builder
	type level struct {
		object bool
		tokens int
	}
	var levels []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatalf("%q is accepted: %v", text, err)
		}
		delim, _ := token.(json.Delim)
		if delim == '}' || delim == ']' {
			levels = levels[:len(levels)-1]
			out.WriteString(delim.String())
			continue
		}
		if len(levels) > 0 {
			in := &levels[len(levels)-1]
			switch {
			case in.object && in.tokens%2 == 1:
				out.WriteByte(':')
			case in.tokens > 0:
				out.WriteByte(',')
			}
			in.tokens++
		}
		switch v := token.(type) {
		case json.Delim:
			levels = append(levels, level{object: delim == '{'})
			out.WriteString(delim.String())
		case json.Number:
			out.WriteString(v.String())
		default:
			out.Write(swarm.Encode(v))
		}
	}
}
