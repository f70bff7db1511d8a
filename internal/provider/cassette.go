package provider

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"swarm"
	"swarm/internal/strictjson"
)

// A Cassette is a recorded run: its turns by their ids. As a file it is lines of JSON, the first a header and then one for each
// turn, made by a [Recording] and meant to be kept beside a project and read by people.
type Cassette struct {
	Header CassetteHeader
	file   string
	turns  map[string]RecordedTurn
	order  []string // of the turns
	places []string // of the turns, and of what was answered between them
}

// CassetteVersion is the only one there is.
const CassetteVersion = 1

// CassetteHeader is the first line.
type CassetteHeader struct {
	Version int         `json:"swarm_cassette"`
	Run     swarm.RunID `json:"run,omitempty"`     // the run that was recorded
	Name    string      `json:"name,omitempty"`    // its pipeline
	Program string      `json:"program,omitempty"` // the version of the program that recorded it
	// Pack is the context pack that went with a team's goal: it tells of the folder as it was then.
	Pack json.RawMessage `json:"pack,omitempty"`
}

// A RecordedTurn is everything that a replay needs of a turn.
type RecordedTurn struct {
	Turn       string          `json:"turn"` // its id
	Agent      string          `json:"agent,omitempty"`
	Prompt     Text            `json:"prompt"`
	PromptHash swarm.Hash      `json:"prompt_hash"` // filled in by Write when it is ""
	Output     Text            `json:"output"`      // what was kept of it
	Bytes      int64           `json:"bytes"`       // how long it was; filled in by Write when it is 0
	Usage      swarm.Usage     `json:"usage,omitzero"`
	Session    string          `json:"session,omitempty"`
	Exit       int             `json:"exit,omitempty"`
	Kind       swarm.ErrorKind `json:"kind,omitempty"` // of its failure; "" = it did not fail
	Reason     string          `json:"reason,omitempty"`
	Hint       string          `json:"hint,omitempty"`
	Verdicts   []swarm.Verdict `json:"verdicts,omitempty"`
	Tools      []swarm.ToolUse `json:"tools,omitempty"`   // in their order
	Mail       []string        `json:"mail,omitempty"`    // the envelopes in its prompt, by their refs
	Read       []string        `json:"read,omitempty"`    // those that it read by a tool, or was given between two
	Asides     []Aside         `json:"asides,omitempty"`  // what of it was given between two
	Acts       []Act           `json:"acts,omitempty"`    // what it did to its run by our own tools, in order
	Topics     int             `json:"topics,omitempty"`  // how many topic entries there were when its prompt was made
	Answers    []string        `json:"answers,omitempty"` // growth requests that were dealt with after the turn before it had begun, and before this one
}

// An Act is one call of our own tools. A replay does it again, because others read what came of it.
type Act struct {
	Tool  string          `json:"tool"`
	Args  json.RawMessage `json:"args"`
	To    string          `json:"to,omitempty"`    // of an envelope: whose inbox it came into
	After int             `json:"after,omitempty"` // and after how many others
	// Published is, of a topic entry, how many there were before it.
	Published int `json:"published,omitempty"`
	// Answer is what was answered to a growth request; who made it was told of it after so many other envelopes as Told says.
	Answer *swarm.ApprovalAnswer `json:"answer,omitempty"`
	Told   int                   `json:"told,omitempty"`
}

// OthersMail is an act that is no tool's: an envelope of a person, which came while the turn ran or after it, or of the run itself about
// the turn.
const OthersMail = "mail"

// OthersFinding is an act that is no tool's: a topic entry of a person, which came while the turn ran or after it.
const OthersFinding = "finding"

// An Aside is mail that the turn was given beside the answer of a tool.
type Aside struct {
	Tool string   `json:"tool"`
	Mail []string `json:"mail"` // the envelopes, by their refs; they stand in Read too
	Text Text     `json:"text"`
}

// Text is bytes that are a JSON string when they are UTF-8, and {"base64": "…"} when they are not, so that none is changed.
type Text string

// MarshalJSON writes them.
func (t Text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(rawText{[]byte(t)})
	}
	return swarm.Encode(string(t)), nil
}

// UnmarshalJSON reads them.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw rawText
		err := strictjson.Decode(b, &raw)
		*t = Text(raw.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

type rawText struct {
	Base64 []byte `json:"base64"`
}

// A Recording is a cassette that is being written. The file appears, whole and on disk, when it is closed.
type Recording struct {
	path string
	temp *os.File
	buf  *bufio.Writer
	err  error
}

// Record begins a cassette. A file that is there is replaced at the end, and not before.
func Record(path string, h CassetteHeader) (*Recording, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), ".cassette-*")
	if err != nil {
		return nil, &swarm.Error{Kind: swarm.Storage, Msg: "the recording cannot be written", Hint: "choose a folder that is there and may be written to", Err: err}
	}
	h.Version = CassetteVersion
	r := &Recording{path: path, temp: temp, buf: bufio.NewWriterSize(temp, 64<<10)}
	r.line(h)
	return r, r.err
}

// Write adds a turn.
func (r *Recording) Write(t RecordedTurn) error {
	if t.PromptHash == "" {
		t.PromptHash = swarm.HashOf([]byte(t.Prompt))
	}
	t.Bytes = max(t.Bytes, int64(len(t.Output)))
	r.line(t)
	return r.err
}

func (r *Recording) line(v any) {
	if r.err != nil {
		return
	}
	counted := counter{w: r.buf}
	e := json.NewEncoder(&counted)
	e.SetEscapeHTML(false)
	if r.err = e.Encode(v); r.err == nil && counted.n > maxLine {
		r.err = swarm.Errorf(swarm.BadInput, "a turn has %d MB with all that it stored, and a cassette has room for %d MB of each", counted.n>>20, maxLine>>20).
			WithHint("have the agent leave large texts in files, or store them in several turns")
	}
}

// A counter counts what goes through it.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}

// Close puts the cassette in its place. After an error nothing is changed.
func (r *Recording) Close() error {
	for _, step := range []func() error{
		r.buf.Flush,
		func() error { return r.temp.Chmod(0o644) },
		r.temp.Sync,
		r.temp.Close,
		func() error { return os.Rename(r.temp.Name(), r.path) },
		func() error { return syncFolder(filepath.Dir(r.path)) },
	} {
		if r.err == nil {
			r.err = step()
		}
	}
	if r.err != nil {
		r.Discard()
		if e, ok := errors.AsType[*swarm.Error](r.err); ok {
			return e
		}
		return &swarm.Error{Kind: swarm.Storage, File: r.path, Msg: "the recording could not be written", Hint: "is the disk full?", Err: r.err}
	}
	return nil
}

// Discard gives the recording up.
func (r *Recording) Discard() {
	r.temp.Close()
	_ = os.Remove(r.temp.Name())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// How long lines of a cassette may be: a turn's is the longest prompt, each of its bytes written as six, and as much again.
const (
	maxHeader = 1 << 20
	maxLine   = 64 << 20
)

// OpenCassette reads a cassette. It is strict: a line that is not what a recording writes is an error that names it.
func OpenCassette(r io.Reader) (*Cassette, error) {
	c := &Cassette{turns: map[string]RecordedTurn{}}
	if f, ok := r.(interface{ Name() string }); ok {
		c.file = f.Name()
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	longest := maxHeader
	for n := 1; ; n++ {
		line, whole, err := readLine(lines, longest)
		longest = maxLine
		switch {
		case err != nil:
			return nil, &swarm.Error{Kind: swarm.BadInput, File: c.file, Line: n, Msg: "the cassette cannot be read", Err: err}
		case len(line) == 0 && !whole && n == 1:
			return nil, c.fail(n, "the cassette is empty")
		case len(line) == 0 && !whole:
			return c, nil
		case n == 1:
			err = c.readHeader(line)
		default:
			err = c.readTurn(line, n)
		}
		switch {
		case err != nil && !whole:
			return nil, c.fail(n, "the cassette is cut off in this line").WithHint("copy it again, or record the run again with --record")
		case err != nil:
			return nil, err
		}
	}
}

// readLine is the next line without its newline; whole is whether there was one.
func readLine(r *bufio.Reader, longest int) (line []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > longest:
			return nil, false, fmt.Errorf("a line is longer than %d KB", longest>>10)
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, io.EOF):
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

func (c *Cassette) fail(line int, format string, args ...any) *swarm.Error {
	return &swarm.Error{Kind: swarm.BadInput, File: c.file, Line: line, Msg: fmt.Sprintf(format, args...), Hint: "record the run again with --record"}
}

func (c *Cassette) readHeader(line []byte) error {
	// A header with more in it is a newer one; which version it has is worth saying before what else is wrong with it.
	var version struct {
		Version *int `json:"swarm_cassette"`
	}
	if json.Unmarshal(line, &version) != nil || version.Version == nil {
		return c.fail(1, "this is not a cassette: its first line is not {\"swarm_cassette\":%d,…}", CassetteVersion).WithHint("make one with --record FILE")
	}
	if *version.Version != CassetteVersion {
		return c.fail(1, "the cassette has version %d, and this program reads version %d", *version.Version, CassetteVersion).
			WithHint("use the program that recorded it, or record the run again with --record")
	}
	if err := strictjson.Decode(line, &c.Header); err != nil {
		return c.fail(1, "the cassette's header: %v", err)
	}
	return nil
}

// turnKinds are how a recorded turn can have failed, or been cut. The others tell of the process that drove it.
var turnKinds = []swarm.ErrorKind{swarm.BadInput, swarm.NotFound, swarm.NotSignedIn, swarm.Exited, swarm.Crashed, swarm.NoResult, swarm.Protocol, swarm.Denied,
	swarm.RateLimited, swarm.TimedOut, swarm.Unexpected, swarm.BadPrompt, swarm.WaitFailed, swarm.OverBudget, swarm.Mismatch,
	swarm.CutByCancel, swarm.CutToSpeak, swarm.CutToReset, swarm.Other}

func (c *Cassette) readTurn(line []byte, n int) error {
	var t RecordedTurn
	if err := strictjson.Decode(line, &t); err != nil {
		return c.fail(n, "this is not a recorded turn: %v", err)
	}
	switch _, twice := c.turns[t.Turn]; {
	case t.Turn == "":
		return c.fail(n, "the recorded turn has no id")
	case twice:
		return c.fail(n, "the turn %s is recorded twice", t.Turn)
	case t.Kind != "" && !slices.Contains(turnKinds, t.Kind):
		return c.fail(n, "the turn %s has the kind %s, and no turn fails like that", t.Turn, swarm.Quote(string(t.Kind)))
	case t.PromptHash != swarm.HashOf([]byte(t.Prompt)):
		return c.fail(n, "the prompt of the turn %s was changed after it was recorded: its hash is another", t.Turn)
	case t.Bytes < int64(len(t.Output)):
		return c.fail(n, "the output of the turn %s is longer than its %s bytes", t.Turn, strconv.FormatInt(t.Bytes, 10))
	}
	c.turns[t.Turn] = t
	c.order = append(c.order, t.Turn)
	for _, wish := range t.Answers {
		c.places = append(c.places, swarm.AnswerPlace(wish))
	}
	c.places = append(c.places, t.Turn)
	return nil
}
