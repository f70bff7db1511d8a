package run

import (
	"fmt"
	"strings"
	"time"

	"swarm"
	"swarm/internal/statedir"
	"swarm/internal/view"
)

// A Line is one line of a run's timeline: a line of a turn's output, or a change.
type Line struct {
	Time time.Time    `json:"time"`
	Task string       `json:"task,omitempty"`
	Turn swarm.TurnID `json:"turn,omitempty"`
	Kind string       `json:"kind"` // text, stderr, thinking, tool, …, gap, or the event's kind
	Text string       `json:"text"`
}

// Lines turns the entries of a timeline into lines. It emits a line when the line is complete, so
// that the lines of agents that speak at the same time do not mix.
type Lines struct {
	Fn func(Line) error

	begun []*Line // incomplete lines, in the order of their beginnings
}

// Take adds the next entry.
func (l *Lines) Take(m Entry) error {
	if m.Event != nil {
		text := view.DescribeEvent(m.Event)
		if err := l.end(m.Turn); err != nil || text == "" {
			return err
		}
		return l.Fn(Line{m.Time, m.Task, m.Turn, string(m.Event.Kind), text})
	}
	switch swarm.DeltaKind(m.Kind) {
	case swarm.DeltaText, swarm.DeltaStderr, swarm.DeltaThinking:
		return l.pieces(m)
	case statedir.Gap:
		m.Text = gapText(m.Gap)
	}
	if err := l.end(m.Turn); err != nil {
		return err
	}
	return l.Fn(Line{m.Time, m.Task, m.Turn, m.Kind, m.Text})
}

// pieces adds text to the line of its turn and kind, and emits every line that is complete.
func (l *Lines) pieces(m Entry) error {
	for text := m.Text; text != ""; {
		piece, rest, whole := strings.Cut(text, "\n")
		line := l.line(m)
		line.Time = m.Time
		line.Text += piece
		if text = rest; !whole {
			return nil
		}
		l.drop(line)
		if err := l.emit(line); err != nil {
			return err
		}
	}
	return nil
}

// line returns the incomplete line of the entry's turn and kind, or a new one.
func (l *Lines) line(m Entry) *Line {
	for _, b := range l.begun {
		if b.Turn == m.Turn && b.Kind == m.Kind {
			return b
		}
	}
	b := &Line{Task: m.Task, Turn: m.Turn, Kind: m.Kind}
	l.begun = append(l.begun, b)
	return b
}

func (l *Lines) drop(line *Line) {
	for i, b := range l.begun {
		if b == line {
			l.begun = append(l.begun[:i], l.begun[i+1:]...)
			return
		}
	}
}

func (l *Lines) emit(line *Line) error {
	line.Text = strings.TrimSuffix(line.Text, "\r")
	return l.Fn(*line)
}

// end emits the incomplete lines of a turn.
func (l *Lines) end(turn swarm.TurnID) error {
	for _, b := range append([]*Line(nil), l.begun...) {
		if b.Turn == turn && turn != "" {
			l.drop(b)
			if err := l.emit(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// End emits all incomplete lines.
func (l *Lines) End() error {
	for _, b := range l.begun {
		if err := l.emit(b); err != nil {
			return err
		}
	}
	l.begun = nil
	return nil
}

// gapText stands in for output that was not stored.
func gapText(n int64) string { return fmt.Sprintf("… %d bytes were not kept …", n) }
