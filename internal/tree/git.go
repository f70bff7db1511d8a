package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"swarm"
)

// quiet are settings that keep git from starting anything, from writing to the user's repository, and from asking the network.
var quiet = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.splitIndex=false",
	"core.looseCompression=1", "core.fsync=none", "gc.auto=0", "maintenance.auto=false", "protocol.allow=never",
	"add.ignoreErrors=true", "advice.addEmbeddedRepo=false", "core.safecrlf=false", "core.quotePath=false",
}

// kept are the variables of git's that say where its configuration is. The others could lead it to another repository: we may
// have been started by one of its hooks.
var kept = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}

func environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "GIT_") && !slices.Contains(kept, name)
	})
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
	var all []string
	for _, setting := range quiet {
		all = append(all, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env = r.top, r.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &said
	err := cmd.Run()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return failed("git cannot be run", err)
	}
	return &swarm.Error{Kind: swarm.Other, Msg: "the changes in the git repository cannot be told", Err: &gitError{args[0], exit.ExitCode(), said.String()}}
}

// carried are the settings of the user's that say what a file is. No other one is read.
const carried = `^core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|excludesfile|trustctime|checkstat)$`

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

// noCommit is what git says of a repository inside of this one that has no commit, and that it therefore cannot record.
var noCommit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^error: '(.+?)/?' does not have a commit checked out$`)
})

// add takes all files into the index. What cannot be read is left out.
func (r *repository) add(ctx context.Context) error {
	var without []string
	for {
		err := r.git(ctx, io.Discard, append([]string{"add", "--all", "--", "."}, without...)...)
		var e *gitError
		if err == nil || !errors.As(err, &e) {
			return err
		}
		more := false
		for _, m := range noCommit().FindAllStringSubmatch(e.said, -1) {
			if path := ":(exclude,top,literal)" + m[1]; !slices.Contains(without, path) {
				without, more = append(without, path), true
			}
		}
		if more {
			continue
		}
		if e.exit == 1 { // some files could not be read
			return nil
		}
		return err
	}
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
