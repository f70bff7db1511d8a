package project

import (
	"path"
	"slices"
	"strings"
)

// Names of files and folders that usually hold keys or passwords.
var (
	secretFolders = []string{".ssh", ".aws", ".gnupg", ".git", ".kube", ".docker", ".azure", ".gcloud"}
	secretFiles   = []string{
		".netrc", "_netrc", ".npmrc", ".yarnrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", ".dockercfg",
		".vault-token", "kubeconfig", "database.yml", "local.settings.json",
	}
	secretBeginnings = []string{".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "wp-config"}
	secretEndings    = []string{
		"pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "gpg", "ppk", "tfvars", "tfstate", "env", "properties",
	}
	secretWords = []string{
		"secret", "credential", "password", "passwd", "token", "apikey", "api-key", "api_key", "private-key",
		"private_key", "service-account", "service_account",
	}

	// Source files are named after the secrets that they handle. They rarely hold any.
	sourceEndings = []string{
		".go", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".py", ".rb", ".rs", ".c", ".h",
		".cc", ".cpp", ".hpp", ".java", ".kt", ".swift", ".cs", ".php", ".ex", ".exs", ".scala", ".zig", ".sh", ".html",
		".css", ".scss", ".proto",
	}
)

// hidesSecrets reports whether a file's name suggests keys or passwords. A false alarm does little
// harm, because the survey says what it left out.
func hidesSecrets(name string) bool {
	name = strings.ToLower(name)
	base := path.Base(name)
	for _, dir := range strings.Split(path.Dir(name), "/") {
		if slices.Contains(secretFolders, dir) {
			return true
		}
	}
	begins := func(with string) bool { return strings.HasPrefix(base, with) }
	if slices.Contains(secretFiles, base) || slices.ContainsFunc(secretBeginnings, begins) ||
		begins("id_") && path.Ext(base) == "" {
		return true
	}
	if slices.Contains(sourceEndings, path.Ext(base)) {
		return false
	}
	for _, ending := range strings.Split(base, ".")[1:] { // server.key.bak counts too
		if slices.Contains(secretEndings, ending) {
			return true
		}
	}
	plain := strings.ReplaceAll(name, "tokeniz", "") // a tokenizer is about words
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(plain, word) })
}
