package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"swarm"
)

// quiet are settings that keep git from starting programs, from writing to the user's repository, and
// from using the network.
var quiet = []string{
	"core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "diff.submodule=short", "diff.ignoreSubmodules=all",
	"submodule.recurse=false", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false",
	"core.looseCompression=1", "core.fsync=none", "gc.auto=0", "maintenance.auto=false", "protocol.allow=never",
	"core.safecrlf=false", "core.quotePath=false", "core.protectNTFS=false", "core.protectHFS=false",
	"core.sharedRepository=0600",
}

// passedVariables are the variables that git inherits: those that locate it and its configuration. The
// user's keys are not among them. Nor are git's own variables that select a repository, because a hook
// of another repository may have started us.
var passedVariables = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LD_LIBRARY_PATH", "DEVELOPER_DIR",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES",
	"GIT_DISCOVERY_ACROSS_FILESYSTEM",
}

// environ is the environment of git. Optional locks are off, so that git never writes to the user's
// index.
func environ() []string {
	var env []string
	for _, name := range passedVariables {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat", "LC_ALL=C")
}

// A gitError is the output of a git command that failed.
type gitError struct {
	command string
	exit    int
	said    string
}

func (e *gitError) Error() string {
	said := strings.TrimSpace(e.said)
	if said == "" {
		said = "exit status " + strconv.Itoa(e.exit)
	}
	return fmt.Sprintf("git %s: %s", e.command, said)
}

// git runs a git command without input.
func (r *repository) git(ctx context.Context, w io.Writer, args ...string) error {
	return r.run(ctx, nil, w, nil, args...)
}

// run runs a git command. If warned is not nil, it gets the command's standard error.
func (r *repository) run(ctx context.Context, in io.Reader, w io.Writer, warned *bytes.Buffer, args ...string) error {
	var all []string
	for _, setting := range quiet {
		all = append(all, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env = r.top, r.env
	var said bytes.Buffer
	if warned == nil {
		warned = &said
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, w, warned
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return failed("git cannot be run", err)
	}
	return &swarm.Error{
		Kind: swarm.Other, Msg: "the changes in the git repository cannot be told",
		Err: &gitError{args[0], exit.ExitCode(), warned.String()},
	}
}

// carriedSettings matches the user's settings that define what a file's content is. No other
// setting is read.
const carriedSettings = `^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat)$`

// settings returns these settings of the user, as lines of a configuration file.
func (r *repository) settings(ctx context.Context) (string, error) {
	var out bytes.Buffer
	err := r.git(ctx, &out, "config", "-z", "--get-regexp", carriedSettings)
	var e *gitError
	if err != nil && (!errors.As(err, &e) || e.exit != 1) { // exit status 1: none is set
		return "", err
	}
	var b strings.Builder
	for entry := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		name, value, given := strings.Cut(strings.TrimPrefix(entry, "core."), "\n")
		switch {
		case name == "":
		case given:
			fmt.Fprintf(&b, "\t%s = %q\n", name, value)
		default:
			fmt.Fprintf(&b, "\t%s\n", name) // no value means true
		}
	}
	return b.String(), nil
}

// ignored returns the content of the user's global ignore file. It is read only when our repository
// is made, so a rule added later by an agent hides nothing.
func (r *repository) ignored(ctx context.Context) []byte {
	var out bytes.Buffer
	path := ""
	if r.git(ctx, &out, "config", "-z", "--path", "--get", "core.excludesFile") == nil {
		path = strings.TrimSuffix(out.String(), "\x00")
	} else if base, err := configBase(); err == nil {
		path = filepath.Join(base, "git", "ignore")
	}
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(r.top, path)
	}
	text, _ := os.ReadFile(path) // most users have none
	return append(text, '\n')
}

// configBase returns the folder of configuration files, by git's rules.
func configBase() (string, error) {
	if base := os.Getenv("XDG_CONFIG_HOME"); base != "" {
		return base, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config"), err
}

// quoted quotes a path for a list that is separated by colons.
func quoted(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return strconv.Quote(path)
	}
	return path
}

// pattern escapes a path, so that a line of an exclude file matches only this path.
func pattern(path string) string {
	var b strings.Builder
	for _, c := range filepath.ToSlash(path) {
		if strings.ContainsRune(`\*?[]!# `, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
