package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"swarm"
	"swarm/internal/action"
	"swarm/internal/agentapi"
	"swarm/internal/permission"
	"swarm/internal/plan"
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
	dir := r.Files(agent)
	if dir == "" || utf8.RuneCount(text) <= longText {
		return ""
	}
	name := path.Join(resultsDir, fmt.Sprintf("%s-%d-%s.txt", agent, iteration, fileName(tool)))
	if writeFile(dir, name, text) != nil {
		return ""
	}
	return name
}

// remember saves what a worker's turn gave to the workspace, and returns the text of its report, if
// it has written one.
func (r *Runner) remember(w *work, end *swarm.CallEnd, output []byte) ([][]byte, error) {
	var report []byte
	if w.worksInTurn() {
		report = r.changedReport(w)
	}
	switch {
	case w.action.Kind == swarm.ActReview:
	case w.action.Kind == swarm.ActDone:
		var err error
		if end.File, report, err = r.saveReport(w, report); err != nil {
			return nil, err
		}
	case w.action.Taken:
		end.File = r.saveResult(w.c.Agent, w.c.Iteration, "turn", output)
	}
	if report == nil {
		return nil, nil
	}
	end.FileText = swarm.HashOf(report)
	return [][]byte{report}, nil
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

// An agent's report is what its own turns and actions have written to its file. Any agent with a
// command can write any file of the workspace, so the file is looked at before and after. What a
// command has written while another ran may be either's, so it is nobody's.

// beginUnseen records that an agent begins to run something that may write any file. The returned
// function says whether nobody else did meanwhile; it must be called at the end.
func (r *Runner) beginUnseen(w *work) (alone func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.unseen {
		other.shared, w.shared = true, true
	}
	put(&r.unseen, w, true)
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.unseen, w)
		return !w.shared
	}
}

// writesAnyFile says whether a tool may write files that its arguments do not name.
func writesAnyFile(tool string) bool {
	switch tool {
	case toolrule.FileRead, toolrule.FileWrite, toolrule.FileList, toolrule.WebFetch:
		return false
	}
	return true
}

// writtenByAction returns the report that an action has written; nil = none.
func (r *Runner) writtenByAction(w *work, a action.Action) []byte {
	if writesAnyFile(a.Tool) {
		return r.changedReport(w)
	}
	var args struct{ Path, Content string }
	if a.Tool != toolrule.FileWrite || json.Unmarshal(a.Params, &args) != nil || path.Base(path.Clean(args.Path)) != ReportName(w.c.Agent) {
		return nil
	}
	text := r.redact([]byte(args.Content[:min(len(args.Content), swarm.MaxOutput)]))
	if len(text) == 0 || !bytes.Equal(text, r.reportText(w)) { // it was refused, or is another folder's file
		return nil
	}
	return text
}

// ReportName is the name of an agent's report in the workspace.
func ReportName(agent string) string { return agent + reportSuffix }

const reportSuffix = "-report.md"

// worksInTurn says whether a turn is an iteration in which the agent itself writes files. A model
// writes them in its actions.
func (w *work) worksInTurn() bool { return w.c.Want == plan.WantAction && !w.asksPlainly() }

// reportText returns the agent's report as it is in the workspace; nil = there is none.
func (r *Runner) reportText(w *work) []byte {
	dir := r.Files(w.c.Agent)
	if dir == "" {
		return nil
	}
	text, err := readFile(dir, ReportName(w.c.Agent))
	if err != nil || len(text) == 0 {
		return nil
	}
	return r.redact(text)
}

// changedReport returns the agent's report, if it was written since w.before was read.
func (r *Runner) changedReport(w *work) []byte {
	text := r.reportText(w)
	if bytes.Equal(text, w.before) {
		return nil
	}
	return text
}

// ownReport returns the report that the agent's earlier turns and actions have written; nil = none.
func (r *Runner) ownReport(agent string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return nil, err
	}
	if h := r.fold.written[agent]; h != "" {
		return r.Log.Body(h)
	}
	return nil, nil
}

// refuseWrite refuses to write a file that is the report of another agent of the swarm, or one of the
// program's own. A file below such a name would be in its way.
func (r *Runner) refuseWrite(w *work, a action.Action) error {
	var args struct{ Path string }
	if a.Tool != toolrule.FileWrite || json.Unmarshal(a.Params, &args) != nil { // the tool says what is wrong with them
		return nil
	}
	if r.isResult(w, args.Path) {
		return swarm.Errorf(swarm.Denied, "%s: the program saves long results in %s, and only it writes there", swarm.Quote(args.Path), resultsDir).
			WithHint("write to another folder")
	}
	clean := strings.ToLower(path.Clean(args.Path))
	for part := range strings.SplitSeq(clean, "/") {
		of, ok := strings.CutSuffix(part, reportSuffix)
		switch {
		case !ok:
			continue
		case of == w.c.Agent && path.Base(clean) != part:
			return swarm.Errorf(swarm.Denied, "%s: %s is your report, and no folder", swarm.Quote(args.Path), part).WithHint("write to %s", part)
		case of == w.c.Agent:
			continue
		}
		state, _, err := r.AgentAPI.SwarmState(swarm.Supervisor)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(state.Agents, func(a agentapi.SwarmAgent) bool { return a.Name == of }) {
			return swarm.Errorf(swarm.Denied, "%s is the report of %s, and only %s writes it", swarm.Quote(args.Path), of, of).
				WithHint("write to %s, or to a file of another name", ReportName(w.c.Agent))
		}
	}
	return nil
}

// isResult says whether a path of the agent is the folder of the saved results, or in it. An agent with
// a root of its own has another folder of this name.
func (r *Runner) isResult(w *work, name string) bool {
	if w.agent.Root != "" && w.agent.Root != r.Workspace {
		return false
	}
	if filepath.IsAbs(name) {
		folder := r.Workspace
		if real := resolved(folder); permission.Within(real, filepath.Clean(name)) {
			folder = real
		}
		if rel, err := filepath.Rel(folder, name); err == nil {
			name = rel
		}
	}
	first, _, _ := strings.Cut(filepath.ToSlash(filepath.Clean(name)), "/")
	return strings.EqualFold(first, resultsDir)
}

// saveReport returns the file with the report of an agent that is done, and what the agent has
// written there: now, or earlier. If another has changed the file since, it is restored. If the agent
// has written none, the report is what it says, and what it has published.
func (r *Runner) saveReport(w *work, now []byte) (name string, text []byte, err error) {
	dir := r.Files(w.c.Agent)
	if dir == "" {
		return "", nil, nil
	}
	name = ReportName(w.c.Agent)
	if text = now; text == nil {
		if text, err = r.ownReport(w.c.Agent); err != nil {
			return "", nil, err
		}
	}
	if text != nil {
		if !bytes.Equal(text, r.reportText(w)) && !r.writeReport(w.c.Agent, text) {
			name = ""
		}
		return name, text, nil
	}
	if !r.writeReport(w.c.Agent, r.composeReport(w.c.Agent, w.report)) {
		name = "" // the log has what prompts need
	}
	return name, nil, nil
}

// writeReport writes the report of an agent to its file. If it cannot, because a command has made a
// folder of the name, say, a notice tells people of it, once for each agent.
func (r *Runner) writeReport(agent string, text []byte) (written bool) {
	err := writeFile(r.Files(agent), ReportName(agent), text)
	if err == nil {
		return true
	}
	e := swarm.Event{Kind: swarm.Notice, Key: "unreported:@" + agent, Agent: agent, Data: swarm.Encode(swarm.Reason{
		Reason: r.clean("its report cannot be saved: " + err.Error()), Hint: "what it said is in its last turn: swarm show --turn " + agent})}
	if _, there, found := r.Log.Find(e.Key); found == nil && !there {
		// The error may be dropped: a log that refuses this event also refuses the turn's end.
		_, _ = r.Log.Append(context.Background(), swarm.Batch{Lazy: true, Events: []swarm.Event{e}})
	}
	return false
}

// composeReport makes the report of an agent that has written none, of what it said and published.
func (r *Runner) composeReport(agent, said string) []byte {
	b := []byte("# Report of " + agent + ", from what it said and published\n\n" + strings.TrimSpace(said) + "\n")
	for after := int64(0); ; {
		const page = 100
		events, err := r.Log.Read(after, page, swarm.ToTopics)
		if err != nil || len(events) == 0 {
			return r.redact(b)
		}
		for i := range events {
			e := &events[i]
			after = e.Seq
			if entry, err := swarm.Body[swarm.TopicEntry](e); err == nil && e.Agent == agent {
				b = fmt.Appendf(b, "\n## %s\n%s\n", entry.Topic, strings.TrimSpace(entry.Text()))
			}
		}
	}
}

// unfinished returns the report of an agent that has ended without being done: its name, or "" if it
// has not begun. It is on disk before a prompt names it.
func (r *Runner) unfinished(a agentapi.SwarmAgent) (string, error) {
	if a.Outcome == "" || a.Outcome == swarm.OutcomeDone || len(r.fold.steps[a.Name]) == 0 {
		return "", nil
	}
	name := ReportName(a.Name)
	if r.Files(a.Name) == "" || r.reported[a.Name] == a.Turn {
		return name, nil
	}
	steps, err := r.history(a.Name)
	if err != nil {
		return "", err
	}
	var text []byte
	if h := r.fold.written[a.Name]; h != "" {
		if text, err = r.Log.Body(h); err != nil {
			return "", err
		}
	} else {
		said := "It is not finished (" + string(a.Outcome) + "): " + a.Reason + ".\n"
		for i := range steps {
			said += fmt.Sprintf("\n%d. %s", steps[i].Iteration, steps[i].Outcome())
		}
		text = r.composeReport(a.Name, said)
	}
	if r.writeReport(a.Name, text) { // otherwise the log has what prompts need
		put(&r.reported, a.Name, a.Turn)
	}
	return name, nil
}

// SaveReports saves the reports of the agents of a swarm that have ended without being done, if no
// prompt has named them.
func (r *Runner) SaveReports() error {
	if r.Workspace == "" && r.Apart == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fold.follow(r.Log); err != nil {
		return err
	}
	state, _, err := r.AgentAPI.SwarmState(swarm.Supervisor)
	if err != nil {
		return err
	}
	for _, a := range state.Agents {
		if _, err := r.unfinished(a); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a regular file of a workspace, as far as an output is stored.
func readFile(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
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

// writeFile makes a file of a workspace. What has the name is replaced and never written to: it
// may be a link, or a pipe.
func writeFile(dir, name string, text []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if sub := path.Dir(name); sub != "." {
		if err := root.Mkdir(sub, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
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
