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

// quiet are settings that keep git from starting anything, from writing to the user's repository, and from asking the network.
var quiet = []string{
	"core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "diff.submodule=short", "diff.ignoreSubmodules=all", "submodule.recurse=false", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false",
	"core.looseCompression=1", "core.fsync=none", "gc.auto=0", "maintenance.auto=false", "protocol.allow=never",
	"core.safecrlf=false", "core.quotePath=false", "core.protectNTFS=false", "core.protectHFS=false", "core.sharedRepository=0600",
}

// kept are the variables that git is started with: where it and its configuration are. No key of the user's is among them, and none of
// git's own that could lead it to another repository: we may have been started by one of its hooks.
var kept = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LD_LIBRARY_PATH", "DEVELOPER_DIR",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}

func environ() []string {
	var env []string
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat", "LC_ALL=C")
}

// A gitError is what git said when it failed.
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

// git runs a command of git's.
func (r *repository) git(ctx context.Context, w io.Writer, args ...string) error {
	return r.run(ctx, nil, w, nil, args...)
}

// run runs a command of git's that reads, and whose warnings are of interest.
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
	return &swarm.Error{Kind: swarm.Other, Msg: "the changes in the git repository cannot be told", Err: &gitError{args[0], exit.ExitCode(), warned.String()}}
}

// carried are the settings of the user's that say what a file is. No other one is read.
const carried = `^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|trustctime|checkstat)$`

// settings are the user's, as lines of a configuration.
func (r *repository) settings(ctx context.Context) (string, error) {
	var out bytes.Buffer
	err := r.git(ctx, &out, "config", "-z", "--get-regexp", carried)
	var e *gitError
	if err != nil && (!errors.As(err, &e) || e.exit != 1) { // 1: there is none
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
			fmt.Fprintf(&b, "\t%s\n", name) // which means yes
		}
	}
	return b.String(), nil
}

// ignored is what the user's own file of what he never wants to see says. It is read once: a later change of it hides nothing.
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
	text, _ := os.ReadFile(path) // mostly there is none
	return append(text, '\n')
}

// configBase is where programs keep their settings, as git understands it.
func configBase() (string, error) {
	if base := os.Getenv("XDG_CONFIG_HOME"); base != "" {
		return base, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config"), err
}

// quoted is a path as it stands in a list that is separated by colons.
func quoted(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return strconv.Quote(path)
	}
	return path
}

// pattern is a path as a line of an exclude file that means nothing else.
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
