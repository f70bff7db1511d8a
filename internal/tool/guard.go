package tool

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
	"swarm/internal/permission"
	"swarm/internal/toolrule"
)

// NewGuard returns the guard of a run's files: its compose file, the other files that its plan was
// made from, prompt folders, and the programs that it starts. Paths are relative to dir.
func NewGuard(p *swarm.Plan, dir, file string, sources []string) permission.Guard {
	var paths []string
	known := map[string]bool{} // a plan may name thousands of files
	add := func(path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		for _, name := range []string{filepath.Clean(path), resolved(path)} {
			if !known[name] {
				known[name] = true
				paths = append(paths, name)
			}
		}
	}
	if file != "" {
		folder := filepath.Dir(file)
		add(file)
		add(filepath.Join(folder, "prompts"))
		if _, err := os.Stat(paths[0]); err == nil && filepath.Base(folder) == "swarm" { // else it may be a folder of source
			add(folder)
		}
	}
	for _, source := range sources {
		add(source)
	}
	for _, program := range programs(p, dir) {
		add(program)
	}
	return permission.Guard{Dir: resolved(dir), Paths: paths}
}

// programs returns the files that the plan's commands execute: a provider's program or script, an MCP
// server, the program that notifies a person. The folders of tasks count too, because a relative
// path of a command starts there.
func programs(p *swarm.Plan, dir string) (all []string) {
	dirs := []string{dir}
	known := map[string]bool{"": true, dir: true}
	for i := range p.Tasks {
		if folder := p.Tasks[i].Workdir; !known[folder] {
			known[folder] = true
			dirs = append(dirs, folder)
		}
	}
	add := func(argv []string) {
		for i, arg := range argv {
			if i == 0 && !strings.Contains(arg, "/") {
				if path, err := exec.LookPath(arg); err == nil && filepath.IsAbs(path) {
					all = append(all, path)
				}
				continue
			}
			for _, word := range fileWords(arg) {
				for _, from := range dirs {
					path := word
					if !filepath.IsAbs(path) {
						path = filepath.Join(from, path)
					}
					if i == 0 || isScript(path) {
						all = append(all, path)
					}
				}
			}
		}
	}
	for _, s := range p.Providers {
		add(s.Command)
	}
	for _, s := range p.Servers {
		add(s.Command)
	}
	if p.Notify != nil {
		add(p.Notify.Command)
	}
	return all
}

// fileWords returns the parts of an argument that may name a file: the whole, and the words of a command
// line that a shell or an option gets.
func fileWords(arg string) []string {
	if len(arg) > 64<<10 {
		return nil
	}
	separates := func(c rune) bool { return strings.ContainsRune(" \t\n;|&()<>=\"'`{}$", c) }
	return append([]string{arg}, strings.FieldsFunc(arg, separates)...)
}

// scriptEndings are the names that interpreters' files usually have. Other arguments of a command are
// data, which agents may be asked to write.
var scriptEndings = []string{".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua",
	".awk", ".exs", ".jar", ".ps1"}

// isScript reports whether a command that names this path is likely to execute it.
func isScript(path string) bool {
	if slices.Contains(scriptEndings, strings.ToLower(filepath.Ext(path))) {
		return true
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if info.Mode().Perm()&0o111 != 0 {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 2)
	_, err = io.ReadFull(f, begin)
	return err == nil && bytes.Equal(begin, []byte("#!"))
}

// CheckGuard refuses a write to a file that programs execute or obey, unless the agent's `tools` name
// it. The root has no links; local is a path in it, and may lead through some. A pattern names a file
// by the parts before its first wildcard: file_write(**) opens nothing that is guarded. tool is the
// word of `tools` that allows writing.
func CheckGuard(g permission.Guard, root, local, tool string, named []toolrule.PathPattern) error {
	path := filepath.Join(root, local)
	real := resolved(path)
	for _, name := range []string{path, real} {
		upto, by := g.Find(root, name)
		if by == "" {
			continue
		}
		if permission.InGit(upto) {
			return swarm.Errorf(swarm.Denied, "%s belongs to git, and what is written there git may run", swarm.Quote(local)).
				WithHint("write the files themselves; git keeps its own")
		}
		rel, err := filepath.Rel(root, real)
		if err == nil && slices.ContainsFunc(named, func(p toolrule.PathPattern) bool {
			literal := p.Literal()
			return literal != "" && permission.Within(upto, filepath.Join(root, literal)) && p.Matches(filepath.ToSlash(rel))
		}) {
			continue
		}
		if err != nil || !filepath.IsLocal(rel) {
			rel = local
		}
		return swarm.Errorf(swarm.Denied, "%s may not be written, because %s it", swarm.Quote(local), by).
			WithHint("a person allows it in the compose file: tools: [%q]", tool+"("+filepath.ToSlash(rel)+")")
	}
	return nil
}
