package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// maxNested is how many files of a repository inside of this one are recorded one by one. Of more, only that something changed is known.
const maxNested = maxAlone

// A finding is what the files are that the index does not have yet.
type finding struct {
	paths   []string          // that git can read
	instead map[string]string // what is recorded in the place of those that it cannot
}

// add takes all files into the index. `git add` is not asked to: it starts a git in each repository inside of this one, and that does
// what the settings there say. The commands that are used here look at files one by one, and start nothing.
func (r *repository) add(ctx context.Context) error {
	if err := r.forgetLinks(ctx); err != nil {
		return err
	}
	found, err := r.find(ctx)
	if err != nil {
		return err
	}
	if err := r.feed(ctx, strings.Join(found.paths, "\x00"), "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return err
	}
	return r.standIn(ctx, found.instead)
}

// forgetLinks takes the repositories inside of this one out of the index, so that their files are looked at as all others are.
func (r *repository) forgetLinks(ctx context.Context) error {
	if r.begun() {
		return nil // ours has none
	}
	var out bytes.Buffer
	if err := r.git(ctx, &out, "ls-files", "-z", "--stage"); err != nil {
		return err
	}
	var links []string
	for entry := range strings.SplitSeq(out.String(), "\x00") {
		if about, path, _ := strings.Cut(entry, "\t"); strings.HasPrefix(about, "160000 ") {
			links = append(links, path)
		}
	}
	return r.feed(ctx, strings.Join(links, "\x00"), "update-index", "-z", "--force-remove", "--stdin")
}

// find looks for files that are new, gone or another.
func (r *repository) find(ctx context.Context) (finding, error) {
	names, shut, nested, err := r.listAll(ctx)
	if err != nil {
		return finding{}, err
	}
	found := finding{instead: map[string]string{}}
	for _, folder := range shut {
		found.instead[folder] = r.outline(folder, nil)
	}
	for _, folder := range nested {
		begin, _ := slices.BinarySearch(names, folder+"/")
		end, _ := slices.BinarySearch(names, folder+"0") // what comes after the slash
		if end-begin > maxNested {
			found.instead[folder] = r.outline(folder, names[begin:end])
		}
	}
	for _, path := range names {
		switch {
		case path == "" || r.hides(path) || below(found.instead, path):
		case strings.HasSuffix(path, "/"), !r.readable(path):
			path = strings.TrimSuffix(path, "/")
			found.instead[path] = r.outline(path, nil)
		default:
			found.paths = append(found.paths, path)
		}
	}
	return found, nil
}

// listAll lists files until there is no repository inside that git has not looked into, and says which ones there are.
func (r *repository) listAll(ctx context.Context) (names, shut, nested []string, err error) {
	for {
		if names, shut, err = r.list(ctx); err != nil {
			return nil, nil, nil, err
		}
		inside := map[string]string{}
		for _, name := range names {
			folder, isFolder := strings.CutSuffix(name, "/")
			if isFolder && !r.hides(folder) && !ofGit(folder) && !slices.Contains(nested, folder) {
				nested = append(nested, folder)
				inside[folder+"/.swarm-looks"] = ""
			}
		}
		if len(inside) == 0 {
			return names, shut, nested, nil
		}
		// Git looks into a folder of which it knows a file. This one is not there, and is forgotten again with all that are gone.
		if err := r.standIn(ctx, inside); err != nil {
			return nil, nil, nil, err
		}
	}
}

// closed is what git says of a folder that it cannot look into.
var closed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^warning: could not open directory '(.+?)/?': `)
})

// list is what git finds, in order, and the folders that it cannot look into. A name that ends in a slash is a repository inside.
func (r *repository) list(ctx context.Context) (names, shut []string, err error) {
	args := []string{"ls-files", "-z", "--others", "--modified", "--exclude-standard"}
	if r.rules != "" {
		args = []string{"ls-files", "-z", "--others", "--modified", "--exclude-from=" + r.ownExclude(), "--exclude-from=" + r.rules}
	}
	var out, said bytes.Buffer
	if err := r.run(ctx, nil, &out, &said, args...); err != nil {
		return nil, nil, err
	}
	for _, m := range closed().FindAllStringSubmatch(said.String(), -1) {
		shut = append(shut, m[1])
	}
	names = strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
	slices.Sort(names)
	return slices.Compact(names), shut, nil
}

// hides says whether a file lies in a folder that is not recorded.
func (r *repository) hides(path string) bool {
	whole := filepath.Join(r.top, path)
	return slices.ContainsFunc(r.hidden, func(hidden string) bool {
		rel, err := filepath.Rel(hidden, whole)
		return err == nil && filepath.IsLocal(rel)
	})
}

// readable says whether git can read a file, or see that it is gone, and knows what to call it.
func (r *repository) readable(path string) bool {
	if ofGit(path) {
		return false
	}
	whole := filepath.Join(r.top, path)
	info, err := os.Lstat(whole)
	switch {
	case err != nil:
		return !errors.Is(err, fs.ErrPermission)
	case info.Mode().IsRegular():
		f, err := os.OpenFile(whole, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return errors.Is(err, fs.ErrNotExist)
		}
		return f.Close() == nil
	}
	return info.IsDir() || info.Mode()&fs.ModeSymlink != 0
}

// ofGit says whether a path has a part that git takes for its own.
func ofGit(path string) bool { return slices.ContainsFunc(strings.Split(path, "/"), isGit) }

func isGit(part string) bool { return strings.EqualFold(part, ".git") }

// outline is what is recorded of files that cannot be: it is another one whenever they are.
func (r *repository) outline(path string, below []string) string {
	look := func(w io.Writer, path string) {
		info, err := os.Lstat(filepath.Join(r.top, path))
		for err != nil && path != "." { // who opens a folder that is closed, and closes it again, has changed the folder
			path = filepath.Dir(path)
			info, err = os.Lstat(filepath.Join(r.top, path))
		}
		if err != nil {
			return
		}
		inode, changed := changeOf(info)
		fmt.Fprintf(w, "%q %v %d %d %d\n", path, info.Mode(), info.Size(), inode, changed.UnixNano())
	}
	sum := sha256.New()
	look(sum, path)
	what := "a file that cannot be read"
	if below != nil {
		what = fmt.Sprintf("a repository of more than %d files", maxNested)
	}
	for _, name := range below {
		look(sum, name)
	}
	return fmt.Sprintf("%s, which looks like %x\n", what, sum.Sum(nil)[:8])
}

// standIn records texts in the place of files.
func (r *repository) standIn(ctx context.Context, instead map[string]string) error {
	var entries strings.Builder
	for _, path := range slices.Sorted(maps.Keys(instead)) {
		if below(instead, path) {
			continue
		}
		var hash bytes.Buffer
		if err := r.run(ctx, strings.NewReader(instead[path]), &hash, nil, "hash-object", "-w", "--stdin", "--no-filters"); err != nil {
			return err
		}
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if isGit(part) {
				parts[i] = "(" + part + ")" // git takes no such name
			}
		}
		fmt.Fprintf(&entries, "100644 %s\t%s\x00", strings.TrimSpace(hash.String()), strings.Join(parts, "/"))
	}
	return r.feed(ctx, entries.String(), "update-index", "-z", "--add", "--replace", "--index-info")
}

// below says whether a path lies in a folder that something else stands for.
func below(instead map[string]string, path string) bool {
	for up := filepath.Dir(path); up != "."; up = filepath.Dir(up) {
		if _, ok := instead[up]; ok {
			return true
		}
	}
	return false
}

// feed runs a command of git's that reads what it does; without anything to read there is nothing to do.
func (r *repository) feed(ctx context.Context, input string, args ...string) error {
	if input == "" {
		return nil
	}
	return r.run(ctx, strings.NewReader(input), io.Discard, nil, args...)
}
