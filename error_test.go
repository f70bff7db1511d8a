package swarm_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"swarm"
)

func TestErrorfKeepsItsCause(t *testing.T) {
	err := swarm.Errorf(swarm.Storage, "the turn cannot end: %w", swarm.ErrFenced)
	if !errors.Is(err, swarm.ErrFenced) {
		t.Error("the cause is lost")
	}
	if want := "the turn cannot end: the run has another owner now"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	err.Msg = "redacted"
	if err.Error() != "redacted" {
		t.Errorf("the cause's text shows beside a message that was replaced: %q", err)
	}
}

func TestBodyNamesTheEventThatCannotBeRead(t *testing.T) {
	e := swarm.NewEvent(swarm.Notice, swarm.Reason{Reason: "a < b"})
	if want := `{"reason":"a < b"}`; string(e.Data) != want {
		t.Errorf("%s, want %s", e.Data, want)
	}
	if got, err := swarm.Body[swarm.Reason](&e); err != nil || got.Reason != "a < b" {
		t.Errorf("%v, %v", got, err)
	}
	e.Seq, e.Data = 7, []byte(`{"reason":`)
	_, err := swarm.Body[swarm.Reason](&e)
	if want := "event 7 (notice) cannot be read: unexpected end of JSON input"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if swarm.KindOf(err) != swarm.Storage {
		t.Errorf("kind %s", swarm.KindOf(err))
	}
}

func TestHintsAndCausesOfWrappedErrors(t *testing.T) {
	err := fmt.Errorf("on top: %w", swarm.Errorf(swarm.NotFound, "gone").WithHint("look elsewhere"))
	if hint := swarm.HintOf(err); hint != "look elsewhere" {
		t.Errorf("the hint is %q", hint)
	}
	if hint := swarm.HintOf(errors.New("plain")) + swarm.HintOf(nil); hint != "" {
		t.Errorf("an error without a hint has %q", hint)
	}
	cause := errors.New("refused")
	if got := swarm.WithoutURL(&url.Error{Op: "Get", URL: "http://h/?key=k", Err: cause}); got != cause {
		t.Errorf("without the URL it is %v", got)
	}
	if got := swarm.WithoutURL(cause); got != cause {
		t.Errorf("an error without a URL is %v", got)
	}
}
