package model

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// An option is a part of a request that some models refuse. The request is sent again without it,
// and no later request to that model has it.
type option string

const (
	optPrefill     option = "prefill"     // the beginning of the answer: newer models only answer a user's message
	optTemperature option = "temperature" // models that reason take none
	optOldLimit    option = "max_tokens"  // the older name of max_completion_tokens
	optEncrypted   option = "encrypted"   // encrypted reasoning
	optImages      option = "images"      // images of tools
	optUsage       option = "usage"       // stream_options, which asks for the usage at the end of a stream
	optCache       option = "cache"       // cache_control, which marks the places to cache
)

// fieldOption is the option to return a field that the server has sent itself.
func fieldOption(name string) option { return option("field " + name) }

// errOption ends a request that is sent again without an option.
var errOption = errors.New("the model refuses a part of the request")

// A refusals remembers the options that models have refused.
type refusals struct{ models sync.Map }

type refusal struct {
	model string
	option
}

// leftOut returns the options that a model has refused.
func (r *refusals) leftOut(model string) map[option]bool {
	all := map[option]bool{}
	r.models.Range(func(key, _ any) bool {
		if k := key.(refusal); k.model == model {
			all[k.option] = true
		}
		return true
	})
	return all
}

// leaveOut leaves an option out of this conversation, and of later ones.
func (t *turn) leaveOut(o option) {
	t.refusals.models.Store(refusal{t.conversation.model, o}, true)
	t.conversation.leftOut[o] = true
}

// refusedOption returns the option that a server refuses, or "". A setting in the user's own file is
// never left out: its author has to know that it has no effect.
func (t *turn) refusedOption(status int, p *problem) option {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return ""
	}
	c, words := &t.conversation, strings.ToLower(p.Message)
	o := t.dialect.refused(c, words)
	if c.temperature != nil && t.spec.Temperature == nil && strings.Contains(words, "temperature") {
		o = optTemperature
	}
	if t.spec.Images == nil && c.hasImages() && strings.Contains(words, "image") {
		o = optImages
	}
	if c.leftOut[o] {
		return ""
	}
	return o
}

var fieldRefusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`unsupported|not supported|unknown|unrecognized|unexpected|not (allowed|permitted)|extra`)
})

// refusesField says whether words of a server, in lower case, refuse a field.
func refusesField(words string) bool { return fieldRefusal().MatchString(words) }

// sentTemperature returns the temperature of a request, or nil.
func (c *conversation) sentTemperature() *float64 {
	if c.leftOut[optTemperature] {
		return nil
	}
	return c.temperature
}

// sentPrefill returns the beginning of the answer, or "".
func (c *conversation) sentPrefill() string {
	if c.leftOut[optPrefill] {
		return ""
	}
	return c.prefill
}
