package desk

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"unicode/utf8"

	"swarm"
)

// inFile gives an error its file, and its line and column if it says where JSON goes wrong.
func (d *Desk) inFile(name string, text []byte, err error) *swarm.Error {
	e := &swarm.Error{Kind: swarm.KindOf(err), Msg: err.Error(), Hint: swarm.HintOf(err)}
	if ours, ok := errors.AsType[*swarm.Error](err); ok {
		e.Msg = ours.Text()
	}
	e.File = filepath.Join(d.path, name)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		e.Line, e.Column = position(text, int(syntax.Offset)-1)
	}
	return e
}

// position returns line and column of a byte, both from 1.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(max(offset, 0), len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// find returns the position of a field of the outermost object, or 0.
func find(text []byte, field string) (line, column int) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, 0
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, 0
		}
		end := int(d.InputOffset())
		if key == field {
			return position(text, max(end-len(swarm.Encode(field)), 0))
		}
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			return 0, 0
		}
	}
	return 0, 0
}
