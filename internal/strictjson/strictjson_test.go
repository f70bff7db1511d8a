package strictjson

import (
	"bytes"
	"testing"
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
