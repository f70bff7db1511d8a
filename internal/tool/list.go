package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"swarm"
	"swarm/internal/toolrule"
)

// Limits of a listing.
const (
	maxListed = 2000   // entries shown
	maxSeen   = 50_000 // entries read of one folder, to show the first by name
	maxDepth  = 32
)

func (b *Box) listSpec() swarm.ToolSpec {
	return swarm.ToolSpec{Name: toolrule.FileList,
		Description: "Lists the files of a folder, one on each line: folders end with /, files have their size in bytes. " +
			"Paths are relative to your folder." + b.aboutBelow() + " depth 2 and more also lists what is in folders.",
		Schema: object(`"path":{"type":"string","description":"a folder; without it your folder itself"},` +
			`"depth":{"type":"integer","minimum":1,"maximum":32}`)}
}

// list lists folders. An unreadable subfolder is skipped; only the requested folder gives an error.
func (b *Box) list(ctx context.Context, args json.RawMessage) (string, error) {
	var a struct {
		Path  string `json:"path"`
		Depth int    `json:"depth"`
	}
	if err := arguments(toolrule.FileList, args, &a); err != nil {
		return "", err
	}
	if a.Depth < 0 || a.Depth > maxDepth {
		return "", swarm.Errorf(swarm.BadInput, "depth must be from 1 to %d", maxDepth)
	}
	l, found, missing := listing{shown: map[string]bool{}}, false, error(nil)
	for _, layer := range b.reached(a.Path) {
		l.layer, l.readOnly = layer, layer.root != b.layers[0].root
		switch err := l.walk(ctx, a.Path, max(1, a.Depth)); {
		case err == nil:
			found = true
		case swarm.KindOf(err) != swarm.NotFound:
			return "", err
		case missing == nil:
			missing = err
		}
	}
	switch {
	case !found:
		return "", missing
	case len(l.lines) == 0:
		return "(empty)", nil
	case l.more > 0:
		const format = "[%d entries are shown, at least %d were left out: list a folder of it]"
		l.lines = append(l.lines, fmt.Sprintf(format, len(l.lines), l.more))
	}
	return strings.Join(l.lines, "\n"), nil
}

// A listing walks folders level by level, so that a large folder deep down does not displace
// entries above it.
type listing struct {
	layer    layer // that it walks at present
	readOnly bool  // that layer can only be read
	root     *os.Root
	lines    []string
	shown    map[string]bool // names that an earlier layer has
	more     int
}

// walk lists a folder of the layer, so many levels deep.
func (l *listing) walk(ctx context.Context, path string, depth int) error {
	local, err := l.layer.inside(path)
	if err != nil {
		return err
	}
	if l.root, err = os.OpenRoot(l.layer.root); err != nil {
		return fileError(".", err)
	}
	defer l.root.Close()
	for folders := []string{local}; depth > 0 && len(folders) > 0; depth-- {
		var next []string
		for _, folder := range folders {
			if ctx.Err() != nil {
				return swarm.CutError(ctx)
			}
			found, err := l.folder(folder)
			if err != nil && folder == local {
				return fileError(path, err)
			}
			next = append(next, found...)
		}
		folders = next
	}
	return nil
}

// conceals reports whether an entry is not shown. Its folder is shown, so only a link has to be
// resolved.
func (l *listing) conceals(at string, info fs.FileInfo) bool {
	if info.Mode()&fs.ModeSymlink == 0 {
		return l.layer.project && isPrivate(at)
	}
	return l.layer.conceals(at)
}

// folder lists one folder and returns its subfolders.
func (l *listing) folder(path string) (folders []string, err error) {
	if len(l.lines) >= maxListed {
		l.more++
		return nil, nil
	}
	info, err := l.root.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, swarm.Errorf(swarm.BadInput, "%s is not a folder", swarm.Quote(path)).
			WithHint("file_read reads it, if you may use it")
	}
	f, err := l.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxSeen)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(names)
	for i, name := range names {
		if len(l.lines) >= maxListed {
			l.more += len(names) - i
			break
		}
		at := filepath.Join(path, name)
		info, err := l.root.Lstat(at)
		if err != nil || info.IsDir() && Hides(l.layer.hidden, l.layer.real, at) || l.conceals(at, info) {
			continue // deleted meanwhile, or hidden
		}
		shown := strings.ToValidUTF8(strings.Map(visible, at), "\uFFFD")
		switch {
		case info.IsDir():
			folders = append(folders, at)
			shown += "/"
		case info.Mode().IsRegular():
			shown = fmt.Sprintf("%s %d", shown, info.Size())
		case info.Mode()&fs.ModeSymlink != 0:
			shown += " (link)"
		default:
			shown += " (not a file)"
		}
		if l.shown[at] {
			continue
		}
		if l.shown[at] = true; l.readOnly {
			shown += " (read only)"
		}
		l.lines = append(l.lines, shown)
	}
	return folders, nil
}

// visible replaces control characters, so that one name cannot look like two.
func visible(c rune) rune {
	if c < ' ' || c == 0x7f {
		return '\uFFFD'
	}
	return c
}
