package compose

import (
	"io/fs"
	"strings"

	"go.yaml.in/yaml/v4"

	"swarm"
	"swarm/internal/agentfile"
	"swarm/internal/prompt"
	"swarm/internal/schema"
	"swarm/internal/yamlfile"
)

// bodies are the texts that the plan names by their hash, each once.
type bodies struct {
	texts [][]byte
	known map[swarm.Hash]bool
}

// add stores a text once, and returns its hash.
func (b *bodies) add(text []byte) swarm.Hash {
	h := swarm.HashOf(text)
	if !b.known[h] {
		b.known[h] = true
		b.texts = append(b.texts, text)
	}
	return h
}

// A piece is a parsed text: a prompt, a role, a prefix.
type piece struct {
	template prompt.Template
	refs     []prompt.Ref
	path     string     // of its file, or ""
	hash     swarm.Hash // once it is a body
}

// A loaded is what a task needs from files.
type loaded struct {
	hash   swarm.Hash
	refs   []prompt.Ref
	bytes  int64 // the maximum, with all outputs at their largest
	expect *swarm.Expect
	broken bool // something of it is wrong, and has been reported
}

// loadPrompts reads the prompts of the selected tasks, and the roles of their agents.
func (c *compiler) loadPrompts(sel *selection) {
	for _, i := range sel.tasks {
		if t := &c.tasks[i]; !t.tried {
			t.tried = true
			t.prompt = c.loadTask(t)
		}
	}
	for _, a := range c.agentsOf(sel) {
		if !a.tried {
			a.tried = true
			a.role = c.loadRole(a)
		}
	}
}

// loadTask reads what one task needs. It returns nil if the task has no prompt.
func (c *compiler) loadTask(t *task) *loaded {
	v := &t.value
	before := len(c.errs)
	text := c.taskText(t)
	if text == nil {
		return nil
	}
	var parts []prompt.Template
	l := &loaded{}
	for _, p := range []*piece{c.stringPiece(v.Prefix), text, c.stringPiece(v.Suffix)} {
		if p != nil {
			parts = append(parts, p.template)
			l.refs = append(l.refs, p.refs...)
		}
	}
	switch {
	case len(parts) > 1:
		whole := prompt.Join(parts...)
		l.hash, l.bytes = c.bodies.add(whole.Marshal()), whole.MaxBytes(swarm.MaxOutput)
	default:
		l.hash, l.bytes = c.storePiece(text), text.template.MaxBytes(swarm.MaxOutput)
	}
	l.expect = c.expect(v.Expect)
	l.broken = len(c.errs) > before
	return l
}

// storePiece makes a piece a body, once.
func (c *compiler) storePiece(p *piece) swarm.Hash {
	if p.hash == "" {
		p.hash = c.bodies.add(p.template.Marshal())
	}
	return p.hash
}

// taskText returns a task's own prompt, wherever it is.
func (c *compiler) taskText(t *task) *piece {
	v := &t.value
	switch {
	case v.PromptString.given():
		return c.stringPiece(v.PromptString)
	case v.PromptFile.given():
		return c.filePiece(
			"file "+v.PromptFile.value,
			v.PromptFile,
			func() (string, []byte, error) { return c.o.Prompts.File(v.PromptFile.value) },
		)
	case v.Prompt.given():
		return c.promptPiece(v.Prompt.value, v.Prompt)
	}
	return nil
}

// promptPiece returns a prompt of the prompt folders, by its name.
func (c *compiler) promptPiece(name string, at text) *piece {
	name = strings.TrimSuffix(name, ".md")
	if !fs.ValidPath(name) || name == "." || strings.HasPrefix(name, "-") || len(name) > 200 ||
		strings.ContainsAny(name, "\\\n\r\t\x1b") {
		c.fail(at.node, "%s is not the name of a prompt", swarm.Quote(at.value)).
			WithHint("write NAME for swarm/prompts/NAME.md; other files are for prompt-file")
		return nil
	}
	return c.filePiece("prompt "+name, at, func() (string, []byte, error) { return c.o.Prompts.Prompt(name) })
}

// readPrompts notes the files that are read.
type readPrompts struct {
	Prompts
	paths []string
	known map[string]bool
}

func (r *readPrompts) Prompt(name string) (string, []byte, error) {
	return r.note(r.Prompts.Prompt(name))
}

func (r *readPrompts) AgentFile(name string) (string, []byte, error) {
	return r.note(r.Prompts.AgentFile(name))
}

func (r *readPrompts) File(path string) (string, []byte, error) { return r.note(r.Prompts.File(path)) }

func (r *readPrompts) Include(from, rel string) (string, []byte, error) {
	return r.note(r.Prompts.Include(from, rel))
}

func (r *readPrompts) note(path string, text []byte, err error) (string, []byte, error) {
	if err == nil && !r.known[path] {
		r.known[path] = true
		r.paths = append(r.paths, path)
	}
	return path, text, err
}

// noPrompts are Prompts without any file.
type noPrompts struct{}

func (noPrompts) Prompt(name string) (string, []byte, error) {
	return "", nil, swarm.Errorf(swarm.NotFound, "there is no prompt %q", name)
}

func (noPrompts) HasPrompt(string) bool { return false }

func (n noPrompts) AgentFile(name string) (string, []byte, error) { return n.File(name) }

func (noPrompts) File(path string) (string, []byte, error) {
	return "", nil, swarm.Errorf(swarm.NotFound, "there is no file %q", path)
}

// Mode knows of no file, so everything that a file names may be there.
func (noPrompts) Mode(string) (fs.FileMode, error) { return fs.ModeDir, nil }

func (n noPrompts) Include(_, rel string) (string, []byte, error) { return n.File(rel) }

// filePiece reads and parses a file, once for all tasks that name it. Errors in the file are noted
// once. An error of reading it is noted wherever it is named.
func (c *compiler) filePiece(key string, at text, read func() (string, []byte, error)) *piece {
	if p, ok := c.pieces[key]; ok {
		return p
	}
	path, raw, err := read()
	if err != nil {
		c.failWith(at.node, err)
		return nil
	}
	p := c.parsePiece(prompt.Source{File: path, Text: raw}, nil)
	if p != nil {
		p.path = path
	}
	c.pieces[key] = p
	return p
}

// stringPiece parses a text in the compose file itself.
func (c *compiler) stringPiece(t text) *piece {
	if !t.given() {
		return nil
	}
	src := prompt.Source{File: c.o.File, Text: []byte(t.value), Line: t.node.Line, Column: t.node.Column}
	if t.node.Line < 0 {
		src.File = c.setName(t.node)
	}
	return c.parsePiece(src, c.inFile(t.node))
}

// parsePiece parses a text. mend corrects places in the compose file, where the lines of a text are
// not the lines of the file.
func (c *compiler) parsePiece(src prompt.Source, mend func(line, column int) (int, int)) *piece {
	at := func(e *swarm.Error) *swarm.Error {
		if mend != nil && e.File == src.File {
			e.Line, e.Column = mend(e.Line, e.Column)
		}
		return e
	}
	tmpl, warnings, err := prompt.Parse(src, func(from, rel string) (string, []byte, error) {
		if mend != nil && from == src.File {
			from = "" // it is not a file of the prompt folders
		}
		return c.o.Prompts.Include(from, rel)
	})
	for _, w := range warnings {
		w.Kind = Warning
		c.warns = append(c.warns, at(w))
	}
	for _, e := range prompt.Errors(err) {
		c.failWith(nil, at(e))
	}
	if mend != nil {
		for i, p := range tmpl.Parts {
			if p.Line > 0 && p.File == src.File {
				tmpl.Parts[i].Line, tmpl.Parts[i].Column = mend(p.Line, p.Column)
			}
		}
	}
	return &piece{template: tmpl, refs: tmpl.Refs()}
}

// inFile returns the function that finds a place of a text in the file. The text of a literal block
// (|) is in the lines after its node, indented. Of other texts only the beginning is known, because
// YAML folds their lines. The text of a --set has no place.
func (c *compiler) inFile(n *yaml.Node) func(line, column int) (int, int) {
	if n.Line < 0 {
		return func(int, int) (int, int) { return 0, 0 }
	}
	if n.Style&yaml.LiteralStyle == 0 {
		return func(line, column int) (int, int) {
			if line == n.Line && n.Style&(yaml.FoldedStyle|yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
				return line, column
			}
			return n.Line, n.Column
		}
	}
	indent := c.indentOf(n)
	return func(line, column int) (int, int) {
		if line == n.Line {
			column -= n.Column - 1 // Parse was told that the text begins at the node
		}
		return line + 1, column + indent
	}
}

// indentOf returns the indentation of a literal block: the difference between its first line here
// and in the file.
func (c *compiler) indentOf(n *yaml.Node) int {
	for i, line := range strings.Split(n.Value, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		return max(0, len(c.line(n.Line+1+i))-len(line))
	}
	return 0
}

// line returns one of the file's lines. Line starts are cached, because thousands of prompts may
// ask.
func (c *compiler) line(n int) string {
	if c.lineStarts == nil {
		c.lineStarts = []int{0}
		for i, b := range c.o.Source {
			if b == '\n' {
				c.lineStarts = append(c.lineStarts, i+1)
			}
		}
	}
	if n > len(c.lineStarts) {
		return ""
	}
	return yamlfile.Line(c.o.Source[c.lineStarts[n-1]:], 1)
}

// loadRole reads an agent's role: the prompt that it names, or the one with its name if there is
// one. A prompt that is also a task of the agent is not its role, because it would be in the prompt
// twice.
func (c *compiler) loadRole(a *agent) *piece {
	var p *piece
	switch {
	case a.keys != nil && a.keys.Role.given():
		p = c.rolePiece(a.keys.Role)
	case a.own || c.namesOwnPrompt(a):
	default:
		if !c.o.Prompts.HasPrompt(a.name) {
			return nil
		}
		if p = c.promptPiece(a.name, text{at{a.node}, a.name}); p != nil && c.isTaskText(a, p.path) {
			return nil
		}
	}
	if p != nil {
		c.storePiece(p)
	}
	return p
}

// rolePiece returns the role that a file names: a prompt, or else a file of .claude/agents without its
// front matter.
func (c *compiler) rolePiece(name text) *piece {
	if !c.o.Prompts.HasPrompt(strings.TrimSuffix(name.value, ".md")) {
		file, raw, err := c.o.Prompts.AgentFile(name.value)
		switch {
		case err == nil:
			role, bad := agentfile.Parse(file, raw)
			if bad != nil {
				c.failWith(name.node, bad)
				return nil
			}
			return c.parsePiece(prompt.Source{File: file, Text: []byte(role.Body), Line: role.Line}, nil)
		case swarm.KindOf(err) != swarm.NotFound:
			c.failWith(name.node, err)
			return nil
		}
	}
	return c.promptPiece(name.value, name)
}

// namesOwnPrompt says whether a task of the agent names the prompt that has the agent's name.
func (c *compiler) namesOwnPrompt(a *agent) bool {
	for _, i := range a.tasks {
		if strings.TrimSuffix(c.tasks[i].value.Prompt.value, ".md") == a.name {
			return true
		}
	}
	return false
}

// isTaskText says whether a task of the agent names a file as its prompt.
func (c *compiler) isTaskText(a *agent, path string) bool {
	for _, i := range a.tasks {
		if file := c.tasks[i].value.PromptFile; file.given() {
			if p := c.pieces["file "+file.value]; p != nil && p.path == path {
				return true
			}
		}
	}
	return false
}

// expect reads what a task's expect needs.
func (c *compiler) expect(x expectKeys) *swarm.Expect {
	if !x.given() {
		return nil
	}
	out := &swarm.Expect{File: x.File.value, Matches: x.Matches.value, Command: x.Command.value}
	if x.Schema.given() {
		shown, raw, err := c.o.Prompts.File(x.Schema.value)
		if err != nil {
			c.failWith(x.Schema.node, err)
			return out
		}
		if _, err := schema.Parse(raw); err != nil {
			c.fail(x.Schema.node, "%s is not a schema that can be used: %v", shown, err).
				WithHint("write a JSON Schema that stands by itself")
			return out
		}
		out.Schema, out.SchemaFile = c.bodies.add(raw), shown
	}
	return out
}

// fileBody makes a body of a file that the compose file names.
func (c *compiler) fileBody(t text) swarm.Hash {
	_, raw, err := c.o.Prompts.File(t.value)
	if err != nil {
		c.failWith(t.node, err)
		return ""
	}
	return c.bodies.add(raw)
}
