package desk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"swarm"
)

// Validate checks a folder against the protocol. Errors are what a worker or an orchestrator would
// stumble over; warnings are not. It changes nothing, and opens nothing but regular files.
func Validate(dir string) (errs, warnings []*swarm.Error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return []*swarm.Error{unusable(dir, err)}, nil
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return []*swarm.Error{noFolder(dir, err)}, nil
	}
	defer root.Close()
	// Problems are shown by the path that the user gave.
	v := validation{Desk: &Desk{root: root, path: filepath.Clean(dir)}}
	v.folders()
	v.instructions()
	v.dependencies()
	v.status()
	return v.errs, v.warnings
}

type validation struct {
	*Desk
	errs, warnings []*swarm.Error
}

func (v *validation) problem(name string, line, column int, format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.BadInput, File: filepath.Join(v.path, name), Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
}

func (v *validation) fail(e *swarm.Error) { v.errs = append(v.errs, e) }

func (v *validation) warn(e *swarm.Error) { v.warnings = append(v.warnings, e) }

func (v *validation) folders() {
	for _, it := range []struct {
		name   string
		needed bool
	}{{Inbox, true}, {Outbox, true}, {Workspace, false}} {
		info, err := v.root.Lstat(it.name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !it.needed:
			v.warn(v.problem(it.name, 0, 0, "there is no such folder"))
		case errors.Is(err, fs.ErrNotExist):
			e := v.problem(it.name, 0, 0, "there is no such folder")
			e.Hint = "mkdir " + filepath.Join(v.path, it.name)
			v.fail(e)
		case err != nil:
			v.fail(v.unusable(it.name, err))
		case !info.IsDir():
			v.fail(v.problem(it.name, 0, 0, "it is %s, not a folder", orFile(kindOf(info.Mode()))))
		}
	}
	if _, err := v.read(SkillFile, MaxFile); errors.Is(err, fs.ErrNotExist) {
		v.warn(v.problem(SkillFile, 0, 0, "there is no such file: nothing says what the agent is"))
	} else if err != nil {
		v.fail(v.unusable(SkillFile, err))
	}
}

// text reads a file that must be there.
func (v *validation) text(name string) ([]byte, bool) {
	text, err := v.read(name, MaxFile)
	if err != nil {
		v.fail(v.unusable(name, err))
	}
	return text, err == nil
}

func (v *validation) instructions() {
	if _, err := v.root.Lstat(Inbox); err != nil {
		return // that problem is reported already
	}
	text, ok := v.text(InstructionsFile)
	if !ok {
		e := v.errs[len(v.errs)-1]
		if e.Kind == swarm.NotFound {
			e.Hint = "write the task there: # Task: NAME, then ## Objective"
		}
		return
	}
	title, line, all := splitSections(string(text))
	switch {
	case line == 0:
		e := v.problem(InstructionsFile, 1, 1, "there is no title")
		e.Hint = "begin with a line such as # Task: Compare the two reports"
		v.fail(e)
	case title == "":
		v.fail(v.problem(InstructionsFile, line, 1, "the title names no task"))
	}
	at := 0
	for _, head := range headings {
		i := slices.IndexFunc(all, func(s section) bool { return s.head == head })
		switch {
		case i < 0 && head == headObjective:
			e := v.problem(InstructionsFile, 0, 0, "there is no section %q", head)
			e.Hint = "write there what the task is to accomplish"
			v.fail(e)
		case i < 0:
			v.warn(v.problem(InstructionsFile, 0, 0, "there is no section %q", head))
		case head == headObjective && all[i].text() == "":
			v.fail(v.problem(InstructionsFile, all[i].line, 1, "the objective is empty"))
		case i < at:
			v.warn(v.problem(InstructionsFile, all[i].line, 1, "the section %q stands before the one that it follows", head))
		default:
			at = i
		}
	}
	v.leftovers(text)
	v.inputs(text)
}

// leftovers finds placeholders of a template that nobody has filled in.
func (v *validation) leftovers(text []byte) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		for _, start := range []string{"{", "1. {", "- {", "- [ ] {"} {
			rest, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), start)
			if ok && strings.HasSuffix(rest, "}") && !strings.ContainsAny(rest[:len(rest)-1], "{}\"") {
				v.warn(v.problem(InstructionsFile, n, len(start), "%s is still to be filled in", "{"+rest))
			}
		}
	}
}

// inputs checks that the listed inputs are there.
func (v *validation) inputs(text []byte) {
	deps, _ := v.Dependencies() // its problems are reported elsewhere
	later := deps.Provided()
	for _, in := range ReadInstructions(text).Inputs {
		if slices.ContainsFunc(later, func(p Provided) bool { return p.Name == in.Name }) {
			continue // it is copied before the work begins
		}
		if path.IsAbs(in.Name) || !goodName(in.Name) || strings.ContainsAny(in.Name, "{}") || in.Name == none {
			continue // a reference, or words
		}
		if _, err := v.root.Lstat(path.Join(Inbox, in.Name)); err != nil && strings.Contains(string(text), "`"+in.Name+"`") {
			line, column := position(text, bytes.Index(text, []byte("`"+in.Name+"`")))
			v.warn(v.problem(InstructionsFile, line, column, "the input %s is not in inbox/", in.Name))
		}
	}
}

// CheckInputs returns the entries of the inbox that are no regular files, and the files that are
// too large for a run to copy. A retry copies neither.
func (d *Desk) CheckInputs() (odd, large []*swarm.Error) {
	files, err := walk(d.root, Inbox, nil)
	if err != nil {
		return []*swarm.Error{d.unusable(Inbox, err)}, nil
	}
	for _, f := range files {
		what := kindOf(f.info.Mode())
		switch {
		case what != "":
			e := d.unusable(f.path, notFile(what))
			e.Kind, e.Hint = swarm.BadInput, "put the file itself there; cp -L copies what a link leads to"
			odd = append(odd, e)
		case f.info.Size() > MaxFile:
			e := d.unusable(f.path, errLarge)
			e.Kind, e.Msg = swarm.BadInput, "it is larger than 4 MB, the limit for the inbox of a run"
			e.Hint = "put it elsewhere, and name its path in " + InstructionsFile
			large = append(large, e)
		}
	}
	return odd, large
}

func (v *validation) dependencies() {
	if _, err := v.root.Lstat(DependenciesFile); err != nil {
		return
	}
	text, ok := v.text(DependenciesFile)
	if !ok {
		return
	}
	deps, err := ReadDependencies(text)
	if err == nil {
		return
	}
	e := v.inFile(DependenciesFile, text, err)
	if bad := deps.firstBad(); e.Line == 0 && bad != "" {
		if at := bytes.Index(text, swarm.Encode(bad)); at >= 0 {
			e.Line, e.Column = position(text, at)
		}
	}
	v.fail(e)
}

// firstBad returns the name or path that Check refuses.
func (d Dependencies) firstBad() string {
	for _, dep := range d.DependsOn {
		if swarm.CheckTaskName(dep.Agent) != nil {
			return dep.Agent
		}
		for _, name := range dep.Outputs {
			if _, err := localPath(name, Outbox, false); err != nil {
				return name
			}
		}
		if _, err := dep.folder(); err != nil {
			return dep.CopyTo
		}
	}
	for _, name := range d.WaitFor {
		if swarm.CheckTaskName(name) != nil {
			return name
		}
	}
	return ""
}

func (v *validation) status() {
	text, err := v.read(StatusFile, MaxState)
	if err != nil {
		e := v.unusable(StatusFile, err)
		if errors.Is(err, fs.ErrNotExist) {
			e.Hint = `write {"state": "pending"}`
		}
		v.fail(e)
		return
	}
	s, err := ReadStatus(text)
	if err != nil {
		e := v.inFile(StatusFile, text, err)
		if e.Line == 0 {
			e.Line, e.Column = find(text, "state")
		}
		v.fail(e)
		return
	}
	v.statusFields(text, s)
	names, violations, whole := v.listOutbox(s.State)
	v.errs = append(v.errs, violations...)
	if s.State == Completed && whole {
		var files []File
		for _, name := range names {
			if info, err := v.root.Lstat(name); err == nil {
				files = append(files, File{Kind: kindOfFile(name), Path: name, Size: info.Size(), Large: info.Size() > MaxFile})
			}
		}
		v.errs = append(v.errs, v.missing(files)...)
	}
}

// statusFields checks the fields that a reader ignores when they are wrong.
func (v *validation) statusFields(text []byte, s Status) {
	warn := func(field, format string, args ...any) {
		line, column := find(text, field)
		v.warn(v.problem(StatusFile, line, column, format, args...))
	}
	for _, field := range []string{"started", "completed"} {
		if _, ok := readTime(s.Fields[field]); !ok {
			warn(field, "the field %q must be a time such as 2024-01-15T10:30:00Z, or null", field)
		}
	}
	if _, ok := readFailure(s.Fields["error"]); !ok {
		warn("error", `the field "error" must be {"type": …, "message": …, "details": …, "recoverable": true}, or null`)
	}
	if _, ok := readProgress(s.Fields["progress"]); !ok {
		warn("progress", `the field "progress" must be {"current_step": "…", "steps_completed": 3, "total_steps": 5}`)
	}
	if m := s.Fields["metrics"]; !isNull(m) && m[0] != '{' {
		warn("metrics", `the field "metrics" must be an object`)
	}
	switch {
	case s.State == Failed && s.Error == nil:
		warn("state", `the state is failed, and "error" does not say why`)
	case s.State == Running && s.Started.IsZero():
		warn("state", `the state is running, and "started" does not say since when`)
	case s.State == Completed && s.Completed.IsZero():
		warn("state", `the state is completed, and "completed" does not say when`)
	}
}
