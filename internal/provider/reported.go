package provider

import (
	"encoding/json"
	"math"

	"swarm"
)

// Reported is a part of an answer in which a server or program accounts for itself. A figure in it
// that cannot be read makes the account unusable, and never the answer: a call whose usage is
// nonsense was made all the same, and asking again would cost twice.
type Reported[T any] struct {
	Value    T    // as far as it could be read
	Given    bool // there is an account
	Unusable bool // a part of it could not be read
}

// UnmarshalJSON never fails. The decoder fills what it can read around a value of another type.
func (r *Reported[T]) UnmarshalJSON(data []byte) error {
	if string(data) != "null" {
		r.Given, r.Unusable = true, json.Unmarshal(data, &r.Value) != nil
	}
	return nil
}

const (
	maxCount   = 1 << 53 // above it JSON has no exact numbers
	maxDollars = 1e9
)

// Figures takes figures as they were reported. An impossible figure counts as not reported: it is
// 0, and the usage is an estimate.
type Figures struct {
	Unusable bool // one of them was
}

// Count is the sum of reported counts of tokens.
func (f *Figures) Count(counts ...int64) (sum int64) {
	for _, n := range counts {
		if n < 0 || n > maxCount {
			f.Unusable = true
			continue
		}
		sum += n
	}
	return sum
}

// CountOutput is the tokens of an output with those of its reasoning. Some programs count reasoning
// as a part of the output and others beside it. total, their own sum of all tokens, tells which; 0 =
// they report none.
func (f *Figures) CountOutput(in, out, reasoning, total int64) int64 {
	all := f.Count(out, reasoning)
	if reasoning > 0 && total > 0 && in+all > total {
		return f.Count(out)
	}
	return all
}

// Dollars is a reported cost.
func (f *Figures) Dollars(usd float64) float64 {
	if !(usd >= 0 && usd <= maxDollars) || math.IsNaN(usd) {
		f.Unusable = true
		return 0
	}
	return usd
}

// Usage is a usage of reported figures: tokens of the input, of the output, and those of the input
// that came from a cache.
func (f *Figures) Usage(in, out, cached int64, usd float64) swarm.Usage {
	return swarm.Usage{InputTokens: in, OutputTokens: out, CachedTokens: min(cached, in), USD: usd, Estimated: f.Unusable}
}
