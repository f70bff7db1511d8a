package schema

import (
	"fmt"
	"strings"
	"testing"
)

// Each of these schemas would crash or hang the program, or fail only after an agent has worked for
// it.
func TestSchemasThatAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		`{`:                        "it is not JSON: line 1: ",
		`[]`:                       "a schema is an object, or true or false",
		`1`:                        "a schema is an object, or true or false",
		`{"$ref":"#"}`:             "it never comes to an end: # → #",
		`{"allOf":[{"$ref":"#"}]}`: "it never comes to an end: # → #/allOf/0 → #",
		`{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"if":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}`: "it never comes to an end: ",
		`{"$defs":{"a":{"$anchor":"x","anyOf":[{"$ref":"#x"}]}}}`:                                                              "it never comes to an end: #/$defs/a → #/$defs/a/anyOf/0 → #/$defs/a",
		`{"$id":"http://x/y","allOf":[{"$ref":"http://x/y"}]}`:                                                                 "it never comes to an end: ",
		`{"dependentSchemas":{"a":{"$ref":"#"}}}`:                                                                              "it never comes to an end: ",
		`{"$ref":"http://127.0.0.1/x"}`:                                                                                        `#: "http://127.0.0.1/x" leads to no schema of this file`,
		`{"$ref":"file:///etc/passwd"}`:                                                                                        `leads to no schema of this file`,
		`{"$ref":"#/nowhere"}`:                                                                                                 `leads to no schema of this file`,
		`{"properties":{"a":{"type":"text"}}}`:                                                                                 `#/properties/a: there is no type "text"; there are array, boolean`,
		`{"type":["string","nil"]}`:                                                                                            `there is no type "nil"`,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                                                                `is not understood`,
		`{"items":{"$id":"x"}}`:                                                                                                `#/items: an $id in a schema that stands in another is not understood`,
		`{"minimum":"x"}`:                                                                                                      `minimum cannot be of the type string`,
		`{"pattern":"("}`:                                                                                                      `pattern: error parsing regexp`,
		`{"AllOf":[{"$ref":"#"}]}`:                                                                                             `#: the key "AllOf" is not understood; write "allOf"`,
		`{"items":{"$Ref":"#/items"}}`:                                                                                         `#/items: the key "$Ref" is not understood; write "$ref"`,
		`{"dependent\u017fchemas":{"a":{"$ref":"#"}}}`:                                                                         `write "dependentSchemas"`,
		strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200):                                                       `more than 100 deep`,
	} {
		_, err := Parse([]byte(source))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", source, err, want)
		}
	}
}

func TestSchemasThatAreUsed(t *testing.T) {
	for source, texts := range map[string][2]string{ // what fits, and what does not
		`true`:                               {`1`, `nothing`},
		`{"type":"object","required":["a"]}`: {`{"a":1}`, `{}`},
		`{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`:             {`{"a":{"a":{}}}`, `{"a":{"b":1}}`},
		`{"$defs":{"yes":true,"n":{"type":"number"}},"items":{"$ref":"#/$defs/n"}}`:  {`[1,2]`, `["x"]`},
		`{"definitions":{"a/b":{"const":{"$ref":"#"}}},"$ref":"#/definitions/a~1b"}`: {`{"$ref":"#"}`, `1`},
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}`:      {`"x"`, `1`},
		`{"not":{"$ref":"#"},"not":{"type":"null"}}`:                                 {`1`, `null`}, // the last one counts, and only it
		`{"properties":{"AllOf":{"type":"null"}}}`:                                   {`{"AllOf":null}`, `{"AllOf":1}`},
	} {
		s, err := Parse([]byte(source))
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if err := check(s, texts[0]); err != nil {
			t.Errorf("%s: %s: %v", source, texts[0], err)
		}
		if err := check(s, texts[1]); err == nil {
			t.Errorf("%s: %s fits", source, texts[1])
		}
	}
}

// check checks a text against a schema.
func check(s *Schema, text string) error {
	v, err := Value([]byte(text))
	if err != nil {
		return err
	}
	return s.Check(v)
}

func TestWhatIsSaid(t *testing.T) {
	s, err := Parse([]byte(`{"properties":{"a":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{\n\"a\" 1}": "line 2: invalid character '1' after object key",
		`{"a":1}`:     `validating /properties/a: type: 1 has type "integer", want "string"`,
		``:            "line 1: unexpected end of JSON input",
	} {
		if err := check(s, text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A number beyond float64 is a number, and larger than any limit.
func TestLargeNumbersAreNumbers(t *testing.T) {
	s, err := Parse([]byte(`{"properties":{"n":{"type":"number","minimum":-1,"maximum":1e300}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"m":[1e400,{"n":-1e400}],"n":12345678901234567890.12345}`: "",
		`{"n":1e400}`:     "maximum",
		`{"n":-1e400}`:    "minimum",
		`{"n":1e400} {}`:  "after top-level value",
		`{"n":1e400,"n"}`: "after object key",
	} {
		if err := check(s, text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A branching schema takes twice as long with each level, so Check refuses deep values.
func TestCheckIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 40) + `1` + strings.Repeat(`]}`, 40)
	wide := "[" + strings.Repeat(`{"a":1,"b":[2]},`, 20_000) + "0]"
	fan := `{"$defs":{"d0":{}`
	for i := range 40 {
		fan += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	for _, c := range []struct {
		source, text string
		long         bool
	}{
		{`{"anyOf":[{"properties":{"a":{"items":{"$ref":"#"}}}},{"additionalProperties":{"items":{"$ref":"#"}}}]}`, deep, true},
		{`{"properties":{"a":{"prefixItems":[{"allOf":[{"$ref":"#"},{"$ref":"#"}]}]}}}`, deep, true},
		{`{"patternProperties":{"a":{"contains":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}}`, deep, true},
		{`{"additionalProperties":{"items":[{"allOf":[{"$ref":"#"},{"$ref":"#"}]}]}}`, deep, true},
		{fan + `},"$ref":"#/$defs/d40"}`, `1`, true},
		{fan + `},"propertyNames":{"$ref":"#/$defs/d40"}}`, `{"x":1}`, true},
		{`{"properties":{"a":{"items":{"$ref":"#"}}},"additionalProperties":{"$ref":"#"}}`, deep, false},
		{`{"items":{"properties":{"a":{"type":"integer"},"b":{"items":{"type":"integer"}}}}}`, wide, false},
	} {
		s, err := Parse([]byte(c.source))
		if err != nil {
			t.Errorf("%.60s: %v", c.source, err)
			continue
		}
		if err := check(s, c.text); (err != nil) != c.long || err != nil && !strings.Contains(err.Error(), "branches and leads back") {
			t.Errorf("%.100s: %v", c.source, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, source := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#/properties/a"}],"properties":{"a":{"items":{"$ref":"#"}}}}`, `true`, `{"$defs":{"a":{"$anchor":"b"}},"$dynamicRef":"#b"}`,
		`{"AllOf":[{"$ref":"#"}]}`, `{"not":{"$ref":"#"},"not":{}}`} {
		f.Add(source, `{"a":[1]}`)
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if s, err := Parse([]byte(source)); err == nil {
			_ = check(s, text)
		}
	})
}
