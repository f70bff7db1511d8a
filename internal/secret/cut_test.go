package secret

import (
	"strings"
	"testing"
)

func TestWhatACutLeavesOfASecret(t *testing.T) {
	r := New([]string{"A_KEY=sk-canary-0123456789", "B_KEY=6789-other-key"}, nil)
	for _, c := range []struct{ in, want string }{
		{"…k-canary-0123456789 failed", "… failed"},
		{"…6789 failed", "… failed"},
		{"…789 failed", "…789 failed"},
		{"told sk-canary-012345678…", "told …"},
		{"told sk-…", "told sk-…"},
		{"head sk-cana…-0123456789 tail", "head … tail"},
		{"exit status 1: …y-0123456789", "exit status 1: …"},
		{"…0123456789-other-key!", "…!"}, // the end of one is the beginning of another
		{"sk-canary-0123456789…", "…"},   // and a whole one at the edge
		{"wait… sk-canary-0123456789", "wait… [secret A_KEY]"},
		{"0123456789 uncut sk-canary", "0123456789 uncut sk-canary"},
		{"…", "…"},
		{"nothing…here", "nothing…here"},
	} {
		if got := r.Cut(c.in); got != c.want {
			t.Errorf("%q became %q, not %q", c.in, got, c.want)
		}
	}
}

// Wherever a text is cut, fewer than minRest bytes of a secret are left.
func TestNoCutLeavesASecret(t *testing.T) {
	r := New([]string{"API_KEY=" + key}, nil)
	for _, n := range r.needles {
		text := "before " + n.text + " after"
		for at := range len(text) {
			for _, cut := range []string{Ellipsis + text[at:], text[:at] + Ellipsis} {
				got := r.Cut(cut)
				for i := 0; i+minRest < len(n.text); i++ {
					if left := n.text[i : i+minRest+1]; strings.Contains(got, left) {
						t.Fatalf("%q became %q", cut, got)
					}
				}
			}
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a "+key+" b…", key)
	f.Add("…babababab…ab", "babababa")
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.Contains("[secret X]", value) || strings.ContainsAny(value, "[]…") {
			return
		}
		r := New(nil, map[string]string{"X": value})
		got := r.Cut(text)
		for _, n := range r.needles {
			if strings.Contains(got, n.text) {
				t.Fatalf("%q still holds %q", got, n.text)
			}
		}
	})
}
