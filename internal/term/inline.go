package term

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// An inlineRenderer draws frames below what is in the terminal already, and lines above the frame,
// which stay. bubbletea's own renderer clears the screen when lines are inserted or a frame becomes
// shorter; tmux keeps what a cleared screen held, so that old frames stay in its scrollback. This one
// erases single lines only.
//
// The cursor rests at the beginning of the line below the frame.
type inlineRenderer struct {
	out   io.Writer
	above func(width int) string // takes the lines that are to be printed above the frame
	frame []string               // the lines on the screen
	width int                    // of the terminal when they were drawn
	begun bool
}

const (
	eraseLine   = "\x1b[2K"
	beginUpdate = ansi.SetModeSynchronizedOutput // a terminal that knows it draws the update at once
	endUpdate   = ansi.ResetModeSynchronizedOutput
	takeKeys    = ansi.HideCursor + ansi.SetModeBracketedPaste
	giveKeys    = ansi.ResetModeBracketedPaste + ansi.ShowCursor
)

// draw writes lines above the frame, and then the frame. above is "" or ends with a newline.
func (r *inlineRenderer) draw(above, frame string, width, height int) error {
	lines := strings.Split(frame, "\n")
	if most := max(1, height-1); len(lines) > most {
		lines = lines[:most]
	}
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], width, "") // a line that wraps would be two rows
	}
	if above == "" && width == r.width && slices.Equal(lines, r.frame) {
		return nil
	}
	var b strings.Builder
	if !r.begun {
		r.begun = true
		b.WriteString(takeKeys)
	}
	if above != "" || width != r.width {
		r.erase(&b, width, height)
		b.WriteString(strings.ReplaceAll(above, "\n", "\r\n"))
	}
	up(&b, len(r.frame))
	for i, line := range lines {
		if i >= len(r.frame) || r.frame[i] != line {
			b.WriteString(eraseLine + line)
		}
		b.WriteString("\r\n")
	}
	for range max(0, len(r.frame)-len(lines)) {
		b.WriteString(eraseLine + "\r\n")
	}
	up(&b, len(r.frame)-len(lines))
	r.frame, r.width = lines, width
	return r.write(b.String())
}

// end writes the last lines in the place of the frame, and gives the keys back.
func (r *inlineRenderer) end(above string, width, height int) error {
	var b strings.Builder
	if r.begun {
		r.erase(&b, width, height)
	}
	b.WriteString(strings.ReplaceAll(above, "\n", "\r\n"))
	if r.begun {
		b.WriteString(giveKeys)
	}
	r.begun = false
	return r.write(b.String())
}

// erase erases the frame and moves the cursor to its first line.
func (r *inlineRenderer) erase(b *strings.Builder, width, height int) {
	rows := min(r.rows(width), max(0, height-1))
	up(b, rows)
	for range rows {
		b.WriteString(eraseLine + "\r\n")
	}
	b.WriteString(eraseLine)
	up(b, rows)
	r.frame = nil
}

// rows returns how many rows of the terminal the frame has. A terminal that became narrower has wrapped
// its lines.
func (r *inlineRenderer) rows(width int) (rows int) {
	if width <= 0 || width >= r.width {
		return len(r.frame)
	}
	for _, line := range r.frame {
		rows += max(1, (ansi.StringWidth(line)+width-1)/width)
	}
	return rows
}

func (r *inlineRenderer) write(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(r.out, beginUpdate+text+endUpdate)
	return err
}

// up moves the cursor to the beginning of a line above.
func up(b *strings.Builder, lines int) {
	if b.WriteByte('\r'); lines > 0 {
		b.WriteString(ansi.CursorUp(lines))
	}
}

// mute returns an output that drops what bubbletea draws. It is still the terminal, so that bubbletea
// asks it for its size.
func mute(out io.Writer) io.Writer {
	if f, ok := out.(*os.File); ok {
		return mutedFile{f}
	}
	return io.Discard
}

type mutedFile struct{ *os.File }

func (mutedFile) Write(b []byte) (int, error)            { return len(b), nil }
func (mutedFile) WriteString(s string) (int, error)      { return len(s), nil }
func (mutedFile) ReadFrom(from io.Reader) (int64, error) { return io.Copy(io.Discard, from) }
