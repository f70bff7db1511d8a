package project

import (
	"strings"
	"testing"
)

// Files named like secrets are left out. Source files named after the secrets they handle are not.
func TestFilesThatAreNamedLikeSecrets(t *testing.T) {
	for name, hides := range map[string]bool{
		"docs/credentials.md": true, "docs/Passwords.md": true, "prod.env": true, "secrets.env": true, ".envrc": true, ".env.local": true, "id_rsa.md": true, "id_ed25519": true,
		"wp-config.php": true, "wp-config.php.bak": true, "application.properties": true, "config/database.yml": true, "server.key.bak": true, "tls/server.PEM": true,
		"secrets/prod.yaml": true, "docs/api-keys.md": true, "service_account.json": true, ".aws/config": true, "auth-token.txt": true, "notes/secrets.markdown": true, "secrets.xml": true,

		"README.md": false, "docs/PLAN.md": false, "internal/secret/secret.go": false, "src/password.ts": false, "src/vite-env.d.ts": false, "docs/environment.md": false,
		"docs/tokenizer.md": false, "tokenizer.json": false, "docs/keyboard.md": false, "src/keys.py": false, "main.go": false, "ids.md": false,
	} {
		if got := hidesSecrets(name); got != hides {
			t.Errorf("%s: %v, want %v", name, got, hides)
		}
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"docs/credentials.md": "md-canary", "docs/real.md": "# Real", "prod.env": "env-canary", "src/application.properties": "properties-canary"})
	p := Open(dir, "", "")
	defer p.Close()
	got, left := p.Survey("Look at prod.env src/application.properties")
	if text := string(got.JSON()); strings.Contains(text, "canary") || !strings.Contains(text, "docs/real.md") {
		t.Errorf("the pack is %s", text)
	}
	var names []string
	for _, l := range left {
		if l.Why == maySecret {
			names = append(names, l.Part+" "+l.Name)
		}
	}
	if got, want := strings.Join(names, ", "), "relevantFiles prod.env, relevantFiles src/application.properties, docRefs docs/credentials.md"; got != want {
		t.Errorf("it says that it left out %s, want %s", got, want)
	}
}
