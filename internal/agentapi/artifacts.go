package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"swarm"
	"swarm/internal/excerpt"
	"swarm/internal/mail"
	"swarm/internal/strictjson"
)

// Limits of artifacts.
const (
	MaxArtifact = 4 << 20 // bytes of an artifact
	maxTitle    = 200     // bytes of an artifact's name

	readBytes = 64 << 10  // of an artifact per call, by default
	mostBytes = 256 << 10 // of an artifact per call, at most
)

// append appends a batch and returns the sequence number of its last event. If the log has another
// body under that event's key, append returns the stored event and its number. The caller decides
// whether the two mean the same.
func (s *Service) append(ctx context.Context, b swarm.Batch) (seq int64, there *swarm.Event, err error) {
	seqs, err := s.Log.Append(ctx, b)
	if err == nil {
		return seqs[len(seqs)-1], nil, nil
	}
	if !errors.Is(err, swarm.ErrConflict) {
		return 0, nil, err
	}
	e := b.Events[len(b.Events)-1]
	found, ok, err := s.Log.Find(e.Key)
	if err == nil && !ok {
		err = swarm.Errorf(swarm.Storage, "the log refuses %s and does not have it", e.Key).WithHint("try once more") // another event of the batch was stored meanwhile
	}
	if err != nil {
		return 0, nil, err
	}
	if found.Kind != e.Kind {
		return 0, nil, swarm.ErrConflict
	}
	return found.Seq, &found, nil
}

const putDescription = "Store a text that is too long for a message: a diff, a log, a report. The answer is its ref, which you send along in artifacts with " +
	"send_handoff, or name in what you say; whoever has the ref can read it with read_artifact. " +
	"A contextpack is what others have to know before they work; its ref goes into contextRef of send_handoff, and its receiver has it in its prompt. " +
	`Its content is JSON: {"goal": "…", "definitionOfDone": ["…"], "docRefs": [{"path": "…", "excerpt": "…"}], "repoFacts": {"language": "…"}, ` +
	`"relevantFiles": [{"path": "…", "summary": "…"}], "inputs": [{"payloadId": "…"}], "artifacts": [{"id": "artifact://…"}], "constraints": {"noNewDependencies": true}}; ` +
	`only goal is needed. With "extends": ["contextpack://pack/ID"] it goes on from a pack that is there, and says only what is more. Refer to texts rather than ` +
	"copying them: what is over about 6000 tokens is left out, and the answer says what."

const putSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["kind", "name", "content"],
  "properties": {
    "kind": {"type": "string", "enum": ["diff", "log", "report", "transcript", "prompt", "contextpack", "file"]},
    "name": {"type": "string", "description": "What people call it: plan.md, test run, …"},
    "content": {"type": "string", "description": "The text, at most 4 MB."}
  }
}`

// kinds are the kinds of artifacts.
var kinds = []string{"diff", "log", "report", "transcript", "prompt", contextPack, "file"}

const contextPack = "contextpack"

// A putResult answers put_artifact.
type putResult struct {
	Ref     string          `json:"ref"`
	Tokens  int64           `json:"tokens,omitempty"`  // of a context pack
	LeftOut []swarm.LeftOut `json:"leftOut,omitempty"` // parts that did not fit
	More    int             `json:"more,omitempty"`    // number of further parts that did not fit
}

// putArtifact stores a text as an artifact.
func putArtifact(ctx context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "kind", "name", "content")
	a.Need("kind", "name", "content")
	kind, name, content := a.Text("kind"), a.Text("name"), []byte(a.Text("content"))
	if err := a.Err(); err != nil {
		return nil, err
	}
	if strings.EqualFold(kind, contextPack) {
		return h.putPack(ctx, name, content)
	}
	ref, err := h.put(ctx, h.by(), kind, name, content)
	return putResult{Ref: ref}, err
}

// put stores bytes as an artifact of the agent that by names. The same bytes of the same kind are
// one artifact, under its first name.
func (h *TurnHandle) put(ctx context.Context, by swarm.Event, kind, name string, content []byte) (ref string, err error) {
	record, it, content, err := h.service.record(by, kind, name, content)
	if err != nil {
		return "", err
	}
	b := swarm.Batch{Events: []swarm.Event{record}}
	if len(content) > 0 { // every log has the empty body
		b.Bodies = [][]byte{content}
	}
	_, before, err := h.append(ctx, b)
	if err != nil {
		return "", err
	}
	if before != nil {
		first, err := swarm.Body[swarm.Artifact](before)
		if err != nil {
			return "", err
		}
		return it.Ref, sameText(first, it)
	}
	return it.Ref, nil
}

// sameText returns an error if two different texts have the same ref.
func sameText(first, it swarm.Artifact) error {
	if first.Hash == it.Hash {
		return nil
	}
	return &swarm.Error{Kind: swarm.BadInput, Msg: "the ref " + it.Ref, Err: swarm.ErrConflict, Hint: "change the content a little"}
}

// record checks an artifact, removes secrets, and makes its event.
func (s *Service) record(by swarm.Event, kind, name string, content []byte) (swarm.Event, swarm.Artifact, []byte, error) {
	content = s.redact(content)
	name, err := s.title(name)
	switch kind = strings.ToLower(kind); {
	case !slices.Contains(kinds, kind):
		err = swarm.Errorf(swarm.BadInput, "there is no kind of artifact %s", swarm.Quote(kind)).WithHint("%s", swarm.DidYouMean(kind, kinds))
	case err != nil:
	case len(content) > MaxArtifact:
		err = swarm.Errorf(swarm.BadInput, "the content has %d bytes; %d are allowed", len(content), MaxArtifact).WithHint("store it in parts, or leave it in a file")
	}
	if err != nil {
		return swarm.Event{}, swarm.Artifact{}, nil, err
	}
	e, it := ArtifactEvent(by, kind, name, content)
	return e, it, content, nil
}

// enclose turns the texts that come with a message into artifacts and puts their refs into the
// draft. The returned batch must be appended with the message. Artifacts that the run has already
// are only referred to.
func (s *Service) enclose(by swarm.Event, d *mail.Draft) (with swarm.Batch, err error) {
	for _, in := range d.Enclosed {
		if strings.EqualFold(in.Kind, contextPack) {
			return with, swarm.Errorf(swarm.BadInput, "a context pack does not come with a message as a text").WithHint("store it with put_artifact, and send its ref as contextRef")
		}
		e, it, text, err := s.record(by, in.Kind, in.Name, in.Content)
		if err != nil {
			return with, err
		}
		d.Artifacts = append(d.Artifacts, swarm.ArtifactRef{Type: it.Kind, Ref: it.Ref})
		first, err := s.artifact(it.Ref)
		switch {
		case err == nil:
			err = sameText(first, it)
		case swarm.KindOf(err) == swarm.NotFound && !stores(with.Events, it.Ref):
			with.Events, err = append(with.Events, e), nil
			if len(text) > 0 { // every log has the empty body
				with.Bodies = append(with.Bodies, text)
			}
		case swarm.KindOf(err) == swarm.NotFound:
			err = nil
		}
		if err != nil {
			return with, err
		}
	}
	d.Enclosed = nil
	return with, nil
}

func stores(events []swarm.Event, ref string) bool {
	return slices.ContainsFunc(events, func(e swarm.Event) bool { return e.Key == ArtifactKey(ref) })
}

// title checks the display name of an artifact.
func (s *Service) title(name string) (string, error) {
	name = string(s.redact([]byte(strings.TrimSpace(name))))
	if name == "" || len(name) > maxTitle || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return "", swarm.Errorf(swarm.BadInput, "%s is not a name for an artifact", swarm.Quote(name)).WithHint("names are one line of at most %d bytes", maxTitle)
	}
	return name, nil
}

// ArtifactKey is the key of the event that an artifact was stored.
func ArtifactKey(ref string) string { return "artifact:" + ref }

const readDescription = "Read an artifact of this run by its ref (artifact://KIND/ID or contextpack://pack/ID). A long one comes in parts: when the answer has " +
	"next, call again with that as offset."

const readSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["ref"],
  "properties": {
    "ref": {"type": "string", "description": "The artifact's ref, as you were given it."},
    "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes; 0 when left out."},
    "max": {"type": "integer", "minimum": 1, "maximum": 262144, "description": "How many bytes at most; 65536 when left out."}
  }
}`

// A readResult answers read_artifact.
type readResult struct {
	Content string `json:"content"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"` // of the whole artifact
	Offset  int64  `json:"offset"`
	Next    int64  `json:"next,omitempty"` // offset of the next part; 0 = this is the last part
}

// readArtifact reads a part of an artifact.
func readArtifact(_ context.Context, h *TurnHandle, args json.RawMessage) (any, error) {
	a := strictjson.ReadArgs(args, "ref", "offset", "max")
	a.Need("ref")
	ref := strings.TrimSpace(a.Text("ref"))
	offset, most := a.Int("offset", 0, 0, 1<<40), a.Int("max", readBytes, 1, mostBytes)
	if err := a.Err(); err != nil {
		return nil, err
	}
	it, err := h.service.artifact(ref)
	if err != nil {
		return nil, err
	}
	text, err := h.service.Log.Body(it.Hash)
	if err != nil {
		return nil, err
	}
	from, to := window(text, offset, most)
	p := readResult{Content: string(text[from:to]), Kind: it.Kind, Name: it.Name, Bytes: int64(len(text)), Offset: int64(from)}
	if to < len(text) {
		p.Next = int64(to)
	}
	return p, nil
}

// artifact finds an artifact of this run by its ref.
func (s *Service) artifact(ref string) (it swarm.Artifact, err error) {
	it, ok, err := swarm.FindBody[swarm.Artifact](s.Log, ArtifactKey(ref))
	if err == nil && !ok {
		err = swarm.Errorf(swarm.NotFound, "there is no artifact %s in this run", swarm.Quote(ref)).
			WithHint("use a ref that put_artifact answered or that came with a message")
	}
	return it, err
}

// readable refuses an envelope that refers to an artifact its receiver could not read: the artifact
// is neither in this run nor in the same batch.
func (s *Service) readable(e swarm.Envelope, with []swarm.Event) error {
	for _, a := range e.Payload.Artifacts {
		if stores(with, a.Ref) {
			continue
		}
		_, err := s.artifact(a.Ref)
		if swarm.KindOf(err) != swarm.NotFound {
			if err != nil {
				return err
			}
			continue
		}
		refs, err := s.refs()
		if err != nil {
			return err
		}
		hint := "store it with put_artifact first, and send the ref that it answers; another run's cannot be used"
		if e.FromNodeID == swarm.User {
			hint = "send the file itself along: --artifact FILE; `swarm artifact ls` lists those of the run"
		}
		if near := swarm.Nearest(a.Ref, refs); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return swarm.Errorf(swarm.BadInput, "there is no artifact %s in this run", swarm.Quote(a.Ref)).WithHint("%s", hint)
	}
	return nil
}

// refs lists the refs of all artifacts. It reads the whole log, so only the error path calls it.
func (s *Service) refs() (all []string, err error) {
	for e, err := range swarm.Events(s.Log, 0) {
		if err != nil {
			return nil, err
		}
		if e.Kind == swarm.ArtifactStored {
			all = append(all, strings.TrimPrefix(e.Key, ArtifactKey("")))
		}
	}
	return all, nil
}

// window returns the range of at most most bytes from an offset, cut between runes. It has at least
// one rune, so a client that reads part by part always gets to the end.
func window(text []byte, offset, most int64) (from, to int) {
	from = int(min(offset, int64(len(text))))
	from += excerpt.RestOfRune(text[from:])
	to = from + excerpt.CutAt(text[from:], int(min(most, int64(len(text)))))
	if to == from && to < len(text) {
		_, size := utf8.DecodeRune(text[from:])
		to = from + size
	}
	return from, to
}
