package term

import "testing"

// The mark behind the name is taken off once: what an agent says may begin with the same sign.
func TestSplitLine(t *testing.T) {
	for line, want := range map[string][2]string{
		"takao  | done":        {"takao", "done"},
		"takao  ! ! it failed": {"takao", "! it failed"},
		"takao  > file_read":   {"takao", "file_read"},
		"takao    iteration 2": {"takao", "iteration 2"},
		"takao":                {"takao", ""},
	} {
		if name, text := SplitLine(line); name != want[0] || text != want[1] {
			t.Errorf("SplitLine(%q) = %q, %q", line, name, text)
		}
	}
}
