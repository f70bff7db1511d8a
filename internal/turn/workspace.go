package turn

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/toolrule"
)

// The files of a swarm's workspace are its agents' memory: prompts show the beginning of a long
// text, and name the file that has all of it. The log has what prompts need, so they can be made
// again without the files.

// workspaceVariable tells a program where the workspace is.
const workspaceVariable = "SWARM_WORKSPACE"

const (
	longText   = 500       // characters; longer results are saved to files
	resultsDir = "results" // the folder of those files
	maxToolRef = 40        // characters of a tool's name in a file's name
)

// saveResult saves a long result of an iteration to a file, and returns the file's name in the
// workspace; "" = it has no file. A result without a file is not lost: the log has it.
func (r *Runner) saveResult(agent string, iteration int, tool string, text []byte) string {
	switch tool {
	case toolrule.FileRead, toolrule.FileWrite, toolrule.FileList: // it is in a file already
		return ""
	}
	if r.Workspace == "" || utf8.RuneCount(text) <= longText {
		return ""
	}
	name := path.Join(resultsDir, fmt.Sprintf("%s-%d-%s.txt", agent, iteration, fileName(tool)))
	if r.writeFile(name, text) != nil {
		return ""
	}
	return name
}

// remember saves what a worker's turn gave to the workspace, and returns the text of its report, if
// it has written one.
func (r *Runner) remember(w *work, end *swarm.CallEnd, output []byte) [][]byte {
	switch {
	case w.action == nil:
	case w.action.Kind == swarm.ActDone:
		report := r.saveReport(w)
		if end.File = report.name; report.text != nil {
			end.FileText = swarm.HashOf(report.text)
			return [][]byte{report.text}
		}
	case w.action.Taken:
		end.File = r.saveResult(w.c.Agent, w.c.Iteration, "turn", output)
	}
	return nil
}

// fileName makes a tool's name a part of a file's name.
func fileName(tool string) string {
	tool = tool[:min(len(tool), maxToolRef)]
	return strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z') {
			return c
		}
		return '-'
	}, tool)
}

// ReportName is the name of an agent's report in the workspace.
func ReportName(agent string) string { return agent + "-report.md" }

// A savedReport is an agent's report in the workspace.
type savedReport struct {
	name string // of the file; "" = it has none
	text []byte // what the agent has written there; nil = nothing
}

// saveReport returns the report of an agent that is done. If it has written none, the report is what
// it says, and what it has published.
func (r *Runner) saveReport(w *work) savedReport {
	if r.Workspace == "" {
		return savedReport{}
	}
	name := ReportName(w.c.Agent)
	title := "# Report of " + w.c.Agent + ", from what it said and published\n"
	text, err := r.readFile(name)
	if err == nil && len(text) > 0 && !strings.HasPrefix(string(text), title) { // else a start that a crash cut has left it
		return savedReport{name, r.redact(text)}
	}
	b := []byte(title + "\n" + strings.TrimSpace(w.report) + "\n")
	for after := int64(0); ; {
		const page = 100
		events, err := r.Log.Read(after, page, swarm.ToTopics)
		if err != nil || len(events) == 0 {
			break
		}
		for i := range events {
			e := &events[i]
			after = e.Seq
			if entry, err := swarm.Body[swarm.TopicEntry](e); err == nil && e.Agent == w.c.Agent {
				b = fmt.Appendf(b, "\n## %s\n%s\n", entry.Topic, strings.TrimSpace(entry.Text()))
			}
		}
	}
	if r.writeFile(name, r.redact(b)) != nil {
		return savedReport{}
	}
	return savedReport{name: name}
}

// readFile reads a regular file of the workspace, as far as an output is stored.
func (r *Runner) readFile(name string) ([]byte, error) {
	root, err := os.OpenRoot(r.Workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for its other end
		err = errors.ErrUnsupported
	}
	if err != nil {
		return nil, err
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, swarm.MaxOutput))
}

// writeFile makes a file of the workspace. What has the name is replaced and never written to: it
// may be a link, or a pipe.
func (r *Runner) writeFile(name string, text []byte) error {
	root, err := os.OpenRoot(r.Workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := path.Dir(name); dir != "." {
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
