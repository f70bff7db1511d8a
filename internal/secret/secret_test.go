package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

func TestLooksSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "ANTHROPIC_AUTH_TOKEN": true, "GITHUB_TOKEN": true, "GH_PAT": true, "PGPASSWORD": true, "MYSQL_PWD": true,
		"DB_PASS": true, "DJANGO_SECRET_KEY": true, "client-secret": true, "githubToken": true, "apiKey": true, "SSH_PASSPHRASE": true,
		"AWS_SECRET_ACCESS_KEY": true, "AWS_ACCESS_KEY_ID": true, "SESSION_COOKIE": true, "NPM_AUTH": true, "REGISTRY_CREDENTIALS": true,
		"API_KEYS": true, "API_TOKENS": true, "KEY": true, "SECRET_OF_LIFE": true, "SWARM_TOKEN": true, "SWARM_AGENT_TOKEN": true,
		"OPENAI_API_KEY2": true, "GITHUB_TOKEN2": true, "DB_PASSWORD1": true, "APIKEYS": true, "SSH_PRIVKEY": true, "VAULT_SECRET_ID": true,
		"AUTH_HEADER": true, "Authorization": true, "X-Api-Key": true, "AUTH0_CLIENT_SECRET": true,

		"PWD": false, "OLDPWD": false, "PATH": false, "HOME": false, "MONKEY": false, "KEYBOARD_LAYOUT": false, "SSH_AUTH_SOCK": false,
		"GIT_AUTHOR_NAME": false, "XAUTHORITY": false, "MAX_TOKENS": false, "MAX_THINKING_TOKENS": false, "TOKENIZERS_PARALLELISM": false,
		"SSH_ASKPASS": false, "TOKEN_FILE": false, "AUTH_URL": false, "KEY_PATH": false, "SIGNING_KEY_ID": false, "": false, "_": false,
		"GOOGLE_APPLICATION_CREDENTIALS": false, "COMPASS": false, "PASS": false, "LANG": false,
		"API_KEY_HEADER": false, "AUTH0_AUDIENCE": false, "AUTH0_DOMAIN": false, "CLIENT_ID2": false, "KEY_SIZE256": false, "X-Region": false,
	} {
		if got := LooksSecret(name); got != want {
			t.Errorf("LooksSecret(%q) = %v", name, got)
		}
	}
}

const key = `sk-"live"/abc+DEF&123`

func TestEverySpellingIsReplaced(t *testing.T) {
	r := New([]string{"API_KEY=" + key}, nil)
	quoted, _ := json.Marshal(key)
	basic := func(user string) string { return base64.StdEncoding.EncodeToString([]byte(user + key + "\n")) }
	for what, text := range map[string]string{
		"as it is":        "a " + key + " b",
		"JSON":            `{"key":` + string(quoted) + `}`,
		"JSON, not HTML":  `{"key":"sk-\"live\"/abc+DEF&123"}`,
		"JSON of PHP":     `{"key":"sk-\"live\"\/abc+DEF&123"}`,
		"query":           "https://x/?key=" + url.QueryEscape(key),
		"path":            "https://x/" + url.PathEscape(key),
		"base64":          basic(""),
		"base64 after 1":  basic("u"),
		"base64 after 2":  basic("u:"),
		"base64 of a URL": base64.RawURLEncoding.EncodeToString([]byte("user:" + key + "?>")),
		"hexadecimal":     hex.EncodeToString([]byte(key)),
		"HEXADECIMAL":     strings.ToUpper(hex.EncodeToString([]byte(key))),
	} {
		t.Run(what, func(t *testing.T) {
			got := r.String(text)
			if strings.Count(got, "[secret API_KEY]") != 1 {
				t.Errorf("%q became %q", text, got)
			}
			if b := r.Bytes([]byte(text)); string(b) != got {
				t.Errorf("Bytes gives %q, String %q", b, got)
			}
		})
	}
}

func TestWhatIsReplaced(t *testing.T) {
	r := New([]string{
		"A_TOKEN=abcdefgh", "B_TOKEN=abcdefghijkl", "C_TOKEN=ijklmnopqrst", "SAME_A_KEY=the-same-value", "SAME_B_KEY=the-same-value",
		"SHORT_KEY=short12", "TRIVIAL_KEY=changeme", "STARS_PASSWORD=**********", "EDITOR=nano-editor", "no equals sign", "EMPTY_KEY=",
		"SPACED_KEY=  spaced-value \n", "AUTH_HEADER=Bearer in-a-header",
	}, map[string]string{"whatever\"": "more-secrets", "PEM": "-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END X-----"})
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"nothing here", "nothing here"},
		{"abcdefgh", "[secret A_TOKEN]"},
		{"abcdefghi", "[secret A_TOKEN]i"},
		{"abcdefghijkl", "[secret B_TOKEN]"},
		{"abcdefghabcdefgh", "[secret A_TOKEN][secret A_TOKEN]"},
		{"<abcdefghijklmnopqrst>", "<[secret B_TOKEN]>"},
		{"the-same-value", "[secret SAME_A_KEY]"},
		{"short12 changeme ********** nano-editor", "short12 changeme ********** nano-editor"},
		{"(spaced-value)", "([secret SPACED_KEY])"},
		{"in-a-header, Bearer in-a-header", "[secret AUTH_HEADER], [secret AUTH_HEADER]"},
		{"more-secrets", "[secret whatever_]"},
		{"x MIIEvQIBADANBgkqhkiG9w0B y short", "x [secret PEM] y short"},
		{`-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END X-----`, "[secret PEM]"},
		{"-----BEGIN X-----", "-----BEGIN X-----"},
	} {
		if got := r.String(c.in); got != c.want {
			t.Errorf("%q became %q, not %q", c.in, got, c.want)
		}
	}
}

func TestNothingToReplaceCopiesNothing(t *testing.T) {
	r := New([]string{"API_KEY=" + key}, nil)
	text := []byte(strings.Repeat("an ordinary line of text, sk-live or not\n", 100))
	if got := r.Bytes(text); &got[0] != &text[0] {
		t.Error("the text was copied")
	}
	if n := testing.AllocsPerRun(10, func() { r.Bytes(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var none *Redactor
	if none.String("x") != "x" || string(none.Bytes([]byte("x"))) != "x" || none.Stream().Write("x") != "x" {
		t.Error("a nil Redactor changes texts")
	}
}

func TestStreamHoldsBackOnlyWhatIsNeeded(t *testing.T) {
	s := New([]string{"A_TOKEN=abcdefgh", "B_TOKEN=abcdefghijkl"}, nil).Stream()
	for _, step := range []struct{ write, want string }{
		{"hello ", "hello "},
		{"hello a", "hello "},
		{"nd", "and"},
		{"xabcdef", "x"},
		{"gh", ""}, // it may become the longer one
		{"!", "[secret A_TOKEN]!"},
		{"abcdefghij", ""},
		{"kl", "[secret B_TOKEN]"},
		{"ababcdefg", "ab"},
	} {
		if got := s.Write(step.write); got != step.want {
			t.Errorf("Write(%q) = %q, not %q", step.write, got, step.want)
		}
	}
	if got := s.Flush(); got != "abcdefg" {
		t.Errorf("Flush() = %q", got)
	}
}

func TestOverlapsWithoutEndCanBeStreamed(t *testing.T) {
	s := New([]string{"A_TOKEN=abababab"}, nil).Stream()
	for range 1000 {
		if shown := s.Write(strings.Repeat("ab", 500)); strings.Contains(shown, "abababab") {
			t.Fatalf("the secret is shown: %q", shown)
		}
		if len(s.held) > 2*longestMatch {
			t.Fatalf("%d bytes are held back", len(s.held))
		}
	}
}

// A stream gives the same as String, wherever the text is cut.
func TestStreamIsTheSameAsString(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := New([]string{"A_KEY=aaabbbab", "B_KEY=abbabbbabab", "C_KEY=bbbabaaab", "D_KEY=aaaabaaabaaabbb"}, nil)
	found := 0
	for range 20_000 {
		text := make([]byte, random.IntN(60))
		for i := range text {
			text[i] = "aab b"[random.IntN(5)]
		}
		checkStream(t, r, string(text), func(left int) int { return 1 + random.IntN(left) })
		found += strings.Count(r.String(string(text)), "[secret")
	}
	if found < 100 {
		t.Errorf("only %d secrets were in the texts: they prove nothing", found)
	}
}

func checkStream(t *testing.T, r *Redactor, text string, cut func(left int) int) {
	t.Helper()
	s, got, pieces := r.Stream(), "", []string{}
	for rest := text; rest != ""; {
		n := cut(len(rest))
		pieces = append(pieces, rest[:n])
		got += s.Write(rest[:n])
		rest = rest[n:]
	}
	got += s.Flush()
	if want := r.String(text); got != want {
		t.Fatalf("%q in the pieces %q\nstreamed %q\nin one   %q", text, pieces, got, want)
	}
	for _, n := range r.needles {
		if strings.Contains(got, n.text) {
			t.Fatalf("%q still holds %q", got, n.text)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("a text with "+key, key, uint8(3))
	f.Add("abababababab", "babababa", uint8(1))
	f.Add("c2stImxpdmUiL2FiYytERUYmMTIz", key, uint8(5))
	f.Fuzz(func(t *testing.T, text, value string, step uint8) {
		if strings.Contains("[secret X]", value) || strings.Contains(value, "[") || strings.Contains(value, "]") {
			return // what is written instead could then be part of a value
		}
		r := New(nil, map[string]string{"X": value})
		checkStream(t, r, text, func(left int) int { return min(left, 1+int(step)) })
		checkStream(t, r, text+value+text, func(left int) int { return min(left, 1+int(step)) })
	})
}

// The floor is one look at every byte.
func BenchmarkBytes(b *testing.B) {
	var environ []string
	for i := range 20 {
		environ = append(environ, fmt.Sprintf("SERVICE_%d_API_KEY=sk-%d-%x", i, i, rand.New(rand.NewPCG(uint64(i), 0)).Uint64()))
	}
	r := New(environ, nil)
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog; sk-learn and others do not.\n", 1400))
	b.Run("floor=count", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		n := 0
		for b.Loop() {
			for _, c := range text {
				if c == '\n' {
					n++
				}
			}
		}
		_ = n
	})
	b.Run("secrets=20", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			r.Bytes(text)
		}
	})
	b.Run("new=20", func(b *testing.B) {
		for b.Loop() {
			New(environ, nil)
		}
	})
}
