package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"swarm"
	"swarm/internal/agentfile"
)

// Prompt reads a prompt by its name: swarm/prompts/NAME.md first, then the shared prompts.
func (p *Project) Prompt(name string) (path string, b []byte, err error) {
	if err := checkPromptName(name); err != nil {
		return "", nil, err
	}
	name = strings.TrimSuffix(name, ".md")
	rel := filepath.FromSlash(name) + ".md"
	for _, f := range p.prompts {
		path = filepath.Join(f.path, rel)
		b, err = p.readText(f, rel)
		if err == nil {
			return p.shown(path), b, nil
		}
		if !missing(err) {
			return "", nil, p.unusable(path, b, err)
		}
	}
	return "", nil, &swarm.Error{
		Kind: swarm.NotFound, Msg: fmt.Sprintf("there is no prompt %q", name), Hint: p.insteadOf(name),
	}
}

// HasPrompt reports whether a prompt folder has a file for a prompt, usable or not. Unlike Prompt it
// makes no hint, which lists all folders.
func (p *Project) HasPrompt(name string) bool {
	rel := filepath.FromSlash(name) + ".md"
	return checkPromptName(name) == nil && slices.ContainsFunc(p.prompts, func(f *folder) bool {
		root, err := f.open()
		if err == nil {
			_, err = root.Stat(rel)
		}
		return !missing(err)
	})
}

// AgentFile reads a file of .claude/agents by its name: that of the project first, then that of the home
// folder.
func (p *Project) AgentFile(name string) (path string, b []byte, err error) {
	rel := name + ".md"
	if checkPromptName(name) != nil || strings.Contains(name, "/") {
		return "", nil, swarm.Errorf(swarm.NotFound, "there is no role %s", swarm.Quote(name)).
			WithHint("write NAME for %s/NAME.md", agentfile.Folder)
	}
	own := filepath.Join(agentfile.Folder, rel)
	if b, err = p.readText(p.all, own); !missing(err) {
		path = filepath.Join(p.Dir, own)
	} else {
		path = filepath.Join(p.agents.path, rel)
		b, err = p.readText(p.agents, rel)
	}
	switch {
	case missing(err):
		hint := swarm.DidYouMean(name, p.AgentFiles())
		if hint == "" {
			hint = "write it into " + p.shown(filepath.Join(p.Dir, own))
		}
		return "", nil, &swarm.Error{Kind: swarm.NotFound, Msg: fmt.Sprintf("there is no role %q", name), Hint: hint}
	case err != nil:
		return "", nil, p.unusable(path, b, err)
	}
	return p.shown(path), b, nil
}

// AgentFiles lists the names of the files that AgentFile reads.
func (p *Project) AgentFiles() (names []string) {
	for f, dir := range map[*folder]string{p.all: agentfile.Folder, p.agents: "."} {
		root, err := f.open()
		if err != nil {
			continue
		}
		files, _ := fs.Glob(root.FS(), filepath.Join(dir, "*.md"))
		for _, file := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".md"))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// insteadOf returns a hint: a prompt with a similar name, or the path to write.
func (p *Project) insteadOf(name string) string {
	const most = 1000 // enough to choose from
	if p.choices == nil {
		for _, info := range p.List() {
			if len(p.choices) < most && !info.Hidden {
				p.choices = append(p.choices, info.Name)
			}
		}
	}
	if hint := swarm.DidYouMean(name, p.choices); hint != "" {
		return hint
	}
	return "write it into " + p.shown(filepath.Join(p.prompts[0].path, name+".md"))
}

// missing reports whether a path does not exist. ENOTDIR counts, because a file in place of a
// folder hides it.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// checkPromptName accepts a name, or folders and a name, below a prompt folder.
func checkPromptName(name string) error {
	plain := fs.ValidPath(name) && name != "." && len(name) <= 200 && !strings.HasPrefix(name, "-") &&
		!strings.Contains(name, `\`) && !strings.ContainsFunc(name, unicode.IsControl)
	if plain {
		return nil
	}
	return swarm.Errorf(swarm.BadInput, "%s is not the name of a prompt", swarm.Quote(name)).
		WithHint("write NAME for %s/%s/NAME.md; other files are for prompt-file", Folder, promptsDir)
}

// File reads a file that the compose file names: a prompt-file, a schema, a script. The path is
// relative to the compose file's folder, and may lead anywhere in the project.
func (p *Project) File(path string) (shown string, b []byte, err error) {
	if err := checkPath(path); err != nil {
		return "", nil, err
	}
	abs := filepath.Join(filepath.Dir(p.file), filepath.FromSlash(path))
	rel, ok := below(p.Dir, abs)
	if !ok {
		return "", nil, swarm.Errorf(swarm.BadInput, "%s is outside of the project's folder %s", swarm.Quote(path), p.Dir).
			WithHint("paths are relative to %s, and stay below the folder that holds %s/", p.shown(filepath.Dir(p.file)), Folder)
	}
	b, err = p.readText(p.all, rel)
	if missing(err) {
		return "", nil, swarm.Errorf(swarm.NotFound, "there is no %s", p.shown(abs)).
			WithHint("paths are relative to %s", p.shown(filepath.Dir(p.file)))
	}
	if err != nil {
		return "", nil, p.unusable(abs, b, err)
	}
	return p.shown(abs), b, nil
}

// Mode says what is at an absolute path that the compose file names, wherever it is. A link there is not
// followed, and nothing is opened.
func (p *Project) Mode(path string) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, refused(p.shown(path), err)
	}
	return info.Mode(), nil
}

// Include reads the file that {{include: rel}} names. rel is relative to the including file `from`,
// given as it was shown, or to the project's prompts. The file must be in one of the prompt
// folders.
func (p *Project) Include(from, rel string) (path string, b []byte, err error) {
	if err := checkPath(rel); err != nil {
		return "", nil, err
	}
	dir := p.prompts[0].path
	if from != "" {
		dir = filepath.Dir(p.abs(from))
	}
	abs := filepath.Join(dir, filepath.FromSlash(rel))
	for _, f := range p.prompts {
		in, ok := below(f.path, abs)
		if !ok {
			continue
		}
		b, err = p.readText(f, in)
		if missing(err) && !strings.HasSuffix(in, ".md") {
			if more, again := p.readText(f, in+".md"); again == nil || !missing(again) {
				abs, b, err = abs+".md", more, again
			}
		}
		if missing(err) {
			hint := p.insteadOf(strings.TrimSuffix(filepath.ToSlash(in), ".md"))
			return "", nil, &swarm.Error{Kind: swarm.NotFound, Msg: "there is no " + p.shown(abs), Hint: hint}
		}
		if err != nil {
			return "", nil, p.unusable(abs, b, err)
		}
		return p.shown(abs), b, nil
	}
	return "", nil, swarm.Errorf(swarm.BadInput, "the include %s is outside of the prompt folders", swarm.Quote(rel)).
		WithHint("put what is included into %s; paths are relative to the including file", p.shown(p.prompts[0].path))
}

// checkPath refuses malformed and absolute paths. A project must work wherever its folder is.
func checkPath(path string) error {
	switch {
	case path == "" || len(path) > 4096 || strings.ContainsFunc(path, unicode.IsControl):
		return swarm.Errorf(swarm.BadInput, "%s is not a file's path", swarm.Quote(path))
	case filepath.IsAbs(path):
		return swarm.Errorf(swarm.BadInput, "the path %s is absolute", swarm.Quote(path)).
			WithHint("write it relative to the file it stands in")
	case strings.HasPrefix(path, "~/"):
		return swarm.Errorf(swarm.BadInput, "the path %s is in another folder", swarm.Quote(path)).
			WithHint("write it relative to the file it stands in")
	}
	return nil
}

// below returns the path of abs relative to a folder, if it is inside.
func below(dir, abs string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, abs)
	return rel, err == nil && filepath.IsLocal(rel)
}

// readText reads a text file of a folder. With errNotUTF8 it returns the bytes too, so that the
// error can name the line.
func (p *Project) readText(f *folder, rel string) ([]byte, error) {
	b, err := f.read(rel)
	if err != nil {
		return nil, err
	}
	clean, err := decodeText(b)
	if err != nil {
		return b, err
	}
	return clean, nil
}

// unusable returns the error for a file that cannot be used.
func (p *Project) unusable(abs string, b []byte, err error) error {
	path := p.shown(abs)
	if errors.Is(err, errNotUTF8) {
		return &swarm.Error{
			Kind: swarm.BadInput, File: path, Line: lineOf(b),
			Msg: "this is not UTF-8", Hint: "save the file as UTF-8",
		}
	}
	return refused(path, err)
}

// Text reads a prompt file that users name on the command line, so it may be anywhere. The path is
// relative to the current folder.
func (p *Project) Text(path string) (shown string, b []byte, err error) {
	abs := p.abs(path)
	if b, err = readFile(abs); err == nil {
		b, err = decodeText(b)
	}
	if err != nil {
		return "", nil, p.unusable(abs, b, err)
	}
	return p.shown(abs), b, nil
}
