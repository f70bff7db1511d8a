package statedir

import "testing"

func TestVersionsOfPrograms(t *testing.T) {
	h := newHome(t)
	know := func(program, stamp, want string) {
		t.Helper()
		if got, ok := h.Version(program, stamp); got != want || ok != (want != "") {
			t.Errorf("%s %s: %q, %v", program, stamp, got, ok)
		}
	}
	know("gemini", "1", "")
	h.NoteVersion("gemini", "1", "0.61.0")
	know("gemini", "1", "0.61.0")
	know("gemini", "2", "")
	know("opencode", "1", "")
	h.NoteVersion("gemini", "2", "0.62.0")
	know("gemini", "2", "0.62.0")
	know("gemini", "1", "")
}
