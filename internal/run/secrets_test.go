package run

import (
	"strings"
	"testing"

	"swarm"
	"swarm/internal/agenttoken"
	"swarm/internal/secret"
	"swarm/internal/sqlite"
	"swarm/internal/statedir"
)

// The name of a plan's variable decides whether its value is a secret, wherever the value comes from
// and whatever other variable has the same name.
func TestSecretsOfAPlan(t *testing.T) {
	p := &swarm.Plan{
		Agents: []swarm.Agent{{Name: "a", Env: map[string]string{"AGENT_KEY": "$PLAIN", "TARGET": "src/main.go"}},
			{Name: "b", Env: map[string]string{"AGENT_KEY": "${OTHER}"}}},
		Tasks:     []swarm.Task{{Env: map[string]string{"DB_PASSWORD1": "$TASKS", "REGION": "$REGION"}}},
		Providers: []swarm.ProviderSpec{{Env: map[string]string{"SIGNING_SECRET": "$PROVIDERS", "UNSET_KEY": "$UNSET"}}},
		Servers: []swarm.ToolServer{{Env: map[string]string{"TOOL_TOKEN": "$SERVERS"}},
			{Headers: map[string]string{"Authorization": "Bearer $HEADERS", "X-Region": "$REGION", "X-Api-Key": "${KEYS}"}}},
	}
	environ := map[string]string{"PLAIN": "plain-012345", "OTHER": "other-012345", "TASKS": "tasks-012345", "PROVIDERS": "providers-012345", "SERVERS": "servers-012345",
		"HEADERS": "headers-012345", "KEYS": "keys-012345", "REGION": "eu-central-1"}
	r := secret.New(secretsOf(p, func(name string) (string, bool) { value, ok := environ[name]; return value, ok }), nil)
	for text, want := range map[string]string{
		"plain-012345":              "[secret AGENT_KEY]",
		"other-012345":              "[secret AGENT_KEY]",
		"tasks-012345":              "[secret DB_PASSWORD1]",
		"providers-012345":          "[secret SIGNING_SECRET]",
		"servers-012345":            "[secret TOOL_TOKEN]",
		"headers-012345":            "[secret Authorization]",
		"keys-012345":               "[secret X-Api-Key]",
		"src/main.go, eu-central-1": "src/main.go, eu-central-1",
		"$PLAIN, Bearer $HEADERS":   "$PLAIN, Bearer $HEADERS",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s became %s, not %s", text, got, want)
		}
	}
}

// The tokens of a login at a tool server are secrets, whoever says them.
func TestLoginsAreSecrets(t *testing.T) {
	h := testHome(t)
	const url = "https://tickets.example/mcp"
	login := `{"client_id": "swarm", "client_secret": "cs-0123456789", "token_url": "x", "auth_style": 0, "token": {"access_token": "at-0123456789", "refresh_token": "rt-0123456789"}}`
	if err := h.SaveLogin(url, []byte(login)); err != nil {
		t.Fatal(err)
	}
	p := &swarm.Plan{Servers: []swarm.ToolServer{{Name: "local", Command: []string{"x"}}, {Name: "none", URL: "https://other.example"}, {Name: "tickets", URL: url}}}
	r := newRedactor(h, p, agenttoken.New("run-1"))
	const want = "[secret tickets_access_token] [secret tickets_refresh_token] [secret tickets_client_secret] swarm"
	if got := r.String("at-0123456789 rt-0123456789 cs-0123456789 swarm"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func testHome(t *testing.T) *statedir.Home {
	t.Helper()
	h, err := statedir.At(t.TempDir(), sqlite.NewStore)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestTokensAreSecrets: the token of every agent is one, also of those that join later.
func TestTokensAreSecrets(t *testing.T) {
	tokens := agenttoken.New("run-1")
	r := newRedactor(testHome(t), &swarm.Plan{}, tokens)
	for _, agent := range []string{"a", "coder.2", strings.Repeat("n", 63) + ".1000"} {
		if got := r.String("of " + agent + ": " + tokens.For(agent) + "."); got != "of "+agent+": [secret SWARM_AGENT_TOKEN]." {
			t.Error(got)
		}
	}
}
