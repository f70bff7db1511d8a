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

// The default and the maximum number of items in one page of a list.
const (
	usualPage = 100
	mostPage  = 1000
)

// A question holds the query parameters of a request. It keeps the first error, so that handlers
// read all parameters first and check for an error once.
type question struct {
	values url.Values
	err    error
}

// ask reads the query parameters of a request. Parameters other than these names are refused.
func ask(r *http.Request, names ...string) *question {
	q := &question{values: r.URL.Query()}
	for name, all := range q.values {
		switch {
		case !slices.Contains(names, name):
			q.fail(swarm.Errorf(swarm.BadInput, "there is no parameter %s here", swarm.Quote(name)).WithHint("%s", swarm.DidYouMean(name, names)))
		case len(all) > 1:
			q.fail(swarm.Errorf(swarm.BadInput, "the parameter %s is given twice", name).WithHint("several values are one list: %s=a,b", name))
		}
	}
	return q
}

func (q *question) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

func (q *question) text(name string) string { return q.values.Get(name) }

// number reads a whole number. The default is otherwise.
func (q *question) number(name string, otherwise, least, most int64) int64 {
	text := q.values.Get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		q.fail(swarm.Errorf(swarm.BadInput, "%s=%s is no number that is possible here", name, swarm.Quote(text)).WithHint("write a whole number from %d to %d", least, most))
		return otherwise
	}
	return n
}

// limit reads the maximum number of items in a page.
func (q *question) limit() int { return int(q.number("limit", usualPage, 1, mostPage)) }

// yes reads a boolean. The default is false.
func (q *question) yes(name string) bool {
	switch text := q.values.Get(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.fail(swarm.Errorf(swarm.BadInput, "%s=%s is neither true nor false", name, swarm.Quote(text)))
		return false
	}
}

// page returns at most limit items of a list after its first `after` items. Next is the value of
// after for the next page, or 0 when this is the last one.
func page[T any](all []T, after int64, limit int) (some []T, next int64) {
	from := min(after, int64(len(all)))
	upto := min(from+int64(limit), int64(len(all)))
	if upto < int64(len(all)) {
		next = upto
	}
	return all[from:upto], next
}

// readBody reads a body as strictly as an envelope: one JSON object with only these fields, in
// their exact spelling, none twice, and nothing after it. An empty body counts as an empty object.
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
