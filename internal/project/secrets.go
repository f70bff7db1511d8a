package project

import (
	"path"
	"slices"
	"strings"
)

// What names tell of files that hold keys or passwords.
var (
	secretFolders = []string{".ssh", ".aws", ".gnupg", ".git", ".kube", ".docker", ".azure", ".gcloud"}
	secretFiles   = []string{".netrc", "_netrc", ".npmrc", ".yarnrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".dockercfg", ".vault-token", "kubeconfig",
		"database.yml", "local.settings.json"}
	secretBeginnings = []string{".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "wp-config"}
	secretEndings    = []string{"pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "gpg", "ppk", "tfvars", "tfstate", "env", "properties"}
	secretWords      = []string{"secret", "credential", "password", "passwd", "token", "apikey", "api-key", "api_key", "private-key", "private_key", "service-account", "service_account"}

	// programs handle secrets, and are named for it; they are not expected to hold any.
	programs = []string{".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".py", ".rb", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt", ".swift",
		".cs", ".php", ".ex", ".exs", ".scala", ".zig", ".sh", ".html", ".css", ".scss", ".proto"}
)

// hidesSecrets says whether a file's name tells that it may hold keys or passwords. Rather one too many: what is left out is told.
func hidesSecrets(name string) bool {
	name = strings.ToLower(name)
	base := path.Base(name)
	for _, dir := range strings.Split(path.Dir(name), "/") {
		if slices.Contains(secretFolders, dir) {
			return true
		}
	}
	begins := func(with string) bool { return strings.HasPrefix(base, with) }
	if slices.Contains(secretFiles, base) || slices.ContainsFunc(secretBeginnings, begins) || begins("id_") && path.Ext(base) == "" {
		return true
	}
	if slices.Contains(programs, path.Ext(base)) {
		return false
	}
	for _, ending := range strings.Split(base, ".")[1:] { // server.key.bak is one, too
		if slices.Contains(secretEndings, ending) {
			return true
		}
	}
	plain := strings.ReplaceAll(name, "tokeniz", "") // which is about words
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(plain, word) })
}
