package strictjson

import (
	"strings"
	"testing"
)

// TestShapes reads the shapes that JSON parsers disagree about. Each is one value, or is refused.
func TestShapes(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, text := range []string{
		`[]`, `{}`, `[[]]`, `[{}]`, `""`, `"x"`, `null`, `true`, `false`, `0`, `-0`, `1.5`, `1E+2`, `-1e-2`,
		`123123e100000`, `9007199254740993`, " \t\r\n[ ] \n", `["\u0060\u012a\u12AB"]`, `["\"\\\/\b\f\n\r\t"]`,
		`["\\u0000"]`, `["\u0000"]`, `{"":0}`, `{"a":1,"b":1}`, `{"a":{"a":1}}`, `["\ud83d\ude00"]`,
		`["\uD801\udc37"]`, `["\\ud800"]`, `["€𝄞"]`, "[\"\u2028\u2029\"]", "[\"\x7f\"]", `["\uFFFF"]`, `["\uFFFD"]`, deep(100),
	} {
		if _, err := ReadValue([]byte(text)); err != nil {
			t.Errorf("%.40q is refused: %v", text, err)
		}
	}
	for _, text := range []string{
		``, ` `, `[1,]`, `[,1]`, `[1,,2]`, `[1 2]`, `["a" "b"]`, `[1]]`, `[1]x`, `[1][2]`, `{}}`, `{} {}`, `{"a":1}#`,
		`{"a":1}/**/`, `// x` + "\n[]", `[`, `{`, `]`, `{"a"`, `{"a":`, `{"a":1,`, `{"a":1,}`, `{,}`, `{a:1}`, `{'a':1}`,
		`{"a"::1}`, `{"a" 1}`, `{1:1}`, `{"a":1 "b":2}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `01`, `-`, `+1`, `.5`, `1.`,
		`1.e1`, `1e`, `1e+`, `0x1`, `1_000`, `- 1`, `NaN`, `Infinity`, `-Inf`, `True`, `nul`, `tru`, `"`, `"x`, `'x'`,
		`"\x"`, `"\u12"`, `"\uZZZZ"`, `"\a"`, "\"\n\"", "\"\t\"", "\"\x00\"", "\ufeff[]", "\xef\xbb[]", "[\"\xff\"]",
		"[\"\xed\xa0\x80\"]", "[\"\xc0\xaf\"]", "[\x00]", "[1]\x00", "\x0c[]", "\u00a0[]", `["\ud800"]`, `["\uDC00"]`,
		`["\udc00\ud800"]`, `["\ud800\ud800\udc00"]`, `["\ud800\n"]`, `["\ud800x\udc00"]`, `["\ud800\u0041"]`,
		`{"\ud800":1}`, `["\\\ud800"]`, deep(101), deep(100_000), strings.Repeat("[", 100_000),
	} {
		if value, err := ReadValue([]byte(text)); err == nil {
			t.Errorf("%.40q is read as %s", text, value)
		}
	}
}

func TestKeysOfAMessageAreSpelledExactly(t *testing.T) {
	names, free := []string{"method", "taskId", "params", "data"}, []string{"data"}
	for _, text := range []string{
		`{"method":1,"more":2}`, `{"params":[{"taskId":1}]}`, `{"data":{"METHOD":1,"data":{"TaskID":2}},"method":1}`, `[]`,
	} {
		if _, err := ReadMessage([]byte(text), names, free); err != nil {
			t.Errorf("%s is refused: %v", text, err)
		}
	}
	for _, text := range []string{
		`{"METHOD":1}`, `{"params":[{"taskID":1}]}`, `{"Data":{}}`, `{"data":{"METHOD":1},"Method":1}`,
		`{"tas\u212aId":1}`, `{"taſkId":1}`, `{"data":{"a":1,"a":2}}`,
	} {
		if value, err := ReadMessage([]byte(text), names, free); err == nil {
			t.Errorf("%s is read as %s", text, value)
		}
	}
}
