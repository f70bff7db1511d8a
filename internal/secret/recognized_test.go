package secret

import (
	"strings"
	"testing"
)

// Keys that are known by how they look are secrets in a variable of any name.
func TestKeysThatAreKnownByHowTheyLook(t *testing.T) {
	const key = "CNRY8jzPde0IgxLd6GncfBA5"
	for _, value := range []string{"ghp_" + key, "sk_live_" + key, "sk-" + key, "xoxb-123456-" + key, "Basic " + key, "Bearer " + key, "x-api-key=" + key + ",foo=bar",
		`-H "Authorization: Bearer ` + key + `" --silent`, "eyJhbGciOiJIUzI1NiJ9." + key + ".abcDEF123456789012345", "use ghp_" + key + " here",
		"users:\n- name: a\n  user:\n    token: " + key + "\n", "-----BEGIN RSA PRIVATE KEY-----\n" + key + "\n-----END RSA PRIVATE KEY-----\n",
		`{"headers":{"Authorization":"Bearer ` + key + `"}}`} {
		r := New([]string{"PLAIN=" + value}, nil)
		if got := r.String("it is " + value + "."); strings.Contains(got, "CNRY") {
			t.Errorf("%q became %q", value, got)
		}
	}
}

// Words that only look a little like keys stay.
func TestOrdinaryWordsAreNoKeys(t *testing.T) {
	for _, variable := range []string{"A=basic authentication is off", "B=Bearer of bad news", "C=sk-learn", "D=npm_config_registry_of_the_project", "E=token: none", "F=key: value",
		"G=hf_transfer", "H=secret_santa_2026", "I=name: 0123456789abcdef0123", "J=-----BEGIN CERTIFICATE-----\nMIIB0123456789abcdef\n-----END CERTIFICATE-----",
		"K=eyJ.a.b", "L=secret_manager_project_12", "PATH=/usr/bin:/opt/sk-1/bin", "M=dapiserver-0123456789"} {
		if r := New([]string{variable}, nil); !r.Empty() {
			t.Errorf("%s: %q", variable, r.needles[0].text)
		}
	}
}

func TestEachByteEscaped(t *testing.T) {
	r := New([]string{"A_KEY=CNRY+abc/1"}, nil)
	for _, text := range []string{"%43%4E%52%59%2B%61%62%63%2F%31", "%43%4e%52%59%2b%61%62%63%2f%31", `\x43\x4e\x52\x59\x2b\x61\x62\x63\x2f\x31`,
		`\\x43\\x4e\\x52\\x59\\x2b\\x61\\x62\\x63\\x2f\\x31`} {
		if got := r.String("<" + text + ">"); got != "<[secret A_KEY]>" {
			t.Errorf("%s became %q", text, got)
		}
	}
}
