package mail

import (
	"reflect"
	"testing"
)

// A draft survives a round trip through the arguments of send_handoff.
func TestHandoffIsReadBack(t *testing.T) {
	for name, args := range map[string]string{
		"short":  `{"to":"b","message":"do it"}`,
		"long":   `{"to":"B","message":"do\nit","structured":{"n":1.10,"big":12345678901234567890},"artifacts":[{"type":"log","ref":"artifact://log/1"}],"status":{"ok":false,"reason":"red"},"response":{"expectation":"required","replyTo":"a"},"contextRef":"contextpack://pack/1","type":"request","priority":"normal","id":"mine"}`,
		"signal": `{"to":"b","message":"by the way","type":"signal"}`,
	} {
		d, err := ReadDraft([]byte(args))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := ReadDraft(Handoff(d))
		if err != nil || !reflect.DeepEqual(d, again) {
			t.Errorf("%s: %+v became %+v: %v", name, d, again, err)
		}
	}
}
