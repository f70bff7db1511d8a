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

// maxNested limits how many files of a nested repository are recorded one by one. A larger one is
// recorded as a placeholder, which only shows that something changed.
const maxNested = maxAlone

// changes are the files that differ from the index.
type changes struct {
	paths        []string          // that git can read
	placeholders map[string]string // texts to record in place of files that git cannot read, by path
}

// add brings all files into the index. It does not use `git add`, which starts a git process in
// each nested repository and obeys the settings there. An agent may have written those settings.
// The commands used here look at files one by one and start no program.
func (r *repository) add(ctx context.Context) error {
	if err := r.forgetLinks(ctx); err != nil {
		return err
	}
	found, err := r.find(ctx)
	if err != nil {
		return err
	}
	input := strings.Join(found.paths, "\x00")
	if err := r.runWithInput(ctx, input, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return err
	}
	return r.recordPlaceholders(ctx, found.placeholders)
}

// forgetLinks removes nested repositories (gitlinks) from the index, so that their files are
// treated like all others.
func (r *repository) forgetLinks(ctx context.Context) error {
	if r.hasSnapshot() {
		return nil // our own index has no gitlinks
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
	return r.runWithInput(ctx, strings.Join(links, "\x00"), "update-index", "-z", "--force-remove", "--stdin")
}

// find returns the files that are new, gone or changed.
func (r *repository) find(ctx context.Context) (changes, error) {
	names, shut, nested, err := r.listAll(ctx)
	if err != nil {
		return changes{}, err
	}
	found := changes{placeholders: map[string]string{}}
	for _, folder := range shut {
		found.placeholders[folder] = r.placeholder(folder, nil)
	}
	for _, folder := range nested {
		begin, _ := slices.BinarySearch(names, folder+"/")
		end, _ := slices.BinarySearch(names, folder+"0") // '0' is the byte after '/'
		if end-begin > maxNested {
			found.placeholders[folder] = r.placeholder(folder, names[begin:end])
		}
	}
	for _, path := range names {
		switch {
		case path == "" || r.hides(path) || below(found.placeholders, path):
		case strings.HasSuffix(path, "/"), !r.readable(path):
			path = strings.TrimSuffix(path, "/")
			found.placeholders[path] = r.placeholder(path, nil)
		default:
			found.paths = append(found.paths, path)
		}
	}
	return found, nil
}

// listAll lists files until git has looked into every nested repository. It also returns the nested
// repositories.
func (r *repository) listAll(ctx context.Context) (names, shut, nested []string, err error) {
	for {
		if names, shut, err = r.list(ctx); err != nil {
			return nil, nil, nil, err
		}
		inside := map[string]string{}
		for _, name := range names {
			folder, isFolder := strings.CutSuffix(name, "/")
			if isFolder && !r.hides(folder) && !hasGitName(folder) && !slices.Contains(nested, folder) {
				nested = append(nested, folder)
				inside[folder+"/.swarm-looks"] = ""
			}
		}
		if len(inside) == 0 {
			return names, shut, nested, nil
		}
		// Git looks into a folder if it knows a file there. This file does not exist, so it leaves
		// the index again with all files that are gone.
		if err := r.recordPlaceholders(ctx, inside); err != nil {
			return nil, nil, nil, err
		}
	}
}

// unreadable matches git's warning about a folder that it cannot open.
var unreadable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^warning: could not open directory '(.+?)/?': `)
})

// list returns the files that git finds, sorted, and the folders that it cannot open. A name that
// ends in a slash is a nested repository.
func (r *repository) list(ctx context.Context) (names, shut []string, err error) {
	args := []string{"ls-files", "-z", "--others", "--modified", "--exclude-standard"}
	if r.rules != "" {
		args = []string{"ls-files", "-z", "--others", "--modified",
			"--exclude-from=" + r.ownExclude(), "--exclude-from=" + r.rules}
	}
	var out, said bytes.Buffer
	if err := r.run(ctx, nil, &out, &said, args...); err != nil {
		return nil, nil, err
	}
	for _, m := range unreadable().FindAllStringSubmatch(said.String(), -1) {
		shut = append(shut, m[1])
	}
	names = strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
	slices.Sort(names)
	return slices.Compact(names), shut, nil
}

// hides reports whether a path is in a hidden folder, which is not recorded.
func (r *repository) hides(path string) bool {
	whole := filepath.Join(r.top, path)
	return slices.ContainsFunc(r.hidden, func(hidden string) bool {
		rel, err := filepath.Rel(hidden, whole)
		return err == nil && filepath.IsLocal(rel)
	})
}

// readable reports whether git can read a file, or see that it is gone, and accepts its name.
func (r *repository) readable(path string) bool {
	if hasGitName(path) {
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

// hasGitName reports whether a path has an element that git reserves for itself.
func hasGitName(path string) bool { return slices.ContainsFunc(strings.Split(path, "/"), isGit) }

func isGit(part string) bool { return strings.EqualFold(part, ".git") }

// placeholder returns the text that is recorded in place of files that git cannot read. It changes
// whenever the metadata of the files changes.
func (r *repository) placeholder(path string, below []string) string {
	look := func(w io.Writer, path string) {
		info, err := os.Lstat(filepath.Join(r.top, path))
		for err != nil && path != "." { // a folder that was opened and closed again shows it in its parent
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

// recordPlaceholders records texts in place of files.
func (r *repository) recordPlaceholders(ctx context.Context, placeholders map[string]string) error {
	var entries strings.Builder
	for _, path := range slices.Sorted(maps.Keys(placeholders)) {
		if below(placeholders, path) {
			continue
		}
		var hash bytes.Buffer
		text := strings.NewReader(placeholders[path])
		if err := r.run(ctx, text, &hash, nil, "hash-object", "-w", "--stdin", "--no-filters"); err != nil {
			return err
		}
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if isGit(part) {
				parts[i] = "(" + part + ")" // git refuses the name itself
			}
		}
		fmt.Fprintf(&entries, "100644 %s\t%s\x00", strings.TrimSpace(hash.String()), strings.Join(parts, "/"))
	}
	return r.runWithInput(ctx, entries.String(), "update-index", "-z", "--add", "--replace", "--index-info")
}

// below reports whether a path is inside a folder that has a placeholder.
func below(placeholders map[string]string, path string) bool {
	for up := filepath.Dir(path); up != "."; up = filepath.Dir(up) {
		if _, ok := placeholders[up]; ok {
			return true
		}
	}
	return false
}

// runWithInput runs a git command that reads its work from standard input. Without input it does
// nothing.
func (r *repository) runWithInput(ctx context.Context, input string, args ...string) error {
	if input == "" {
		return nil
	}
	return r.run(ctx, strings.NewReader(input), io.Discard, nil, args...)
}
