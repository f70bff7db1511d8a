package desk

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"swarm"
)

const failedStart = "## Why Attempt "

// ExplainFailure adds to the instructions why an attempt failed. The reason is quoted, because the
// worker wrote it: no line of it can look like a section. An attempt that is explained already is not
// explained again, so that a crash in the middle of [Desk.Reset] adds nothing twice.
func (d *Desk) ExplainFailure(attempt int, why Failure) error {
	text, err := d.read(InstructionsFile, MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.unusable(InstructionsFile, err)
	}
	head := failedHead(attempt)
	if d.Explains(attempt) {
		return nil
	}
	var b strings.Builder
	b.Write(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		b.WriteString("\n")
	}
	b.WriteString("\n" + head + "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(why.String()), "\n") {
		b.WriteString("> " + strings.TrimRight(line, "\r") + "\n")
	}
	if b.Len() > MaxFile {
		return swarm.Errorf(swarm.BadInput, "the instructions of %s have no room for another failure", d.Name())
	}
	return d.write(InstructionsFile, []byte(b.String()))
}

func failedHead(attempt int) string { return fmt.Sprintf("%s%d Failed", failedStart, attempt) }

// Explains reports whether the instructions say why an attempt failed.
func (d *Desk) Explains(attempt int) bool {
	text, _ := d.read(InstructionsFile, MaxFile)
	_, _, all := splitSections(string(text))
	return slices.ContainsFunc(all, func(s section) bool { return s.head == failedHead(attempt) })
}

// Attempts counts the failed attempts that the instructions tell of.
func (d *Desk) Attempts() int {
	text, _ := d.read(InstructionsFile, MaxFile)
	_, _, all := splitSections(string(text))
	n := 0
	for _, s := range all {
		if strings.HasPrefix(s.head, failedStart) {
			n++
		}
	}
	return n
}
