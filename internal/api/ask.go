package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"swarm"
	"swarm/internal/httpd"
	"swarm/internal/strictjson"
)

// Of lists, so many are given at once.
const (
	usualPage = 100
	mostPage  = 1000
)

// A question is the part of a request behind its "?". The first thing that is wrong with it is kept, so that it can be read without a
// branch after each word.
type question struct {
	values url.Values
	err    error
}

// ask reads a question that has no other words than these.
func ask(r *http.Request, words ...string) *question {
	q := &question{values: r.URL.Query()}
	for command, all := range q.values {
		switch {
		case !slices.Contains(words, command):
			q.fail(swarm.Errorf(swarm.BadInput, "there is no parameter %s here", swarm.Quote(command)).WithHint("%s", swarm.DidYouMean(command, words)))
		case len(all) > 1:
			q.fail(swarm.Errorf(swarm.BadInput, "the parameter %s is given twice", command).WithHint("several values are one list: %s=a,b", command))
		}
	}
	return q
}

func (q *question) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *question) text(command string) string { return q.values.Get(command) }

// number is a whole number, or otherwise when it is not given.
func (q *question) number(command string, otherwise, least, most int64) int64 {
	text := q.values.Get(command)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fail(swarm.Errorf(swarm.BadInput, "%s=%s is no number that is possible here", command, swarm.Quote(text)).WithHint("write a whole number from %d to %d", least, most))
		return otherwise
	}
	return n
}

// limit is how many of a list are wanted.
func (q *question) limit() int { return int(q.number("limit", usualPage, 1, mostPage)) }

// yes is a word that is true or false.
func (q *question) yes(command string) bool {
	switch text := q.values.Get(command); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.fail(swarm.Errorf(swarm.BadInput, "%s=%s is neither true nor false", command, swarm.Quote(text)))
		return false
	}
}

// page is the part of a list that comes after its first so many, and where the next part begins; 0 when there is none.
func page[T any](all []T, after int64, limit int) (some []T, next int64) {
	from := min(after, int64(len(all)))
	upto := min(from+int64(limit), int64(len(all)))
	if upto < int64(len(all)) {
		next = upto
	}
	return all[from:upto], next
}

// readBody reads a body as strictly as an envelope is read: one object, with no other fields than these, in their own spelling, none
// twice, and nothing after it. No bytes are an empty object.
func readBody(r *http.Request, into any, fields ...string) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	switch text = bytes.TrimSpace(text); {
	case len(text) == 0:
		return nil
	case text[0] != '{':
		return swarm.Errorf(swarm.BadInput, "the body is not one JSON object").WithHint("GET /openapi.json tells what it may be")
	}
	err = strictjson.ReadObject("the body", text, httpd.MaxBody, fields...).Into(into)
	if e := new(swarm.Error); errors.As(err, &e) && e.Hint == "" {
		return e.WithHint("GET /openapi.json tells what it may be")
	}
	return err
}
