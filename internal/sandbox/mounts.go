package sandbox

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// This file decides what a program sees of the file system. It is pure: a machine answers what
// exists, so that tests can make one up.

// A mode is how a path and everything below it is seen.
type mode int

const (
	readOnly mode = iota
	writable
	private // an empty folder that ends with the sandbox
	hidden  // an empty folder or file
)

// A mount is a path that is seen differently from its parent folder.
type mount struct {
	path string
	mode mode
	file bool // not a folder
	pin  bool // as its parent is, and a mount only so that it cannot be renamed
}

// A machine is what the rules need to know of the machine.
type machine struct {
	home    string
	sockets []string                                      // Unix sockets with a path
	look    func(path string) (real string, dir, ok bool) // real has no links
	list    func(dir string) []string                     // paths in a folder
}

// temporary are the folders in which each sandbox has its own files. /run has the sockets of the
// machine's services, such as Docker's.
var temporary = []string{"/tmp", "/var/tmp", "/run"}

// visible are the parts of temporary that programs need: the address of the name server, and the
// programs of NixOS.
var visible = []string{"/etc/resolv.conf", "/run/current-system", "/run/opengl-driver"}

// secrets are the files and folders below the home folder that open other machines, accounts and
// wallets, and what people typed. No list of these is complete: `hide` adds to it.
var secrets = []string{
	".ssh", ".gnupg", ".pki", ".aws", ".azure", ".oci", ".kube", ".docker", ".config/containers", ".config/gcloud",
	".config/doctl", ".config/rclone", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/heroku",
	".config/netlify", ".config/vercel", ".local/share/com.vercel.cli", ".config/stripe", ".config/sops", ".config/age",
	".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc",
	".config/pip", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml",
	".gradle/gradle.properties", ".terraformrc", ".terraform.d", ".vault-token", ".fly", ".databrickscfg", ".s3cfg", ".boto",
	".pgpass", ".my.cnf", ".mylogin.cnf", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".keepass",
	".1password", ".bitcoin", ".ethereum", ".electrum", ".Xauthority", ".ICEauthority",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/Signal",
	".bash_history", ".zsh_history", ".history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
	".sqlite_history", ".lesshst", ".viminfo", ".local/share/fish",
	// The logins of coding agents. The program of such a kind sees its own.
	".claude", ".claude.json", ".codex", ".gemini", ".config/opencode", ".local/share/opencode", ".cursor", ".copilot",
	".config/github-copilot", ".continue", ".aider.conf.yml",
}

// ofGit are the files of a repository that name programs, which every later git runs.
var ofGit = []string{".git/hooks", ".git/config"}

// mounts returns what the program sees beside a read-only file system, parents before children.
//
// The most specific path decides. Of two rules for the same path the later one decides, so what the
// compose file names comes last.
func (p *policy) mounts(m machine) []mount {
	byPath := map[string]mount{}
	add := func(as mode, paths ...string) {
		for _, path := range paths {
			if real, dir, ok := m.look(path); ok {
				byPath[real] = mount{path: real, mode: as, file: !dir}
			}
		}
	}
	inHome := func(names []string) []string { return absolute(names, m.home, m.home) }
	add(private, temporary...)
	add(hidden, inHome(secrets)...)
	add(hidden, p.Hide...)
	add(writable, p.Write...)
	for _, folder := range p.Write {
		for _, name := range ofGit {
			add(readOnly, filepath.Join(folder, name))
		}
	}
	add(readOnly, p.Guard...)
	add(writable, inHome(p.Login)...)
	add(readOnly, inHome(p.Obeyed)...)
	add(writable, p.MayWrite...)
	add(readOnly, p.MayRead...)
	for _, path := range slices.Concat(visible, p.Needed, []string{p.Dir}) {
		if real, _, ok := m.look(path); ok && !isVisible(byPath, real) {
			add(readOnly, real)
		}
	}
	// A read-only file system does not keep a program from connecting to a socket in it.
	for _, path := range m.sockets {
		if real, _, ok := m.look(path); ok && isVisible(byPath, real) && modeOf(byPath, real) != writable {
			add(hidden, real)
		}
	}
	pinParents(byPath)
	list := make([]mount, 0, len(byPath))
	for _, one := range byPath {
		if above := filepath.Dir(one.path); one.path != above && one.mode == modeOf(byPath, above) && one.mode != private && !one.pin {
			continue // as its parent is
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return list
}

// pinParents makes a mount of each folder between a writable one and a path below it that is not.
// Otherwise the program renames the folder, with the mounts in it, and puts one of its own in its
// place: a .git with hooks. No mount can be renamed or removed.
func pinParents(byPath map[string]mount) {
	for _, one := range slices.Collect(maps.Values(byPath)) {
		if one.mode == writable {
			continue
		}
		for above := filepath.Dir(one.path); modeOf(byPath, above) == writable; above = filepath.Dir(above) {
			if _, known := byPath[above]; above == "/" || known && modeOf(byPath, filepath.Dir(above)) != writable {
				break // a mount already
			}
			byPath[above] = mount{path: above, mode: writable, pin: true}
		}
	}
}

// modeOf returns how a path is seen: as the nearest folder above it that has a mount.
func modeOf(mounts map[string]mount, path string) mode {
	for {
		if m, ok := mounts[path]; ok {
			return m.mode
		}
		above := filepath.Dir(path)
		if above == path {
			return readOnly
		}
		path = above
	}
}

func isVisible(mounts map[string]mount, path string) bool {
	m := modeOf(mounts, path)
	return m == readOnly || m == writable
}
