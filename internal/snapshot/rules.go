package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// freezeRules makes the ignore rules of all .gitignore files those of the first snapshot. An agent
// that may not write must not be able to hide its writes by a new rule.
func (r *repository) freezeRules(ctx context.Context) error {
	r.rules = filepath.Join(r.own, "info", "rules")
	if _, err := os.Stat(r.rules); err == nil {
		return nil
	}
	folders, err := r.foldersWithRules(ctx)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, folder := range folders { // deeper folders come later, and the last match wins
		text, err := os.ReadFile(filepath.Join(r.top, folder, ".gitignore"))
		if err != nil {
			continue // git skips it too
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			all.WriteString(rule(folder, line) + "\n")
		}
	}
	if err := writeAtomically(r.rules, all.String()); err != nil {
		return failed("the changes of the run cannot be recorded", err)
	}
	return nil
}

// rule rewrites a line of a folder's .gitignore so that it works from the top folder.
func rule(folder, line string) string {
	line = strings.TrimSuffix(strings.TrimPrefix(line, "\ufeff"), "\r")
	if folder == "" || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
		return line
	}
	glob, not := strings.CutPrefix(line, "!")
	at := "/" + pattern(folder) + "/"
	if strings.Contains(strings.TrimSuffix(strings.TrimRight(glob, " "), "/"), "/") {
		at += strings.TrimPrefix(glob, "/")
	} else {
		at += "**/" + glob // at any depth
	}
	if not {
		return "!" + at
	}
	return at
}

// foldersWithRules returns the folders that have a .gitignore, from the top down, without ignored
// ones.
func (r *repository) foldersWithRules(ctx context.Context) (folders []string, err error) {
	err = filepath.WalkDir(r.top, func(whole string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.top, whole)
		rel = filepath.ToSlash(rel)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil //nolint:nilerr // an unreadable folder has no rules
		case entry.IsDir() && (entry.Name() == ".git" || rel != "." && r.hides(rel)):
			return fs.SkipDir
		case entry.Name() == ".gitignore" && entry.Type().IsRegular():
			folder := path.Dir(rel)
			if folder == "." {
				folder = ""
			}
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ignored, err := r.areIgnored(ctx, folders)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, folder := range folders {
		if folder == "" || !ignored[folder] {
			left = append(left, folder)
		}
	}
	slices.Sort(left)
	return left, nil
}

// areIgnored asks git which folders are ignored, by the rules of the present.
func (r *repository) areIgnored(ctx context.Context, folders []string) (map[string]bool, error) {
	var input, out strings.Builder
	for _, folder := range folders {
		if folder != "" {
			input.WriteString(folder + "\x00")
		}
	}
	ignored := map[string]bool{}
	if input.Len() == 0 {
		return ignored, nil
	}
	err := r.run(ctx, strings.NewReader(input.String()), &out, nil, "check-ignore", "-z", "--stdin", "--no-index")
	var e *gitError
	if err != nil && (!errors.As(err, &e) || e.exit != 1) { // exit status 1: none is ignored
		return nil, err
	}
	for folder := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		ignored[folder] = true
	}
	return ignored, nil
}
