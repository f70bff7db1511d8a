package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"swarm"
	"swarm/internal/permission"
	boxes "swarm/internal/tool"
	"swarm/internal/toolrule"
)

// editKind is the protocol's word for tools that change files.
const editKind = "edit"

// maxFile is the largest file, in bytes, that one message carries.
const maxFile = 4 << 20

// readFile gives the agent a file of its folder, or some lines of it.
func (t *turn) readFile(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Path  string `json:"path"`
		Line  int    `json:"line"`  // from 1
		Limit int    `json:"limit"` // lines
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &rpcError{Code: codeBadParams, Message: err.Error()}
	}
	f, err := t.open(p.Path, os.O_RDONLY)
	if err != nil {
		return nil, fileError(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fileError(err)
	case len(content) > maxFile:
		return nil, &rpcError{Code: codeFailed, Message: fmt.Sprintf("%s has more than %d MB", p.Path, maxFile>>20)}
	case bytes.IndexByte(content, 0) >= 0:
		return nil, &rpcError{Code: codeFailed, Message: p.Path + " is not a text"}
	}
	return object{"content": selectLines(string(content), p.Line, p.Limit)}, nil
}

// selectLines returns limit lines of a text, from the line number from. 0 means all.
func selectLines(text string, from, limit int) string {
	for ; from > 1 && text != ""; from-- {
		_, text, _ = strings.Cut(text, "\n")
	}
	if limit <= 0 {
		return text
	}
	end := 0
	for ; limit > 0 && end < len(text); limit-- {
		n := strings.IndexByte(text[end:], '\n')
		if n < 0 {
			return text
		}
		end += n + 1
	}
	return text[:end]
}

// writeFile writes a file in the agent's folder.
func (t *turn) writeFile(params json.RawMessage) (any, *rpcError) {
	var p struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &rpcError{Code: codeBadParams, Message: err.Error()}
	}
	if name, err := relativeTo(t.r.Folder(), p.Path); err == nil {
		if shut := permission.Writing(t.r.Phase, filepath.ToSlash(name)); shut != nil {
			t.refuse("", refusal{name: p.Path, kind: editKind, reason: shut.Error(), phaseErr: shut})
			return nil, &rpcError{Code: codeFailed, Message: shut.Error()}
		}
	}
	f, err := t.open(p.Path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, fileError(err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = io.WriteString(f, p.Content)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fileError(err)
	}
	t.mu.Lock()
	t.reportFile(p.Path)
	t.mu.Unlock()
	return nil, nil
}

// open opens a regular file below the agent's root. Links cannot lead out of it. For writing in
// PLANNING, the root is docs/.
func (t *turn) open(path string, flag int) (*os.File, error) {
	folder := t.r.Folder()
	if docs := t.r.Docs(); docs != "" && flag&os.O_CREATE != 0 {
		if info, err := os.Lstat(docs); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a folder", docs)
		}
		folder = docs
	}
	name, err := relativeTo(folder, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	real, err := filepath.EvalSymlinks(folder)
	switch {
	case err != nil:
		return nil, err
	case boxes.Hides(t.hidden, real, name):
		return nil, fmt.Errorf("%s is not there for agents", path)
	}
	if flag&os.O_CREATE != 0 {
		if err := t.checkGuard(path); err != nil {
			return nil, fmt.Errorf("%w: %s", err, swarm.HintOf(err))
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return nil, err
		}
	}
	f, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o666) // without O_NONBLOCK, opening a FIFO would block
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return f, nil
}

// checkGuard refuses a write to a file that programs execute or obey, unless an entry edit(PATH) of
// the agent's tools names it. Paths of entries are relative to the agent's folder.
func (t *turn) checkGuard(path string) error {
	folder, err := filepath.EvalSymlinks(t.r.Folder())
	if err != nil {
		return err
	}
	name, err := relativeTo(t.r.Folder(), path)
	if err != nil {
		return err
	}
	var named []toolrule.PathPattern
	for _, entry := range t.r.Tools {
		inner, ok := strings.CutPrefix(entry, editKind+"(")
		if inner, closed := strings.CutSuffix(inner, ")"); ok && closed {
			if p, err := toolrule.ParsePath(editKind, inner); err == nil {
				named = append(named, p)
			}
		}
	}
	return boxes.CheckGuard(t.guard, folder, name, editKind, named)
}

// relativeTo makes path relative to a folder. The folder may have two names, by its links and
// without them.
func relativeTo(folder, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	for _, from := range []string{folder, real} {
		if name, err := filepath.Rel(from, path); err == nil && filepath.IsLocal(name) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s is outside of %s", path, folder)
}

// fileError makes the answer to a request for a file that failed.
func fileError(err error) *rpcError {
	code := codeFailed
	if errors.Is(err, fs.ErrNotExist) {
		code = codeNotFound
	}
	return &rpcError{Code: code, Message: err.Error()}
}
