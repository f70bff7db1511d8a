package desk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarm"
	"swarm/internal/strictjson"
)

// A FileKind says what a file of the outbox is.
type FileKind string

// The kinds of files.
const (
	Deliverable FileKind = "deliverable"
	Summary     FileKind = "summary"
	Changelog   FileKind = "changelog"
	Issues      FileKind = "issues"
	Metadata    FileKind = "metadata"
	ErrorReport FileKind = "error_report"
	PartialWork FileKind = "partial" // of an earlier attempt
)

// kindOfFile returns the kind of a path of the outbox.
func kindOfFile(name string) FileKind {
	switch name {
	case SummaryFile:
		return Summary
	case ChangelogFile:
		return Changelog
	case IssuesFile:
		return Issues
	case MetadataFile:
		return Metadata
	case ErrorReportFile:
		return ErrorReport
	}
	if strings.HasPrefix(name, Partial+"/") {
		return PartialWork
	}
	return Deliverable
}

// A File is a file of the outbox.
type File struct {
	Kind   FileKind `json:"kind"`
	Path   string   `json:"path"` // of the desk: outbox/report.md
	Size   int64    `json:"size"`
	SHA256 string   `json:"sha256"`
	// Large says that the file is larger than [MaxFile]: it stays where it is, and is known by its
	// path, size and hash.
	Large bool `json:"large,omitempty"`
}

// A Collection is what a worker has delivered.
type Collection struct {
	Status      Status          `json:"status"`
	Summary     string          `json:"summary"` // summary.md: the output
	Files       []File          `json:"files"`
	Criteria    []Criterion     `json:"criteria,omitempty"` // met if summary.md ticks them
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Issues      string          `json:"issues,omitempty"`
	Changelog   string          `json:"changelog,omitempty"`
	ErrorReport string          `json:"error_report,omitempty"`
	// Violations are broken rules of the protocol: the attempt has failed, whatever its state.
	Violations []*swarm.Error `json:"-"`
	// Warnings change nothing.
	Warnings []*swarm.Error `json:"-"`
}

// Failure returns why the attempt failed, or nil.
func (c *Collection) Failure() *Failure {
	switch {
	case len(c.Violations) > 0:
		var all []string
		for _, v := range c.Violations {
			all = append(all, v.Error())
		}
		return &Failure{Type: Violated, Message: strings.Join(all, "; "), Recoverable: true}
	case c.Status.State == Failed && c.Status.Error != nil:
		return c.Status.Error
	case c.Status.State == Failed:
		return &Failure{Type: "Failed", Message: "the worker did not say why"}
	case c.Status.State != Completed:
		return &Failure{Type: AgentExited, Message: "the worker has not finished: its state is " + string(c.Status.State), Recoverable: true}
	}
	return nil
}

// CollectOptions are the options of [Desk.Collect].
type CollectOptions struct {
	Status   Status    // as a [StatusReader] has read it
	Manifest *Manifest // of the inputs; nil = they are not verified
	// Take is given each file with its content, one after the other. Of a large file the content is
	// nil. An error ends the collection.
	Take func(f File, content []byte) error
}

// Collect reads the outbox. workspace/ is the worker's own and is left out. What an earlier attempt left
// in outbox/partial/ is kept when this one failed.
//
// The error is of the caller's side: its context, its Take, or the disk. What the worker did wrong is a
// violation.
func (d *Desk) Collect(ctx context.Context, o CollectOptions) (*Collection, error) {
	c := &Collection{Status: o.Status}
	names, violations, whole := d.listOutbox(o.Status.State)
	c.Violations = violations
	for _, name := range names {
		f, content, err := d.readStable(ctx, name)
		if ctx.Err() != nil {
			return nil, swarm.CutError(ctx)
		}
		if err != nil {
			c.Violations = append(c.Violations, breach(d.unusable(name, err)))
			continue
		}
		c.Files = append(c.Files, f)
		if err := d.note(c, f, content); err != nil {
			return nil, err
		}
		if o.Take != nil {
			if err := o.Take(f, content); err != nil {
				return nil, err
			}
		}
	}
	if err := d.settle(c.Files); err != nil {
		return nil, err
	}
	if o.Status.State == Completed && whole {
		c.Violations = append(c.Violations, d.missing(c.Files)...)
	}
	if o.Manifest != nil {
		c.Violations = append(c.Violations, d.Verify(*o.Manifest)...)
	}
	if i, err := d.Instructions(); err == nil {
		c.Criteria = tick(i.Criteria, c.Summary)
	}
	return c, nil
}

// settle takes what was collected to disk, with the status and all names, because a worker seldom does. A
// loss of power after the collection then loses nothing that was told.
func (d *Desk) settle(files []File) error {
	names := []string{".", StatusFile}
	for _, f := range files {
		names = append(names, f.Path)
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if !slices.Contains(names, dir) {
				names = append(names, dir)
			}
		}
	}
	for _, name := range names {
		if err := syncName(d.root, name); err != nil {
			// Anything but the disk is the worker's: it has replaced or removed the file since.
			if e := d.unusable(name, err); e.Kind == swarm.Storage {
				return e
			}
		}
	}
	return nil
}

// breach makes an error a violation of the protocol.
func breach(e *swarm.Error) *swarm.Error {
	e.Kind = swarm.Protocol
	return e
}

// listOutbox lists the regular files of the outbox. Everything else there is a violation. whole says
// that all of it was listed.
func (d *Desk) listOutbox(state State) (names []string, violations []*swarm.Error, whole bool) {
	skip := func(name string) bool { return name == Partial && state != Failed }
	all, err := walk(d.root, Outbox, skip)
	if err != nil {
		violations = append(violations, breach(d.unusable(Outbox, err)))
	}
	for _, it := range all[:min(len(all), MaxFiles)] {
		what := kindOf(it.info.Mode())
		switch {
		case strings.HasPrefix(it.path, Partial+"/") && (what != "" || !goodName(it.path)): // an earlier attempt failed by it
		case !goodName(it.path):
			e := &swarm.Error{Kind: swarm.Protocol, File: filepath.Join(d.path, Outbox), Msg: "the name " + swarm.Quote(it.path) + " cannot be used",
				Hint: "rename the file: UTF-8, without control characters and backslashes"}
			violations = append(violations, e)
		case what != "":
			violations = append(violations, breach(d.unusable(it.path, notFile(what))))
		default:
			names = append(names, it.path)
		}
	}
	return names, violations, err == nil
}

// Delivered lists the files and folders directly in the outbox that another desk may be given. What
// tells of failures is not among them.
func (d *Desk) Delivered() (names []string) {
	all, _, _ := d.listOutbox(Completed)
	for _, name := range all {
		if rest := strings.TrimPrefix(name, Outbox+"/"); name != ErrorReportFile {
			first, _, _ := strings.Cut(rest, "/")
			names = append(names, path.Join(Outbox, first))
		}
	}
	return slices.Compact(names)
}

// missing lists what a completed attempt must have and has not.
func (d *Desk) missing(files []File) (violations []*swarm.Error) {
	has := func(kind FileKind) bool {
		return slices.ContainsFunc(files, func(f File) bool { return f.Kind == kind && (kind != Summary || f.Size > 0) })
	}
	if !has(Summary) {
		violations = append(violations, &swarm.Error{Kind: swarm.Protocol, File: filepath.Join(d.path, SummaryFile),
			Msg: "the worker completed without a summary", Hint: "write what was done into " + SummaryFile})
	}
	if slices.ContainsFunc(files, func(f File) bool { return f.Kind == Summary && f.Large }) {
		violations = append(violations, &swarm.Error{Kind: swarm.Protocol, File: filepath.Join(d.path, SummaryFile),
			Msg: "the summary has more than 4 MB, and is the output", Hint: "put the work into a file of its own, and a short summary into " + SummaryFile})
	}
	if !has(Deliverable) {
		violations = append(violations, &swarm.Error{Kind: swarm.Protocol, File: filepath.Join(d.path, Outbox),
			Msg: "the worker completed without a deliverable", Hint: "put the work product itself into outbox/, beside summary.md"})
	}
	return violations
}

// note keeps the files that the protocol gives a meaning.
func (d *Desk) note(c *Collection, f File, content []byte) error {
	switch f.Kind {
	case Summary:
		c.Summary = string(content)
	case Changelog:
		c.Changelog = string(content)
	case Issues:
		c.Issues = string(content)
	case ErrorReport:
		c.ErrorReport = string(content)
	case Metadata:
		value, err := strictjson.ReadValue(content)
		if err != nil {
			c.Warnings = append(c.Warnings, d.inFile(MetadataFile, content, err))
			return nil
		}
		c.Metadata = value
	case Deliverable, PartialWork:
	}
	return nil
}

// tick marks the criteria that the summary ticks, and only those: the inbox is read-only, so a box that is
// ticked there says nothing about the work.
func tick(criteria []Criterion, summary string) []Criterion {
	if len(criteria) == 0 {
		return nil
	}
	for i := range criteria {
		criteria[i].Met = false
	}
	said := section{lines: strings.Split(summary, "\n")}
	for _, done := range readCriteria(said.items()) {
		for i := range criteria {
			if done.Met && strings.EqualFold(criteria[i].Text, done.Text) {
				criteria[i].Met = true
			}
		}
	}
	return criteria
}

// Reading a file that changes is tried again.
const (
	stableTries = 5
	stablePause = 20 * time.Millisecond
)

var errBusy = errors.New("it is still being written")

// readStable reads a file of the outbox through one descriptor. Size, hash and content are of the same
// bytes. A file that changes while it is read is read again.
func (d *Desk) readStable(ctx context.Context, name string) (f File, content []byte, err error) {
	for try := range stableTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return f, nil, ctx.Err()
			case <-time.After(stablePause):
			}
		}
		f, content, err = d.readOnce(ctx, name)
		if !errors.Is(err, errBusy) && !errors.Is(err, errReplaced) {
			return f, content, err
		}
	}
	return f, nil, err
}

func (d *Desk) readOnce(ctx context.Context, name string) (File, []byte, error) {
	f, info, err := openRegular(d.root, name)
	if err != nil {
		return File{}, nil, err
	}
	defer f.Close()
	sum, size := sha256.New(), info.Size()
	var content []byte
	n := int64(0)
	if size <= MaxFile {
		content, err = readAll(f, info, MaxFile)
		n = int64(len(content))
		sum.Write(content)
	} else {
		n, err = io.Copy(sum, untilCut{ctx, f}) // a sparse file takes days
	}
	if errors.Is(err, errLarge) {
		err = errBusy // it grew
	}
	if err != nil {
		return File{}, nil, err
	}
	if after, err := f.Stat(); err != nil || n != size || fingerprintOf(after) != fingerprintOf(info) {
		return File{}, nil, errors.Join(err, errBusy)
	}
	return File{kindOfFile(name), name, n, hex.EncodeToString(sum.Sum(nil)), size > MaxFile}, content, nil
}

// untilCut reads from a reader until its context ends.
type untilCut struct {
	ctx context.Context
	io.Reader
}

func (r untilCut) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Reset prepares the desk for another attempt: the instructions say why the last one failed, its outbox
// becomes outbox/partial, and the state is pending. attempt is the number of the one that failed, from
// 1. After a crash Reset can be called again with the same number.
//
// outbox/partial/ is the whole outbox of the attempt before. What that one had in its own
// outbox/partial/ is in outbox/partial/partial/, and so on.
func (d *Desk) Reset(attempt int, why Failure) error {
	if err := d.ExplainFailure(attempt, why); err != nil {
		return err
	}
	return d.Restart()
}

// newOutbox is made while the outbox is set aside.
const newOutbox = tempPrefix + "outbox" + tempSuffix

// setOutboxAside makes a new outbox with the old one in its partial. Two renames do it. A crash between
// them leaves no outbox, and the new one under its temporary name: then the second is left to do.
func (d *Desk) setOutboxAside() error {
	_, err := d.root.Lstat(Outbox)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if f, err := openFolder(d.root, Outbox); err == nil {
			there, _ := f.Readdirnames(2)
			f.Close()
			if len(there) == 0 || len(there) == 1 && there[0] == path.Base(Partial) { // a crash came after the outbox was set aside
				return nil
			}
		}
		if err := d.root.RemoveAll(newOutbox); err != nil {
			return err
		}
		if err := d.root.Mkdir(newOutbox, 0o755); err != nil {
			return err
		}
		if err := d.root.Rename(Outbox, newOutbox+"/partial"); err != nil {
			return err
		}
	} else if err := d.root.MkdirAll(newOutbox, 0o755); err != nil {
		return err
	}
	if err := d.root.Rename(newOutbox, Outbox); err != nil {
		return err
	}
	return syncFolder(d.root, ".")
}

// Fail writes the final state of a worker that is gone or broke the protocol, and outbox/error_report.md
// if the worker wrote none. The status of a worker that has ended by itself stays as it is.
func (d *Desk) Fail(status Status, why Failure) error {
	if info, err := d.root.Lstat(Outbox); err == nil && !info.IsDir() { // the worker has replaced the outbox
		if err := d.putAside(Outbox); err != nil {
			return d.unusable(Outbox, err)
		}
	}
	if _, err := d.root.Lstat(ErrorReportFile); errors.Is(err, fs.ErrNotExist) {
		if err := d.root.MkdirAll(Outbox, 0o755); err != nil {
			return d.unusable(Outbox, err)
		}
		if err := d.write(ErrorReportFile, errorReport(why)); err != nil {
			return err
		}
	}
	now, _, err := d.readStatus()
	switch {
	case err == nil && now.State == Failed:
		return nil
	case err == nil && now.State == status.State: // its progress may be newer
		status = now
	}
	status.State, status.Error = Failed, &why
	if status.Fields != nil { // what the worker wrote is kept
		status.Fields = maps.Clone(status.Fields)
		status.Fields["state"], status.Fields["error"] = swarm.Encode(Failed), swarm.Encode(why)
	}
	return d.write(StatusFile, status.render())
}

// errorReport is outbox/error_report.md with the headings of the protocol.
func errorReport(why Failure) []byte {
	resolution := "Correct what is wrong in `inbox/`, and run the task again."
	if why.Recoverable {
		resolution = "Run the task again."
	}
	var b bytes.Buffer
	b.WriteString("# Error Report\n")
	for _, part := range [][2]string{
		{"Error Type", why.Type},
		{"Description", strings.TrimSpace(why.Message + "\n" + why.Details)},
		{"Attempted Recovery", none},
		{"Suggested Resolution", resolution},
		{"Partial Work", "What the worker left is in outbox/. Another attempt finds it in outbox/partial/"},
	} {
		text := strings.TrimSpace(part[1])
		if text == "" {
			text = none
		}
		fmt.Fprintf(&b, "\n## %s\n%s\n", part[0], text)
	}
	return b.Bytes()
}
